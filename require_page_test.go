package auth_test

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
	"github.com/authmount/auth/store"
)

// page requests a page behind a handler, as a browser does.
func (w *world) page(h http.Handler, method, target string, headers ...header) *answer {
	w.t.Helper()
	return w.doOn(h, method, target, nil, append([]header{browser}, headers...)...)
}

// greets is a page that says who looks at it.
var greets = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	who := "nobody"
	if c := auth.ClaimsFrom(r.Context()); c != nil {
		who = c.Email
	}
	_, _ = w.Write([]byte("hello " + who))
})

func (a *answer) says(want string) *answer {
	a.t.Helper()
	if !strings.Contains(string(a.body), want) {
		a.t.Errorf("%s, want %q", a.body, want)
	}
	return a
}

// signInPage fails the test unless the answer leads to the sign-in page, and
// returns where it would come back to and why.
func (a *answer) signInPage() (returnTo, reason string) {
	a.t.Helper()
	a.want(303)
	u, err := url.Parse(a.header.Get("Location"))
	if err != nil || u.Path != "/account/sign-in" || u.Host != "" {
		a.t.Fatalf("%v, %v", u, err)
	}
	return u.Query().Get("return_to"), u.Query().Get("reason")
}

// cleared fails the test unless the answer takes the session's cookies away.
func (a *answer) cleared() *answer {
	a.t.Helper()
	set := a.set()
	for _, name := range []string{accessCookie, refreshCookie} {
		if c := set[name]; c == nil || c.MaxAge >= 0 || c.Value != "" {
			a.t.Errorf("%s: %v", name, c)
		}
	}
	return a
}

// A page goes on when the access token has expired: it is refreshed in place, for
// all requests of the page at once, and what is within sees the new cookies.
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
			h := wrap(w.Auth, greets)
			w.page(h, "GET", "/notes", j.sent()).want(200).says("hello ada@example.com")
			w.Clock.Advance(time.Hour)
			var wg sync.WaitGroup
			answers := make([]*answer, 8)
			for i := range answers {
				sent := j.sent()
				if i%2 == 0 { // the browser has dropped the cookie of the access token by now
					sent = header{"Cookie", "theme=dark; " + j.refresh.Name + "=" + j.refresh.Value}
				}
				wg.Go(func() { answers[i] = w.page(h, "GET", "/notes", sent, header{"Sec-Fetch-Site", "cross-site"}) })
			}
			wg.Wait()
			for _, a := range answers {
				a.want(200).says("hello ada@example.com")
				if next := jarOf(a); next.access == nil || next.refresh == nil || next.refresh.Value == j.refresh.Value || next.refresh.MaxAge <= 0 {
					t.Errorf("cookies %v", a.set())
				}
				if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Vary") != "Cookie" {
					t.Errorf("header %v", a.header)
				}
			}
			next := jarOf(answers[0])
			w.page(h, "POST", "/notes", next.sent(), header{"Sec-Fetch-Site", "same-origin"}).want(200).says("hello ada@example.com")
		})
	}
}

// sent is the cookies alone, as a navigation sends them.
func (j jar) sent() header {
	return header{"Cookie", j.access.Name + "=" + j.access.Value + "; " + j.refresh.Name + "=" + j.refresh.Value}
}

// A session that is over leads to the sign-in page, with the way back, and its
// cookies are gone; for Optional it is nobody's.
func TestPageOfAnEndedSession(t *testing.T) {
	for name, end := range map[string]func(*world, jar) jar{
		"signed out elsewhere": func(w *world, j jar) jar {
			w.do("POST", "/logout?scope=global", nil, bearer(j.access.Value)).want(204)
			w.Clock.Advance(time.Hour)
			return j
		},
		"idle": func(w *world, j jar) jar { w.Clock.Advance(40 * 24 * time.Hour); return j },
		"forged": func(_ *world, j jar) jar {
			j.access = &http.Cookie{Name: accessCookie, Value: "x.y.z"}  //nolint:gosec // as a browser sends it
			j.refresh = &http.Cookie{Name: refreshCookie, Value: "v1.x"} //nolint:gosec // likewise
			return j
		},
		"without a refresh token": func(w *world, j jar) jar {
			w.Clock.Advance(time.Hour)
			j.refresh = &http.Cookie{Name: "other", Value: "x"} //nolint:gosec // likewise
			return j
		},
		"of a revocation": func(w *world, j jar) jar {
			c, _ := w.Verify(j.access.Value)
			w.do("POST", "/logout?scope=global", nil, bearer(j.access.Value)).want(204)
			w.Revoke(store.Revocation{UserID: c.UserID, SessionID: c.SessionID, At: w.Clock.Now()})
			return j
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, j := cookieWorld(t)
			j = end(w, j)
			a := w.page(w.RequirePage(greets), "GET", "/notes?page=2&q=a%26b", j.sent()).cleared()
			if to, reason := a.signInPage(); to != "/notes?page=2&q=a%26b" || reason == "" {
				t.Errorf("return_to %q, reason %q", to, reason)
			}
			w.page(w.Optional(greets), "GET", "/notes", j.sent()).want(200).says("hello nobody").cleared()
			w.doOn(w.RequirePage(greets), "GET", "/notes", nil, j.sent(), header{"Accept", "application/json"}).cleared()
		})
	}
	w, _ := cookieWorld(t)
	a := w.page(w.RequirePage(greets), "GET", "/notes")
	if to, reason := a.signInPage(); to != "/notes" || reason != "" || len(a.set()) > 0 {
		t.Errorf("return_to %q, reason %q, cookies %v", to, reason, a.set())
	}
	w.page(w.Optional(greets), "GET", "/notes").want(200).says("hello nobody")
}

