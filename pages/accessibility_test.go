package pages_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/axetest"
	"github.com/authmount/auth/internal/browsertest"
	"github.com/authmount/auth/passkey"
)

// looker walks through a site and checks its pages.
type looker struct {
	*served
	axe, lang string
	looks     []axetest.Look
}

// look checks the accessibility of the current page.
func (l *looker) look(name string) {
	l.t.Helper()
	var lang string
	want := map[string]string{"en": "en ltr", "de": "de ltr", "ar": "ar rtl"}[l.lang]
	l.do(chromedp.Evaluate(`document.documentElement.lang + ' ' + getComputedStyle(document.body).direction`, &lang))
	if lang != want {
		l.t.Errorf("%s is in %q, want %q", name, lang, want)
	}
	axetest.Check(l.ctx, l.t, l.axe, name+"-"+l.lang, l.looks, func(look string) chromedp.Action { return browsertest.Shot(l.t, look) })
}

// submit waits for the page after the steps.
func (l *looker) submit(steps ...chromedp.Action) {
	l.t.Helper()
	var before string
	l.do(chromedp.Evaluate(`window.mark = 1; ''`, &before))
	l.do(append(steps, browsertest.Until(`!window.mark && document.readyState === 'complete'`))...)
}

// press submits the first form as it is.
func (l *looker) press(steps ...chromedp.Action) {
	l.t.Helper()
	l.submit(append(steps,
		chromedp.Evaluate(`document.querySelectorAll('form').forEach(f => f.noValidate = true)`, nil),
		chromedp.Evaluate(`document.querySelector('main form button').click()`, nil))...)
}

// opens opens the link of a message.
func (l *looker) opens(to string, k auth.Kind) {
	l.t.Helper()
	l.open(strings.TrimPrefix(l.Mail(l.t, to, k).Link, l.url))
}

// another continues in a browser without cookies.
func (l *looker) another() { l.t.Helper(); l.do(network.ClearBrowserCookies()) }

func (l *looker) signIn() {
	l.t.Helper()
	l.open("/account/sign-in")
	l.submit(browsertest.Type("#login", address), browsertest.Type("#password", password+kb.Enter))
}

// TestAccessibility checks every page, also with errors, for violations of WCAG 2.2 A and
// AA, in light and dark at three sizes. German texts are longer, which matters most on a
// phone; "ar" has right-to-left letters.
func TestAccessibility(t *testing.T) {
	axe := axetest.Source(t)
	for lang, looks := range map[string][]axetest.Look{"en": axetest.Looks(), "de": {{Scheme: "dark", Width: 320, Height: 640}, {Scheme: "light", Width: 1440, Height: 900}}, "ar": {{Scheme: "dark", Width: 320, Height: 640}, {Scheme: "light", Width: 1440, Height: 900}}} {
		for name, walk := range map[string]struct {
			opts []auth.Option
			walk func(*looker)
		}{
			"before a sign-in":    {walk: looksBefore},
			"the account":         {walk: looksAtAccount},
			"codes by mail":       {walk: looksAtMailCodes},
			"codes by text":       {walk: looksAtTextCodes},
			"links":               {walk: looksAtLinks},
			"passkeys":            {[]auth.Option{auth.WithPasskeys(passkey.New(passkey.Options{}))}, looksAtPasskeys},
			"the factor of links": {[]auth.Option{auth.WithMFA(auth.MFAOptions{TrustDevices: 30 * 24 * time.Hour, RequiredFor: func(u auth.User) bool { return u.Email == "ben@example.com" }})}, looksAtLinkFactor},
			"a factor one has to": {[]auth.Option{auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return true }})}, looksAtForced},
		} {
			t.Run(lang+" "+name, func(t *testing.T) {
				if lang == "ar" {
					walk.opts = append(walk.opts, auth.WithMail(auth.MailOptions{AppName: "Notes", Templates: browsertest.RightToLeft(t)}))
				}
				l := &looker{serveAt(t, "localhost", walk.opts...), axe, lang, looks}
				l.do(network.Enable(), network.SetExtraHTTPHeaders(network.Headers{"Accept-Language": lang}))
				walk.walk(l)
			})
		}
	}
}

func looksBefore(l *looker) {
	for _, path := range []string{"/sign-in", "/sign-up", "/forgot-password", "/forgot-password/sent", "/signed-out", "/sign-in/phone", "/nowhere"} {
		l.open("/account" + path)
		l.look(strings.ReplaceAll(path[1:], "/", "-"))
	}
	l.open("/account/sign-up")
	l.press()
	l.look("sign-up-refused")
	l.open("/account/sign-in")
	l.press(browsertest.Type("#login", address))
	l.look("sign-in-refused")
	l.open("/account/sign-in/mail")
	l.look("sign-in-mail")
	l.press(browsertest.Type("#email", address))
	l.look("enter-code-mail")
	l.opens(address, auth.KindMagicLink)
	l.look("link-confirm")
	l.open("/account/sign-in/phone")
	l.press(browsertest.Type("#phone", "+491701234567"))
	l.look("enter-code")
	l.open("/auth/v1/magic-link/verify?token=nonsense")
	l.look("link-problem")
}

