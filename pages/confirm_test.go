package pages_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pages"
)

var confirming = auth.WithSettings(auth.Settings{RequireConfirmation: auth.On})

// The link of a sign-up completes by one press in the browser that signed up.
func TestLinkInTheBrowserThatSignedUp(t *testing.T) {
	s := newSite(t, pages.Options{}, confirming)
	b := s.browser(t)
	b.open("/account/sign-up")
	b.submit("email", address, "password", password)
	b.open(s.Mail(t, address, auth.KindVerifyEmail).Link)
	b.submit().want(t, 200, "/auth/v1/verify-email", "Your address is confirmed")
}

// A user who opened the link on the phone, and closed the page of the sign-up, signs in with
// the password and the code of the phone on one page.
func TestSignInWithTheCodeOfThePhone(t *testing.T) {
	s := newSite(t, pages.Options{}, confirming)
	desktop := s.browser(t)
	desktop.open("/account/sign-up")
	desktop.submit("email", address, "password", password)
	code := s.shownCode(t, address, auth.KindVerifyEmail)
	desktop.open("/account/sign-in")
	desktop.submit("login", address, "password", password, "code", "000000").want(t, 401, "/account/sign-in", "")
	desktop.submit("login", address, "password", password, "code", code).want(t, 200, "/", "")
}

// After a sign-up at a provider that did not verify the address, the page asks for the code
// and signs in at the provider together with it.
func TestProviderSignUpTakesTheCode(t *testing.T) {
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{}, confirming, auth.WithProvider(idp.OIDC("acme")))
	idp.Now = s.Clock.Now
	who := authtest.Person{Subject: "1", Email: address}
	desktop := s.browser(t)
	desktop.open("/account/sign-in/with/acme")
	desktop.atProvider(idp, who).want(t, 200, "/account/sign-in/confirm", "")
	code := s.shownCode(t, address, auth.KindVerifyEmail)
	again := func(code string) *shown {
		p := desktop.submit("code", code).want(t, 200, "/account/sign-in/confirm", "Continue to Acme")
		_, target, _ := strings.Cut(attr(p.meta("refresh"), "content"), "url=")
		desktop.page.url, _ = url.Parse(target)
		return desktop.atProvider(idp, who)
	}
	if p := again("000000").want(t, 200, "/account/sign-in/confirm", ""); !strings.Contains(p.text(), "wrong or no longer valid") {
		t.Error(p.text())
	}
	again(code).want(t, 200, "/", "")
}

// A user opens the link of a new address on the phone two hours later, when the browser on
// the desktop has forgotten the state of its visit, and types the code there.
func TestCodeOfANewAddressHoursLater(t *testing.T) {
	s := newSite(t, pages.Options{})
	desktop := s.browser(t)
	desktop.signIn(address)
	desktop.open("/account/email")
	desktop.submit("email", "ada@new.example").want(t, 200, "/account/email/code", "Enter the code")
	s.Clock.Advance(2 * time.Hour)
	desktop.jar.SetCookies(&url.URL{Scheme: "https", Host: "auth.test", Path: "/"}, []*http.Cookie{{Name: "__Host-authmount-pages", Path: "/", Secure: true, MaxAge: -1}}) //nolint:gosec // removes it
	code := s.shownCode(t, "ada@new.example", auth.KindChangeEmail)
	if p := desktop.submit("code", code).want(t, 200, "/account/", ""); !strings.Contains(p.text(), "ada@new.example") {
		t.Error(p.text())
	}
}
