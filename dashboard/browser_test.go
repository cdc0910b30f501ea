package dashboard_test

import (
	"context"
	"strings"
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
	"github.com/authmount/auth/internal/axetest"
	"github.com/authmount/auth/internal/browsertest"
	"github.com/authmount/auth/passkey"
)

// window is a real browser that a user has signed in with. Its errors, including
// violations of the policy, fail the test.
func (o *office) window(email string, scripts bool) context.Context {
	o.t.Helper()
	ctx := browsertest.New(o.t, 1440, 900)
	browsertest.FailOnErrors(ctx, o.t)
	browsertest.Do(ctx, o.t, emulation.SetScriptExecutionDisabled(!scripts))
	o.enter(ctx, o.t, email)
	return ctx
}

// enter has a browser sign in again, as any user.
func (o *office) enter(ctx context.Context, t *testing.T, email string) {
	t.Helper()
	browsertest.Do(ctx, t, network.ClearBrowserCookies(),
		chromedp.Navigate(o.url+"/dashboard/"),
		browsertest.Type(`[name=login]`, email), browsertest.Type(`[name=password]`, authtest.Password+kb.Enter),
		browsertest.Visible(`nav.side`))
}

// screens are all pages, by the names of their screenshots.
func screens(ids *strings.Replacer) map[string]string {
	all := map[string]string{
		"overview": "/", "overview-30d": "/?period=30d", "users": "/users", "users-none": "/users?q=nobody-is-called-so", "user": "/users/{ada}", "timeline": "/users/{ada}?tab=timeline", "user-sessions": "/users/{ada}?tab=sessions",
		"access": "/users/{mfa}?tab=access", "user-roles": "/users/{ada}?tab=roles&permission=notes.write", "metadata": "/users/{ada}?tab=metadata", "json": "/users/{ada}?tab=json",
		"ban": "/users/{ada}/ban", "roles-form": "/users/{ada}/roles", "bulk": "/users/bulk?action=ban&ids={ada}", "sessions": "/sessions", "roles": "/roles", "role": "/roles/editor", "role-new": "/roles/new",
		"audit": "/audit", "audit-live": "/audit?live=1", "invitations": "/invitations", "messages": "/messages", "keys": "/keys", "key": "/keys/{key}", "key-new": "/keys/new", "settings": "/settings",
		"setting": "/settings/texts/edit", "diagnostics": "/diagnostics", "impersonations": "/impersonations", "nothing": "/nothing-is-here", "sign-in": "/sign-in?reason=reauthentication_needed",
	}
	for name, at := range all {
		all[name] = "/dashboard" + ids.Replace(at)
	}
	return all
}

// Every screen is accessible in a right-to-left language, on a phone.
func TestRightToLeft(t *testing.T) {
	t.Parallel()
	axe := axetest.Source(t)
	o := newOffice(t, nil, admin.Options{}, auth.WithMail(auth.MailOptions{AppName: "Notes", Templates: browsertest.RightToLeft(t)}))
	ids := o.ids()
	ctx := browsertest.New(t, 1440, 900)
	browsertest.FailOnErrors(ctx, t)
	browsertest.Do(ctx, t, network.Enable(), network.SetExtraHTTPHeaders(network.Headers{"Accept-Language": "ar-EG"}))
	o.enter(ctx, t, "owner@example.com")
	for name, at := range screens(ids) {
		var lang string
		browsertest.Do(ctx, t, chromedp.Navigate(o.url+at), chromedp.Evaluate(`document.documentElement.lang + ' ' + getComputedStyle(document.body).direction`, &lang))
		if lang != "ar rtl" {
			t.Errorf("%s is in %q", name, lang)
		}
		axetest.Check(ctx, t, axe, name+"-ar", []axetest.Look{{Scheme: "dark", Width: 320, Height: 640}}, func(look string) chromedp.Action { return browsertest.Shot(t, look) })
	}
}

// Every screen is accessible, in either theme, on a phone or a desktop.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	axe := axetest.Source(t)
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	ctx := o.window("owner@example.com", true)
	for name, at := range screens(ids) {
		browsertest.Do(ctx, t, chromedp.Navigate(o.url+at))
		axetest.Check(ctx, t, axe, name, axetest.Looks(), func(look string) chromedp.Action { return browsertest.Shot(t, look) })
	}
}

// An operator whose second factor is required adds a passkey on the dashboard's own pages,
// signs in with nothing but it, and confirms a change with it.
func TestSignInWithPasskey(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{RequireMFA: auth.On}, auth.WithPasskeys(passkey.New(passkey.Options{})))
	ctx := browsertest.New(t, 1440, 900)
	browsertest.FailOnErrors(ctx, t)
	do := func(steps ...chromedp.Action) { t.Helper(); browsertest.Do(ctx, t, steps...) }
	says := func(text string) chromedp.Action {
		return browsertest.Until(`document.readyState === 'complete' && document.body.innerText.includes('` + text + `')`)
	}
	do(chromedp.ActionFunc(func(ctx context.Context) error {
		if err := webauthn.Enable().Do(ctx); err != nil {
			return err
		}
		_, err := webauthn.AddVirtualAuthenticator(&webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Ctap2version: webauthn.Ctap2versionCtap21, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		}).Do(ctx)
		return err
	}), chromedp.ActionFunc(func(ctx context.Context) error { // otherwise the authenticator signs in before a button is pressed
		_, err := page.AddScriptToEvaluateOnNewDocument(`PublicKeyCredential.isConditionalMediationAvailable = async () => false`).Do(ctx)
		return err
	}))
	do(chromedp.Navigate(o.url+"/dashboard/users"),
		browsertest.Type(`[name=login]`, "owner@example.com"), browsertest.Type(`[name=password]`, authtest.Password+kb.Enter),
		browsertest.Click("form[data-passkey=create] button"), browsertest.Until(`document.querySelectorAll('.codes li').length === 10`),
		chromedp.Navigate(o.url+"/dashboard/"), browsertest.Visible(`nav.side`), browsertest.Click("form[action$='/sign-out'] button"))
	do(says("signed out"), chromedp.Navigate(o.url+"/dashboard/users"),
		browsertest.Click("form[data-passkey=get] button"), browsertest.Visible(`nav.side`), says("owner@example.com"))
	o.Clock.Advance(time.Hour)
	do(chromedp.Navigate(o.url+"/dashboard/sign-in?reason=reauthentication_needed&return_to=%2Fdashboard%2Fkeys"),
		browsertest.Click("form[data-passkey=get] button"), browsertest.Visible(`nav.side`), browsertest.Until(`location.pathname === '/dashboard/keys'`))
}
