package service_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/memstore"
)

// In dev mode, links lead to the served port, whatever host a request names. A configured
// base URL stays as it is.
func TestDevLinksLeadToThePortServed(t *testing.T) {
	for name, opts := range map[string][]auth.Option{"made up": nil, "given": {auth.WithBaseURL("http://localhost:9/auth/v1")}} {
		a, err := auth.New(t.Context(), memstore.New(), append([]auth.Option{auth.WithDevMode(), auth.WithMail(auth.MailOptions{Sync: true})}, opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewServer(a.Handler())
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/auth/v1/signup", strings.NewReader(`{"email":"ada@example.com","password":"`+harness.GoodPassword+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.test:1234"
		r.Header.Set("Content-Type", "application/json")
		res, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		want := srv.URL + "/auth/v1/"
		if opts != nil {
			want = "http://localhost:9/auth/v1/"
		}
		m, err := a.Inbox().Wait(t.Context(), func(m auth.Message) bool { return m.Kind == auth.KindVerifyEmail })
		if err != nil || !strings.HasPrefix(m.Link, want) {
			t.Errorf("%s: %s, want %s…: %v", name, m.Link, want, err)
		}
		srv.Close()
		_ = a.Close(t.Context())
	}
}

// The handler answers at the path of the base URL, unless WithPrefix names
// another one.
func TestPrefixFollowsBaseURL(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []auth.Option
		found []string
		miss  []string
	}{
		"path":                {[]auth.Option{auth.WithBaseURL("https://app.test/api/auth")}, []string{"/api/auth/settings", "/settings"}, []string{"/auth/v1/settings"}},
		"path with a slash":   {[]auth.Option{auth.WithBaseURL("https://app.test/api/auth/")}, []string{"/api/auth/settings"}, nil},
		"no path":             {[]auth.Option{auth.WithBaseURL("https://auth.test")}, []string{"/settings", "/auth/v1/settings"}, []string{"/api/auth/settings"}},
		"prefix before":       {[]auth.Option{auth.WithPrefix("/inner"), auth.WithBaseURL("https://app.test/outer")}, []string{"/inner/settings"}, []string{"/outer/settings"}},
		"prefix behind":       {[]auth.Option{auth.WithBaseURL("https://app.test/outer"), auth.WithPrefix("/inner")}, []string{"/inner/settings"}, []string{"/outer/settings"}},
		"prefix of no length": {[]auth.Option{auth.WithBaseURL("https://app.test/outer"), auth.WithPrefix("")}, []string{"/settings"}, []string{"/outer/settings"}},
	} {
		w := harness.NewWorld(t, c.opts...)
		for status, paths := range map[int][]string{http.StatusOK: c.found, http.StatusNotFound: c.miss} {
			for _, path := range paths {
				if got := w.DoOn(w.Handler(), "GET", path, nil).Status; got != status {
					t.Errorf("%s: %s: %d, want %d", name, path, got, status)
				}
			}
		}
	}
	_, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithBaseURL("http://localhost/{tenant}"))
	if err == nil || !strings.Contains(err.Error(), "WithPrefix") {
		t.Errorf("a path that cannot be mounted at: %v", err)
	}
	a, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithPrefix("/p"), auth.WithBaseURL("http://localhost/{tenant}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Close(t.Context())
}

// A handler that is mounted at another path than it expects logs this once, with the path of
// the request. A path that ends in no endpoint is not logged.
func TestMissedMountIsLogged(t *testing.T) {
	const said = "missed the mount"
	for path, logged := range map[string]bool{
		"/api/auth/login":                 true,
		"/api/auth/oauth/google/callback": true,
		"/api/sessions/123":               true,
		"/auth/v1/auth/v1/settings":       true,
		"/api/auth/nothing":               false,
		"/favicon.ico":                    false,
		"/auth/v1/nothing":                false,
		"/auth/v1/login":                  false,
		"/login":                          false,
		"//login":                         false,
		"/a" + strings.Repeat("/a", 4000) + "/login": false, // not a plausible mount
	} {
		w := harness.NewWorld(t)
		for range 3 {
			w.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
		}
		n := strings.Count(w.Log.String(), said)
		if want := map[bool]int{true: 1}[logged]; n != want {
			t.Errorf("%.80s: said %d times, want %d", path, n, want)
		}
		if logged && (!strings.Contains(w.Log.String(), "level=WARN") || !strings.Contains(w.Log.String(), "seen="+path) || !strings.Contains(w.Log.String(), "prefix=/auth/v1")) {
			t.Errorf("%s: %s", path, w.Log)
		}
	}
}

// The log notes options that New accepts although they may surprise later.
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
		w := harness.NewWorld(t, c.opts...)
		log := w.Log.String()
		if c.said == "" && (strings.Contains(log, "level=WARN") || strings.Contains(log, "dev mode")) || !strings.Contains(log, c.said) {
			t.Errorf("%s: %s", name, log)
		}
	}
}

// A browser that signs in over http would refuse cookies for https, and every page would ask
// for a sign-in again. The log says so, once.
func TestSignInOverHTTPIsNoted(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
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
		if got := strings.Count(w.Log.String(), "signs in over http"); got < n || origin == "https://auth.test" && got > 1 {
			t.Errorf("%s: said %d times", origin, got)
		}
	}
	if got := strings.Count(w.Log.String(), "signs in over http"); got != 1 {
		t.Errorf("said %d times", got)
	}
}
