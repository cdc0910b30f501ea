package pages_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"golang.org/x/net/html"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pages"
)

func TestSignUpSignInAndOut(t *testing.T) {
	s := newSite(t, pages.Options{Home: "/notes"})
	b := s.browser(t)
	b.open("/notes").want(t, 200, "/account/sign-in", "Sign in to Notes")
	b.open("/account/sign-up")
	p := b.submit("full_name", "Ada", "email", address, "password", "short")
	p.want(t, 422, "/account/sign-up", "Sign up for Notes")
	if got := p.wrong(t, "password"); !strings.Contains(got, "fewer than 8") {
		t.Errorf("weak password: %q", got)
	}
	if attr(p.find("email"), "value") != address || attr(p.find("password"), "value") != "" {
		t.Error("what was entered is not kept, or the password is")
	}
	b.submit("email", address, "password", password).want(t, 200, "/account/email/code", "Enter the code")
	if !strings.Contains(b.page.body, `<a href="/notes">Not now</a>`) {
		t.Errorf("it does not lead on: %s", b.page.body)
	}
	b.open("/account/")
	b.press("/account/sign-out").want(t, 200, "/account/signed-out", "You are signed out")
	b.open("/notes?page=2").want(t, 200, "/account/sign-in", "")
	p = b.submit("login", address, "password", "wrong-Passphrase")
	p.want(t, 401, "/account/sign-in", "")
	if p.wrong(t, "password") == "" || p.header.Get("WWW-Authenticate") == "" {
		t.Errorf("a wrong password is not said: %s", p.text())
	}
	p = b.submit("login", address, "password", password).want(t, 200, "/notes", "")
	if p.url.RawQuery != "page=2" || p.body != "notes of "+address {
		t.Errorf("went to %s: %s", p.url, p.body)
	}
	b.open("/account/sign-in").want(t, 200, "/notes", "")
}

// An account that need not be confirmed can type the mailed code right after the sign-up and
// on the account page, without another message.
func TestMailedCodeHasAFieldWhereItIsMentioned(t *testing.T) {
	for name, at := range map[string]string{"after the sign-up": "", "on the account page": "/account/"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, pages.Options{Home: "/notes"})
			b := s.browser(t)
			b.open("/account/sign-up")
			b.submit("email", address, "password", password)
			failed, then := "/account/email/code", "/notes"
			if at != "" {
				failed, then = "/account/email/confirm", "/account/"
				b.open(at)
			}
			if p := b.submit("code", "000000").want(t, 400, failed, ""); p.wrong(t, "code") == "" {
				t.Error(p.text())
			}
			b.submit("code", s.Mail(t, address, auth.KindVerifyEmail).Code).want(t, 200, then, "")
			if p := b.open("/account/"); strings.Contains(p.text(), "not confirmed") || strings.Contains(p.body, `name="code"`) {
				t.Error(p.text())
			}
		})
	}
}

func TestSignUpThatExists(t *testing.T) {
	s := newSite(t, pages.Options{})
	s.LoginAs(t, address)
	b := s.browser(t)
	b.open("/account/sign-up")
	p := b.submit("email", address, "password", password).want(t, 409, "/account/sign-up", "")
	if !strings.Contains(p.wrong(t, "email"), "already") {
		t.Error(p.text())
	}
}

func TestSignUpToConfirm(t *testing.T) {
	s := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}), auth.WithMail(auth.MailOptions{AppName: "Notes", Sync: true}))
	b := s.browser(t)
	b.open("/account/sign-up")
	b.submit("email", address, "password", password).want(t, 200, "/account/sign-up/code", "Enter the code")
	b.open("/account/sign-in")
	p := b.submit("login", address, "password", password).want(t, 401, "/account/sign-in", "")
	if !strings.Contains(p.wrong(t, "password"), "not confirmed yet") {
		t.Error(p.text())
	}
	b.open(s.Mail(t, address, auth.KindVerifyEmail).Link)
	p = b.submit().want(t, 200, "/auth/v1/verify-email", "Your address is confirmed")
	if !strings.Contains(p.body, `href="/account/sign-in"`) && !strings.Contains(p.body, `href="/"`) {
		t.Errorf("no way back: %s", p.body)
	}
	b.open("/account/sign-in")
	b.submit("login", address, "password", password).want(t, 200, "/", "")
}

