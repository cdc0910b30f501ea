package auth_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
)

// lines are those of a log that match.
func (w *world) lines(pattern string) []string {
	var found []string
	for line := range strings.Lines(w.log.String()) {
		if regexp.MustCompile(pattern).MatchString(line) {
			found = append(found, line)
		}
	}
	return found
}

// What only a developer can mend is in the log as it is by default, with what was
// seen and the option; what users get wrong is not.
func TestMistakesAreLogged(t *testing.T) {
	other := newWorld(t) // with a secret and a key of its own
	stranger := other.member("ada@example.com")
	key := header{"apikey", "pk_live_1234"}
	w := newWorld(t, auth.WithAPIKeys(key.value), auth.WithRedirectURLs("https://app.test:8443/exact"))
	ada := w.LoginAs(t, "ada@example.com")

	for name, c := range map[string]struct {
		do   func() *answer
		code auth.Code
		want []string // in a line of level INFO; none: no such line
	}{
		"no API key":      {func() *answer { return w.do("GET", "/settings", nil) }, auth.CodeInvalidAPIKey, []string{"no API key"}},
		"unknown API key": {func() *answer { return w.do("GET", "/settings", nil, header{"apikey", "pk_test_9876"}) }, auth.CodeInvalidAPIKey, []string{"WithAPIKeys"}},
		"another key":     {func() *answer { return w.do("GET", "/me", nil, key, bearer(stranger.AccessToken)) }, auth.CodeBadToken, []string{"WithSecret"}},
		"another secret": {func() *answer {
			return w.do("POST", "/refresh", map[string]any{"refresh_token": stranger.RefreshToken}, key)
		}, auth.CodeInvalidRefreshToken, []string{"WithSecret"}},
		"redirect": {func() *answer {
			return w.do("POST", "/magic-link/send", map[string]any{"email": "a@example.com", "redirect_to": "https://us:er@other.test/cb?s=hidden#hidden"}, key)
		}, auth.CodeRedirectNotAllowed, []string{"https://other.test/cb", "https://app.test/*", "https://app.test:8443/exact", "WithRedirectURLs"}},
		"redirect, listed nearly": {func() *answer {
			return w.do("POST", "/magic-link/send", map[string]any{"email": "a@example.com", "redirect_to": "https://app.test:8443/exactly"}, key)
		}, auth.CodeRedirectNotAllowed, []string{"https://app.test:8443/exactly", "https://app.test:8443/exact"}},
		"relative redirect": {func() *answer {
			return w.do("POST", "/magic-link/send", map[string]any{"email": "a@example.com", "redirect_to": "/app"}, key)
		}, auth.CodeRedirectNotAllowed, []string{"redirect_to /app"}},
		"wrong password": {func() *answer {
			return w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "wrong"}, key)
		}, auth.CodeInvalidCredentials, nil},
		"no token":      {func() *answer { return w.do("GET", "/me", nil, key) }, auth.CodeMissingToken, nil},
		"garbled token": {func() *answer { return w.do("GET", "/me", nil, key, bearer(ada.AccessToken[:40])) }, auth.CodeBadToken, nil},
		"token of another issuer": {func() *answer {
			return w.do("GET", "/me", nil, key, bearer(other.MintToken(t, map[string]any{"iss": "https://elsewhere.test"})))
		}, auth.CodeBadToken, nil},
		"expired token": {func() *answer {
			return w.do("GET", "/me", nil, key, bearer(w.MintToken(t, map[string]any{"exp": w.Clock.Now().Add(-time.Hour).Unix()})))
		}, auth.CodeBadToken, nil},
		"garbled refresh token": {func() *answer { return w.do("POST", "/refresh", map[string]any{"refresh_token": "v1.nonsense"}, key) }, auth.CodeInvalidRefreshToken, nil},
		"nothing there":         {func() *answer { return w.do("GET", "/nothing", nil) }, auth.CodeNotFound, nil},
	} {
		w.log.Reset()
		a := c.do()
		a.want(auth.ErrorStatuses()[c.code], c.code)
		got := w.lines("level=INFO .*code=" + string(c.code))
		if (len(got) == 1) != (c.want != nil) {
			t.Errorf("%s: lines %q", name, got)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(got[0], want) {
				t.Errorf("%s: no %q in %s", name, want, got[0])
			}
		}
		if strings.Contains(w.log.String(), "hidden") || strings.Contains(w.log.String(), "us:er") {
			t.Errorf("%s: a secret in %s", name, w.log)
		}
	}
}

// A refusal for coming from another site may be for want of WithCORS.
func TestCrossSiteRefusalIsLogged(t *testing.T) {
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	login := w.do("POST", "/login", map[string]any{"email": w.LoginAs(t, "ada@example.com").User.Email, "password": authtest.Password}, header{"Sec-Fetch-Site", "same-origin"}, header{"X-Session-Transport", "cookie"}).want(200)
	cookies := []string{}
	for _, c := range (&http.Response{Header: login.header}).Cookies() {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	w.do("POST", "/logout", nil, header{"Cookie", strings.Join(cookies, "; ")}, header{"Sec-Fetch-Site", "cross-site"}, header{"Origin", "https://other.test"}).want(403, auth.CodeCrossSiteRequest)
	if got := w.lines("level=INFO .*cross_site_request"); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// A log does not say "<nil>" where there is nothing to say.
func TestLogHasNoEmptyCause(t *testing.T) {
	w := newWorld(t)
	for _, rt := range auth.Routes(w.Auth) {
		method, path, _ := strings.Cut(rt, " ")
		path = strings.NewReplacer("{provider}", "nobody", "{id}", "none").Replace(path)
		w.do(method, path, "{}")
		w.do(method, path, "{}", bearer("nonsense"))
	}
	w.do("POST", "/signup", map[string]any{"email": "nonsense", "password": "x"}).want(422)
	w.do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": "x"}).want(422)
	w.do("PUT", "/signup", nil).want(405)
	if found := w.lines("cause=<nil>|cause=$"); len(found) > 0 {
		t.Errorf("%d lines such as %s", len(found), found[0])
	}
}

// A proxy that nobody declared makes all clients one. The log says so once, with
// the peer that would have to be trusted.
func TestUntrustedProxyIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		header header
		opts   []auth.Option
		want   int
	}{
		"no header":       {header{"Accept", "*/*"}, nil, 0},
		"X-Forwarded-For": {header{"X-Forwarded-For", "203.0.113.7"}, nil, 1},
		"Forwarded":       {header{"Forwarded", "for=203.0.113.7"}, nil, 1},
		"made up":         {header{"Forwarded", "nonsense"}, nil, 0},
		"other proxies":   {header{"X-Forwarded-For", "203.0.113.7"}, []auth.Option{auth.WithTrustedProxies("10.0.0.0/8")}, 1},
		"a trusted proxy": {header{"X-Forwarded-For", "203.0.113.7"}, []auth.Option{auth.WithTrustedProxies("192.0.2.0/24")}, 0},
	} {
		w := newWorld(t, c.opts...)
		for range 3 {
			w.do("GET", "/settings", nil, c.header).want(200)
		}
		if got := w.lines(`level=INFO .*WithTrustedProxies.* peer=192\.0\.2\.1:`); len(got) != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
