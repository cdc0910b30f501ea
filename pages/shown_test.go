package pages_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pages"
)

// Sign-out ends the session, not only its cookies.
func TestSignOutEndsTheSession(t *testing.T) {
	s := newSite(t, pages.Options{})
	b, copied := s.browser(t), s.browser(t)
	b.signIn(address)
	b.open("/account/").want(t, 200, "/account/", "")
	root, _ := url.Parse(origin + "/")
	copied.jar.SetCookies(root, b.jar.Cookies(root))
	b.press("/account/sign-out").want(t, 200, "/account/signed-out", "")
	copied.open("/account/").want(t, 200, "/account/sign-in", "")
}

// HEAD requests of programs that inspect links get the page's headers.
func TestEveryPageHasAHead(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	for _, who := range []*browser{s.browser(t), b} {
		for _, path := range s.pages.Paths(http.MethodHead) {
			if res := who.send(http.MethodHead, path, nil); res.StatusCode >= 500 { //nolint:bodyclose // a recorder's
				t.Errorf("%s: %d", path, res.StatusCode)
			}
		}
	}
}

// The focus is on the page's main field, and after an error on the first wrong one.
func TestWhereAPageBegins(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	if b.open("/account/sign-in"); has(b.page.find("login"), "autofocus") || has(b.page.find("password"), "autofocus") {
		t.Error("sign-in begins with a field")
	}
	b.open("/account/sign-in/phone")
	if b.submit("phone", "12"); !has(b.page.find("phone"), "autofocus") {
		t.Error("what is wrong is not begun with")
	}
	if b.submit("phone", "+491701234567"); !has(b.page.find("code"), "autofocus") {
		t.Error("the code is not begun with")
	}
	b.open("/account/sign-up")
	if p := b.submit("full_name", "Ada", "email", "none", "password", "short"); !strings.HasPrefix(textOf(p.all("title")[0]), "Error:") {
		t.Error("the title does not say that something is wrong")
	}
}

// A wrong password mentions an unverified address only if that matters.
func TestWrongPasswordSaysWhy(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.open("/account/sign-in")
	if got := b.submit("login", address, "password", password).wrong(t, "password"); got == "" || strings.Contains(got, "confirmed") {
		t.Error(got)
	}
}

// The form for a new password names the account for password managers.
func TestWhosePasswordIsChanged(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	if got := attr(b.open("/account/password").input("username"), "value"); got != address {
		t.Error(got)
	}
	const number = "+491701234567"
	b = s.browser(t)
	b.open("/account/sign-in/phone")
	b.submit("phone", number)
	b.submit("code", s.Mail(t, number, auth.KindPhoneCode).Code)
	if got := attr(b.open("/account/password").input("username"), "value"); got != number {
		t.Error(got)
	}
}

// If sign-up is disabled there is no form, and without passwords sign-up has another
// method.
func TestSignUpThatIsOff(t *testing.T) {
	off := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{SignUp: auth.Off})).browser(t)
	off.open("/account/sign-up").want(t, 403, "/account/sign-up", "Something went wrong")
	none := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{Password: auth.Off})).browser(t)
	if p := none.open("/account/sign-up?return_to=/notes").want(t, 200, "/account/sign-in", ""); p.url.Query().Get("return_to") != "/notes" {
		t.Error(p.url)
	}
}

// The target survives the verification of an email address, and an empty code is an
// error.
func TestConfirmationLeadsOn(t *testing.T) {
	s := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	b := s.browser(t)
	b.open("/account/sign-up?return_to=/notes")
	b.submit("email", address, "password", password)
	if p := b.submit("code", " - ").want(t, 422, "/account/sign-up/code", ""); p.wrong(t, "code") == "" {
		t.Error(p.text())
	}
	code := s.Mail(t, address, auth.KindVerifyEmail).Code
	b.submit("code", code[:3]+" - "+code[3:]).want(t, 200, "/account/sign-in", "") // with spaces and hyphens
	b.submit("login", address, "password", password).want(t, 200, "/notes", "")
}

// Wrong codes from others without the request do not invalidate a code by SMS.
func TestStrangersDoNotUseUpTheTries(t *testing.T) {
	const number = "+491701234567"
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.open("/account/sign-in/phone")
	b.submit("phone", number)
	code := s.Mail(t, number, auth.KindPhoneCode).Code
	for range 6 {
		if _, err := s.VerifyPhoneCode(t.Context(), auth.VerifyPhoneCodeParams{Phone: number, Code: "000000"}); err == nil {
			t.Fatal("guessed")
		}
	}
	b.submit("code", code).want(t, 200, "/", "")
}

// A required second factor cannot be skipped, and less than a day of trust is shown as a
// day.
func TestSecondFactorSaysWhatItIs(t *testing.T) {
	var required atomic.Bool
	s := newSite(t, pages.Options{}, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required.Load() }, TrustDevices: 12 * time.Hour}))
	s.LoginAs(t, address)
	required.Store(true)
	b := s.browser(t)
	b.open("/account/sign-in")
	p := b.submit("login", address, "password", password).want(t, 200, "/account/sign-in/enrol", "")
	if strings.Contains(p.body, `href="/account/"`) {
		t.Error("a way around it")
	}
	enrol(t, b)
	other := s.browser(t)
	other.open("/account/sign-in")
	if p := other.submit("login", address, "password", password); !strings.Contains(p.text(), "for a day") {
		t.Error(p.text())
	}
}

// A linked provider is listed once, and a linked provider that is no longer offered can
// be unlinked.
func TestProvidersAreListedOnce(t *testing.T) {
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{}, auth.WithProvider(idp.OIDC("acme")), auth.WithProvider(idp.OIDC("globex")))
	idp.Now = s.Clock.Now
	b := s.browser(t)
	b.open("/account/sign-in/with/acme")
	b.atProvider(idp, authtest.Person{Subject: "1", Email: address, EmailVerified: true})
	p := b.open("/account/")
	if n := strings.Count(p.body, `value="acme"`); n != 1 || strings.Count(p.body, `value="unlink"`) != 1 || strings.Count(p.body, `value="link"`) != 1 {
		t.Errorf("%d: %s", n, p.text())
	}
	gone := &site{Env: authtest.NewOn(t, s.Store, s.SameKeys(), auth.WithCookies(auth.CookieOptions{}))}
	var err error
	if gone.pages, err = pages.New(gone.Auth, pages.Options{Brand: "Own"}); err != nil {
		t.Fatal(err)
	}
	gone.handler = gone.pages
	later := gone.browser(t)
	later.jar = b.jar
	if p := later.open("/account/"); strings.Count(p.body, `value="unlink"`) != 1 || !strings.Contains(textOf(p.all("header")[0]), "Own") {
		t.Error(p.text())
	}
}
