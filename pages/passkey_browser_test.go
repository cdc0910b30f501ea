package pages_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/browsertest"
	"github.com/authmount/auth/passkey"
	"github.com/authmount/auth/store"
)

// The scripts below run before those of a page.
const (
	// noAutofill: the browser has no passkeys in its autofill. A virtual authenticator picks
	// one at once, so that no button could be pressed.
	noAutofill = `PublicKeyCredential.isConditionalMediationAvailable = async () => false`
	// byHand: renew() is the timer that renews a challenge.
	byHand = `{ const real = window.setTimeout; window.setTimeout = (f, ms) => ms === 240000 ? (window.renew = f, 0) : real(f, ms) }`
	// held: the browser asks for a passkey when go() is called.
	held = `{ const get = navigator.credentials.get.bind(navigator.credentials); navigator.credentials.get = async (o) => { await new Promise((go) => { window.go = go }); return get(o) } }`
	// conditionalCreate stands in for navigator.credentials, because virtual authenticators
	// create no passkey without a gesture.
	conditionalCreate = `{ const create = navigator.credentials.create.bind(navigator.credentials)
		PublicKeyCredential.getClientCapabilities = async () => ({ conditionalCreate: true })
		navigator.credentials.create = (o) => {
			if (o.mediation !== 'conditional' || !(o.signal instanceof AbortSignal)) throw new TypeError('not conditional')
			return create({ publicKey: o.publicKey, signal: o.signal })
		} }`
	offersUpgrade = `document.querySelector('form[data-passkey=upgrade]:not([hidden])')`
)

// servePasskeys is serveSite with passkeys on, for which browsers need a name as the host.
func servePasskeys(t *testing.T, opts ...auth.Option) *served {
	t.Helper()
	s := serveAt(t, "localhost", append([]auth.Option{auth.WithPasskeys(passkey.New(passkey.Options{}))}, opts...)...)
	s.do(webauthn.Enable())
	return s
}

// before runs a script before those of every page from now on.
func (s *served) before(script string) {
	s.t.Helper()
	s.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(script).Do(ctx)
		return err
	}))
}

// key adds an authenticator.
func (s *served) key(transport webauthn.AuthenticatorTransport) (id webauthn.AuthenticatorID) {
	s.t.Helper()
	s.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		id, err = webauthn.AddVirtualAuthenticator(&webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Ctap2version: webauthn.Ctap2versionCtap21, Transport: transport,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		}).Do(ctx)
		return err
	}))
	return id
}

// stored returns the passkeys in an authenticator.
func (s *served) stored(id webauthn.AuthenticatorID) (list []*webauthn.Credential) {
	s.t.Helper()
	s.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		list, err = webauthn.GetCredentials(id).Do(ctx)
		return err
	}))
	return list
}

// signsIn signs in with the password, and declines the offer of a passkey.
func (s *served) signsIn() {
	s.t.Helper()
	s.open("/account/sign-in?return_to=/notes")
	s.do(browsertest.Type("#login", address), browsertest.Type("#password", password+kb.Enter),
		browsertest.Until(`['/notes', '/account/passkeys/new'].includes(location.pathname) && document.readyState === 'complete'`))
	s.open("/account/")
	s.at("/account/")
}

func (s *served) signsOut() {
	s.t.Helper()
	s.open("/account/")
	s.do(browsertest.Click("form[action$='/sign-out'] button"))
	s.at("/account/signed-out")
}

// adds adds a passkey on the account page.
func (s *served) adds() {
	s.t.Helper()
	s.do(browsertest.Click("form[data-passkey=create] button"), s.says("Your passkey was added."))
}

// hasPasskey signs up ada, who adds a passkey and signs out.
func (s *served) hasPasskey() (id webauthn.AuthenticatorID) {
	s.t.Helper()
	s.LoginAs(s.t, address)
	s.signsIn()
	id = s.key(webauthn.AuthenticatorTransportInternal)
	s.adds()
	s.signsOut()
	return id
}

func (s *served) says(text string) chromedp.Action {
	return browsertest.Until(`document.readyState === 'complete' && document.body.innerText.includes(` + quote(text) + `)`)
}

// usesPasskey presses the button for a passkey.
func (s *served) usesPasskey() {
	s.t.Helper()
	s.do(browsertest.Click("form[data-passkey=get] button"))
}

