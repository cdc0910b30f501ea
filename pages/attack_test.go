package pages_test

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pages"
)

// Forms of other sites, also of neighbouring hosts, change nothing on any page for any
// user.
func TestFormsOfOtherSites(t *testing.T) {
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{}, auth.WithProvider(idp.OIDC("acme")), auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
	b := s.browser(t)
	b.signIn(address)
	s.Mail(t, address, auth.KindNewDevice)
	fields := url.Values{
		"login": {address}, "email": {address}, "password": {password}, "current_password": {password}, "full_name": {"Mallory"},
		"phone": {"+491701234567"}, "code": {"123456"}, "provider": {"acme"}, "do": {"begin"}, "sure": {"1"},
	}
	if len(s.pages.Posts()) < 15 {
		t.Fatal(s.pages.Posts())
	}
	for _, path := range s.pages.Posts() {
		for _, from := range []http.Header{
			{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}},
			{"Sec-Fetch-Site": {"same-site"}, "Origin": {"https://sibling.auth.test"}},
			{"Origin": {"https://evil.example"}},
			{"Origin": {"null"}},
			{"Sec-Fetch-Site": {"none"}, "Origin": {"https://evil.example"}},
			{"Sec-Fetch-Site": {"cross-site"}},
		} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, origin+path, strings.NewReader(fields.Encode()))
			r.Header = from.Clone()
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			nobody := r.Clone(t.Context())
			nobody.Body = io.NopCloser(strings.NewReader(fields.Encode()))
			for _, c := range b.jar.Cookies(r.URL) {
				r.AddCookie(c)
			}
			for who, r := range map[string]*http.Request{"nobody": nobody, "Ada": r} {
				rec := httptest.NewRecorder()
				s.handler.ServeHTTP(rec, r)
				if rec.Code != http.StatusForbidden || len(rec.Result().Cookies()) > 0 {
					t.Errorf("%s from %v as %s: %d", path, from, who, rec.Code)
				}
			}
		}
	}
	p := b.open("/account/").want(t, 200, "/account/", "")
	if strings.Contains(p.text(), "Mallory") {
		t.Error("the name was changed")
	}
	if n := len(s.Inbox.Messages()); n > 1 {
		t.Errorf("%d messages besides the one of the sign-in", n-1)
	}
}

func TestOpenRedirect(t *testing.T) {
	s := newSite(t, pages.Options{})
	s.LoginAs(t, address)
	for _, to := range []string{
		"https://evil.example/", "//evil.example", `/\evil.example`, `\\evil.example`, "/\t/evil.example", "javascript:alert(1)", "data:text/html,x",
		"https:evil.example", "/..//evil.example", "/%2f/evil.example", "/%5cevil.example", "///evil.example", "evil.example", " /x", "/x\r\nSet-Cookie: a=b",
		origin + "@evil.example/", origin + "/notes",
	} {
		for _, path := range s.pages.Paths(http.MethodGet) {
			b := s.browser(t)
			target := path + "?" + url.Values{"return_to": {to}}.Encode()
			res := b.send(http.MethodGet, target, nil) //nolint:bodyclose // a recorder's
			if strings.Contains(res.Header.Get("Location"), "evil") && !strings.HasPrefix(res.Header.Get("Location"), "/account/sign-in?") {
				t.Errorf("GET %s: %s", target, res.Header.Get("Location"))
			}
		}
		b := s.browser(t)
		res := b.send(http.MethodPost, "/account/sign-in?"+url.Values{"return_to": {to}}.Encode(), url.Values{"login": {address}, "password": {password}}) //nolint:bodyclose // likewise
		if res.StatusCode != http.StatusBadRequest || res.Header.Get("Location") != "" || len(res.Cookies()) > 0 {
			t.Errorf("%q: %d %s", to, res.StatusCode, res.Header.Get("Location"))
		}
	}
}