// The code that an owner types at the end of her sign-up does not confirm the earlier
// sign-up of another person: she sees a notice and sets her password.
func TestSignUpCodeConfirmsOnlyItsOwnSignUp(t *testing.T) {
	const evil = "the attacker's horse"
	s := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	thief, owner := s.browser(t), s.browser(t)
	thief.open("/account/sign-up")
	thief.submit("email", address, "password", evil)
	s.Clock.Advance(2 * time.Minute)
	owner.open("/account/sign-up")
	owner.submit("email", address, "password", password).want(t, 200, "/account/sign-up/code", "")
	s.Mail(t, address, auth.KindAccountExists) // a later link replaces its link
	p := owner.submit("code", s.Mail(t, address, auth.KindVerifyEmail).Code).want(t, 200, "/account/sign-in", "")
	if !strings.Contains(p.text(), "We have sent you a link to choose your own") {
		t.Error(p.text())
	}
	thief.open("/account/sign-in")
	thief.submit("login", address, "password", evil).want(t, 401, "/account/sign-in", "")
	owner.open(s.Mail(t, address, auth.KindResetPassword).Link)
	owner.submit("new_password", "another-Passphrase-8").want(t, 200, "/auth/v1/reset-password", "")
	owner.open("/account/sign-in")
	owner.submit("login", address, "password", "another-Passphrase-8").want(t, 200, "/", "")
}

// The first person to sign up keeps the password, also with a code that was sent again.
func TestSignUpCodeKeepsThePassword(t *testing.T) {
	for name, again := range map[string]bool{"the first code": false, "sent again": true} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
			b := s.browser(t)
			b.open("/account/sign-up")
			b.submit("email", address, "password", password).want(t, 200, "/account/sign-up/code", "")
			first := s.Mail(t, address, auth.KindVerifyEmail)
			code := first.Code
			if again {
				s.Clock.Advance(2 * time.Minute)
				s.Inbox.Clear()
				b.open("/account/sign-in")
				b.submit("login", address, "password", password).want(t, 401, "/account/sign-in", "")
				code = s.Mail(t, address, auth.KindVerifyEmail).Code
				b.open("/account/sign-up/code")
			}
			p := b.submit("code", code).want(t, 200, "/account/sign-in", "")
			if !strings.Contains(p.text(), "Your address is confirmed. Sign in") {
				t.Error(p.text())
			}
			b.submit("login", address, "password", password).want(t, 200, "/", "")
		})
	}
}

func TestForgottenPassword(t *testing.T) {
	s := newSite(t, pages.Options{})
	s.LoginAs(t, address)
	b := s.browser(t)
	b.open("/account/forgot-password")
	if p := b.submit("email", "nonsense").want(t, 422, "/account/forgot-password", ""); p.wrong(t, "email") == "" {
		t.Error(p.text())
	}
	b.submit("email", address).want(t, 200, "/account/forgot-password/sent", "Check your email")
	b.open(s.Mail(t, address, auth.KindResetPassword).Link)
	p := b.submit("new_password", "another-Passphrase-8").want(t, 200, "/auth/v1/reset-password", "Your password was changed")
	if !strings.Contains(p.body, `href="/account/sign-in"`) {
		t.Errorf("no way back: %s", p.body)
	}
	b.open("/account/sign-in")
	b.submit("login", address, "password", "another-Passphrase-8").want(t, 200, "/", "")
}

func code(t *testing.T, s *site, secret string) string {
	t.Helper()
	c, err := totp.GenerateCode(secret, s.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// enrol sets up a second factor on the current page, with a wrong code first.
func enrol(t *testing.T, b *browser) (secret string, recovery []string) {
	t.Helper()
	path := b.page.url.Path
	b.submit("do", "begin").want(t, 200, path, "Set up a second factor")
	secret = attr(b.page.input("secret"), "value")
	p := b.submit("do", "enable", "code", "000000").want(t, 422, path, "Set up a second factor")
	if p.wrong(t, "code") == "" || attr(p.input("secret"), "value") != secret {
		t.Fatalf("the same key is not shown again: %s", p.text())
	}
	p = b.submit("do", "enable", "code", code(t, b.site, secret)).want(t, 200, path, "Your recovery codes")
	for _, n := range p.all("code") {
		recovery = append(recovery, textOf(n))
	}
	if len(recovery) != 10 {
		t.Fatalf("%d recovery codes: %s", len(recovery), p.text())
	}
	return secret, recovery
}

// withFactor creates an account with an authenticator app.
func (s *site) withFactor(t *testing.T, email string) (who *authtest.SignedIn, secret string, recovery []string) {
	t.Helper()
	who = s.LoginAs(t, email)
	by := auth.Caller{UserID: who.User.ID, SessionID: who.SessionID}
	setup, err := s.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: by})
	if err != nil {
		t.Fatal(err)
	}
	done, err := s.EnableTOTP(t.Context(), auth.EnableTOTPParams{Caller: by, TOTPCode: code(t, s, setup.Secret)})
	if err != nil {
		t.Fatal(err)
	}
	return who, setup.Secret, done.RecoveryCodes
}

