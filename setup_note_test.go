package auth_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
)

// What New accepts and would puzzle whoever forgot it, is in the log.
func TestNewNotes(t *testing.T) {
	for name, c := range map[string]struct {
		opts []auth.Option
		said string // empty: nothing
	}{
		"a base URL without a path": {[]auth.Option{auth.WithBaseURL("https://app.test")}, "https://app.test/verify-email"},
		"one that is the root's":    {[]auth.Option{auth.WithBaseURL("https://app.test"), auth.WithPrefix("")}, ""},
		"one with a path":           {[]auth.Option{auth.WithBaseURL("https://app.test/auth/v1")}, ""},
		"a mailer in development":   {[]auth.Option{auth.WithDevMode(), auth.WithBaseURL("http://localhost/auth/v1")}, ""},
		"no mailer in development":  {[]auth.Option{auth.WithDevMode(), auth.WithBaseURL("http://localhost/auth/v1"), auth.WithMailer(nil)}, "Auth.Inbox"},
	} {
		w := newWorld(t, c.opts...)
		log := w.log.String()
		if c.said == "" && (strings.Contains(log, "level=WARN") || strings.Contains(log, "dev mode")) || !strings.Contains(log, c.said) {
			t.Errorf("%s: %s", name, log)
		}
	}
}

// A browser that signs in over http where the cookies are for https would refuse
// them, and ask to sign in for ever: the log says so, once.
func TestSignInOverHTTPIsNoted(t *testing.T) {
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	ada := w.LoginAs(t, "ada@example.com")
	for origin, n := range map[string]int{"https://auth.test": 0, "http://auth.test": 1} {
		for range 2 {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/sign-in", nil)
			r.Host = "auth.test"
			r.Header.Set("Origin", origin)
			if err := w.SetCookies(httptest.NewRecorder(), r, &ada.Tokens); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Count(w.log.String(), "signs in over http"); got < n || origin == "https://auth.test" && got > 1 {
			t.Errorf("%s: said %d times", origin, got)
		}
	}
	if got := strings.Count(w.log.String(), "signs in over http"); got != 1 {
		t.Errorf("said %d times", got)
	}
}
