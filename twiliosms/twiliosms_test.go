package twiliosms

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
)

var message = auth.Message{Kind: auth.KindPhoneCode, Channel: auth.ChannelSMS, To: "+4930123456", Text: "123456 is your code", Code: "123456"}

// api responds as Twilio does, status by status.
func api(t *testing.T, statuses ...int) (*Sender, *[]http.Header, *[]time.Duration) {
	t.Helper()
	var seen []http.Header
	var pauses []time.Duration
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sid, token, _ := r.BasicAuth()
		if sid != "AC1" || token != "s3cret" || r.URL.Path != "/2010-04-01/Accounts/AC1/Messages.json" || r.Method != http.MethodPost {
			t.Errorf("%s %s by %q", r.Method, r.URL, sid)
		}
		if r.FormValue("To") != message.To || r.FormValue("Body") != message.Text || r.FormValue("From") != "+15550100" {
			t.Errorf("form %v", r.Form)
		}
		seen = append(seen, r.Header)
		status := statuses[min(len(seen), len(statuses))-1]
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"code":21211,"message":"status %d","status":%d}`, status, status)
	}))
	t.Cleanup(srv.Close)
	s := New("AC1", "s3cret", "+15550100", WithURL(srv.URL))
	s.pause = func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil }
	return s, &seen, &pauses
}

func TestSend(t *testing.T) {
	for name, c := range map[string]struct {
		statuses  []int
		tries     int
		fails     bool
		permanent bool
	}{
		"sent":           {[]int{201}, 1, false, false},
		"busy, then yes": {[]int{429, 503, 201}, 3, false, false},
		"busy":           {[]int{429}, 3, true, false},
		"down":           {[]int{500}, 3, true, false},
		"bad number":     {[]int{400}, 1, true, true},
		"bad token":      {[]int{401}, 1, true, true},
		"sent elsewhere": {[]int{300}, 1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, seen, pauses := api(t, c.statuses...)
			err := s.Send(t.Context(), message)
			if (err != nil) != c.fails || auth.IsPermanent(err) != c.permanent || len(*seen) != c.tries {
				t.Errorf("%v after %d tries", err, len(*seen))
			}
			var e *Error
			if c.fails && (!errors.As(err, &e) || e.Code != 21211 || e.Message != fmt.Sprintf("status %d", e.Status) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "123456")) {
				t.Errorf("error %v", err)
			}
			for _, d := range *pauses {
				if d != 2*time.Second {
					t.Errorf("paused %v", d)
				}
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer srv.Close()
	defer close(release)
	s := New("AC1", "s3cret", "", WithMessagingService("MG1"), WithURL(srv.URL), WithTimeout(20*time.Millisecond))
	if err := s.Send(t.Context(), message); !errors.Is(err, context.DeadlineExceeded) || auth.IsPermanent(err) {
		t.Errorf("error %v", err)
	}
}

func TestValidate(t *testing.T) {
	for name, s := range map[string]*Sender{
		"nothing": New("", "", ""), "no account": New("", "x", "+1"), "no token": New("AC1", "", "+1"), "no sender": New("AC1", "x", ""), "two senders": New("AC1", "x", "+1", WithMessagingService("MG1")),
	} {
		if s.Validate() == nil || !auth.IsPermanent(s.Send(t.Context(), message)) {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestPauseEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pause(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
