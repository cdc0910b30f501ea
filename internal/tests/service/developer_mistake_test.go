package service_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
)

// A developer's mistake is in the default log, with the observed value and the option. A
// user's mistake is not.
func TestMistakesAreLogged(t *testing.T) {
	other := harness.NewWorld(t) // with a secret and a key of its own
	stranger := other.Member("ada@example.com")
	key := harness.Header{Name: "apikey", Value: "pk_live_1234"}
	w := harness.NewWorld(t, auth.WithAPIKeys(key.Value), auth.WithRedirectURLs("https://app.test:8443/exact"))
	ada := w.LoginAs(t, "ada@example.com")

	for name, c := range map[string]struct {
		do   func() *harness.Answer
		code auth.Code
		want []string // in a line of level INFO; none: no such line
	}{
		"no API key": {func() *harness.Answer { return w.Do("GET", "/settings", nil) }, auth.CodeInvalidAPIKey, []string{"no API key"}},
		"unknown API key": {func() *harness.Answer {
			return w.Do("GET", "/settings", nil, harness.Header{Name: "apikey", Value: "pk_test_9876"})
		}, auth.CodeInvalidAPIKey, []string{"WithAPIKeys"}},
		"another key": {func() *harness.Answer { return w.Do("GET", "/me", nil, key, harness.Bearer(stranger.AccessToken)) }, auth.CodeBadToken, []string{"WithSecret"}},
		"another secret": {func() *harness.Answer {
			return w.Do("POST", "/refresh", map[string]any{"refresh_token": stranger.RefreshToken}, key)
		}, auth.CodeInvalidRefreshToken, []string{"WithSecret"}},
		"redirect": {func() *harness.Answer {
			return w.Do("POST", "/magic-link/send", map[string]any{"email": "a@example.com", "redirect_to": "https://us:er@other.test/cb?s=hidden#hidden"}, key)
		}, auth.CodeRedirectNotAllowed, []string{"https://other.test/cb", "https://app.test/*", "https://app.test:8443/exact", "WithRedirectURLs"}},
		"redirect, listed nearly": {func() *harness.Answer {
			return w.Do("POST", "/magic-link/send", map[string]any{"email": "a@example.com", "redirect_to": "https://app.test:8443/exactly"}, key)
		}, auth.CodeRedirectNotAllowed, []string{"https://app.test:8443/exactly", "https://app.test:8443/exact"}},
		"relative redirect": {func() *harness.Answer {
			return w.Do("POST", "/magic-link/send", map[string]any{"email": "a@example.com", "redirect_to": "/app"}, key)
		}, auth.CodeRedirectNotAllowed, []string{"redirect_to /app"}},
		"wrong password": {func() *harness.Answer {
			return w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "wrong"}, key)
		}, auth.CodeInvalidCredentials, nil},
		"no token":      {func() *harness.Answer { return w.Do("GET", "/me", nil, key) }, auth.CodeMissingToken, nil},
		"garbled token": {func() *harness.Answer { return w.Do("GET", "/me", nil, key, harness.Bearer(ada.AccessToken[:40])) }, auth.CodeBadToken, nil},
		"token of another issuer": {func() *harness.Answer {
			return w.Do("GET", "/me", nil, key, harness.Bearer(other.MintToken(t, map[string]any{"iss": "https://elsewhere.test"})))
		}, auth.CodeBadToken, nil},
		"expired token": {func() *harness.Answer {
			return w.Do("GET", "/me", nil, key, harness.Bearer(w.MintToken(t, map[string]any{"exp": w.Clock.Now().Add(-time.Hour).Unix()})))
		}, auth.CodeBadToken, nil},
		"garbled refresh token": {func() *harness.Answer {
			return w.Do("POST", "/refresh", map[string]any{"refresh_token": "v1.nonsense"}, key)
		}, auth.CodeInvalidRefreshToken, nil},
		"nothing there": {func() *harness.Answer { return w.Do("GET", "/nothing", nil) }, auth.CodeNotFound, nil},
	} {
		w.Log.Reset()
		a := c.do()
		a.Want(harness.ErrorStatuses()[c.code], c.code)
		got := w.Lines("level=INFO .*code=" + string(c.code))
		if (len(got) == 1) != (c.want != nil) {
			t.Errorf("%s: lines %q", name, got)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(got[0], want) {
				t.Errorf("%s: no %q in %s", name, want, got[0])
			}
		}
		if strings.Contains(w.Log.String(), "hidden") || strings.Contains(w.Log.String(), "us:er") {
			t.Errorf("%s: a secret in %s", name, w.Log)
		}
	}
}

// A cross-site refusal may mean that WithCORS is missing.
func TestCrossSiteRefusalIsLogged(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	login := w.Do("POST", "/login", map[string]any{"email": w.LoginAs(t, "ada@example.com").User.Email, "password": authtest.Password}, harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"}, harness.Header{Name: "X-Session-Transport", Value: "cookie"}).Want(200)
	cookies := []string{}
	for _, c := range (&http.Response{Header: login.Header}).Cookies() {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	w.Do("POST", "/logout", nil, harness.Header{Name: "Cookie", Value: strings.Join(cookies, "; ")}, harness.Header{Name: "Sec-Fetch-Site", Value: "cross-site"}, harness.Header{Name: "Origin", Value: "https://other.test"}).Want(403, auth.CodeCrossSiteRequest)
	if got := w.Lines("level=INFO .*cross_site_request"); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// The log does not contain "<nil>" for a missing cause.
func TestLogHasNoEmptyCause(t *testing.T) {
	w := harness.NewWorld(t)
	for _, rt := range harness.Routes(w.Auth) {
		method, path, _ := strings.Cut(rt, " ")
		path = strings.NewReplacer("{provider}", "nobody", "{id}", "none").Replace(path)
		w.Do(method, path, "{}")
		w.Do(method, path, "{}", harness.Bearer("nonsense"))
	}
	w.Do("POST", "/signup", map[string]any{"email": "nonsense", "password": "x"}).Want(422)
	w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": "x"}).Want(422)
	w.Do("PUT", "/signup", nil).Want(405)
	if found := w.Lines("cause=<nil>|cause=$"); len(found) > 0 {
		t.Errorf("%d lines such as %s", len(found), found[0])
	}
}

// An undeclared proxy makes all clients look like one. The log reports it once, with the
// peer to trust.
func TestUntrustedProxyIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		header harness.Header
		opts   []auth.Option
		want   int
	}{
		"no header":       {harness.Header{Name: "Accept", Value: "*/*"}, nil, 0},
		"X-Forwarded-For": {harness.Header{Name: "X-Forwarded-For", Value: "203.0.113.7"}, nil, 1},
		"Forwarded":       {harness.Header{Name: "Forwarded", Value: "for=203.0.113.7"}, nil, 1},
		"made up":         {harness.Header{Name: "Forwarded", Value: "nonsense"}, nil, 0},
		"other proxies":   {harness.Header{Name: "X-Forwarded-For", Value: "203.0.113.7"}, []auth.Option{auth.WithTrustedProxies("10.0.0.0/8")}, 1},
		"a trusted proxy": {harness.Header{Name: "X-Forwarded-For", Value: "203.0.113.7"}, []auth.Option{auth.WithTrustedProxies("192.0.2.0/24")}, 0},
	} {
		w := harness.NewWorld(t, c.opts...)
		for range 3 {
			w.Do("GET", "/settings", nil, c.header).Want(200)
		}
		if got := w.Lines(`level=INFO .*WithTrustedProxies.* peer=192\.0\.2\.1:`); len(got) != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