// After a recovery code, the account says how many are left, and leads to the page that
// creates new ones. It warns when there are few. An account without a factor has none.
func TestRecoveryCodesLeft(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	if p := b.open("/account/"); strings.Contains(p.text(), "Recovery codes left") {
		t.Error(p.text())
	}
	b.open("/account/second-factor")
	_, recovery := enrol(t, b)
	if p := b.open("/account/"); !strings.Contains(p.text(), "Recovery codes left: 10 of 10") {
		t.Error(p.text())
	}
	for i, c := range recovery[:8] {
		b = s.browser(t)
		b.open("/account/sign-in")
		b.submit("login", address, "password", password)
		b.open("/account/sign-in/second?with=recovery")
		b.submit("with", "recovery", "code", c)
		p := b.open("/account/")
		left := fmt.Sprintf("Recovery codes left: %d of 10", 9-i)
		if strings.Count(p.text(), left) != 2 || !strings.Contains(p.text(), left+". New recovery codes") { // in the notice and in the list
			t.Fatalf("%s: %s", left, p.text())
		}
		p = b.open("/account/")
		if few := slices.ContainsFunc(p.all("span"), func(n *html.Node) bool { return attr(n, "class") == "tag" && textOf(n) == left }); strings.Count(p.text(), left) != 1 || few != (9-i <= 3) {
			t.Errorf("%s, few: %v: %s", left, few, p.text())
		}
		if p := b.open("/account/second-factor").want(t, 200, "/account/second-factor", "Second factor"); !strings.Contains(p.text(), left) {
			t.Error(p.text())
		}
	}
}

func TestSecondFactor(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	b.open("/account/second-factor").want(t, 200, "/account/second-factor", "Set up a second factor")
	secret, recovery := enrol(t, b)

	other := s.browser(t)
	other.open("/account/sign-in?return_to=/notes")
	other.submit("login", address, "password", password).want(t, 200, "/account/sign-in/second", "Second factor")
	if p := other.submit("code", "000000").want(t, 422, "/account/sign-in/second", ""); p.wrong(t, "code") == "" {
		t.Error(p.text())
	}
	s.Clock.Advance(30 * time.Second)
	other.submit("code", code(t, s, secret)).want(t, 200, "/notes", "")

	third := s.browser(t)
	third.open("/account/sign-in")
	third.submit("login", address, "password", password)
	third.open("/account/sign-in/second?with=recovery")
	third.submit("with", "recovery", "code", recovery[0]).want(t, 200, "/", "")
	if p := third.open("/account/"); !strings.Contains(p.text(), "Recovery codes left: 9") {
		t.Error(p.text())
	}

	s.Clock.Advance(30 * time.Second)
	other.open("/account/second-factor").want(t, 200, "/account/second-factor", "Second factor")
	other.submit("do", "codes", "code", code(t, s, secret)).want(t, 200, "/account/second-factor", "Your recovery codes")
	s.Clock.Advance(30 * time.Second)
	other.open("/account/second-factor")
	other.submit("do", "disable", "code", "123").want(t, 422, "/account/second-factor", "Second factor")
	p := other.submit("do", "disable", "code", code(t, s, secret)).want(t, 200, "/account/", "Your account")
	if !strings.Contains(p.text(), "Your second factor is off") {
		t.Error(p.text())
	}
}

