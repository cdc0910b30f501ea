package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/browsertest"
	"github.com/authmount/auth/pages"
)

const logo = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Ccircle cx='16' cy='16' r='15' fill='%23c2410c'/%3E%3C/svg%3E"

// served is a site on a real port, with a browser.
type served struct {
	*site
	url string
	idp *authtest.Provider
	ctx context.Context
	t   *testing.T
}

// serveSite starts a site and a browser. Errors that the browser reports fail the test.
func serveSite(t *testing.T, opts ...auth.Option) *served {
	t.Helper()
	return serveAt(t, "127.0.0.1", opts...)
}

func serveAt(t *testing.T, host string, opts ...auth.Option) *served {
	t.Helper()
	s := &served{t: t}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }))
	s.url = strings.Replace("http://"+srv.Listener.Addr().String(), "127.0.0.1", host, 1)
	s.idp = authtest.StartProvider(t)
	s.site = newSite(t, pages.Options{Accent: "#c2410c", Logo: logo, Home: "/notes"}, append([]auth.Option{
		auth.WithDevMode(), auth.WithBaseURL(s.url + "/auth/v1"), auth.WithProvider(s.idp.OIDC("acme")),
		auth.WithSettings(auth.Settings{AccountDeletion: auth.On}), auth.WithRateLimits(auth.RateLimits{Off: true}),
	}, opts...)...)
	s.idp.Now = s.Clock.Now
	srv.Start()
	t.Cleanup(srv.Close)

	s.ctx = browsertest.New(t, 1440, 900)
	browsertest.FailOnErrors(s.ctx, t)
	return s
}

func (s *served) do(steps ...chromedp.Action) { s.t.Helper(); browsertest.Do(s.ctx, s.t, steps...) }

func (s *served) open(path string) {
	s.t.Helper()
	s.do(chromedp.Navigate(s.url + path))
}

// at waits for the page at a path, and until it has set the focus: the browser reports a field
// that gets it before.
func (s *served) at(path string) {
	s.t.Helper()
	s.do(browsertest.Until(`location.pathname === '` + path + `' && document.readyState === 'complete' && (!document.querySelector('[autofocus]') || document.activeElement !== document.body)`))
}

// tab presses Tab until the selected element has the focus.
func (s *served) tab(selector string) {
	s.t.Helper()
	for range 60 {
		var there bool
		s.do(browsertest.Press(kb.Tab), chromedp.Evaluate(`document.activeElement.matches(`+quote(selector)+`)`, &there))
		if there {
			return
		}
	}
	s.t.Fatalf("%s cannot be reached by the Tab key", selector)
}

func quote(s string) string { return "`" + s + "`" }

func (s *served) typed(text string) { s.t.Helper(); s.do(browsertest.Press(text)) }

// value returns a field's value.
func (s *served) value(selector string) (v string) {
	s.t.Helper()
	s.do(chromedp.Evaluate(`document.querySelector(`+quote(selector)+`).value`, &v))
	return v
}

func TestByKeyboard(t *testing.T) {
	for name, scripts := range map[string]bool{"with scripts": true, "without scripts": false} {
		t.Run(name, func(t *testing.T) {
			s := serveSite(t)
			s.do(emulation.SetScriptExecutionDisabled(!scripts))
			s.open("/account/sign-up")
			s.at("/account/sign-up")
			s.tab("#full_name")
			s.typed("Ada" + kb.Tab + address + kb.Tab + password + kb.Enter)
			s.at("/account/email/code")
			s.tab(".links a[href='/notes']")
			s.typed(kb.Enter)
			s.at("/notes")

			s.open("/account/second-factor")
			s.at("/account/second-factor")
			s.tab("button[value=begin]")
			s.typed(kb.Enter)
			s.do(browsertest.Until(`document.readyState === 'complete' && document.activeElement.id === 'code'`))
			s.typed("000000" + kb.Enter)
			s.do(browsertest.Until(`document.readyState === 'complete' && document.getElementById('code-error')`))
			secret := s.value("input[name=secret]")
			s.do(browsertest.Until(`document.activeElement.id === 'code'`)) // the field with the error
			s.typed(code(t, s.site, secret) + kb.Enter)
			s.do(browsertest.Until(`document.querySelectorAll('.codes li').length === 10`))

			s.open("/account/")
			s.at("/account/")
			s.tab("form[action$='/sign-out'] button")
			s.typed(kb.Enter)
			s.at("/account/signed-out")

			s.open("/notes")
			s.at("/account/sign-in")
			s.tab("#login")
			s.typed(address + kb.Tab + password + kb.Enter)
			s.at("/account/sign-in/second")
			s.Clock.Advance(time.Minute)
			s.do(browsertest.Until(`document.activeElement.id === 'code'`))
			s.typed(code(t, s.site, secret) + kb.Enter)
			s.at("/notes")
		})
	}
}

// After sign-out the back button shows nothing of the account.
func TestBackAfterSignOut(t *testing.T) {
	s := serveSite(t)
	s.LoginAs(t, address)
	s.open("/account/sign-in")
	s.do(browsertest.Type("#login", address), browsertest.Type("#password", password+kb.Enter))
	s.at("/notes")
	s.open("/account/")
	s.at("/account/")
	s.do(browsertest.Click("form[action$='/sign-out'] button"))
	s.at("/account/signed-out")
	s.do(chromedp.Evaluate(`history.back()`, nil))
	s.at("/account/sign-in")
	s.do(browsertest.Until(`!document.body.textContent.includes('` + address + `')`))
}

// Providers on another origin work without a script under the policy.
func TestProviderInBrowser(t *testing.T) {
	s := serveSite(t)
	s.idp.SignsIn(authtest.Person{Subject: "1", Email: address, EmailVerified: true})
	s.open("/account/sign-in")
	shown := func(link string, want bool) { // exactly one of the two is shown
		s.do(browsertest.Until(fmt.Sprintf(`(getComputedStyle(document.querySelector("a.%s[href*='/with/acme']")).display !== 'none') === %v`, link, want)))
	}
	shown("kept", true)
	shown("brief", false)
	s.do(browsertest.Click("input[name=remember]"))
	shown("kept", false)
	shown("brief", true)
	s.do(browsertest.Click("a.brief[href*='/with/acme']"))
	s.at("/notes")
	s.open("/account/")
	s.do(browsertest.Until(`document.body.textContent.includes('Unlink')`))
	s.LoginAs(t, "bob@example.com")
	s.do(browsertest.Click("form[action$='/sign-out'] button"))
	s.at("/account/signed-out")
	s.idp.SignsIn(authtest.Person{Subject: "2", Email: "bob@work.example", EmailVerified: true})
	s.open("/account/sign-in")
	s.do(browsertest.Type("#login", "bob@example.com"), browsertest.Type("#password", password+kb.Enter))
	s.at("/notes")
	s.open("/account/")
	s.do(browsertest.Click("button[value=link]"))
	s.do(browsertest.Until(`location.pathname === '/account/' && document.body.textContent.includes('bob@work.example')`))
}
