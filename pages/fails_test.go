package pages_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/pages"
)

// fails makes every call of a store method fail until the returned function is called,
// which returns the number of failures.
func (s *site) fails(method string) (stop func() int) {
	n := 0
	s.tap.Reset(storetap.Hooks{Fault: func(_ context.Context, m string, _ int) storetap.Fault {
		if m != method {
			return storetap.NoFault
		}
		n++
		return storetap.FailsBefore
	}})
	return func() int { s.tap.Reset(storetap.Hooks{}); return n }
}

// joins signs a user in on a page of the application, in another tab, while a page is
// open: the state of the pages stays.
func (b *browser) joins(email string) {
	b.t.Helper()
	other := b.site.browser(b.t)
	other.signIn(email)
	u := &url.URL{Scheme: "https", Host: "auth.test", Path: "/"}
	for _, c := range other.jar.Cookies(u) {
		c.Path, c.Secure = "/", true
		b.jar.SetCookies(u, []*http.Cookie{c})
	}
}

// If a user signs in while the session of another user cannot be ended, the page says so,
// because that session would continue.
func TestSessionsThatCannotBeReplaced(t *testing.T) {
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{}, auth.WithProvider(idp.OIDC("acme")))
	idp.Now = s.Clock.Now
	s.LoginAs(t, "bob@example.com")
	for name, row := range map[string]struct {
		at   string
		then func(b *browser) *shown
	}{
		"password": {"/account/sign-in?return_to=/notes", func(b *browser) *shown { return b.submit("login", "bob@example.com", "password", password) }},
		"provider": {"/account/sign-in/with/acme?return_to=/notes", func(b *browser) *shown {
			return b.atProvider(idp, authtest.Person{Subject: "7", Email: "eve@example.com", EmailVerified: true})
		}},
	} {
		b := s.browser(t)
		b.open(row.at)
		b.joins(address)
		stop := s.fails("RevokeSessions")
		p := row.then(b)
		if n := stop(); n == 0 || p.status != http.StatusServiceUnavailable || p.url.Path == "/notes" {
			t.Errorf("%s: %d at %s after %d failures: %s", name, p.status, p.url, n, p.text())
		}
	}
}

// The same holds if the new user first has to set up a second factor.
func TestEnrolmentOverAnotherSession(t *testing.T) {
	var required atomic.Bool
	s := newSite(t, pages.Options{}, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required.Load() }}))
	s.LoginAs(t, "bob@example.com")
	b := s.browser(t)
	required.Store(true)
	b.open("/account/sign-in")
	b.submit("login", "bob@example.com", "password", password).want(t, 200, "/account/sign-in/enrol", "Set up a second factor")
	secret := attr(b.submit("do", "begin").input("secret"), "value")
	required.Store(false)
	b.joins(address)
	stop := s.fails("RevokeSessions")
	p := b.submit("do", "enable", "code", code(t, s, secret))
	if n := stop(); n == 0 || p.status != http.StatusServiceUnavailable || strings.Contains(p.text(), "Your recovery codes") {
		t.Errorf("%d at %s after %d failures: %s", p.status, p.url, n, p.text())
	}
}

// A sign-in at a provider asks a user with a second factor for it.
func TestProviderAndSecondFactor(t *testing.T) {
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{}, auth.WithProvider(idp.OIDC("acme")))
	idp.Now = s.Clock.Now
	who := authtest.Person{Subject: "1", Email: address, EmailVerified: true}
	b := s.browser(t)
	b.open("/account/sign-in/with/acme?return_to=/account/second-factor")
	b.atProvider(idp, who).want(t, 200, "/account/second-factor", "Set up a second factor")
	secret, _ := enrol(t, b)
	s.Clock.Advance(30 * time.Second)
	other := s.browser(t)
	other.open("/account/sign-in/with/acme?return_to=/notes")
	other.atProvider(idp, who).want(t, 200, "/account/sign-in/second", "")
	other.submit("code", code(t, s, secret)).want(t, 200, "/notes", "")
}