func TestForcedEnrolment(t *testing.T) {
	var required atomic.Bool
	s := newSite(t, pages.Options{}, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required.Load() }}))
	s.LoginAs(t, address)
	required.Store(true)
	b := s.browser(t)
	b.open("/notes")
	b.submit("login", address, "password", password).want(t, 200, "/account/sign-in/enrol", "Set up a second factor")
	enrol(t, b)
	if !strings.Contains(b.page.body, `href="/notes"`) {
		t.Errorf("it does not lead on: %s", b.page.text())
	}
	b.open("/notes").want(t, 200, "/notes", "")
}

func TestPhone(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	const number = "+491701234567"
	b.open("/account/sign-in/phone?return_to=/notes")
	if p := b.submit("phone", "12").want(t, 422, "/account/sign-in/phone", ""); p.wrong(t, "phone") == "" {
		t.Error(p.text())
	}
	b.submit("phone", number).want(t, 200, "/account/sign-in/code", "Enter the code")
	if p := b.submit("code", "000").want(t, 400, "/account/sign-in/code", ""); p.wrong(t, "code") == "" {
		t.Error(p.text())
	}
	b.submit("code", s.Mail(t, number, auth.KindPhoneCode).Code).want(t, 200, "/notes", "")
}

func TestLinkByMail(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.open("/account/sign-in/mail?return_to=/notes")
	b.submit("email", address).want(t, 200, "/account/sign-in/code", "Enter the code")
	mail := s.Mail(t, address, auth.KindMagicLink)
	other := s.browser(t) // another browser shows the code and does not use the link
	if p := other.open(mail.Link); p.status != 200 || !strings.Contains(p.text(), mail.Code) || strings.Contains(p.body, "<form") {
		t.Errorf("%d %s", p.status, p.text())
	}
	b.open(mail.Link).want(t, 200, "/auth/v1/magic-link/verify", "Sign in to Notes?")
	b.submit().want(t, 200, "/notes", "")
}

func TestCodeByMail(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.open("/account/sign-in/mail?return_to=/notes")
	b.submit("email", address)
	if p := b.submit("code", "").want(t, 422, "/account/sign-in/code", ""); p.wrong(t, "code") == "" {
		t.Error(p.text())
	}
	if p := b.submit("code", "000000").want(t, 400, "/account/sign-in/code", ""); p.wrong(t, "code") == "" {
		t.Error(p.text())
	}
	mail := s.Mail(t, address, auth.KindMagicLink)
	b.submit("code", mail.Code).want(t, 200, "/notes", "")
	if p := s.browser(t).open(mail.Link); p.status != 400 {
		t.Errorf("the link outlives its code: %d", p.status)
	}
}

func TestAddressByCode(t *testing.T) {
	s := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	b := s.browser(t)
	b.open("/account/sign-up?return_to=/notes")
	b.submit("email", address, "password", password)
	p := b.submit("code", s.Mail(t, address, auth.KindVerifyEmail).Code).want(t, 200, "/account/sign-in", "")
	if !strings.Contains(p.text(), "Your address is confirmed.") {
		t.Error(p.text())
	}
	b.submit("login", address, "password", password)
	b.open("/account/email")
	if p = b.submit("email", "none").want(t, 422, "/account/email", ""); p.wrong(t, "email") == "" || attr(p.find("email"), "value") != "none" {
		t.Error(p.text())
	}
	b.submit("email", "ada@new.example").want(t, 200, "/account/email/code", "Enter the code")
	b.submit("code", "000000").want(t, 400, "/account/email/code", "")
	p = b.submit("code", s.shownCode(t, "ada@new.example", auth.KindChangeEmail)).want(t, 200, "/account/", "")
	if !strings.Contains(p.text(), "ada@new.example") {
		t.Error(p.text())
	}
}

func TestProvider(t *testing.T) {
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{}, auth.WithProvider(idp.OIDC("acme")))
	idp.Now = s.Clock.Now
	b := s.browser(t)
	b.open("/account/sign-in?return_to=/notes")
	if !strings.Contains(b.page.text(), "Sign in with Acme") {
		t.Fatal(b.page.text())
	}
	b.open("/account/sign-in/with/acme?return_to=/notes")
	b.atProvider(idp, authtest.Person{Subject: "1", Email: address, EmailVerified: true}).want(t, 200, "/notes", "")

	b.open("/account/sign-in/with/nobody").want(t, 404, "/account/sign-in/with/nobody", "Something went wrong")
}