// The cookie with the state between pages is under the browser's control and may contain
// anything.
func TestForgedFlow(t *testing.T) {
	s := newSite(t, pages.Options{})
	s.LoginAs(t, address)
	for _, raw := range []string{
		`{"r":"https://evil.example/"}`, `{"r":"//evil.example"}`, `{"r":"/\\evil.example"}`, `{"n":"<script>","f":"<script>"}`, `{`, `[]`, `{"a":"<script>alert(1)</script>","c":"mail"}`,
		`{"c":"../../x","a":"a"}`,
	} {
		b := s.browser(t)
		u, _ := url.Parse(origin)
		b.jar.SetCookies(u, []*http.Cookie{{Name: "__Host-authmount-pages", Value: base64.RawURLEncoding.EncodeToString([]byte(raw)), Path: "/", Secure: true}}) //nolint:gosec // what is tested
		for _, path := range s.pages.Paths(http.MethodGet) {
			b.page = nil
			if p := b.open(path); p.url.Host != "auth.test" || p.status >= 500 || strings.Contains(p.body, "<script") {
				t.Errorf("%s at %s: %d %s", raw, path, p.status, p.url)
			}
		}
		b.open("/account/sign-in")
		if p := b.submit("login", address, "password", password); p.url.Host != "auth.test" {
			t.Errorf("%s leads to %s", raw, p.url)
		}
	}
}

// Texts from strangers are escaped everywhere.
func TestStoredScript(t *testing.T) {
	const script = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{Brand: script, ProviderLabels: map[string]string{"acme": script}}, auth.WithProvider(idp.OIDC("acme")))
	idp.Now = s.Clock.Now
	b := s.browser(t)
	b.header.Set("User-Agent", script)
	b.signIn(address)
	b.open("/account/")
	b.submit("full_name", "Ada "+script)
	for _, path := range append(s.pages.Paths(http.MethodGet), "/account/sign-in?reason="+url.QueryEscape(script), "/auth/v1/magic-link/verify?token=x") {
		p := b.open(path)
		for _, bad := range []string{"<script", "<img src=x", "onerror=alert(1)>"} {
			if strings.Contains(p.body, bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
	}
	out := s.browser(t)
	out.open("/account/sign-in/mail")
	for _, entered := range []string{script, script + "@example.com"} {
		if p := out.submit("email", entered); strings.Contains(p.body, "<script") {
			t.Error("what was entered is a script")
		}
	}
}

// Every page has the strict policy, is not cached and cannot be framed.
func TestHeadersOfPages(t *testing.T) {
	s := newSite(t, pages.Options{Logo: "https://cdn.example/logo.svg"})
	b := s.browser(t)
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	check := func(p *shown) {
		t.Helper()
		m := style.FindStringSubmatch(p.body)
		if m == nil {
			t.Fatalf("%s: %d no style: %s", p.url, p.status, p.body)
		}
		sum := sha256.Sum256([]byte(m[1]))
		want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src https://cdn.example data:; base-uri 'none'; form-action 'self'"
		got := p.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "; frame-ancestors 'none'") || p.header.Get("X-Frame-Options") != "DENY" ||
			p.header.Get("Cache-Control") != "no-store" || p.header.Get("Referrer-Policy") != "no-referrer" || p.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", p.url, p.header)
		}
		if regexp.MustCompile(`(?i)<script|\sstyle=|\son[a-z]+=|javascript:`).MatchString(p.body) {
			t.Errorf("%s has something that the policy is to stop", p.url)
		}
	}
	for _, path := range append(s.pages.Paths(http.MethodGet), "/account/nowhere", "/auth/v1/verify-email?token=x") {
		if p := b.open(path); p.url.Path != "/" {
			check(p)
		}
	}
	b.signIn(address)
	for _, path := range s.pages.Paths(http.MethodGet) {
		if p := b.open(path); p.url.Path != "/" && p.url.Host == "auth.test" {
			check(p)
		}
	}
}

// No password, code, key or token is in a URL or in the log. (Except the code of a
// redirect: it is valid for a minute, once, with the verifier.)
func TestSecretsStayInside(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	b.open("/account/second-factor")
	secret, recovery := enrol(t, b)
	b.press("/account/sign-out")
	b.open("/account/sign-in")
	b.submit("login", address, "password", "wrong-Passphrase-1")
	b.submit("login", address, "password", password).want(t, 200, "/account/sign-in/second", "")
	b.submit("code", recovery[0]) // in the wrong field
	b.open("/account/sign-in/second?with=recovery")
	s.Clock.Advance(time.Minute)
	typed := code(t, s, secret)
	b.submit("with", "recovery", "code", typed)
	b.open("/account/sign-in/mail")
	b.submit("email", "bob@example.com")
	mail := s.Mail(t, "bob@example.com", auth.KindMagicLink)
	secrets := append([]string{password, "wrong-Passphrase-1", secret, typed}, recovery...)
	u, _ := url.Parse(origin)
	for _, c := range b.jar.Cookies(u) {
		secrets = append(secrets, c.Value)
	}
	token := mail.Link[strings.Index(mail.Link, "token=")+len("token="):]
	for _, secret := range append(secrets, token) {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
		for _, address := range b.trail {
			if strings.Contains(address, secret) {
				t.Errorf("%s has %q", address, secret)
			}
		}
	}
}

