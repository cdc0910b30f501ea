package auth_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/hostileclient"
)

const (
	accessCookie  = "__Host-authmount-access"
	refreshCookie = "__Host-authmount-refresh"
)

// set is the session cookies that a response sets, by name.
func (a *answer) set() map[string]*http.Cookie {
	m := map[string]*http.Cookie{}
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		if strings.HasSuffix(c.Name, "-access") || strings.HasSuffix(c.Name, "-refresh") {
			m[c.Name] = c
		}
	}
	return m
}

func cookies(pairs ...string) header { return header{"Cookie", strings.Join(pairs, "; ")} }

// inCookies signs somebody up in cookie mode.
func (w *world) inCookies(email string) (access, refresh string) {
	w.t.Helper()
	set := w.do("POST", "/signup", map[string]any{"email": email, "password": goodPassword}, transport).want(200).set()
	if len(set) != 2 || set[accessCookie] == nil || set[refreshCookie] == nil {
		w.t.Fatalf("cookies %v", set)
	}
	return set[accessCookie].Value, set[refreshCookie].Value
}

// On loopback without https the prefixes would make browsers refuse the cookies.
func TestCookieNamesOnLoopback(t *testing.T) {
	w := newWorld(t, auth.WithDevMode(), auth.WithBaseURL("http://127.0.0.1:8080/auth/v1"), auth.WithCookies(auth.CookieOptions{Name: "my"}))
	set := w.do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": goodPassword}, transport).want(200).set()
	for _, name := range []string{"my-access", "my-refresh"} {
		if c := set[name]; c == nil || c.Secure || !c.HttpOnly || c.Path != "/" || c.SameSite != http.SameSiteLaxMode {
			t.Errorf("%s: %v", name, c)
		}
	}
	if len(set) != 2 {
		t.Errorf("cookies %v", set)
	}
}

// Another host of the domain can plant a cookie, but none with the prefix __Host-;
// what it plants under the names of other prefixes is not read.
func TestPlantedCookies(t *testing.T) {
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	evilAccess, evilRefresh := w.inCookies("evil@example.com")
	for _, prefix := range []string{"__Secure-", "", "__host-", "__HOST-"} {
		planted := cookies(prefix+"authmount-access="+evilAccess, prefix+"authmount-refresh="+evilRefresh)
		w.do("GET", "/me", nil, planted).want(401, auth.CodeMissingToken)
		w.do("POST", "/refresh", nil, planted).want(422, auth.CodeValidationFailed)
		w.do("POST", "/logout", nil, planted).want(401, auth.CodeMissingToken)
	}
	w.do("GET", "/me", nil, cookies(accessCookie+"="+evilAccess)).want(200)
}

// Of two cookies of one name neither is believed, whichever is the planted one and
// however they come.
func TestTwoCookiesOfOneName(t *testing.T) {
	idp := authtest.StartProvider(t)
	w := listen(t, nil, auth.WithCookies(auth.CookieOptions{}), auth.WithProvider(idp.Google()))
	idp.Now = w.Clock.Now
	access, refresh := w.inCookies("eva@example.com")
	evilAccess, evilRefresh := w.inCookies("evil@example.com")
	for _, c := range []struct {
		method, path, name string
		values             []string
		alone, twice       int
	}{
		{"GET", "/me", accessCookie, []string{access, evilAccess}, 200, 401},
		{"POST", "/refresh", refreshCookie, []string{refresh, evilRefresh}, 200, 422},
		{"POST", "/logout", refreshCookie, []string{refresh, evilRefresh}, 204, 401},
	} {
		for _, pair := range [][]string{{c.values[0], c.values[1]}, {c.values[1], c.values[0]}, {c.values[0], c.values[0]}} {
			for _, fields := range hostileclient.TwoCookies(c.name, pair[0], pair[1]) {
				res, err := hostileclient.Do(t.Context(), w.addr, hostileclient.Request{Method: c.method, Path: c.path, Header: fields})
				if err != nil || res.Status != c.twice || len(res.Header.Values("Set-Cookie")) != 0 {
					t.Errorf("%s %s with %d cookie fields: %+v, %v", c.method, c.path, len(fields), res, err)
				}
			}
		}
		w.do(c.method, c.path, nil, cookies(c.name+"="+c.values[0])).want(c.alone)
	}
	// The cookie that binds a sign-in at a provider to its browser, too.
	v, evil := w.visitor(idp), w.visitor(idp)
	idp.SignsIn(ada)
	const bound = "__Host-authmount-oauth"
	callback := idp.Authorize(t, v.do("GET", "/oauth/google", nil).want(302).header.Get("Location")).Encode()
	evil.do("GET", "/oauth/google", nil).want(302)
	own, planted := bound+"="+v.cookies[bound].Value, bound+"="+evil.cookies[bound].Value
	w.do("GET", "/oauth/google/callback?"+callback, nil, cookies(own, planted)).want(400, auth.CodeBadOAuthState)
	w.do("GET", "/oauth/google/callback?"+callback, nil, cookies(own)).want(200)
}

