package signin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/hostileclient"
)

// A cross-site request changes nothing by its cookies, on any route that takes one and by
// any page's form, and gets an error. A request that does not depend on a cookie passes.
func TestCrossSiteRequests(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	access, refresh := w.InCookies("ada@example.com")
	jar := harness.Cookies(harness.AccessCookie+"="+access, harness.RefreshCookie+"="+refresh)
	for site, foreign := range map[string][]harness.Header{
		"another site":          {{Name: "Origin", Value: "https://evil.test"}, {Name: "Sec-Fetch-Site", Value: "cross-site"}},
		"same site":             {{Name: "Sec-Fetch-Site", Value: "same-site"}},
		"old browser":           {{Name: "Origin", Value: "https://evil.test"}},
		"by hand":               {{Name: "Origin", Value: "https://evil.test"}, {Name: "Sec-Fetch-Site", Value: "none"}},
		"by hand, of no origin": {{Name: "Origin", Value: "null"}, {Name: "Sec-Fetch-Site", Value: "none"}},
	} {
		send := func(method, path string, body any, more ...harness.Header) *harness.Answer {
			return w.Do(method, path, body, append(more, foreign...)...)
		}
		refused := func(a *harness.Answer, what string) {
			t.Helper()
			var e struct{ Code auth.Code }
			if err := json.Unmarshal(a.Body, &e); a.Status != 403 || err != nil || e.Code != auth.CodeCrossSiteRequest || len(a.SetCookies()) != 0 {
				t.Errorf("%s, %s: %d %s, cookies %v", site, what, a.Status, a.Body, a.SetCookies())
			}
		}
		for _, pattern := range append(harness.SessionRoutes(w.Auth), "POST /logout", "POST /refresh") {
			r := harness.Request(pattern, "")
			if r.Method == "GET" {
				send(r.Method, r.Path, r.Body, jar).Want(200)
				continue
			}
			refused(send(r.Method, r.Path, r.Body, jar), pattern)
			if a := send(r.Method, r.Path, r.Body, jar, harness.Bearer("x.y.z")); a.Status == 403 && pattern != "POST /refresh" {
				t.Errorf("%s, %s by a bearer token: %s", site, pattern, a.Body)
			}
		}
		for _, path := range []string{"/refresh", "/logout"} {
			refused(send("POST", path, nil, harness.Cookies(harness.RefreshCookie+"="+refresh)), path+" by the cookie of the refresh token alone")
			send("POST", path, map[string]any{"refresh_token": "x"}, jar).Want(400, auth.CodeInvalidRefreshToken)
		}
		for _, pattern := range harness.FormRoutes(w.Auth) {
			a := send("POST", strings.TrimPrefix(pattern, "POST "), "token=x", harness.Form, harness.Browser)
			if a.Status != 403 || len(a.SetCookies()) != 0 || !strings.Contains(string(a.Body), "another site") {
				t.Errorf("%s, form of %s: %d %s", site, pattern, a.Status, a.Body)
			}
		}
	}
	w.Do("GET", "/me", nil, jar).Want(200)
}

// On loopback without https the prefixes would make browsers refuse the cookies.
func TestCookieNamesOnLoopback(t *testing.T) {
	w := harness.NewWorld(t, auth.WithDevMode(), auth.WithBaseURL("http://localhost:8080/auth/v1"), auth.WithCookies(auth.CookieOptions{Name: "my"}))
	set := w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}, harness.Transport).Want(200).SetCookies()
	for _, name := range []string{"my-access", "my-refresh"} {
		if c := set[name]; c == nil || c.Secure || !c.HttpOnly || c.Path != "/" || c.SameSite != http.SameSiteLaxMode {
			t.Errorf("%s: %v", name, c)
		}
	}
	if len(set) != 2 {
		t.Errorf("cookies %v", set)
	}
}

// Another host of the domain can set a cookie, but none with the prefix __Host-. Its cookies
// with other prefixes are not read.
func TestPlantedCookies(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	evilAccess, evilRefresh := w.InCookies("evil@example.com")
	for _, prefix := range []string{"__Secure-", "", "__host-", "__HOST-"} {
		planted := harness.Cookies(prefix+"authmount-access="+evilAccess, prefix+"authmount-refresh="+evilRefresh)
		w.Do("GET", "/me", nil, planted).Want(401, auth.CodeMissingToken)
		w.Do("POST", "/refresh", nil, planted).Want(422, auth.CodeValidationFailed)
		w.Do("POST", "/logout", nil, planted).Want(401, auth.CodeMissingToken)
	}
	w.Do("GET", "/me", nil, harness.Cookies(harness.AccessCookie+"="+evilAccess)).Want(200)
}