func (s *served) passkeys() []auth.PasskeyView {
	s.t.Helper()
	user, err := s.Login(s.t.Context(), auth.LoginParams{Email: address, Password: password})
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := s.ListPasskeys(s.t.Context(), auth.Caller{UserID: user.User.ID, SessionID: user.SessionID})
	if err != nil {
		s.t.Fatal(err)
	}
	return list.Passkeys
}

// The e-mail field offers passkeys, and signs in with one. A challenge that waits longer than
// it is valid is renewed.
func TestPasskeyInAutofill(t *testing.T) {
	s := servePasskeys(t)
	key := s.hasPasskey()
	s.do(webauthn.SetAutomaticPresenceSimulation(key, false))
	s.before(byHand)
	s.open("/account/sign-in?return_to=/notes")
	s.do(browsertest.Until(`window.renew && document.querySelector('#login').autocomplete === 'username webauthn'`))
	s.Clock.Advance(6 * time.Minute)
	s.do(webauthn.SetAutomaticPresenceSimulation(key, true), chromedp.Evaluate(`renew()`, nil))
	s.at("/notes")
	s.do(s.says("notes of " + address))
}

// The button signs in. A prompt that the user cancels, or an authenticator that cannot verify
// the user, changes nothing on the page.
func TestPasskeyByButton(t *testing.T) {
	s := servePasskeys(t)
	key := s.hasPasskey()
	s.before(noAutofill)
	s.before(`{ const get = navigator.credentials.get.bind(navigator.credentials); navigator.credentials.get = (o) => get(o).catch((e) => { window.failed = e.name; throw e }) }`)
	s.open("/account/sign-in?return_to=/notes")
	s.do(browsertest.Visible("form[data-passkey=get] button"), webauthn.SetUserVerified(key, false))
	s.usesPasskey()
	s.do(browsertest.Until(`window.failed === 'NotAllowedError'`), browsertest.Until(`!document.querySelector('#problem')`))
	s.do(browsertest.Click("input[name=remember]"), webauthn.SetUserVerified(key, true))
	s.usesPasskey()
	s.at("/notes")
}

// The tabs of a browser do not end each other's challenges.
func TestPasskeyInSeveralTabs(t *testing.T) {
	s := servePasskeys(t)
	s.hasPasskey()
	s.before(noAutofill)
	s.before(held)
	s.open("/account/sign-in?return_to=/notes")
	s.usesPasskey()
	s.do(browsertest.Until(`window.go`))

	tab, cancel := chromedp.NewContext(s.ctx)
	defer cancel()
	if err := chromedp.Run(tab); err != nil { // opens the tab, which closes with its context
		t.Fatal(err)
	}
	other := &served{site: s.site, url: s.url, ctx: tab, t: t}
	other.do(webauthn.Enable())
	other.open("/account/sign-in")
	other.usesPasskey()
	other.do(browsertest.Until(`performance.getEntriesByType('resource').filter(r => r.initiatorType === 'fetch').length > 0`))

	s.do(chromedp.Evaluate(`go()`, nil))
	s.at("/notes")
}

// An account has passkeys on two authenticators, and each of them works alone.
func TestPasskeysOnTwoAuthenticators(t *testing.T) {
	s := servePasskeys(t)
	first := s.hasPasskey()
	s.before(noAutofill)
	s.signsIn()
	s.do(browsertest.Click("form[data-passkey=create] button"), s.says("This passkey is registered already."))
	s.do(webauthn.SetAutomaticPresenceSimulation(first, false))
	s.key(webauthn.AuthenticatorTransportUsb)
	s.open("/account/")
	s.adds()
	s.do(browsertest.Until(`document.querySelectorAll('#passkeys ~ .list > li').length === 2`))
	s.signsOut()
	s.do(webauthn.RemoveVirtualAuthenticator(first))
	s.open("/account/sign-in?return_to=/notes")
	s.usesPasskey()
	s.at("/notes")
}

