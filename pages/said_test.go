package pages_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pages"
)

// The reason for a new sign-in is shown only to its user, and only known reasons are
// shown.
func TestReasonsToSignInAgain(t *testing.T) {
	s := newSite(t, pages.Options{})
	notice := func(p *shown) string {
		for _, n := range p.all("p") {
			if attr(n, "class") == "notice" {
				return textOf(n)
			}
		}
		return ""
	}
	for reason, said := range map[string]bool{
		"session_ended": true, "bad_token": true, "refresh_token_reused": true, "invalid_refresh_token": true,
		"user_banned": false, "internal": false, "": false,
	} {
		b := s.browser(t)
		p := b.open("/account/sign-in?reason="+reason).want(t, 200, "/account/sign-in", "")
		if got := notice(p); (got != "") != said {
			t.Errorf("%s: %q", reason, got)
		}
		if got := notice(b.submit("login", address, "password", "wrong-Passphrase-1")); got != "" {
			t.Errorf("%s, after a try: %q", reason, got)
		}
	}
	b := s.browser(t)
	b.signIn(address)
	b.open("/account/sign-in?reason=session_ended").want(t, 200, "/", "") // the session is still live
}

// A waiting time is shown in a suitable unit.
func TestWaitIsSaidInAFittingUnit(t *testing.T) {
	s := newSite(t, pages.Options{})
	for d, want := range map[time.Duration]string{
		0: "1 seconds", 50 * time.Second: "50 seconds", 51 * time.Second: "a minute", time.Minute: "a minute", 61 * time.Second: "2 minutes",
		2 * time.Hour: "120 minutes", 2*time.Hour + time.Second: "3 hours", 3*time.Hour + time.Minute: "4 hours",
	} {
		if got := s.pages.Wait("en", d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// A failed form of the account shows its whole page again, with the error.
func TestFailedFormShowsItsPageAgain(t *testing.T) {
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{}, auth.WithProvider(idp.OIDC("acme")))
	b := s.browser(t)
	b.signIn(address)
	post := func(path string, fields ...string) *shown {
		t.Helper()
		form := url.Values{}
		for i := 0; i+1 < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		return b.follow(b.send(http.MethodPost, path, form)) //nolint:bodyclose // a recorder's
	}
	for path, fields := range map[string][]string{
		"/account/profile":    {"full_name", strings.Repeat("x", 2000)},
		"/account/sessions":   {"id", "of-nobody"},
		"/account/identities": {"provider", "nobody", "do", "link"},
	} {
		p := post(path, fields...)
		if p.status < 400 || p.heading() != "Your account" || !strings.Contains(p.text(), "this device") {
			t.Errorf("%s: %d %s", path, p.status, p.text())
		}
	}
	b.open("/account/phone")
	b.submit("phone", "+491701234567")
	if p := post("/account/phone/code", "code", "000000").want(t, 400, "/account/phone/code", "Enter the code"); !strings.Contains(p.text(), "+491701234567") {
		t.Error(p.text())
	}
}

// The current device is the first in the list, and each of the others can be signed out.
func TestDevicesOfAnAccount(t *testing.T) {
	s := newSite(t, pages.Options{})
	first, second, third := s.browser(t), s.browser(t), s.browser(t)
	first.signIn(address)
	for _, b := range []*browser{second, third} {
		s.Clock.Advance(time.Second)
		b.open("/account/sign-in")
		b.submit("login", address, "password", password)
	}
	p := first.open("/account/")
	if this, other := strings.Index(p.body, `class="tag good"`), strings.Index(p.body, `name="id"`); this < 0 || other < this {
		t.Error("another device comes first")
	}
	var others []string
	for _, f := range second.open("/account/").forms() {
		if id := f.values.Get("id"); id != "" {
			others = append(others, id) // newest first: the third, then the first
		}
	}
	second.press("/account/sessions", "id", others[1]).want(t, 200, "/account/", "")
	third.open("/account/").want(t, 200, "/account/", "")
	first.open("/account/").want(t, 200, "/account/sign-in", "")
}

// A visitor who verifies an email address from the account sees where the code was sent.
func TestConfirmFromTheAccount(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.open("/account/sign-up")
	b.submit("email", address, "password", password)
	s.Clock.Advance(2 * time.Minute)
	s.Inbox.Clear()
	b.open("/account/")
	p := b.press("/account/email/confirm").want(t, 200, "/account/email/code", "Enter the code")
	if !strings.Contains(p.text(), address) {
		t.Error(p.text())
	}
	p = b.submit("code", s.Mail(t, address, auth.KindVerifyEmail).Code).want(t, 200, "/account/", "")
	if !strings.Contains(p.text(), "Your address is confirmed") {
		t.Error(p.text())
	}
}

// The page of a disabled feature says so instead of showing a form.
func TestPagesOfWhatIsOff(t *testing.T) {
	s := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{Password: auth.Off, MagicLink: auth.Off, Phone: auth.Off, TOTP: auth.Off}))
	who := authtest.NewOn(t, s.Store, s.SameKeys()).LoginAs(t, address) // created while it was enabled
	b, rec := s.browser(t), httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, origin+"/", http.NoBody)
	if err := s.SetCookies(rec, r, &who.Tokens); err != nil {
		t.Fatal(err)
	}
	b.jar.SetCookies(r.URL, rec.Result().Cookies())
	for path, want := range map[string]int{
		"/account/password": 403, "/account/second-factor": 403, "/account/delete": 404,
		"/account/sign-in/mail": 403, "/account/sign-in/phone": 403, "/account/forgot-password": 403,
	} {
		if p := b.open(path); p.status != want || strings.Contains(p.body, "<form method=\"post\" action=\""+path) {
			t.Errorf("%s: %d", path, p.status)
		}
	}
}

// The QR code from the form must be an image.
func TestOnlyAnImageIsScanned(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	for _, qr := range []string{"abcd", "data:image/svg+xml;base64,abcd", "data:image/png;base64,!", "https://evil.example/x.png", ""} {
		form := url.Values{"do": {"enable"}, "code": {"000000"}, "secret": {"JBSWY3DP"}, "qr": {qr}}
		p := b.follow(b.send(http.MethodPost, "/account/second-factor", form)) //nolint:bodyclose // a recorder's
		if len(p.all("img")) > 0 {
			t.Errorf("%q is shown", qr)
		}
	}
}

// Fields have the limits of their lengths.
func TestFieldsSayTheirLengths(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	if got := attr(b.open("/account/sign-up").find("password"), "minlength"); got != "8" {
		t.Errorf("minlength %q", got)
	}
	b.open("/account/sign-in/phone")
	if got := attr(b.submit("phone", "+491701234567").find("code"), "maxlength"); got != "12" {
		t.Errorf("maxlength %q", got)
	}
}