// A bearer token wins over cookies, and one that is refused never falls back to
// them, on any route that takes a session.
func TestBearerBesideCookies(t *testing.T) {
	const key = "pk_test_12345678"
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	ada, adaRefresh := w.inCookies("ada@example.com")
	bob, _ := w.inCookies("bob@example.com")
	jar := cookies(accessCookie+"="+ada, refreshCookie+"="+adaRefresh)
	if got := decodeAs[user](w.do("GET", "/me", nil, jar, bearer(bob)).want(200)); got.Email != "bob@example.com" {
		t.Errorf("signed in as %s", got.Email)
	}
	w.do("POST", "/logout", nil, bearer(bob)).want(204)
	for _, pattern := range append(auth.SessionRoutes(w.Auth), "POST /logout") {
		r := request(pattern, "")
		for name, value := range map[string]string{"forged": "Bearer x.y.z", "cut": "Bearer " + bob[:len(bob)-2], "empty": "Bearer ", "other case": "bEARER x"} {
			a := w.do(r.Method, r.Path, r.Body, jar, header{"Authorization", value})
			if a.status != 401 {
				t.Errorf("%s, %s: %d %s", pattern, name, a.status, a.body)
			}
		}
		if a := w.do(r.Method, r.Path, r.Body, jar, bearer(bob)); a.status != 401 && pattern != "POST /logout" { // a logout after the end is done already
			t.Errorf("%s, ended: %d %s", pattern, a.status, a.body)
		}
	}
	w.do("GET", "/me", nil, jar).want(200)
	// The API key that some libraries send there is no bearer token.
	keyed := newWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithAPIKeys(key))
	set := keyed.do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": goodPassword}, transport, header{"apikey", key}).want(200).set()
	keyed.do("GET", "/me", nil, header{"apikey", key}, bearer(key), cookies(accessCookie+"="+set[accessCookie].Value)).want(200)
}

// Cookies that can never work again are dropped when a refresh is refused; those
// that may are not, nor are cookies that had no part in it.
func TestRefusedRefreshClearsCookies(t *testing.T) {
	cleared := func(t *testing.T, a *answer) {
		t.Helper()
		set := a.set()
		for _, name := range []string{accessCookie, refreshCookie} {
			if c := set[name]; c == nil || c.MaxAge >= 0 || c.Path != "/" || !c.Secure || c.Value != "" {
				t.Errorf("%s: %v", name, c)
			}
		}
	}
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	access, refresh := w.inCookies("ada@example.com")
	jar := cookies(accessCookie+"="+access, refreshCookie+"="+refresh)
	cleared(t, w.do("POST", "/refresh", nil, cookies(refreshCookie+"=forged")).want(400, auth.CodeInvalidRefreshToken))
	if set := w.do("POST", "/refresh", map[string]any{"refresh_token": "forged"}, jar).want(400, auth.CodeInvalidRefreshToken).set(); len(set) != 0 {
		t.Errorf("a token in the body clears cookies: %v", set)
	}
	next := w.do("POST", "/refresh", nil, jar).want(200).set()[refreshCookie].Value
	w.do("POST", "/refresh", nil, cookies(refreshCookie+"="+next)).want(200)
	w.Clock.Advance(time.Minute)
	cleared(t, w.do("POST", "/refresh", nil, jar).want(400, auth.CodeRefreshTokenReused))
	cleared(t, w.do("POST", "/refresh", nil, jar).want(400, auth.CodeSessionEnded))
	_, refresh = w.inCookies("bob@example.com")
	for range 200 {
		a := w.do("POST", "/refresh", nil, cookies(refreshCookie+"="+refresh))
		if a.status == 429 {
			if set := a.set(); len(set) != 0 {
				t.Errorf("a limit clears cookies: %v", set)
			}
			return
		}
	}
	t.Error("no limit")
}