// Programs get JSON, and a bearer token is never made up for by cookies.
func TestPageForPrograms(t *testing.T) {
	w, j := cookieWorld(t)
	bob := w.signUp("bob@example.com")
	for name, h := range map[string]http.Handler{"RequirePage": w.RequirePage(greets), "Optional": w.Optional(greets), "Require": w.Require(greets)} {
		w.page(h, "GET", "/notes", j.sent(), bearer(bob.AccessToken)).want(200).says("hello bob@example.com")
		a := w.page(h, "GET", "/notes", j.sent(), bearer("x.y.z")).want(401, auth.CodeBadToken)
		if len(a.set()) > 0 {
			t.Errorf("%s: cookies %v", name, a.set())
		}
	}
	w.doOn(w.RequirePage(greets), "GET", "/notes", nil, header{"Accept", "application/json"}).want(401, auth.CodeMissingToken)
}

// A post from another site does not act, whichever of the cookies is good; a
// navigation from there does show the page.
func TestPageAndOtherSites(t *testing.T) {
	w, j := cookieWorld(t)
	acted := false
	act := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { acted = true })
	foreign := header{"Sec-Fetch-Site", "cross-site"}
	for range 2 {
		for name, h := range map[string]http.Handler{"RequirePage": w.RequirePage(act), "Optional": w.Optional(act), "Require": w.Require(act)} {
			for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
				a := w.page(h, method, "/notes", j.sent(), foreign)
				if a.status != 403 || acted || len(a.set()) > 0 {
					t.Errorf("%s %s: %d, acted %v, cookies %v", name, method, a.status, acted, a.set())
				}
			}
		}
		w.page(w.RequirePage(greets), "GET", "/notes", j.sent(), foreign, header{"Sec-Fetch-Mode", "navigate"}).want(200)
		w.Clock.Advance(time.Hour)
	}
}

// The sign-in page is told where to lead back to, but never to another origin, and
// only to what can be gone to again.
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
		w.RequirePage(greets).ServeHTTP(rec, r)
		a := &answer{t: t, status: rec.Code, header: rec.Header(), body: rec.Body.Bytes()}
		if to, _ := a.signInPage(); to != want {
			t.Errorf("%s: back to %q, want %q", target, to, want)
		}
	}
	if to, _ := w.page(w.RequirePage(greets), "POST", "/notes").signInPage(); to != "" {
		t.Errorf("back to a post: %q", to)
	}
	// A prefix that was taken off belongs to it.
	stripped := http.StripPrefix("/app", w.RequirePage(greets))
	if to, _ := w.page(stripped, "GET", "/app/notes").signInPage(); to != "/app/notes" {
		t.Errorf("back to %q", to)
	}
}

// What signing in mends leads to the sign-in page, with the reason; what it does
// not is a page that says so. A session that a requirement finds over is cleared.
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
		a := w.page(w.RequirePage(greets, c.req), "GET", "/notes", j.sent())
		if c.reason == "" {
			a.want(403).says("<h1")
			continue
		}
		if to, reason := a.signInPage(); to != "/notes" || reason != c.reason || len(a.set()) > 0 {
			t.Errorf("%s: %q %q, cookies %v", name, to, reason, a.set())
		}
	}
	w.do("POST", "/logout?scope=global", nil, bearer(j.access.Value)).want(204)
	a := w.page(w.RequirePage(greets, auth.CheckSession()), "GET", "/notes", j.sent()).cleared()
	if _, reason := a.signInPage(); reason != "session_ended" {
		t.Errorf("reason %q", reason)
	}
}

// An outage signs nobody out: cookies stay, and the page says to come again.
func TestPageDuringAnOutage(t *testing.T) {
	down := &failingStore{Store: newStore(t)}
	w := &world{t: t, Env: authtest.NewOn(t, down, auth.WithCookies(auth.CookieOptions{}))}
	j := jarOf(w.do("POST", "/signup", credentials("ada@example.com", goodPassword), transport).want(200))
	w.Clock.Advance(time.Hour)
	down.down = true
	if a := w.page(w.RequirePage(greets), "GET", "/notes", j.sent()).want(503); len(a.set()) > 0 || a.header.Get("Retry-After") == "" {
		t.Errorf("cookies %v, header %v", a.set(), a.header)
	}
	if a := w.page(w.Optional(greets), "GET", "/notes", j.sent()).want(200).says("hello nobody"); len(a.set()) > 0 {
		t.Errorf("cookies %v", a.set())
	}
	down.down = false
	w.page(w.RequirePage(greets), "GET", "/notes", j.sent()).want(200).says("hello ada@example.com")
}

// OnRefused chooses the answer, once the cookies of what is over are gone.
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
	for name, h := range map[string]http.Handler{"RequirePage": w.RequirePage(greets), "Require": w.Require(greets)} {
		if got := w.page(h, "GET", "/notes").want(418).says("ours: auth: missing_token"); got.header.Get("X-Request-Id") == "" {
			t.Errorf("%s: header %v", name, got.header)
		}
		w.page(h, "GET", "/api/notes").want(401, auth.CodeMissingToken)
		w.page(h, "GET", "/notes", bearer("x.y.z")).want(418).says("bad_token")
	}
	w.page(w.Optional(greets), "GET", "/notes", bearer("x.y.z")).want(418)
	w.Clock.Advance(40 * 24 * time.Hour)
	w.page(w.RequirePage(greets), "GET", "/notes", j.sent()).want(418).cleared()
}