// A removed passkey says so, and the browser forgets it.
func TestRemovedPasskey(t *testing.T) {
	s := servePasskeys(t)
	key := s.hasPasskey()
	s.before(noAutofill)
	s.before(`PublicKeyCredential.signalUnknownCredential = async (about) => { window.signalled = about }`)
	again := s.LoginAs(t, address)
	if err := s.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: auth.Caller{UserID: again.User.ID, SessionID: again.SessionID}, ID: s.passkeys()[0].ID}); err != nil {
		t.Fatal(err)
	}
	s.open("/account/sign-in?return_to=/notes")
	s.usesPasskey()
	s.do(s.says("This passkey was removed from its account."), browsertest.Until(`window.signalled?.rpId === 'localhost' && signalled.credentialId.length > 20`))
	if s.open("/account/sign-in"); len(s.stored(key)) != 1 {
		t.Error("the stand-in did not replace the browser's method")
	}
}

// The list of an account's passkeys reaches the browser, which forgets others.
func TestPasskeysAreSignalled(t *testing.T) {
	s := servePasskeys(t)
	s.hasPasskey()
	s.before(noAutofill)
	s.before(`for (const name of ['signalAllAcceptedCredentials', 'signalCurrentUserDetails']) PublicKeyCredential[name] = async (about) => { window[name] = about }`)
	s.signsIn()
	s.do(browsertest.Until(`window.signalAllAcceptedCredentials?.allAcceptedCredentialIds.length === 1 && signalAllAcceptedCredentials.rpId === 'localhost' && signalAllAcceptedCredentials.userId`),
		browsertest.Until(`signalCurrentUserDetails.name === '`+address+`' && signalCurrentUserDetails.displayName`))
}

// A passkey becomes a second factor, with recovery codes. Then a password asks for it, on the
// page of a sign-in and on the page of a link.
func TestPasskeyAsSecondFactor(t *testing.T) {
	s := servePasskeys(t)
	s.hasPasskey()
	s.before(noAutofill)
	s.signsIn()
	s.do(browsertest.Click("#passkeys ~ .list summary"), browsertest.Click("form[data-passkey=get] button"))
	s.do(browsertest.Until(`document.querySelectorAll('.codes li').length === 10`))
	s.open("/account/")
	s.do(s.says("second factor"), s.says("Recovery codes left: 10 of 10"))
	s.open("/account/second-factor")
	s.usesPasskey()
	s.do(browsertest.Until(`document.querySelectorAll('.codes li').length === 10`))
	s.signsOut()

	s.open("/account/sign-in?return_to=/notes")
	s.do(browsertest.Type("#login", address), browsertest.Type("#password", password+kb.Enter))
	s.at("/account/sign-in/second")
	s.do(s.says("Use your passkey. If you cannot, enter one of your recovery codes."))
	s.usesPasskey()
	s.at("/notes")
	s.signsOut()

	s.Clock.Advance(2 * time.Minute)
	s.Inbox.Clear()
	if _, err := s.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: address}); err != nil {
		t.Fatal(err)
	}
	s.open(strings.TrimPrefix(s.Mail(t, address, auth.KindMagicLink).Link, s.url))
	s.do(browsertest.Click("main form button"), browsertest.Visible("form[data-passkey=get] button"))
	s.usesPasskey()
	s.do(s.says("You are signed in"))

	s.open("/account/")
	s.do(browsertest.Click("#passkeys ~ .list summary"), browsertest.Click("button[value=second_off]"), s.says("Saved."))
	if list := s.passkeys(); len(list) != 1 || list[0].SecondFactor {
		t.Errorf("%+v", list)
	}
}

// A person who must have a second factor creates a passkey, by a password and by a link.
func TestPasskeyThatIsRequired(t *testing.T) {
	for name, byLink := range map[string]bool{"password": false, "link": true} {
		t.Run(name, func(t *testing.T) {
			var required atomic.Bool
			s := servePasskeys(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required.Load() }}))
			s.LoginAs(t, address)
			required.Store(true)
			s.key(webauthn.AuthenticatorTransportInternal)
			if byLink {
				if _, err := s.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: address}); err != nil {
					t.Fatal(err)
				}
				s.open(strings.TrimPrefix(s.Mail(t, address, auth.KindMagicLink).Link, s.url))
				s.do(browsertest.Click("main form button"))
			} else {
				s.open("/account/sign-in?return_to=/notes")
				s.do(browsertest.Type("#login", address), browsertest.Type("#password", password+kb.Enter))
				s.at("/account/sign-in/enrol")
			}
			s.do(browsertest.Click("form[data-passkey=create] button"), browsertest.Until(`document.querySelectorAll('.codes li').length === 10`))
			s.open("/account/")
			s.do(browsertest.Until(`location.pathname === '/account/' && document.querySelectorAll('#passkeys ~ .list .tag.good').length === 1`))
		})
	}
}

