package signin_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// A verification link opened in a browser with a live session of the same account does not
// ask whether it was the user. The verification deletes nothing.
func TestWhoeverIsSignedInIsNotAskedWhoseAccountItIs(t *testing.T) {
	w, ada := cookieWorld(t)
	eve := jarOf(w.Do("POST", "/signup", harness.Credentials("eve@example.com", harness.GoodPassword), harness.Transport).Want(200))
	ended := jarOf(w.Do("POST", "/login", harness.Credentials("ada@example.com", harness.GoodPassword), harness.Transport).Want(200))
	w.Do("POST", "/logout", nil, ended.sent(), harness.SameOrigin).Want(204)
	token := w.LinkToken("ada@example.com", auth.KindVerifyEmail)
	for name, c := range map[string]struct {
		cookies []harness.Header
		asks    bool
	}{
		"no session":          {nil, true},
		"a live session":      {[]harness.Header{ada.sent()}, false},
		"somebody else's":     {[]harness.Header{eve.sent()}, true},
		"one that has ended":  {[]harness.Header{ended.sent()}, true},
		"a token of no worth": {[]harness.Header{harness.Cookies(harness.AccessCookie + "=x.y.z")}, true},
	} {
		page := string(w.Do("GET", "/verify-email?token="+token, nil, append([]harness.Header{harness.Browser}, c.cookies...)...).Want(200).Body)
		if asks := strings.Contains(page, "Did you create this account?"); asks != c.asks || strings.Contains(page, "Confirm your e") == c.asks {
			t.Errorf("%s: asks %v: %s", name, asks, page)
		}
	}
	w.Do("POST", "/verify-email", "token="+token, harness.Form, harness.Browser, ada.sent(), harness.SameOrigin).Want(200)
	if !w.Alive(ada.access.Value) {
		t.Error("the session ended")
	}
}

// The page that sets a password mentions the other devices that it signs out, in every
// language and after a refused password. For an account that never had a session it does
// not.
func TestPageOfAFirstPasswordTellsOfNoDevices(t *testing.T) {
	w := harness.NewWorld(t)
	u := w.Imported(auth.ImportUserParams{Email: "new@example.com", EmailVerified: true})
	if err := w.SendWelcome(t.Context(), auth.SendWelcomeParams{UserID: u.ID}); err != nil {
		t.Fatal(err)
	}
	w.PostSignUp("ada@example.com")
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
	for token, tells := range map[string]bool{
		w.LinkToken("new@example.com", auth.KindWelcome):       false,
		w.LinkToken("ada@example.com", auth.KindResetPassword): true,
	} {
		for locale, words := range map[string]string{"en": "other devices", "de": "anderen Geräte"} {
			in := harness.Header{Name: "Accept-Language", Value: locale}
			for what, a := range map[string]*harness.Answer{
				"shown":       w.Do("GET", "/reset-password?token="+token, nil, harness.Browser, in).Want(200),
				"shown again": w.Do("POST", "/reset-password", "token="+token+"&new_password=short", harness.Form, harness.Browser, harness.SameOrigin, in).Want(422),
			} {
				if page := string(a.Body); strings.Contains(page, words) != tells || !strings.Contains(page, "new_password") {
					t.Errorf("%s, %s: tells of devices %v: %s", what, locale, !tells, page)
				}
			}
		}
	}
}

func says(a *harness.Answer, want string) *harness.Answer {
	a.T.Helper()
	if !strings.Contains(string(a.Body), want) {
		a.T.Errorf("%s, want %q", a.Body, want)
	}
	return a
}

// signInPage fails the test unless the answer leads to the sign-in page. It returns the URL
// to return to and the reason.
func signInPage(a *harness.Answer) (returnTo, reason string) {
	a.T.Helper()
	a.Want(303)
	u, err := url.Parse(a.Header.Get("Location"))
	if err != nil || u.Path != "/account/sign-in" || u.Host != "" {
		a.T.Fatalf("%v, %v", u, err)
	}
	return u.Query().Get("return_to"), u.Query().Get("reason")
}