// "Keep me signed in" also applies to other sign-in methods, through a parameter of the
// link.
func TestRememberOtherWays(t *testing.T) {
	lasts := func(b *browser) bool {
		u, _ := url.Parse(origin)
		for _, c := range b.jar.Cookies(u) {
			if strings.HasSuffix(c.Name, "-refresh") {
				return !strings.HasSuffix(c.Value, ".brief")
			}
		}
		t.Fatal("no session")
		return false
	}
	for link, want := range map[string]bool{"kept": true, "brief": false} {
		idp := authtest.StartProvider(t)
		s := newSite(t, pages.Options{}, auth.WithProvider(idp.OIDC("acme")))
		idp.Now = s.Clock.Now
		way := func(b *browser, to string) string {
			t.Helper()
			b.open("/account/sign-in?return_to=/notes")
			for n := range b.page.doc.Descendants() {
				if n.Data == "a" && strings.Contains(attr(n, "href"), to) && strings.HasSuffix(attr(n, "class"), link) {
					return attr(n, "href")
				}
			}
			t.Fatalf("no link %s to %s", link, to)
			return ""
		}
		b := s.browser(t)
		b.open(way(b, "/with/acme"))
		b.atProvider(idp, authtest.Person{Subject: "1", Email: address, EmailVerified: true}).want(t, 200, "/notes", "")
		if lasts(b) != want {
			t.Errorf("%s: a provider's session lasts %v", link, !want)
		}
		b = s.browser(t)
		b.open(way(b, "/sign-in/mail"))
		b.submit("email", address) // the checkbox as it is
		b.open(s.Mail(t, address, auth.KindMagicLink).Link)
		b.submit().want(t, 200, "/notes", "")
		if lasts(b) != want {
			t.Errorf("%s: a link's session lasts %v", link, !want)
		}
	}
	// No choice without the checkbox.
	s := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{Password: auth.Off}))
	b := s.browser(t)
	if strings.Contains(b.open("/account/sign-in").body, "remember=false") {
		t.Error(b.page.body)
	}
	b.open("/account/forgot-password").want(t, 403, "/account/forgot-password", "") // passwords are disabled
}

func TestProviderThatFails(t *testing.T) {
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{}, auth.WithProvider(idp.OIDC("acme")))
	idp.Now = s.Clock.Now
	b := s.browser(t)
	b.open("/account/sign-in/with/acme")
	idp.SignsIn(authtest.Person{Subject: "1"})
	idp.Denies()
	p := b.atProvider(idp, authtest.Person{}).want(t, 200, "/account/sign-in", "")
	if !strings.Contains(textOf(p.find("problem")), "cancelled") {
		t.Error(p.text())
	}
	p = b.open("/auth/v1/oauth/acme/callback?code=x&state=y")
	p.want(t, 400, "/auth/v1/oauth/acme/callback", "Something went wrong")
	if !strings.Contains(p.body, `href="/`) {
		t.Error("no way back")
	}
	b.header.Set("Accept", "application/json")
	if p = b.open("/auth/v1/oauth/acme/callback?code=x&state=y"); !strings.Contains(p.body, `"bad_oauth_state"`) {
		t.Errorf("a program gets %s", p.body)
	}
}

func TestLinkAndUnlink(t *testing.T) {
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{}, auth.WithProvider(idp.OIDC("acme")))
	idp.Now = s.Clock.Now
	b := s.browser(t)
	b.signIn(address)
	b.open("/account/")
	p := b.submit("provider", "acme", "do", "link").want(t, 200, "/account/identities", "Continue to Acme")
	next := attr(p.meta("refresh"), "content")
	_, target, _ := strings.Cut(next, "url=")
	b.page.url, _ = url.Parse(target)
	p = b.atProvider(idp, authtest.Person{Subject: "1", Email: "ada@work.example", EmailVerified: true}).want(t, 200, "/account/", "Your account")
	if !strings.Contains(p.text(), "ada@work.example") || !strings.Contains(p.text(), "Linked.") {
		t.Error(p.text())
	}
	p = b.submit("provider", "acme", "do", "unlink").want(t, 200, "/account/", "")
	if !strings.Contains(p.text(), "Unlinked.") {
		t.Error(p.text())
	}
}