// An account without a verified address is told why it gets no passkey, and the box "keep me
// signed in" decides where the other ways to sign in lead, also beside the form of passkeys.
func TestPasskeyIsRefused(t *testing.T) {
	s := servePasskeys(t)
	s.LoginAs(t, address, authtest.Unverified())
	s.before(noAutofill)
	s.open("/account/sign-in?return_to=/notes")
	shown := func(class string, yes bool) chromedp.Action {
		return browsertest.Until(`[...document.querySelectorAll('.button.` + class + `')].every((b) => (getComputedStyle(b).display !== 'none') === ` + strconv.FormatBool(yes) + `)`)
	}
	s.do(browsertest.Visible("form[data-passkey=get] button"), shown("kept", true), shown("brief", false),
		browsertest.Click("[type=checkbox][name=remember]"), shown("kept", false), shown("brief", true))
	s.signsIn()
	s.key(webauthn.AuthenticatorTransportInternal)
	s.do(browsertest.Click("form[data-passkey=create] button"), s.says("Confirm your email address first"))
}

// Passkeys are renamed and removed, after another sign-in if the last was long ago.
func TestPasskeysOnTheAccountPage(t *testing.T) {
	for name, scripts := range map[string]bool{"with scripts": true, "without scripts": false} {
		t.Run(name, func(t *testing.T) {
			s := servePasskeys(t)
			s.hasPasskey()
			s.before(noAutofill)
			s.do(emulation.SetScriptExecutionDisabled(!scripts))
			s.open("/account/sign-in?return_to=/account/")
			s.do(browsertest.Until(fmtShown("form[data-passkey]", scripts)))
			s.do(browsertest.Type("#login", address), browsertest.Type("#password", password+kb.Enter))
			s.at("/account/")
			s.do(browsertest.Until(fmtShown("form[data-passkey=create]", scripts)))
			s.do(browsertest.Click("#passkeys ~ .list summary"), browsertest.SetValue("input[name=name]", "Blue key"), browsertest.Click("button[value=rename]"), s.says("Saved."), s.says("Blue key"))

			s.Clock.Advance(20 * time.Minute)
			s.do(browsertest.Click("#passkeys ~ .list summary"), browsertest.Click("button[value=remove]"))
			s.at("/account/sign-in")
			if scripts {
				s.usesPasskey()
			} else {
				s.do(browsertest.Type("#password", password+kb.Enter))
			}
			s.at("/account/")
			s.do(browsertest.Click("#passkeys ~ .list summary"), browsertest.Click("button[value=remove]"), s.says("The passkey was removed."))
			if list := s.passkeys(); len(list) != 0 {
				t.Errorf("%+v", list)
			}
		})
	}
}

func fmtShown(selector string, shown bool) string {
	e := `document.querySelector(` + quote(selector) + `).getClientRects().length`
	if shown {
		return e
	}
	return `!` + e
}

// After a sign-in with a password the pages offer a passkey, once in a month.
func TestPasskeyIsOffered(t *testing.T) {
	s := servePasskeys(t)
	s.LoginAs(t, address)
	signIn := func() {
		s.open("/account/sign-in?return_to=/notes")
		s.do(browsertest.Type("#login", address), browsertest.Type("#password", password+kb.Enter))
	}
	signIn()
	s.at("/account/passkeys/new")
	s.do(s.says("Sign in faster next time"), browsertest.Until(offersUpgrade), browsertest.Click(".links a"))
	s.at("/notes")
	s.signsOut()
	signIn()
	s.at("/notes")
	s.signsOut()
	s.do(chromedp.ActionFunc(clearCookies))
	s.key(webauthn.AuthenticatorTransportInternal)
	signIn()
	s.at("/account/passkeys/new")
	s.do(browsertest.Click("form[data-passkey=upgrade] button"))
	s.at("/notes")
	s.signsOut()
	s.do(chromedp.ActionFunc(clearCookies))
	s.before(noAutofill)
	signIn()
	s.at("/notes") // it has one
}

