package twiliosms

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// The documented defaults and options.
func TestDefaults(t *testing.T) {
	s := New("AC1", "s3cret", "+15550100")
	if s.url != "https://api.twilio.com" || s.timeout != 10*time.Second || s.maxAttempts != 3 || s.client == nil || s.client == http.DefaultClient || s.pause == nil {
		t.Errorf("%+v", s)
	}
	own := &http.Client{}
	s = New("AC1", "s3cret", "", WithURL("https://sms.test/"), WithTimeout(time.Minute), WithAttempts(7), WithHTTPClient(own), WithMessagingService("MG1"))
	if s.url != "https://sms.test" || s.timeout != time.Minute || s.maxAttempts != 7 || s.client != own || s.messagingService != "MG1" {
		t.Errorf("with options: %+v", s)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

func serve(t *testing.T, answer http.HandlerFunc, opts ...Option) *Sender {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	return New("AC1", "s3cret", "", append([]Option{WithURL(srv.URL), WithMessagingService("MG1")}, opts...)...)
}

// Pauses grow if the API names none, follow it otherwise, and never exceed half a minute.
func TestPauses(t *testing.T) {
	for after, want := range map[string][]time.Duration{
		"":      {500 * time.Millisecond, time.Second},
		"soon":  {500 * time.Millisecond, time.Second},
		"-5":    {500 * time.Millisecond, time.Second},
		"1":     {time.Second, time.Second},
		"30":    {30 * time.Second, 30 * time.Second},
		"31":    {30 * time.Second, 30 * time.Second},
		"86400": {30 * time.Second, 30 * time.Second},
	} {
		var pauses []time.Duration
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		s.pause = func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil }
		if err := s.Send(t.Context(), message); err == nil || !slices.Equal(pauses, want) {
			t.Errorf("Retry-After %q: paused %v, %v", after, pauses, err)
		}
	}
}

// A canceled Send ends during its pause and sends nothing more.
func TestCancelDuringPause(t *testing.T) {
	gone, tries := errors.New("gone"), 0
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		tries++
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s.pause = func(context.Context, time.Duration) error { return gone }
	if err := s.Send(t.Context(), message); !errors.Is(err, gone) || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// After a lost response the message may have been sent: a retry could send it twice.
func TestLostResponseIsNotRetried(t *testing.T) {
	tries, sender := 0, ""
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		tries++
		sender = r.FormValue("MessagingServiceSid") + r.FormValue("From")
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"sid"`))
	})
	if err := s.Send(t.Context(), message); err == nil || auth.IsPermanent(err) || tries != 1 || sender != "MG1" {
		t.Errorf("%v after %d tries, by %q", err, tries, sender)
	}
	s = New("AC1", "s3cret", "+15550100", WithURL("http://a b"))
	if err := s.Send(t.Context(), message); !auth.IsPermanent(err) {
		t.Errorf("no URL: %v", err)
	}
}
