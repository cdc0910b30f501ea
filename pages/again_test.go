package pages_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pages"
)

// A visitor who needs a second factor for an action verifies it, or sets one up, and
// returns; also with a recovery code.
func TestSecondFactorInTheMidst(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	const asked = "/account/sign-in?reason=insufficient_aal&return_to=/notes"
	b.open(asked).want(t, 200, "/account/second-factor", "")
	_, recovery := enrol(t, b)
	if !strings.Contains(b.page.body, `href="/notes"`) {
		t.Error("it does not lead back")
	}
	b.open("/account/sign-in/second?with=recovery")
	b.open(asked).want(t, 200, "/account/sign-in/second", "")
	b.submit("code", "not-"+recovery[0]).want(t, 422, "/account/sign-in/second", "")
	b.submit("code", recovery[0]).want(t, 200, "/notes", "")
}

// A visitor who only has to verify a second factor is not asked to set one up.
func TestNoSecondSetup(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	b.open("/account/second-factor")
	enrol(t, b)
	s.Clock.Advance(time.Minute)
	other := s.browser(t)
	other.open("/account/sign-in")
	other.submit("login", address, "password", password).want(t, 200, "/account/sign-in/second", "")
	other.open("/account/sign-in/enrol").want(t, 200, "/account/sign-in", "")
	if to := other.send(http.MethodPost, "/account/sign-in/enrol", url.Values{"do": {"begin"}}).Header.Get("Location"); to != "/account/sign-in" { //nolint:bodyclose // a recorder's
		t.Errorf("led to %q", to)
	}
}

// A confirmed phone number is not asked for again, and errors are shown at their fields.
func TestWhatWasEnteredIsAnswered(t *testing.T) {
	const number = "+491701234567"
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.open("/account/sign-in")
	if p := b.submit("login", "nobody", "password", password); p.wrong(t, "login") == "" || !has(p.find("login"), "autofocus") {
		t.Errorf("%d %s", p.status, p.text())
	}
	b.signIn(address)
	if p := b.open("/account/"); !strings.Contains(p.text(), "2 January 2026") {
		t.Error("when a device was active is not said")
	}
	b.open("/account/phone")
	b.submit("phone", number)
	if p := b.submit("code", "000000"); p.wrong(t, "code") == "" {
		t.Error(p.text())
	}
	b.submit("code", s.Mail(t, number, auth.KindPhoneCode).Code).want(t, 200, "/account/", "")
	b.open("/account/phone/code").want(t, 200, "/account/phone", "")
}

// Unknown errors in the cookie are shown with the texts of the pages only.
func TestUnknownFailureIsSaidPlainly(t *testing.T) {
	s := newSite(t, pages.Options{})
	root, _ := url.Parse(origin)
	for raw, want := range map[string]string{`{"f":"nonsense"}`: s.pages.Texts("en")["error.internal"], `{"f":"oauth_denied"}`: s.pages.Texts("en")["error.oauth_denied"], `{"f":""}`: ""} {
		b := s.browser(t)
		b.jar.SetCookies(root, []*http.Cookie{{Name: "__Host-authmount-pages", Value: base64.RawURLEncoding.EncodeToString([]byte(raw)), Path: "/", Secure: true}}) //nolint:gosec // what is tested
		if got := textOf(b.open("/account/sign-in").find("problem")); got != want {
			t.Errorf("%s: %q", raw, got)
		}
	}
}

// Providers have the application's labels, and a refused unlink is shown on its page.
func TestProvidersByTheirNames(t *testing.T) {
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{ProviderLabels: map[string]string{"acme": "Our staff"}}, auth.WithProvider(idp.OIDC("acme")))
	idp.Now = s.Clock.Now
	b := s.browser(t)
	if p := b.open("/account/sign-in"); !strings.Contains(p.text(), "Sign in with Our staff") {
		t.Error(p.text())
	}
	b.signIn(address)
	res := b.send(http.MethodPost, "/account/identities", url.Values{"provider": {"acme"}, "do": {"unlink"}}) //nolint:bodyclose // a recorder's
	if p := b.follow(res); p.status < 400 || p.heading() != "Your account" || textOf(p.find("problem")) == "" {
		t.Errorf("%d %s", p.status, p.text())
	}
}

// New rejects a prefix that is not a plain path.
func TestPrefixIsAPath(t *testing.T) {
	for _, prefix := range []string{"/login?x", "/login#x", "/{login}", "login", "//login", "https://auth.test/login"} {
		a := authtest.New(t, auth.WithCookies(auth.CookieOptions{})).Auth
		if _, err := pages.New(a, pages.Options{Prefix: prefix}); err == nil || !strings.Contains(err.Error(), "the option Prefix") {
			t.Errorf("%s: %v", prefix, err)
		}
	}
}

// A user who signs in again by mail finds their address in the field. Nobody else does.
func TestMailedSignInKeepsTheAddress(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	filled := `value="` + address + `"`
	for _, at := range []string{"/account/sign-in?reason=" + string(auth.CodeReauthNeeded), "/account/sign-in/mail?return_to=%2Fnotes"} {
		if got := b.open(at); !strings.Contains(got.body, filled) {
			t.Errorf("%s has no address: %s", at, got.body)
		}
	}
	if got := s.browser(t).open("/account/sign-in/mail"); strings.Contains(got.body, filled) {
		t.Errorf("a stranger sees the address: %s", got.body)
	}
}

// The page that sets up a second factor says that the page that leads to it requires one, and
// otherwise what it is good for.
func TestSetupNamesThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	if p := b.open("/account/second-factor"); !strings.Contains(p.text(), "protects your account") || strings.Contains(p.text(), "The page that you want to open") {
		t.Errorf("%s", p.text())
	}
	p := b.open("/account/sign-in?reason=insufficient_aal&return_to=/notes").want(t, 200, "/account/second-factor", "Set up a second factor")
	if !strings.Contains(p.text(), "The page that you want to open needs a second factor") || strings.Contains(p.text(), "protects your account") {
		t.Errorf("%s", p.text())
	}
	enrol(t, b)
}