// Two cookies with the same name are both ignored, in any order and from any source.
func TestTwoCookiesOfOneName(t *testing.T) {
	idp := authtest.StartProvider(t)
	w := harness.NewListening(t, nil, auth.WithCookies(auth.CookieOptions{}), auth.WithProvider(idp.Google()))
	idp.Now = w.Clock.Now
	access, refresh := w.InCookies("eva@example.com")
	evilAccess, evilRefresh := w.InCookies("evil@example.com")
	for _, c := range []struct {
		method, path, name string
		values             []string
		alone, twice       int
	}{
		{"GET", "/me", harness.AccessCookie, []string{access, evilAccess}, 200, 401},
		{"POST", "/refresh", harness.RefreshCookie, []string{refresh, evilRefresh}, 200, 422},
		{"POST", "/logout", harness.RefreshCookie, []string{refresh, evilRefresh}, 204, 401},
	} {
		for _, pair := range [][]string{{c.values[0], c.values[1]}, {c.values[1], c.values[0]}, {c.values[0], c.values[0]}} {
			for _, fields := range hostileclient.TwoCookies(c.name, pair[0], pair[1]) {
				res, err := hostileclient.Do(t.Context(), w.Addr, hostileclient.Request{Method: c.method, Path: c.path, Header: fields})
				if err != nil || res.Status != c.twice || len(res.Header.Values("Set-Cookie")) != 0 {
					t.Errorf("%s %s with %d cookie fields: %+v, %v", c.method, c.path, len(fields), res, err)
				}
			}
		}
		w.Do(c.method, c.path, nil, harness.Cookies(c.name+"="+c.values[0])).Want(c.alone)
	}
	// The cookie that binds a sign-in at a provider to its browser, too.
	v, evil := w.NewVisitor(idp), w.NewVisitor(idp)
	idp.SignsIn(harness.Ada)
	const bound = "__Host-authmount-oauth"
	callback := idp.Authorize(t, v.Do("GET", "/oauth/google", nil).Want(302).Header.Get("Location")).Encode()
	evil.Do("GET", "/oauth/google", nil).Want(302)
	own, planted := bound+"="+v.Cookies[bound].Value, bound+"="+evil.Cookies[bound].Value
	w.Do("GET", "/oauth/google/callback?"+callback, nil, harness.Cookies(own, planted)).Want(400, auth.CodeBadOAuthState)
	w.Do("GET", "/oauth/google/callback?"+callback, nil, harness.Cookies(own)).Want(200)
}

// A bearer token has precedence over cookies, and a refused one never falls back to them, on
// any route that takes a session.
func TestBearerBesideCookies(t *testing.T) {
	const key = "pk_test_12345678"
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithRateLimits(auth.RateLimits{Off: true}))
	ada, adaRefresh := w.InCookies("ada@example.com")
	bob, _ := w.InCookies("bob@example.com")
	jar := harness.Cookies(harness.AccessCookie+"="+ada, harness.RefreshCookie+"="+adaRefresh)
	if got := harness.DecodeAs[harness.User](w.Do("GET", "/me", nil, jar, harness.Bearer(bob)).Want(200)); got.Email != "bob@example.com" {
		t.Errorf("signed in as %s", got.Email)
	}
	w.Do("POST", "/logout", nil, harness.Bearer(bob)).Want(204)
	for _, pattern := range append(harness.SessionRoutes(w.Auth), "POST /logout") {
		r := harness.Request(pattern, "")
		for name, value := range map[string]string{"forged": "Bearer x.y.z", "cut": "Bearer " + bob[:len(bob)-2], "empty": "Bearer ", "other case": "bEARER x"} {
			a := w.Do(r.Method, r.Path, r.Body, jar, harness.Header{Name: "Authorization", Value: value})
			if a.Status != 401 {
				t.Errorf("%s, %s: %d %s", pattern, name, a.Status, a.Body)
			}
		}
		if a := w.Do(r.Method, r.Path, r.Body, jar, harness.Bearer(bob)); a.Status != 401 && pattern != "POST /logout" { // a logout after the end is done already
			t.Errorf("%s, ended: %d %s", pattern, a.Status, a.Body)
		}
	}
	w.Do("GET", "/me", nil, jar).Want(200)
	// The API key that some libraries send there is no bearer token.
	keyed := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithAPIKeys(key))
	set := keyed.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}, harness.Transport, harness.Header{Name: "apikey", Value: key}).Want(200).SetCookies()
	keyed.Do("GET", "/me", nil, harness.Header{Name: "apikey", Value: key}, harness.Bearer(key), harness.Cookies(harness.AccessCookie+"="+set[harness.AccessCookie].Value)).Want(200)
}