func looksAtAccount(l *looker) {
	l.LoginAs(l.t, address)
	l.signIn()
	for _, path := range []string{"/", "/password", "/email", "/phone", "/delete", "/second-factor"} {
		l.open("/account" + path)
		l.look("account" + strings.ReplaceAll(path, "/", "-"))
	}
	l.looksAtLeaving()
	l.open("/account/second-factor")
	l.press()
	l.look("enrol")
	secret := l.value("input[name=secret]")
	l.press(browsertest.Type("#code", "000000"))
	l.look("enrol-refused")
	l.submit(browsertest.Type("#code", code(l.t, l.site, secret)+kb.Enter))
	l.look("recovery-codes")
	l.open("/account/second-factor")
	l.look("second-factor-on")
	l.open("/account/")
	l.look("account-with-factor")
	l.open("/account/sign-in?reason=reauthentication_needed")
	l.look("sign-in-again")
	l.submit(browsertest.Type("#password", password+kb.Enter))
	l.look("second-factor")
	l.press(browsertest.Type("#code", "000000"))
	l.look("second-factor-refused")
	l.open("/account/sign-in/second?with=recovery")
	l.look("second-factor-recovery")
}

// looksAtLeaving checks the page that forwards to a provider. The provider does not
// respond yet, so that the browser stays.
func (l *looker) looksAtLeaving() {
	l.open("/account/")
	chromedp.ListenTarget(l.ctx, func(event any) {
		if paused, ok := event.(*fetch.EventRequestPaused); ok {
			go func() { _ = chromedp.Run(l.ctx, fetch.FulfillRequest(paused.RequestID, http.StatusNoContent)) }()
		}
	})
	l.do(fetch.Enable().WithPatterns([]*fetch.RequestPattern{{URLPattern: l.idp.Issuer + "*"}}),
		browsertest.Click("button[value=link]"), browsertest.Until(`document.querySelector('meta[http-equiv=refresh]')`))
	l.look("leaving")
	l.do(fetch.Disable())
}

func looksAtMailCodes(l *looker) {
	l.open("/account/sign-up")
	l.submit(browsertest.Type("#full_name", "Ada"), browsertest.Type("#email", address), browsertest.Type("#password", password+kb.Enter))
	l.open("/account/")
	l.look("account-unverified")
	l.press(chromedp.Evaluate(`document.querySelector("form[action$='/email/confirm']").scrollIntoView(); document.querySelector('main').prepend(document.querySelector("form[action$='/email/confirm']"))`, nil))
	l.look("email-confirm-code")
	l.Clock.Advance(time.Minute)
	mail := l.Mail(l.t, address, auth.KindVerifyEmail)
	l.do(chromedp.Navigate("data:text/html;base64," + base64.StdEncoding.EncodeToString([]byte(mail.HTML))))
	l.look("mail")
	l.open("/account/email/code")
	l.submit(browsertest.Type("#code", mail.Code+kb.Enter))
	l.look("account-confirmed")
	l.open("/account/email")
	l.press(browsertest.Type("#email", "none"))
	l.look("email-refused")
	l.open("/account/email")
	l.press(browsertest.Type("#email", "ada.lovelace.of.the.analytical.engine@difference.example"))
	l.look("email-code")
	l.press(browsertest.Type("#code", "00000000"))
	l.look("email-code-refused")
}

func looksAtTextCodes(l *looker) {
	l.LoginAs(l.t, address)
	l.signIn()
	l.open("/account/phone")
	l.press(browsertest.Type("#phone", "+491701234567"))
	l.look("phone-code")
	l.press(browsertest.Type("#code", "000000"))
	l.look("phone-code-refused")
	l.submit(browsertest.Type("#code", l.Mail(l.t, "+491701234567", auth.KindPhoneCode).Code+kb.Enter))
	l.look("account-phone-changed")
	l.open("/account/password")
	l.press(browsertest.Type("#current_password", "wrong"), browsertest.Type("#password", "short"))
	l.look("password-refused")
	l.open("/account/delete")
	l.press()
	l.look("delete-refused")
	l.submit(browsertest.Click("#sure"), browsertest.Click("main form button"))
	l.look("deleted")
}

