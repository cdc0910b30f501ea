package authclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

// A key that the server refuses, and a missing one, show at the start and not at the first
// request.
func TestVerifierNeedsTheAPIKey(t *testing.T) {
	t.Parallel()
	s := newService(t, auth.WithAPIKeys("pk_live_0123456789"))
	for key, want := range map[string]struct{ err, log string }{
		"pk_live_0123456789": {},
		"pk_live_of_another": {err: "WithAPIKey: the server does not accept this key"},
		"":                   {log: "until WithAPIKey sets it"},
	} {
		var log bytes.Buffer
		_, err := NewVerifier(t.Context(), s.url, WithAPIKey(key), WithLogger(slog.New(slog.NewTextHandler(&log, nil))), func(c *config) { c.now = s.clock.Now })
		if (err != nil) != (want.err != "") || err != nil && !strings.Contains(err.Error(), want.err) || !strings.Contains(log.String(), want.log) || want.log == "" && strings.Contains(log.String(), "API key") {
			t.Errorf("%q: %v, log %s", key, err, log.String())
		}
	}
}

// NewVerifier says what is wrong with the feed, and where, and logs nothing in addition.
func TestVerifierSaysWhyItDoesNotStart(t *testing.T) {
	t.Parallel()
	s := newService(t)
	start := func(url, code string, opts ...Option) (*Verifier, string, error) {
		s.set(func(w http.ResponseWriter, r *http.Request, h http.Handler) {
			if !strings.HasSuffix(r.URL.Path, "/admin/revocations") {
				h.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(map[string]int{"not_found": 404}[code] + map[string]int{"missing_permission": 403}[code] + map[string]int{"revocations_unavailable": 503}[code])
			_, _ = io.WriteString(w, `{"code":"`+code+`","message":"x","details":{"permission":"auth.revocations.read"}}`)
		})
		var log harness.SyncBuffer
		opts = append([]Option{WithSecretKey("sk_live_x"), WithRevocations(RevocationOptions{FailClosed: true}), WithLogger(slog.New(slog.NewTextHandler(&log, nil))), func(c *config) { c.now = s.clock.Now }}, opts...)
		v, err := NewVerifier(t.Context(), url, opts...)
		return v, log.String(), err
	}
	for code, want := range map[string]string{"not_found": "mount the Handler of package admin", "missing_permission": "lack auth.revocations.read"} {
		if _, log, err := start(s.url, code); err == nil || !strings.Contains(err.Error(), want) || log != "" {
			t.Errorf("%s: %v, log %q", code, err, log)
		}
	}
	if text := advice(&Error{Code: auth.CodeRevocationsUnavailable}); !strings.Contains(text, "WatchRevocations") {
		t.Error(text)
	}
	lost := httptest.NewServer(http.NotFoundHandler())
	lost.Close()
	if _, log, err := start(lost.URL, "not_found"); err == nil || !strings.Contains(err.Error(), "the keys at "+lost.URL+"/auth/v1: ") || log != "" {
		t.Errorf("no server: %v, log %q", err, log)
	}
	// With WithLateStart the service starts at once, and an outage costs two lines, not one
	// for each request.
	began := time.Now()
	v, _, err := start(s.url, "revocations_unavailable", WithLateStart())
	if took := time.Since(began); err != nil || took >= startTime {
		t.Fatalf("late: %v after %v", err, took)
	}
	defer v.Close()
	var log harness.SyncBuffer
	v.wire.log = slog.New(slog.NewTextHandler(&log, nil))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+accessToken(t, signedIn(t, s, "ada@example.com")))
	w := httptest.NewRecorder()
	v.Require(http.NotFoundHandler()).ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || strings.Contains(log.String(), "request failed") {
		t.Errorf("%d, log %s", w.Code, log.String())
	}
}

// A server that accepts connections and never answers costs the start five seconds, or the
// time of the caller's context. A late start says in the log that the keys are missing.
func TestVerifierStartsInTime(t *testing.T) {
	t.Parallel()
	s := newService(t)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) }) // after the parallel cases
	s.set(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	for name, c := range map[string]struct {
		limit       time.Duration // of the context; 0: none
		late        bool
		least, most time.Duration
	}{
		"error": {0, false, startTime, startTime + 1500*time.Millisecond}, "late": {0, true, startTime, startTime + 1500*time.Millisecond},
		"error, own limit": {100 * time.Millisecond, false, 100 * time.Millisecond, 2 * time.Second}, "late, own limit": {100 * time.Millisecond, true, 100 * time.Millisecond, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.WithoutCancel(t.Context())
			if c.limit > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.limit)
				defer cancel()
			}
			var log harness.SyncBuffer
			opts := []Option{WithSecretKey("sk_live_x"), WithRevocations(RevocationOptions{}), WithLogger(slog.New(slog.NewTextHandler(&log, nil)))}
			if c.late {
				opts = append(opts, WithLateStart())
			}
			began := time.Now()
			v, err := NewVerifier(ctx, s.url, opts...)
			if took := time.Since(began); took < c.least || took > c.most {
				t.Errorf("took %s", took)
			}
			if !c.late {
				if !errors.Is(err, context.DeadlineExceeded) || log.String() != "" {
					t.Errorf("%v, log %s", err, log.String())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			if n := strings.Count(log.String(), "the keys cannot be read; until then"); n != 1 {
				t.Errorf("the log says it %d times: %s", n, log.String())
			}
		})
	}
}