// Cookies that can never work again are dropped when a refresh is refused; those
// that may are not, nor are cookies that had no part in it.
func TestRefusedRefreshClearsCookies(t *testing.T) {
	cleared := func(t *testing.T, a *harness.Answer) {
		t.Helper()
		set := a.SetCookies()
		for _, name := range []string{harness.AccessCookie, harness.RefreshCookie} {
			if c := set[name]; c == nil || c.MaxAge >= 0 || c.Path != "/" || !c.Secure || c.Value != "" {
				t.Errorf("%s: %v", name, c)
			}
		}
	}
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	access, refresh := w.InCookies("ada@example.com")
	jar := harness.Cookies(harness.AccessCookie+"="+access, harness.RefreshCookie+"="+refresh)
	cleared(t, w.Do("POST", "/refresh", nil, harness.Cookies(harness.RefreshCookie+"=forged")).Want(400, auth.CodeInvalidRefreshToken))
	if set := w.Do("POST", "/refresh", map[string]any{"refresh_token": "forged"}, jar).Want(400, auth.CodeInvalidRefreshToken).SetCookies(); len(set) != 0 {
		t.Errorf("a token in the body clears cookies: %v", set)
	}
	next := w.Do("POST", "/refresh", nil, jar).Want(200).SetCookies()[harness.RefreshCookie].Value
	w.Do("POST", "/refresh", nil, harness.Cookies(harness.RefreshCookie+"="+next)).Want(200)
	w.Clock.Advance(time.Minute)
	cleared(t, w.Do("POST", "/refresh", nil, jar).Want(400, auth.CodeRefreshTokenReused))
	cleared(t, w.Do("POST", "/refresh", nil, jar).Want(400, auth.CodeSessionEnded))
	_, refresh = w.InCookies("bob@example.com")
	for range 200 {
		a := w.Do("POST", "/refresh", nil, harness.Cookies(harness.RefreshCookie+"="+refresh))
		if a.Status == 429 {
			if set := a.SetCookies(); len(set) != 0 {
				t.Errorf("a limit clears cookies: %v", set)
			}
			return
		}
	}
	t.Error("no limit")
}

