package authclient

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// The session survives every answer of an outage; only a refusal by the server ends it.
func TestOutageIsNoSignOut(t *testing.T) {
	t.Parallel()
	for name, door := range map[string]func(w http.ResponseWriter){
		"500":       func(w http.ResponseWriter) { answer(w, 500, auth.CodeInternal) },
		"502 page":  func(w http.ResponseWriter) { w.WriteHeader(502); _, _ = io.WriteString(w, "<html>") },
		"503":       func(w http.ResponseWriter) { answer(w, 503, auth.CodeUnavailable, "Retry-After", "1") },
		"429":       func(w http.ResponseWriter) { answer(w, 429, auth.CodeRateLimited, "Retry-After", "600") },
		"408":       func(w http.ResponseWriter) { w.WriteHeader(408) },
		"401":       func(w http.ResponseWriter) { answer(w, 401, auth.CodeInvalidAPIKey) },
		"401 ended": func(w http.ResponseWriter) { answer(w, 401, auth.CodeSessionEnded) }, // from an auth proxy; a refresh answers 400
		"404":       func(w http.ResponseWriter) { answer(w, 404, auth.CodeNotFound) },
		"403 proxy": func(w http.ResponseWriter) { w.WriteHeader(403) },
		"200 page":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>log in to the hotel") },
		"200 empty": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "{}") },
		"redirect":  func(w http.ResponseWriter) { w.Header().Set("Location", "http://127.0.0.1:1/"); w.WriteHeader(302) },
		"cut off":   func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			c := signedIn(t, s, "ada@example.com")
			s.clock.Advance(16 * time.Minute)
			s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { door(w) })
			if _, err := c.Token(t.Context()); err == nil {
				t.Fatal("a token out of nothing")
			}
			if got := c.State(); got.Status != StatusOffline || got.User == nil {
				t.Errorf("%+v", got)
			}
			s.set(nil)
			s.clock.Advance(time.Hour) // longer than any pause
			accessToken(t, c)
			if got := c.State().Status; got != StatusSignedIn {
				t.Error(got)
			}
		})
	}
}

// These answers to a refresh end a session, and no others.
func TestServersWordEndsTheSession(t *testing.T) {
	t.Parallel()
	for code, status := range map[auth.Code]int{auth.CodeInvalidRefreshToken: 400, auth.CodeRefreshTokenReused: 400, auth.CodeSessionEnded: 400, auth.CodeUserBanned: 403} {
		s := newService(t)
		c := signedIn(t, s, "ada@example.com")
		s.clock.Advance(16 * time.Minute)
		s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { answer(w, status, code) })
		if _, err := c.Token(t.Context()); !errors.Is(err, code) || c.State().Status != StatusSignedOut {
			t.Error(code, err, c.State())
		}
		if stored, err := c.store.Load(t.Context()); stored != nil || err != nil {
			t.Error(code, "is stored still", err)
		}
	}
}

// Requests that may have been executed are not repeated; other requests are.
func TestRepetition(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for name, row := range map[string]struct {
		door func(w http.ResponseWriter)
		path string
		want int
	}{
		"sign-up, lost":        {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "POST /signup", 1},
		"sign-up, unavailable": {func(w http.ResponseWriter) { answer(w, 503, auth.CodeUnavailable) }, "POST /signup", 1},
		"sign-up, overloaded":  {func(w http.ResponseWriter) { answer(w, 503, auth.CodeOverloaded, "Retry-After", "1") }, "POST /signup", 3},
		"sign-up, limited":     {func(w http.ResponseWriter) { answer(w, 429, auth.CodeRateLimited, "Retry-After", "2") }, "POST /signup", 3},
		"sign-up, for long":    {func(w http.ResponseWriter) { answer(w, 429, auth.CodeRateLimited, "Retry-After", "60") }, "POST /signup", 1},
		"settings, lost":       {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "GET /settings", 3},
		"settings, bad":        {func(w http.ResponseWriter) { answer(w, 400, auth.CodeBadJSON) }, "GET /settings", 1},
	} {
		c, before := newClient(t, s), s.count(row.path)
		s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { row.door(w) })
		var err error
		if row.path == "GET /settings" {
			_, err = c.Settings(t.Context())
		} else {
			_, err = c.SignUp(t.Context(), SignUpParams{Email: "x@example.com", Password: password})
		}
		if n := s.count(row.path) - before; err == nil || n != row.want {
			t.Errorf("%s: asked %d times, %v", name, n, err)
		}
	}
}

// Callers do not prolong an outage: the next refresh waits, as long as the server says, or
// for longer each time. A session that another process got meanwhile is used at once.
func TestRestAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	s.clock.Advance(16 * time.Minute)
	s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		answer(w, 429, auth.CodeRateLimited, "Retry-After", "60")
	})
	for range 3 {
		if _, err := c.Token(t.Context()); !errors.Is(err, auth.CodeRateLimited) {
			t.Fatal(err)
		}
	}
	if n := s.count("POST /refresh"); n != 1 {
		t.Error(n, "refreshes")
	}
	s.set(nil)
	s.clock.Advance(59 * time.Second)
	if _, err := c.Token(t.Context()); err == nil {
		t.Error("sooner than the server asked for")
	}
	other := newClient(t, s, WithTokenStore(c.store))
	want := accessToken(t, other)
	if accessToken(t, c) != want || s.count("POST /refresh") != 2 {
		t.Error("what another has got is not used")
	}

	var o outage
	now := time.Now()
	for _, least := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second} {
		o.note(io.EOF, now)
		if d := o.resume.Sub(now); d < least || d > least*3/2 {
			t.Error(d, "where at least", least, "was due")
		}
	}
	for range 100 {
		o.note(io.EOF, now)
	}
	if d := o.resume.Sub(now); d < longestRest || d > longestRest*3/2 {
		t.Error(d)
	}
}

// A valid token is used until it expires while there is no other, and not longer.
func TestGoodTokenOutlastsTheOutage(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	was := accessToken(t, c)
	s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { answer(w, 503, auth.CodeUnavailable) })
	s.clock.Advance(15*time.Minute - 10*time.Second)
	if got, err := c.Token(t.Context()); err != nil || got != was {
		t.Error(err)
	}
	s.clock.Advance(11 * time.Second)
	if _, err := c.Token(t.Context()); !errors.Is(err, auth.CodeUnavailable) || c.State().Status != StatusOffline {
		t.Error(err, c.State())
	}
}

// While a verifier has no keys, requests are not logged, because there could be any number
// of them. The failure to read the keys is logged.
func TestRequestsBeforeTheKeysAreNotLogged(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	var log bytes.Buffer
	v, err := NewVerifier(t.Context(), server.URL, WithLateStart(), WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	if err != nil {
		t.Fatal(err)
	}
	h := v.Require(http.NotFoundHandler())
	for range 3 {
		rec := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/notes", http.NoBody)
		r.Header.Set("Authorization", "Bearer x")
		h.ServeHTTP(rec, r)
		if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") != "1" {
			t.Errorf("answered %d, Retry-After %q", rec.Code, rec.Header().Get("Retry-After"))
		}
	}
	if strings.Contains(log.String(), "request failed") {
		t.Errorf("the log says %s", log.String())
	}
}