// A server that accepts connections and never answers costs a request three seconds, or
// the time limit of the application's own client.
func TestCheckSessionWaitsBriefly(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	hang := make(chan struct{})
	defer close(hang)
	for name, v := range map[string]*Verifier{
		"default": newVerifier(t, s), "own": newVerifier(t, s, WithHTTPClient(&http.Client{Timeout: 50 * time.Millisecond})),
	} {
		s.set(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+accessToken(t, c))
		w, began := httptest.NewRecorder(), time.Now()
		v.Require(http.NotFoundHandler(), auth.CheckSession()).ServeHTTP(w, r)
		if took := time.Since(began); w.Code != http.StatusServiceUnavailable || took > callTime/2 || name == "own" && took >= checkTime {
			t.Errorf("%s: %d after %v", name, w.Code, took)
		}
		s.set(nil)
	}
}

// Clocks that differ are logged once, with both times; an answer from a cache is as old as
// its Age says.
func TestClocksThatDifferAreLogged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		date   time.Time
		age    string
		logged int
	}{
		"the same":     {now.Add(-time.Second), "", 0},
		"ahead":        {now.Add(5 * time.Minute), "", 1},
		"behind":       {now.Add(-5 * time.Minute), "", 1},
		"from a cache": {now.Add(-5 * time.Minute), "300", 0},
	} {
		var log bytes.Buffer
		w := newWire(&config{log: slog.New(slog.NewTextHandler(&log, nil)), now: func() time.Time { return now }})
		h := http.Header{"Date": {c.date.Format(http.TimeFormat)}, "Age": {c.age}}
		w.compareClocks(t.Context(), h)
		w.compareClocks(t.Context(), h)
		if got := strings.Count(log.String(), "clocks"); got != c.logged || c.logged > 0 && (!strings.Contains(log.String(), "server="+c.date.Format("2006-01-02T15:04")) || !strings.Contains(log.String(), "here=2026-01-02T03:04:05")) {
			t.Errorf("%s: %s", name, log.String())
		}
	}
}

// A token that is refused only because the clocks differ is logged once, with both clocks. A
// token that has really expired is not, and neither is one that another key signed.
func TestTokensRefusedForTheClockAreLogged(t *testing.T) {
	t.Parallel()
	s := newService(t)
	token := accessToken(t, signedIn(t, s, "ada@example.com"))
	foreign := accessToken(t, signedIn(t, newService(t), "ada@example.com"))
	for name, c := range map[string]struct {
		ahead  time.Duration // of this machine's clock
		later  time.Duration // that pass on both
		token  string
		status int
		logged int
	}{
		"in step":            {0, 0, token, 200, 0},
		"20 seconds behind":  {-20 * time.Second, 0, token, 200, 0},
		"50 seconds behind":  {-50 * time.Second, 0, token, 401, 1},
		"20 minutes ahead":   {20 * time.Minute, 0, token, 401, 1},
		"expired":            {0, 20 * time.Minute, token, 401, 0},
		"expired, and ahead": {20 * time.Minute, 20 * time.Minute, token, 401, 0},
		"another service's":  {-3 * time.Minute, 0, foreign, 401, 0},
	} {
		var log bytes.Buffer
		issued := s.clock.Now()
		s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			w.Header().Set("Date", issued.Add(c.later).UTC().Format(http.TimeFormat))
			next.ServeHTTP(w, r)
		})
		v, err := NewVerifier(t.Context(), s.url, WithLogger(slog.New(slog.NewTextHandler(&log, nil))), func(own *config) {
			own.now = func() time.Time { return issued.Add(c.ahead + c.later) }
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Header.Set("Authorization", "Bearer "+c.token)
			w := httptest.NewRecorder()
			v.Require(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
			if w.Code != c.status {
				t.Errorf("%s: status %d", name, w.Code)
			}
		}
		text := log.String()
		if got := strings.Count(text, "authclient: access tokens are refused because the clocks"); got != c.logged || strings.Contains(text, c.token) {
			t.Errorf("%s: %d lines: %s", name, got, text)
		}
		if c.logged > 0 && (!strings.Contains(text, "here="+issued.Add(c.ahead).UTC().Format("2006-01-02T15:04:05")) || !strings.Contains(text, "issuer="+issued.UTC().Format("2006-01-02T15:04:05"))) {
			t.Errorf("%s: the clocks are missing: %s", name, text)
		}
	}
}

// Printed by value or by pointer, an error does not show the token of the second factor.
func TestErrorsHideTheToken(t *testing.T) {
	t.Parallel()
	e := &Error{Code: auth.CodeMFARequired, mfa: func() pending { return pending{token: "the-secret-token"} }}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, v := range []any{e, *e, struct{ E Error }{*e}, []*Error{e}} {
			if got := fmt.Sprintf(format, v); strings.Contains(got, "the-secret") {
				t.Errorf("%s of %T: %s", format, v, got)
			}
		}
	}
}