// cleared fails the test unless the answer takes the session's cookies away.
func cleared(a *harness.Answer) *harness.Answer {
	a.T.Helper()
	set := a.SetCookies()
	for _, name := range []string{harness.AccessCookie, harness.RefreshCookie} {
		if c := set[name]; c == nil || c.MaxAge >= 0 || c.Value != "" {
			a.T.Errorf("%s: %v", name, c)
		}
	}
	return a
}

// A page works after the access token has expired: the token is refreshed in place, for all
// parallel requests of the page, and the wrapped handler sees the new cookies.
func TestPageRefreshesInPlace(t *testing.T) {
	for name, wrap := range map[string]func(*auth.Auth, http.Handler) http.Handler{
		"RequirePage": func(a *auth.Auth, h http.Handler) http.Handler { return a.RequirePage(h) },
		"Optional":    func(a *auth.Auth, h http.Handler) http.Handler { return a.Optional(h) },
		"nested": func(a *auth.Auth, h http.Handler) http.Handler {
			return a.RequirePage(a.Require(h, auth.CheckSession()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, j := cookieWorld(t)
			h := wrap(w.Auth, harness.Greeter)
			says(w.Page(h, "GET", "/notes", j.sent()).Want(200), "hello ada@example.com")
			w.Clock.Advance(time.Hour)
			var wg sync.WaitGroup
			answers := make([]*harness.Answer, 8)
			for i := range answers {
				sent := j.sent()
				if i%2 == 0 { // the browser has dropped the cookie of the access token by now
					sent = harness.Header{Name: "Cookie", Value: "theme=dark; " + j.refresh.Name + "=" + j.refresh.Value}
				}
				wg.Go(func() {
					answers[i] = w.Page(h, "GET", "/notes", sent, harness.Header{Name: "Sec-Fetch-Site", Value: "cross-site"})
				})
			}
			wg.Wait()
			for _, a := range answers {
				says(a.Want(200), "hello ada@example.com")
				if next := jarOf(a); next.access == nil || next.refresh == nil || next.refresh.Value == j.refresh.Value || next.refresh.MaxAge <= 0 {
					t.Errorf("cookies %v", a.SetCookies())
				}
				if a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Vary") != "Cookie" {
					t.Errorf("header %v", a.Header)
				}
			}
			next := jarOf(answers[0])
			says(w.Page(h, "POST", "/notes", next.sent(), harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"}).Want(200), "hello ada@example.com")
		})
	}
}

// sent is the cookies alone, as a navigation sends them.
func (j jar) sent() harness.Header {
	return harness.Header{Name: "Cookie", Value: j.access.Name + "=" + j.access.Value + "; " + j.refresh.Name + "=" + j.refresh.Value}
}

// An ended session leads to the sign-in page, with the way back, and its cookies are
// cleared. Optional treats it as signed out.
func TestPageOfAnEndedSession(t *testing.T) {
	for name, end := range map[string]func(*harness.World, jar) jar{
		"signed out elsewhere": func(w *harness.World, j jar) jar {
			w.Do("POST", "/logout?scope=global", nil, harness.Bearer(j.access.Value)).Want(204)
			w.Clock.Advance(time.Hour)
			return j
		},
		"idle": func(w *harness.World, j jar) jar { w.Clock.Advance(40 * 24 * time.Hour); return j },
		"forged": func(_ *harness.World, j jar) jar {
			j.access = &http.Cookie{Name: harness.AccessCookie, Value: "x.y.z"}  //nolint:gosec // as a browser sends it
			j.refresh = &http.Cookie{Name: harness.RefreshCookie, Value: "v1.x"} //nolint:gosec // likewise
			return j
		},
		"without a refresh token": func(w *harness.World, j jar) jar {
			w.Clock.Advance(time.Hour)
			j.refresh = &http.Cookie{Name: "other", Value: "x"} //nolint:gosec // likewise
			return j
		},
		"of a revocation": func(w *harness.World, j jar) jar {
			c, _ := w.Verify(j.access.Value)
			w.Do("POST", "/logout?scope=global", nil, harness.Bearer(j.access.Value)).Want(204)
			w.Revoke(store.Revocation{UserID: c.UserID, SessionID: c.SessionID, At: w.Clock.Now()})
			return j
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, j := cookieWorld(t)
			j = end(w, j)
			a := cleared(w.Page(w.RequirePage(harness.Greeter), "GET", "/notes?page=2&q=a%26b", j.sent()))
			if to, reason := signInPage(a); to != "/notes?page=2&q=a%26b" || reason == "" {
				t.Errorf("return_to %q, reason %q", to, reason)
			}
			cleared(says(w.Page(w.Optional(harness.Greeter), "GET", "/notes", j.sent()).Want(200), "hello nobody"))
			cleared(w.DoOn(w.RequirePage(harness.Greeter), "GET", "/notes", nil, j.sent(), harness.Header{Name: "Accept", Value: "application/json"}))
		})
	}
	w, _ := cookieWorld(t)
	a := w.Page(w.RequirePage(harness.Greeter), "GET", "/notes")
	if to, reason := signInPage(a); to != "/notes" || reason != "" || len(a.SetCookies()) > 0 {
		t.Errorf("return_to %q, reason %q, cookies %v", to, reason, a.SetCookies())
	}
	says(w.Page(w.Optional(harness.Greeter), "GET", "/notes").Want(200), "hello nobody")
}

// Programs get JSON, and cookies never replace a bearer token.
func TestPageForPrograms(t *testing.T) {
	w, j := cookieWorld(t)
	bob := w.PostSignUp("bob@example.com")
	for name, h := range map[string]http.Handler{"RequirePage": w.RequirePage(harness.Greeter), "Optional": w.Optional(harness.Greeter), "Require": w.Require(harness.Greeter)} {
		says(w.Page(h, "GET", "/notes", j.sent(), harness.Bearer(bob.AccessToken)).Want(200), "hello bob@example.com")
		a := w.Page(h, "GET", "/notes", j.sent(), harness.Bearer("x.y.z")).Want(401, auth.CodeBadToken)
		if len(a.SetCookies()) > 0 {
			t.Errorf("%s: cookies %v", name, a.SetCookies())
		}
	}
	w.DoOn(w.RequirePage(harness.Greeter), "GET", "/notes", nil, harness.Header{Name: "Accept", Value: "application/json"}).Want(401, auth.CodeMissingToken)
}

// A POST from another site has no effect, even with valid cookies. A navigation from there
// does show the page.
func TestPageAndOtherSites(t *testing.T) {
	w, j := cookieWorld(t)
	acted := false
	act := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { acted = true })
	foreign := harness.Header{Name: "Sec-Fetch-Site", Value: "cross-site"}
	for range 2 {
		for name, h := range map[string]http.Handler{"RequirePage": w.RequirePage(act), "Optional": w.Optional(act), "Require": w.Require(act)} {
			for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
				a := w.Page(h, method, "/notes", j.sent(), foreign)
				if a.Status != 403 || acted || len(a.SetCookies()) > 0 {
					t.Errorf("%s %s: %d, acted %v, cookies %v", name, method, a.Status, acted, a.SetCookies())
				}
			}
		}
		w.Page(w.RequirePage(harness.Greeter), "GET", "/notes", j.sent(), foreign, harness.Header{Name: "Sec-Fetch-Mode", Value: "navigate"}).Want(200)
		w.Clock.Advance(time.Hour)
	}
}