// Login CSRF: the code of a sign-in that another browser started cannot sign this browser
// in.
func TestLoginOfAStranger(t *testing.T) {
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{}, auth.WithProvider(idp.OIDC("acme")))
	idp.Now = s.Clock.Now
	stranger := s.browser(t)
	stranger.open("/account/sign-in/with/acme")
	idp.SignsIn(authtest.Person{Subject: "1", Email: "mallory@example.com", EmailVerified: true})
	back := idp.Authorize(t, stranger.page.url.String())
	stranger.page = nil
	res := stranger.send(http.MethodGet, "/auth/v1/oauth/acme/callback?"+back.Encode(), nil) //nolint:bodyclose // likewise
	link := res.Header.Get("Location")
	if !strings.Contains(link, "/account/sign-in/back?code=") {
		t.Fatal(link)
	}
	victim := s.browser(t)
	victim.open("/account/sign-in/with/acme") // with its own sign-in in progress, or without
	victim.page = nil
	p := victim.open(link).want(t, 200, "/account/sign-in", "")
	if !strings.Contains(p.text(), "another browser") {
		t.Error(p.text())
	}
	victim.open("/notes").want(t, 200, "/account/sign-in", "")
}

// Two cookies of the same name are ignored, because another host may have set one.
func TestTwoCookiesOfOneName(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	u, _ := url.Parse(origin)
	for _, c := range b.jar.Cookies(u) {
		if strings.HasSuffix(c.Name, "-device") {
			continue
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, origin+"/account/", http.NoBody)
		for _, each := range b.jar.Cookies(u) {
			if strings.HasSuffix(c.Name, "-access") && strings.HasSuffix(each.Name, "-refresh") {
				continue
			}
			r.AddCookie(each)
		}
		if strings.HasSuffix(c.Name, "-access") {
			r.AddCookie(&http.Cookie{Name: c.Name, Value: "planted"}) //nolint:gosec // as a browser sends it
			rec := httptest.NewRecorder()
			s.handler.ServeHTTP(rec, r)
			if rec.Code != http.StatusSeeOther {
				t.Errorf("%s twice: %d", c.Name, rec.Code)
			}
		}
	}
	flow := base64.RawURLEncoding.EncodeToString([]byte(`{"r":"/planted","m":"x"}`))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, origin+"/account/sign-in/second", http.NoBody)
	r.AddCookie(&http.Cookie{Name: "__Host-authmount-pages", Value: flow}) //nolint:gosec // what is tested
	r.AddCookie(&http.Cookie{Name: "__Host-authmount-pages", Value: flow}) //nolint:gosec // what is tested
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, r)
	if rec.Header().Get("Location") != "/account/sign-in" {
		t.Errorf("a planted flow is believed: %d %s", rec.Code, rec.Header().Get("Location"))
	}
}

// GET changes nothing, for any visitor, and HEAD uses nothing up.
func TestGetChangesNothing(t *testing.T) {
	s := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
	b := s.browser(t)
	b.signIn(address)
	s.Mail(t, address, auth.KindNewDevice)
	for _, path := range s.pages.Posts() {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			b.send(method, path+"?do=disable&sure=1&id=x&full_name=Mallory&provider=acme&code=1", nil) //nolint:bodyclose // a recorder's
		}
	}
	p := b.open("/account/").want(t, 200, "/account/", "")
	if strings.Contains(p.body, "Mallory") || len(s.Inbox.Messages()) > 1 { // the message of the sign-in
		t.Error("something has changed")
	}
	for _, path := range []string{"/account/sign-out", "/account/sessions", "/account/profile"} {
		if p := b.open(path); p.status != http.StatusMethodNotAllowed || p.header.Get("Allow") != "POST" {
			t.Errorf("%s: %d %q", path, p.status, p.header.Get("Allow"))
		}
	}
}