func TestAccount(t *testing.T) {
	s := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
	b, other := s.browser(t), s.browser(t)
	b.signIn(address)
	other.signIn(address)
	p := b.open("/account/").want(t, 200, "/account/", "Your account")
	if strings.Count(p.text(), "Firefox on Linux") < 2 || strings.Count(p.text(), "this device") != 1 {
		t.Error(p.text())
	}
	if p = b.submit("full_name", "Ada Lovelace"); !strings.Contains(p.text(), "Saved.") || attr(p.find("full_name"), "value") != "Ada Lovelace" {
		t.Error(p.text())
	}
	if p = b.open("/account/"); strings.Contains(p.text(), "Saved.") {
		t.Error("said twice")
	}
	b.press("/account/sessions").want(t, 200, "/account/", "")
	other.open("/account/").want(t, 200, "/account/sign-in", "")

	b.open("/account/password")
	if p = b.submit("current_password", "wrong-Passphrase", "password", "another-Passphrase-8"); p.wrong(t, "current_password") == "" {
		t.Error(p.status, p.text())
	}
	if p = b.submit("current_password", password, "password", "password"); p.want(t, 422, "/account/password", "").wrong(t, "password") == "" {
		t.Error(p.text())
	}
	if p = b.submit("current_password", password, "password", "another-Passphrase-8").want(t, 200, "/account/", ""); !strings.Contains(p.text(), "password was changed") {
		t.Error(p.text())
	}

	b.open("/account/email")
	b.submit("email", "ada@new.example").want(t, 200, "/account/email/code", "")
	b.open(s.Mail(t, "ada@new.example", auth.KindChangeEmail).Link)
	b.submit()
	if p = b.open("/account/"); !strings.Contains(p.text(), "ada@new.example") {
		t.Error(p.text())
	}

	b.open("/account/phone")
	if p = b.submit("phone", "none").want(t, 422, "/account/phone", ""); p.wrong(t, "phone") == "" {
		t.Error(p.text())
	}
	b.submit("phone", "+491701234567").want(t, 200, "/account/phone/code", "Enter the code")
	if p = b.submit("code", s.Mail(t, "+491701234567", auth.KindPhoneCode).Code).want(t, 200, "/account/", ""); !strings.Contains(p.text(), "+491701234567") {
		t.Error(p.text())
	}

	b.open("/account/delete")
	if p = b.press("/account/delete").want(t, 422, "/account/delete", ""); p.wrong(t, "sure") == "" {
		t.Error(p.text())
	}
	if p = b.submit("sure", "1").want(t, 200, "/account/sign-in", ""); !strings.Contains(p.text(), "deleted") {
		t.Error(p.text())
	}
}

func TestFreshSignIn(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.signIn(address)
	s.Clock.Advance(16 * time.Minute) // the access token has expired, too
	for _, path := range []string{"/account/email", "/account/phone", "/account/second-factor"} {
		p := b.open(path).want(t, 200, "/account/sign-in", "Sign in again")
		if attr(p.find("login"), "value") != address || p.url.Query().Get("return_to") != path {
			t.Errorf("%s: %s", path, p.url)
		}
	}
	b.submit("login", address, "password", password).want(t, 200, "/account/second-factor", "")
	if p := b.open("/account/"); strings.Count(p.text(), "Firefox on Linux") != 1 {
		t.Errorf("the session before goes on: %s", p.text())
	}
}

func TestLimits(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.open("/account/forgot-password")
	b.submit("email", address)
	b.open("/account/forgot-password")
	p := b.submit("email", address).want(t, 429, "/account/forgot-password", "")
	if p.header.Get("Retry-After") == "" || !strings.Contains(textOf(p.find("problem")), "a minute") {
		t.Errorf("%s %s", p.header.Get("Retry-After"), p.text())
	}
}

func TestGerman(t *testing.T) {
	s := newSite(t, pages.Options{})
	b := s.browser(t)
	b.header.Set("Accept-Language", "it, de-AT;q=0.8, en;q=0.5")
	p := b.open("/account/sign-in").want(t, 200, "/account/sign-in", "Bei Notes anmelden")
	if p.header.Get("Content-Language") != "de" || !strings.Contains(p.body, `<html lang="de" dir="ltr">`) {
		t.Error(p.header)
	}
}