// No GET sets session cookies, whatever its query and the setting for links, because images
// and frames make such requests. Only a provider's callback may, because it is bound to its
// browser.
func TestNoGETSignsIn(t *testing.T) {
	const mozilla = "Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0"
	requests := map[string][]harness.Header{
		"a program":       nil,
		"JSON":            {{Name: "Accept", Value: "application/json"}},
		"anything":        {{Name: "Accept", Value: "*/*"}},
		"a browser":       {harness.Browser, {Name: "User-Agent", Value: mozilla}},
		"a navigation":    {harness.Browser, {Name: "Sec-Fetch-Mode", Value: "navigate"}, {Name: "Sec-Fetch-Dest", Value: "document"}, {Name: "Sec-Fetch-Site", Value: "none"}},
		"a frame":         {harness.Browser, {Name: "Sec-Fetch-Dest", Value: "iframe"}, {Name: "Sec-Fetch-Site", Value: "same-site"}},
		"an image":        {{Name: "Accept", Value: "image/avif,image/webp,image/png,*/*;q=0.8"}, {Name: "Sec-Fetch-Dest", Value: "image"}, {Name: "Sec-Fetch-Site", Value: "same-site"}},
		"an old image":    {{Name: "Accept", Value: "image/avif,image/webp,*/*"}, {Name: "User-Agent", Value: mozilla}},
		"a script":        {{Name: "Accept", Value: "*/*"}, {Name: "Sec-Fetch-Dest", Value: "empty"}, {Name: "Sec-Fetch-Site", Value: "cross-site"}},
		"JSON by a fetch": {{Name: "Accept", Value: "application/json"}, {Name: "Sec-Fetch-Dest", Value: "empty"}, {Name: "Sec-Fetch-Site", Value: "same-origin"}},
	}
	idp := authtest.StartProvider(t)
	for name, byGET := range map[string]bool{"page": false, "by GET": true} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithProvider(idp.Google()), auth.WithRateLimits(auth.RateLimits{Off: true}),
				auth.WithLinks(auth.LinkOptions{SignInByGET: byGET}))
			if err := harness.CheapPasswords(w.Auth); err != nil {
				t.Fatal(err)
			}
			used, n := false, 0
			for as, headers := range requests {
				for _, pattern := range harness.Routes(w.Auth) {
					path, isGET := strings.CutPrefix(pattern, "GET ")
					if !isGET || path == "/oauth/{provider}/callback" || path == "/openapi.json" { // the document has an example of a session
						continue
					}
					n++
					email := fmt.Sprintf("ada%d@example.com", n)
					var list []string
					switch path {
					case "/magic-link/verify":
						for i, more := range []map[string]any{nil, {"redirect_to": "https://app.test/"}, {"redirect_to": "https://app.test/", "code_challenge": harness.ChallengeOf(harness.Verifier)}} {
							list = append(list, w.MagicLink(fmt.Sprint(i, email), more)) // a newer one would supersede it
						}
					case "/verify-email":
						w.InCookies(email)
						list = []string{w.LinkToken(email, auth.KindVerifyEmail)}
					case "/reset-password":
						w.InCookies(email)
						w.Do("POST", "/forgot-password", map[string]any{"email": email}).Want(200)
						list = []string{w.LinkToken(email, auth.KindResetPassword)}
					default:
						list = []string{""}
					}
					for _, token := range list {
						a := w.Do("GET", strings.ReplaceAll(path, "{provider}", "google")+"?token="+token, nil, headers...)
						if set := a.SetCookies(); len(set) != 0 || a.Status >= 500 {
							t.Errorf("%s as %s: %d, cookies %v", pattern, as, a.Status, set)
						}
						used = used || strings.Contains(string(a.Body), `"access_token"`)
					}
				}
			}
			if used != byGET {
				t.Errorf("a link was completed: %v", used)
			}
			// The button does sign in.
			if set := w.Do("POST", "/magic-link/verify", "token="+w.MagicLink("bob@example.com", nil), harness.Form, harness.Browser, harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"}).Want(200).SetCookies(); len(set) != 2 {
				t.Errorf("cookies %v", set)
			}
		})
	}
}

// The page after a plain form with a weak password has the reasons of the JSON error, in the
// language of the browser, and a page about another problem has none.
func TestPlainFormShowsReasons(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithPasswords(auth.PasswordOptions{MinLength: 12}))
	reasons := map[string]map[string]string{
		"en": {"length": "fewer than 12 characters", "too_long": "too long", "common": "most common passwords", "similar": "similar to your name"},
		"de": {"length": "weniger als 12 Zeichen", "too_long": "zu lang", "common": "häufigsten Passwörter", "similar": "deinem Namen oder deiner Adresse zu ähnlich"},
	}
	for name, password := range map[string]string{"length": "kx7-", "too_long": strings.Repeat("kx7-", 200), "common": "password1234", "similar": "ada@example.com"} {
		details := harness.DecodeAs[struct {
			Details struct{ Reasons []string }
		}](w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": password}).Want(422, auth.CodeWeakPassword)).Details.Reasons
		if !slices.Contains(details, name) {
			t.Fatalf("%s: %v", name, details)
		}
		for lang, texts := range reasons {
			a := w.Do("POST", "/signup", url.Values{"email": {"ada@example.com"}, "password": {password}}.Encode(), harness.Form, harness.Browser,
				harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"}, harness.Header{Name: "Accept-Language", Value: lang}).Want(422)
			for reason, text := range texts {
				if got := strings.Contains(string(a.Body), text); got != slices.Contains(details, reason) {
					t.Errorf("%s, %s: %q shown: %v: %s", name, lang, text, got, a.Body)
				}
			}
		}
	}
	a := w.Do("POST", "/signup", "email=none&password=a+new+long+password", harness.Form, harness.Browser, harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"}).Want(422)
	if strings.Contains(string(a.Body), "<li>") {
		t.Errorf("%s", a.Body)
	}
}