// The sign-in page gets the URL to return to, but never one of another origin, and only one
// that GET can repeat.
func TestPageLeadsBackHereOnly(t *testing.T) {
	w, _ := cookieWorld(t)
	for target, want := range map[string]string{
		"/notes": "/notes", "/notes?a=b": "/notes?a=b", "/": "/", "https://evil.test/notes": "/notes",
		"//evil.test/": "", `/\evil.test/`: "", "/%5cevil.test": "", "/a/..//evil.test": "", "/a/%2e%2e/x": "",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.RequestURI = target
		if u, err := url.Parse(target); err == nil {
			r.URL = u
		}
		r.Header.Set("Accept", "text/html")
		rec := httptest.NewRecorder()
		w.RequirePage(harness.Greeter).ServeHTTP(rec, r)
		a := &harness.Answer{T: t, Status: rec.Code, Header: rec.Header(), Body: rec.Body.Bytes()}
		if to, _ := signInPage(a); to != want {
			t.Errorf("%s: back to %q, want %q", target, to, want)
		}
	}
	if to, _ := signInPage(w.Page(w.RequirePage(harness.Greeter), "POST", "/notes")); to != "" {
		t.Errorf("back to a post: %q", to)
	}
	// A prefix that was taken off belongs to it.
	stripped := http.StripPrefix("/app", w.RequirePage(harness.Greeter))
	if to, _ := signInPage(w.Page(stripped, "GET", "/app/notes")); to != "/app/notes" {
		t.Errorf("back to %q", to)
	}
}

