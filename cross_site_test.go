package auth_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/authmount/auth"
)

// What another site makes a browser send changes nothing by its cookies, on any
// route that takes one, nor by a page's form, and says so: what rests on no cookie
// is let through.
func TestCrossSiteRequests(t *testing.T) {
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	access, refresh := w.inCookies("ada@example.com")
	jar := cookies(accessCookie+"="+access, refreshCookie+"="+refresh)
	for site, foreign := range map[string][]header{
		"another site":          {{"Origin", "https://evil.test"}, {"Sec-Fetch-Site", "cross-site"}},
		"same site":             {{"Sec-Fetch-Site", "same-site"}},
		"old browser":           {{"Origin", "https://evil.test"}},
		"by hand":               {{"Origin", "https://evil.test"}, {"Sec-Fetch-Site", "none"}},
		"by hand, of no origin": {{"Origin", "null"}, {"Sec-Fetch-Site", "none"}},
	} {
		send := func(method, path string, body any, more ...header) *answer {
			return w.do(method, path, body, append(more, foreign...)...)
		}
		refused := func(a *answer, what string) {
			t.Helper()
			var e struct{ Code auth.Code }
			if err := json.Unmarshal(a.body, &e); a.status != 403 || err != nil || e.Code != auth.CodeCrossSiteRequest || len(a.set()) != 0 {
				t.Errorf("%s, %s: %d %s, cookies %v", site, what, a.status, a.body, a.set())
			}
		}
		for _, pattern := range append(auth.SessionRoutes(w.Auth), "POST /logout", "POST /refresh") {
			r := request(pattern, "")
			if r.Method == "GET" {
				send(r.Method, r.Path, r.Body, jar).want(200)
				continue
			}
			refused(send(r.Method, r.Path, r.Body, jar), pattern)
			if a := send(r.Method, r.Path, r.Body, jar, bearer("x.y.z")); a.status == 403 && pattern != "POST /refresh" {
				t.Errorf("%s, %s by a bearer token: %s", site, pattern, a.body)
			}
		}
		for _, path := range []string{"/refresh", "/logout"} {
			refused(send("POST", path, nil, cookies(refreshCookie+"="+refresh)), path+" by the cookie of the refresh token alone")
			send("POST", path, map[string]any{"refresh_token": "x"}, jar).want(400, auth.CodeInvalidRefreshToken)
		}
		for _, pattern := range auth.FormRoutes(w.Auth) {
			a := send("POST", strings.TrimPrefix(pattern, "POST "), "token=x", form, browser)
			if a.status != 403 || len(a.set()) != 0 || !strings.Contains(string(a.body), "another site") {
				t.Errorf("%s, form of %s: %d %s", site, pattern, a.status, a.body)
			}
		}
	}
	w.do("GET", "/me", nil, jar).want(200)
}
