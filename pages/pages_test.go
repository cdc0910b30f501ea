package pages_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pages"
)

// nobody is a verifier that rejects every captcha.
type nobody struct{}

func (nobody) Verify(context.Context, string, netip.Addr) error { return auth.ErrCaptcha }

func TestNewRefuses(t *testing.T) {
	file := func(name, text string) fs.FS { return fstest.MapFS{name: {Data: []byte(text)}} }
	cookies := auth.WithCookies(auth.CookieOptions{})
	for name, c := range map[string]struct {
		o    pages.Options
		auth []auth.Option
		want string
	}{
		"no cookies":           {want: "auth.WithCookies(auth.CookieOptions{})"},
		"a captcha":            {auth: []auth.Option{cookies, auth.WithCaptcha(auth.CaptchaOptions{Verifier: nobody{}})}, want: "auth.WithCaptcha is set"},
		"another prefix":       {o: pages.Options{Prefix: "/login"}, auth: []auth.Option{cookies}, want: `the sign-in page is at "/login/sign-in"`},
		"home elsewhere":       {o: pages.Options{Home: "https://evil.example"}, auth: []auth.Option{cookies}, want: "Home"},
		"no colour":            {o: pages.Options{Accent: "red"}, auth: []auth.Option{cookies}, want: "#rrggbb"},
		"a style for a colour": {o: pages.Options{Accent: "#fff;}"}, auth: []auth.Option{cookies}, want: "#rrggbb"},
		"a script for a logo":  {o: pages.Options{Logo: "javascript:alert(1)"}, auth: []auth.Option{cookies}, want: "logo"},
		"an http logo":         {o: pages.Options{Logo: "http://cdn.example/x.png"}, auth: []auth.Option{cookies}, want: "logo"},
		"unknown file":         {o: pages.Options{Templates: file("signin.html", "")}, auth: []auth.Option{cookies}, want: `"signin.html" that is not read; there are style.css, account.html`},
		"file in a folder":     {o: pages.Options{Templates: file("templates/sign_in.html", "")}, auth: []auth.Option{cookies}, want: `"templates/sign_in.html"`},
		"bad template":         {o: pages.Options{Templates: file("sign_in.html", "{{")}, auth: []auth.Option{cookies}, want: "sign_in.html"},
		"unknown variable":     {o: pages.Options{Templates: file("sign_in.html", `{{define "title"}}{{end}}{{define "body"}}{{.Nonsense}}{{end}}`)}, auth: []auth.Option{cookies}, want: "Nonsense"},
		"unknown property":     {o: pages.Options{Templates: file("sign_in.html", `{{define "title"}}{{end}}{{define "body"}}{{template "field" (field . "x" "colour" "red")}}{{end}}`)}, auth: []auth.Option{cookies}, want: "colour"},
		"texts":                {o: pages.Options{Templates: file("texts.fr.json", `{}`)}, auth: []auth.Option{cookies}, want: `"texts.fr.json" that is not read`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := pages.New(authtest.New(t, c.auth...).Auth, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAnotherPrefix(t *testing.T) {
	env := authtest.New(t, auth.WithCookies(auth.CookieOptions{SignInURL: "/login/sign-in"}))
	if _, err := pages.New(env.Auth, pages.Options{Prefix: "/login"}); err != nil {
		t.Error(err)
	}
	if _, err := pages.New(env.Auth, pages.Options{Prefix: "/login"}); err == nil || !strings.Contains(err.Error(), "has pages already") {
		t.Errorf("the same pages again: %v", err)
	}
}

// Pages that are mounted outside their prefix log that once; others never do.
func TestMissedPrefix(t *testing.T) {
	s := newSite(t, pages.Options{})
	ask := func(path string) string {
		s.pages.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return s.log.String()
	}
	for _, path := range []string{"/account", "/account/", "/account/nothing", "/account/sign-in"} {
		if log := ask(path); strings.Contains(log, "outside the prefix of the pages") {
			t.Errorf("%s: %s", path, log)
		}
	}
	for _, path := range []string{"/accounts", "/sign-in", "/account2/sign-in"} {
		if log := ask(path); strings.Count(log, "outside the prefix of the pages") != 1 || !strings.Contains(log, "seen=/accounts") {
			t.Errorf("%s: %s", path, log)
		}
	}
}

// Templates and texts can be replaced one by one, and a language can be added.
func TestTemplatesOfOnesOwn(t *testing.T) {
	s := newSite(t, pages.Options{Templates: fstest.MapFS{
		"signed_out.html": {Data: []byte(`{{define "title"}}x{{end}}{{define "body"}}<h1>Bye from {{.Brand}}</h1>{{end}}`)},
	}}, auth.WithMail(auth.MailOptions{AppName: "Notes", Templates: fstest.MapFS{
		"languages/en/pages.json": {Data: []byte(`{"sign_in.heading": "Welcome back to {brand}"}`)},
		"languages/it/pages.json": {Data: []byte(`{"sign_in.heading": "Accedi a {brand}"}`)},
	}}))
	b := s.browser(t)
	b.open("/account/signed-out").want(t, 200, "/account/signed-out", "Bye from Notes")
	b.open("/account/sign-in").want(t, 200, "/account/sign-in", "Welcome back to Notes")
	b.header.Set("Accept-Language", "it")
	b.open("/account/sign-in").want(t, 200, "/account/sign-in", "Accedi a Notes")
	b.open("/account/sign-up").want(t, 200, "/account/sign-up", "Sign up for Notes")
	b.header.Set("Accept-Language", "de")
	b.open("/account/sign-in").want(t, 200, "/account/sign-in", "Bei Notes anmelden")
}

// Every error that can occur has a text, and templates name only texts that exist. That
// every language has every text is tested in internal/webpage.
func TestTexts(t *testing.T) {
	s := newSite(t, pages.Options{})
	en := s.pages.Texts("en")
	listing, err := os.ReadFile("../api.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^auth: Code\w+ Code = "(\w+)"`).FindAllStringSubmatch(string(listing), -1) {
		if en["error."+m[1]] == "" {
			t.Errorf("there is no text for the error %s", m[1])
		}
	}
	used := regexp.MustCompile(`(?:\(?t|\.[TM]) "([a-z_.]*[a-z_])"`)
	templates, err := filepath.Glob("templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	ofLinks, err := filepath.Glob("../templates/page/*.html")
	if err != nil || len(ofLinks) == 0 {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(templates, ofLinks) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range used.FindAllStringSubmatch(string(b), -1) {
			if en[m[1]] == "" {
				t.Errorf("%s: there is no text %q", name, m[1])
			}
		}
	}
}

// docs/pages.md lists every template and variable.
func TestDocument(t *testing.T) {
	doc, err := os.ReadFile("../docs/pages.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	templates, err := fs.Glob(os.DirFS("templates"), "*")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, templates...)
	for _, of := range []any{pages.View{}, pages.User{}, pages.Provider{}, pages.Setup{}, pages.Device{}, pages.Passkey{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
			if f.IsExported() {
				want = append(want, f.Name)
			}
		}
	}
	for _, name := range want {
		if !strings.Contains(string(doc), "`"+name+"`") && !strings.Contains(string(doc), "`."+name+"`") {
			t.Errorf("docs/pages.md does not name `%s`", name)
		}
	}
}

// Must panics if New returns an error.
func TestMust(t *testing.T) {
	defer func() {
		if err, ok := recover().(error); !ok || !strings.Contains(errors.Unwrap(err).Error(), "WithCookies") {
			t.Errorf("Must does not panic with the error of New: %v", err)
		}
	}()
	pages.Must(authtest.New(t).Auth, pages.Options{})
}

// Pages that a developer opens at localhost continue at the base URL's name of the machine,
// where the links of mails lead. The log says so once.
func TestPagesAtLocalhost(t *testing.T) {
	var log logged
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	defer srv.Close()
	a := authtest.New(t, auth.WithDevMode(), auth.WithBaseURL(srv.URL+"/auth/v1"), auth.WithCookies(auth.CookieOptions{}), auth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	mux.Handle("/account/", pages.Must(a.Auth, pages.Options{}))
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	send := func(method, host, path string) (status int, to string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader("login=x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode, res.Header.Get("Location")
	}
	own := strings.TrimPrefix(srv.URL, "http://")
	_, port, _ := strings.Cut(own, ":")
	const path = "/account/sign-in?return_to=%2Fnotes"
	for _, host := range []string{"localhost:" + port, "[::1]:" + port} {
		if status, to := send(http.MethodGet, host, path); status != http.StatusTemporaryRedirect || to != srv.URL+path {
			t.Errorf("%s: %d %s", host, status, to)
		}
	}
	if n := strings.Count(log.String(), "another host than that of the base URL"); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
	// The own host, a post, another port, and another machine stay where they are.
	for _, c := range [][2]string{{http.MethodGet, own}, {http.MethodPost, "localhost:" + port}, {http.MethodGet, "localhost:1"}, {http.MethodGet, "app.example.com:" + port}} {
		if status, _ := send(c[0], c[1], path); status == http.StatusTemporaryRedirect {
			t.Errorf("%v is redirected", c)
		}
	}
}