// A requirement that a sign-in can meet leads to the sign-in page, with the reason. Any
// other one shows an error page. A session that a requirement finds ended is cleared.
func TestPageRequirements(t *testing.T) {
	w, j := cookieWorld(t)
	for name, c := range map[string]struct {
		req    auth.Requirement
		reason string
	}{
		"second factor": {auth.AAL2(), "insufficient_aal"},
		"fresh":         {auth.FreshAuth(0), "reauthentication_needed"},
		"role":          {auth.HasRole("editor"), ""},
	} {
		a := w.Page(w.RequirePage(harness.Greeter, c.req), "GET", "/notes", j.sent())
		if c.reason == "" {
			says(a.Want(403), "<h1")
			continue
		}
		if to, reason := signInPage(a); to != "/notes" || reason != c.reason || len(a.SetCookies()) > 0 {
			t.Errorf("%s: %q %q, cookies %v", name, to, reason, a.SetCookies())
		}
	}
	w.Do("POST", "/logout?scope=global", nil, harness.Bearer(j.access.Value)).Want(204)
	a := cleared(w.Page(w.RequirePage(harness.Greeter, auth.CheckSession()), "GET", "/notes", j.sent()))
	if _, reason := signInPage(a); reason != "session_ended" {
		t.Errorf("reason %q", reason)
	}
}

// An outage signs no one out: cookies stay, and the page asks to try again later.
func TestPageDuringAnOutage(t *testing.T) {
	down := &failingStore{Store: harness.NewStore(t)}
	w := &harness.World{T: t, Env: authtest.NewOn(t, down, auth.WithCookies(auth.CookieOptions{}))}
	j := jarOf(w.Do("POST", "/signup", harness.Credentials("ada@example.com", harness.GoodPassword), harness.Transport).Want(200))
	w.Clock.Advance(time.Hour)
	down.down = true
	if a := w.Page(w.RequirePage(harness.Greeter), "GET", "/notes", j.sent()).Want(503); len(a.SetCookies()) > 0 || a.Header.Get("Retry-After") == "" {
		t.Errorf("cookies %v, header %v", a.SetCookies(), a.Header)
	}
	if a := says(w.Page(w.Optional(harness.Greeter), "GET", "/notes", j.sent()).Want(200), "hello nobody"); len(a.SetCookies()) > 0 {
		t.Errorf("cookies %v", a.SetCookies())
	}
	down.down = false
	says(w.Page(w.RequirePage(harness.Greeter), "GET", "/notes", j.sent()).Want(200), "hello ada@example.com")
}

// OnRefused chooses the answer, after the cookies of an ended session are cleared.
func TestOnRefused(t *testing.T) {
	var a *auth.Auth
	refused := func(w http.ResponseWriter, r *http.Request, err error) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			a.WriteError(w, r, err)
			return
		}
		http.Error(w, "ours: "+err.Error(), http.StatusTeapot)
	}
	w, j := cookieWorld(t, auth.WithOnRefused(refused))
	a = w.Auth
	for name, h := range map[string]http.Handler{"RequirePage": w.RequirePage(harness.Greeter), "Require": w.Require(harness.Greeter)} {
		if got := says(w.Page(h, "GET", "/notes").Want(418), "ours: auth: missing_token"); got.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: header %v", name, got.Header)
		}
		w.Page(h, "GET", "/api/notes").Want(401, auth.CodeMissingToken)
		says(w.Page(h, "GET", "/notes", harness.Bearer("x.y.z")).Want(418), "bad_token")
	}
	w.Page(w.Optional(harness.Greeter), "GET", "/notes", harness.Bearer("x.y.z")).Want(418)
	w.Clock.Advance(40 * 24 * time.Hour)
	cleared(w.Page(w.RequirePage(harness.Greeter), "GET", "/notes", j.sent()).Want(418))
}