// A browser that can create a passkey by itself does so after a password. It turns no second
// factor on.
func TestPasskeyUpgrade(t *testing.T) {
	s := servePasskeys(t)
	s.LoginAs(t, address)
	s.key(webauthn.AuthenticatorTransportInternal)
	s.before(conditionalCreate)
	s.open("/account/sign-in?return_to=/notes")
	s.do(browsertest.Type("#login", address), browsertest.Type("#password", password+kb.Enter))
	s.at("/notes")
	if list := s.passkeys(); len(list) != 1 || list[0].SecondFactor {
		t.Errorf("%+v", list)
	}
}

// A new account starts with a confirmed address and a passkey. Without the passkey, its owner
// signs in by mail, also while magic links are off.
func TestSignUpWithPasskey(t *testing.T) {
	s := servePasskeys(t, auth.WithSettings(auth.Settings{MagicLink: auth.Off}))
	s.key(webauthn.AuthenticatorTransportInternal)
	s.open("/account/sign-up?return_to=/notes")
	s.do(browsertest.Click("a[href*='passkey=1']"))
	s.at("/account/sign-in/mail")
	s.do(browsertest.Type("#email", address+kb.Enter))
	s.at("/account/sign-in/code")
	s.do(browsertest.Type("#code", s.Mail(t, address, auth.KindMagicLink).Code+kb.Enter))
	s.at("/account/passkeys/new")
	s.do(s.says("Create your passkey"), browsertest.Click("form[data-passkey=create] button"))
	s.at("/notes")
	s.signsOut()
	s.open("/account/sign-in?return_to=/notes")
	s.at("/notes") // by autofill
	s.signsOut()

	s.do(webauthn.Disable())
	s.open("/account/sign-in?return_to=/notes")
	s.do(browsertest.Click("a[href*='/sign-in/mail']")) // the passkey is lost
	s.at("/account/sign-in/mail")
	s.Clock.Advance(2 * time.Minute)
	s.Inbox.Clear()
	s.do(browsertest.Type("#email", address+kb.Enter))
	s.at("/account/sign-in/code")
	s.do(browsertest.Type("#code", s.Mail(t, address, auth.KindMagicLink).Code+kb.Enter))
	s.at("/notes")
}

func clearCookies(ctx context.Context) error { return network.ClearBrowserCookies().Do(ctx) }

// Staff whose second factor is a passkey accept with it on the page of their link, also beside
// an authenticator app. A passkey that the browser does not find, and a refused password, leave
// the link and the account as they are.
func TestAcceptanceWithPasskey(t *testing.T) {
	s := servePasskeys(t)
	adm, err := admin.New(t.Context(), s.Auth, admin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id := s.hasPasskey()
	s.before(noAutofill)
	s.signsIn()
	s.do(browsertest.Click("#passkeys ~ .list summary"), browsertest.Click("form[data-passkey=get] button"))
	s.do(browsertest.Until(`document.querySelectorAll('.codes li').length === 10`))
	s.signsOut()
	if err := adm.EnsureRole(t.Context(), admin.System("test"), admin.CreateRoleParams{Name: "support", Permissions: []string{admin.PermUsersRead}}); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.Invite(t.Context(), admin.System("test"), admin.InviteParams{Email: address, Roles: []string{"support"}}); err != nil {
		t.Fatal(err)
	}
	link := strings.TrimPrefix(s.Mail(t, address, auth.KindInvitation).Link, s.url)
	accept := func(password string) {
		t.Helper()
		s.open(link)
		s.do(browsertest.Type("#password", password), browsertest.Click("button[data-passkey]"))
	}
	s.open(link)
	s.do(browsertest.Until(`!document.querySelector('#totp_code') && document.querySelectorAll('main form button').length === 1`))
	accept("short")
	s.at(strings.Split(link, "?")[0])
	s.open(link)
	s.do(browsertest.Until(`!document.body.innerText.includes('no longer valid')`))
	accept("another-Passphrase-8")
	s.do(browsertest.Until(`document.querySelectorAll('.codes li').length === 10`))
	user, err := s.Store.User(t.Context(), store.ByEmail(address))
	if err != nil || !user.MFAEnabled || len(user.Roles) != 1 || user.AcceptedSequence == 0 {
		t.Errorf("%+v, %v", user, err)
	}
	if kept := s.stored(id); len(kept) != 1 {
		t.Errorf("%d passkeys in the browser", len(kept))
	}
	s.open("/account/")
	s.do(s.says("second factor"))
}