func looksAtLinks(l *looker) {
	l.LoginAs(l.t, "bob@example.com")
	l.open("/account/sign-up")
	l.submit(browsertest.Type("#full_name", "Ada"), browsertest.Type("#email", address), browsertest.Type("#password", password+kb.Enter))
	l.opens(address, auth.KindVerifyEmail)
	l.look("link-confirm-email")
	l.another()
	l.opens(address, auth.KindVerifyEmail)
	l.look("link-whose")
	l.press()
	l.look("link-done")

	l.open("/account/sign-in/mail")
	l.press(browsertest.Type("#email", address))
	l.another()
	l.opens(address, auth.KindMagicLink)
	l.look("link-type-code")

	l.open("/account/forgot-password")
	l.press(browsertest.Type("#email", address))
	l.opens(address, auth.KindResetPassword)
	l.look("link-reset")
	l.press(browsertest.Type("input[type=password]", "short"))
	l.look("link-reset-refused")
	l.submit(browsertest.Type("input[type=password]", "another-Passphrase-8"+kb.Enter))
	l.look("link-reset-done")

	eve, err := l.ImportUser(l.t.Context(), auth.ImportUserParams{Email: "eve@example.com", EmailVerified: true})
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.SendWelcome(l.t.Context(), auth.SendWelcomeParams{UserID: eve.ID}); err != nil {
		l.t.Fatal(err)
	}
	l.opens("eve@example.com", auth.KindWelcome)
	l.look("link-welcome")

	l.open("/account/sign-in")
	l.submit(browsertest.Type("#login", "bob@example.com"), browsertest.Type("#password", password+kb.Enter))
	l.open("/account/email")
	l.press(browsertest.Type("#email", "bob@work.example"))
	l.another()
	l.opens("bob@work.example", auth.KindChangeEmail)
	l.look("link-change-email")
	l.opens("bob@example.com", auth.KindEmailChangeRequested)
	l.look("link-secure-account")
	l.press()
	l.look("link-secure-account-done")
}

func looksAtPasskeys(l *looker) {
	l.do(webauthn.Enable())
	l.before(noAutofill)
	for _, path := range []string{"/sign-in", "/sign-up", "/sign-in/mail?passkey=1"} {
		l.open("/account" + path)
		l.look("passkey" + strings.ReplaceAll(strings.TrimSuffix(path, "?passkey=1"), "/", "-"))
	}
	l.LoginAs(l.t, address)
	l.signIn()
	l.look("passkey-offer")
	l.open("/account/second-factor")
	l.look("passkey-enrol")
	l.open("/account/")
	l.look("passkey-account-without")
	l.key(webauthn.AuthenticatorTransportInternal)
	l.submit(browsertest.Click("form[data-passkey=create] button"))
	l.do(browsertest.Click("#passkeys ~ .list summary"))
	l.look("passkey-account")
	l.submit(browsertest.Click("form[data-passkey=get] button"))
	l.look("passkey-recovery-codes")
	l.open("/account/second-factor")
	l.look("passkey-factor")
	l.another()
	l.signIn()
	l.look("passkey-second-factor")
	l.another()
	l.Clock.Advance(2 * time.Minute)
	l.Inbox.Clear()
	if _, err := l.SendMagicLink(l.t.Context(), auth.SendMagicLinkParams{Email: address}); err != nil {
		l.t.Fatal(err)
	}
	l.opens(address, auth.KindMagicLink)
	l.press()
	l.look("passkey-link-factor")
}

func looksAtForced(l *looker) {
	l.open("/account/sign-up")
	l.submit(browsertest.Type("#full_name", "Ada"), browsertest.Type("#email", address), browsertest.Type("#password", password+kb.Enter))
	l.look("forced")
	l.press()
	l.look("forced-enrol")
}

// looksAtLinkFactor checks the page on which a sign-in by link asks for its second factor, and
// the pages with recovery codes that follow.
func looksAtLinkFactor(l *looker) {
	who, _, recovery := l.withFactor(l.t, address)
	link := func(email string) {
		l.Clock.Advance(2 * time.Minute)
		l.Inbox.Clear()
		if _, err := l.SendMagicLink(l.t.Context(), auth.SendMagicLinkParams{Email: email}); err != nil {
			l.t.Fatal(err)
		}
		l.opens(email, auth.KindMagicLink)
		l.press()
	}
	link(address)
	l.look("link-factor")
	l.press(browsertest.Click("input[name=trust_device]"), browsertest.Type("#code", "000000"))
	l.look("link-factor-refused")
	l.press(browsertest.Type("#code", recovery[0]))
	l.look("link-codes-left")
	l.submit(browsertest.Click("a[href='/account/second-factor']"))
	l.look("factor-codes-left")
	for _, c := range recovery[1:8] {
		if _, err := l.StepUp(l.t.Context(), auth.StepUpParams{Caller: auth.Caller{UserID: who.User.ID, SessionID: who.SessionID}, RecoveryCode: c}); err != nil {
			l.t.Fatal(err)
		}
	}
	l.open("/account/")
	l.look("account-few-codes")

	l.another()
	if _, err := l.ImportUser(l.t.Context(), auth.ImportUserParams{Email: "ben@example.com", EmailVerified: true}); err != nil {
		l.t.Fatal(err)
	}
	link("ben@example.com")
	l.look("link-enrol-begin")
	l.press()
	l.look("link-enrol")
	secret := l.value("input[name=secret]")
	l.press(browsertest.Type("#code", "000000"))
	l.look("link-enrol-refused")
	l.press(browsertest.Type("#code", code(l.t, l.site, secret)))
	l.look("link-recovery-codes")
}
