package auth_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
)

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
		w := newWorld(t, c.opts...)
		for status, paths := range map[int][]string{http.StatusOK: c.found, http.StatusNotFound: c.miss} {
			for _, path := range paths {
				if got := w.doOn(w.Handler(), "GET", path, nil).status; got != status {
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

// A handler that is mounted elsewhere than it believes says so: once, with the
// path that it saw. A path that no endpoint ends in is nobody's mistake.
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
		"/a" + strings.Repeat("/a", 4000) + "/login": false, // nobody mounts there
	} {
		w := newWorld(t)
		for range 3 {
			w.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
		}
		n := strings.Count(w.log.String(), said)
		if want := map[bool]int{true: 1}[logged]; n != want {
			t.Errorf("%.80s: said %d times, want %d", path, n, want)
		}
		if logged && (!strings.Contains(w.log.String(), "level=WARN") || !strings.Contains(w.log.String(), "seen="+path) || !strings.Contains(w.log.String(), "prefix=/auth/v1")) {
			t.Errorf("%s: %s", path, w.log)
		}
	}
}