// The page does not show a second factor that could not be stored.
func TestFactorsThatCannotBeKept(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	b.open("/account/second-factor")
	stop := s.fails("PutFactor")
	p := b.submit("do", "begin")
	if n := stop(); n == 0 || p.status != http.StatusServiceUnavailable || attr(p.input("secret"), "value") != "" {
		t.Errorf("%d after %d failures: %s", p.status, n, p.text())
	}
}

// Posts without the pages' form are rejected.
func TestPostsThatAreNoForm(t *testing.T) {
	s := newSite(t, pages.Options{})
	for kind, want := range map[string]int{"application/json": http.StatusUnsupportedMediaType, "": http.StatusUnsupportedMediaType} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/account/sign-in", strings.NewReader(`{"login":"ada@example.com"}`))
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		s.pages.ServeHTTP(w, r)
		if w.Code != want || w.Body.Len() == 0 {
			t.Errorf("%q: %d %.200s", kind, w.Code, w.Body)
		}
	}
}

// locked is a folder of templates with one unreadable file.
type locked struct {
	fstest.MapFS
	name string
}

var errLocked = errors.New("locked")

func (l locked) Open(name string) (fs.File, error) {
	if name == l.name {
		return nil, errLocked
	}
	return l.MapFS.Open(name)
}

func (l locked) ReadFile(name string) ([]byte, error) {
	if name == l.name {
		return nil, errLocked
	}
	return l.MapFS.ReadFile(name)
}

// New returns an error for every template of the application that cannot be read or
// parsed, and never uses the built-in page or a blank one instead.
func TestTemplatesThatCannotBeRead(t *testing.T) {
	a := authtest.New(t, auth.WithCookies(auth.CookieOptions{})).Auth
	for _, name := range []string{"style.css", "layout.html", "parts.html", "sign_in.html"} {
		files := fstest.MapFS{name: {Data: []byte("x")}}
		if p, err := pages.New(a, pages.Options{Templates: locked{files, name}}); !errors.Is(err, errLocked) || p != nil {
			t.Errorf("%s cannot be read: %v", name, err)
		}
	}
	texts := "languages/en/pages.json"
	mail := auth.WithMail(auth.MailOptions{Templates: locked{fstest.MapFS{texts: {Data: []byte("{}")}}, texts}})
	if a, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), mail); !errors.Is(err, errLocked) || a != nil {
		t.Errorf("texts cannot be read: %v", err)
	}
	for name, text := range map[string]string{
		"layout.html": "{{", "parts.html": `{{define "x"}}`, "sign_in.html": "{{nosuch}}",
		"problem.html": `{{define "title"}}{{end}}{{define "body"}}{{template "field" (field . "x" "label")}}{{end}}`,
	} {
		if p, err := pages.New(a, pages.Options{Templates: fstest.MapFS{name: {Data: []byte(text)}}}); err == nil || p != nil || name == "problem.html" && !strings.Contains(err.Error(), "a property without a value") {
			t.Errorf("%s cannot be parsed: %v", name, err)
		}
	}
}

// If a template fails for one visitor, the page shows an error and is never blank.
func TestPagesThatFailForSomebody(t *testing.T) {
	page := func(fails string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(`{{define "title"}}{{end}}{{define "body"}}{{if ` + fails + `}}{{index .Devices 99}}{{end}}{{end}}`)}
	}
	signIn, problem := page(`eq .Query "?return_to=%2Fnotes"`), page(`and .Problem (ne .Problem "-")`)
	for name, test := range map[string]struct {
		files fstest.MapFS
		kind  string
	}{
		"one page":           {fstest.MapFS{"sign_in.html": signIn}, "text/html; charset=utf-8"},
		"and that of errors": {fstest.MapFS{"sign_in.html": signIn, "problem.html": problem}, "application/json; charset=utf-8"},
	} {
		s := newSite(t, pages.Options{Templates: test.files})
		b := s.browser(t)
		if p := b.open("/account/sign-in"); p.status != http.StatusOK {
			t.Errorf("%s: for others %d", name, p.status)
		}
		p := b.open("/account/sign-in?return_to=/notes")
		if p.status != http.StatusInternalServerError || p.body == "" || p.header.Get("Content-Type") != test.kind {
			t.Errorf("%s: %d %v %q", name, p.status, p.header, p.body)
		}
	}
}