// No GET sets session cookies, whatever it asks for and however links are opened:
// images and frames make such requests. Only a provider's callback may, which is
// bound to its browser.
func TestNoGETSignsIn(t *testing.T) {
	const mozilla = "Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0"
	requests := map[string][]header{
		"a program":       nil,
		"JSON":            {{"Accept", "application/json"}},
		"anything":        {{"Accept", "*/*"}},
		"a browser":       {browser, {"User-Agent", mozilla}},
		"a navigation":    {browser, {"Sec-Fetch-Mode", "navigate"}, {"Sec-Fetch-Dest", "document"}, {"Sec-Fetch-Site", "none"}},
		"a frame":         {browser, {"Sec-Fetch-Dest", "iframe"}, {"Sec-Fetch-Site", "same-site"}},
		"an image":        {{"Accept", "image/avif,image/webp,image/png,*/*;q=0.8"}, {"Sec-Fetch-Dest", "image"}, {"Sec-Fetch-Site", "same-site"}},
		"an old image":    {{"Accept", "image/avif,image/webp,*/*"}, {"User-Agent", mozilla}},
		"a script":        {{"Accept", "*/*"}, {"Sec-Fetch-Dest", "empty"}, {"Sec-Fetch-Site", "cross-site"}},
		"JSON by a fetch": {{"Accept", "application/json"}, {"Sec-Fetch-Dest", "empty"}, {"Sec-Fetch-Site", "same-origin"}},
	}
	idp := authtest.StartProvider(t)
	for name, mode := range map[string]auth.LinkMode{"page": 0, "direct": auth.DirectLinks, "strict": auth.StrictLinks} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithProvider(idp.Google()), auth.WithRateLimits(auth.RateLimits{Off: true}),
				auth.WithLinks(auth.LinkOptions{Mode: mode}))
			if err := auth.CheapPasswords(w.Auth); err != nil {
				t.Fatal(err)
			}
			used, n := false, 0
			for as, headers := range requests {
				for _, pattern := range auth.Routes(w.Auth) {
					path, isGET := strings.CutPrefix(pattern, "GET ")
					if !isGET || path == "/oauth/{provider}/callback" {
						continue
					}
					n++
					email := fmt.Sprintf("ada%d@example.com", n)
					var list []string
					switch path {
					case "/magic-link/verify":
						for i, more := range []map[string]any{nil, {"redirect_to": "https://app.test/"}, {"redirect_to": "https://app.test/", "code_challenge": challengeOf(verifier)}} {
							list = append(list, w.magicLink(fmt.Sprint(i, email), more)) // a newer one would supersede it
						}
					case "/verify-email":
						w.inCookies(email)
						list = []string{w.linkToken(email, auth.KindVerifyEmail)}
					case "/reset-password":
						w.inCookies(email)
						w.do("POST", "/forgot-password", map[string]any{"email": email}).want(200)
						list = []string{w.linkToken(email, auth.KindResetPassword)}
					default:
						list = []string{""}
					}
					for _, token := range list {
						a := w.do("GET", strings.ReplaceAll(path, "{provider}", "google")+"?token="+token, nil, headers...)
						if set := a.set(); len(set) != 0 || a.status >= 500 {
							t.Errorf("%s as %s: %d, cookies %v", pattern, as, a.status, set)
						}
						used = used || strings.Contains(string(a.body), `"access_token"`)
					}
				}
			}
			if !used {
				t.Error("no link was completed: nothing was tried")
			}
			// The button does sign in.
			if set := w.do("POST", "/magic-link/verify", "token="+w.magicLink("bob@example.com", nil), form, browser, header{"Sec-Fetch-Site", "same-origin"}).want(200).set(); len(set) != 2 {
				t.Errorf("cookies %v", set)
			}
		})
	}
}
