package pages_test

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/browsertest"
)

// phone is a second browser, with the screen of a phone, in which the mails are read.
type phone struct {
	t   *testing.T
	ctx context.Context
}

func newPhone(t *testing.T) *phone {
	t.Helper()
	p := &phone{t, browsertest.New(t, 390, 844)}
	browsertest.FailOnErrors(p.ctx, t)
	browsertest.Do(p.ctx, t, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	return p
}

// open opens the link of a mail. The first button of its page is no if that is not empty.
func (p *phone) open(link, no string) {
	p.t.Helper()
	browsertest.Do(p.ctx, p.t, chromedp.Navigate(link))
	p.fits()
	var first string
	browsertest.Do(p.ctx, p.t, browsertest.Text("form button", &first))
	if no != "" && first != no {
		p.t.Errorf("the first button is %q, want %q", first, no)
	}
}

// press presses a button, and returns the text of the page that follows.
func (p *phone) press(button string) (text string) {
	p.t.Helper()
	p.leave(browsertest.Click(`//button[normalize-space()="` + button + `"]`))
	browsertest.Do(p.ctx, p.t, browsertest.Text("body", &text))
	return text
}

// leave does what leads to another page.
func (p *phone) leave(by chromedp.Action) {
	p.t.Helper()
	browsertest.Do(p.ctx, p.t, chromedp.Evaluate(`document.body.dataset.before = 1`, nil), by,
		browsertest.Until(`document.readyState === 'complete' && document.body && !document.body.dataset.before`))
	p.fits()
}

// fits checks that a page needs no scrolling to the side, and that its buttons and fields
// are at least 44 pixels high (WCAG 2.5.5).
func (p *phone) fits() {
	p.t.Helper()
	var wrong []string
	browsertest.Do(p.ctx, p.t, browsertest.Visible("#title"), chromedp.Evaluate(`[
		...(document.documentElement.scrollWidth > innerWidth ? ['wider than the screen'] : []),
		...[...document.querySelectorAll('button, input:not([type=hidden]):not(.sr)')].filter(e => e.getClientRects()[0].height < 44).map(e => 'too low: ' + e.outerHTML),
	]`, &wrong))
	if len(wrong) > 0 {
		p.t.Error(strings.Join(wrong, "\n"))
	}
}

const moved = "ada@new.example"

// changes asks for a new address on the desktop.
func (s *served) changes(to string) {
	s.t.Helper()
	s.LoginAs(s.t, address)
	s.open("/account/sign-in")
	s.do(browsertest.Type("#login", address), browsertest.Type("#password", password+kb.Enter))
	s.at("/notes")
	s.open("/account/email")
	s.do(browsertest.SetValue("#email", to), browsertest.Type("#email", kb.Enter))
	s.at("/account/email/code")
}

// A user changes the address on the desktop and reads the mail at the new address on the
// phone, which shows the code to type on the desktop. Then the mail at the former address
// takes the change back, on the phone, too.
func TestAddressChangeWithThePhone(t *testing.T) {
	s := serveSite(t)
	s.changes(moved)
	p := newPhone(t)
	p.open(s.Mail(t, moved, auth.KindChangeEmail).Link, "This wasn't me")
	if text := p.press("That was me"); !strings.Contains(text, "Do not give this code to anyone else") {
		t.Error(text)
	}
	var code string
	browsertest.Do(p.ctx, t, browsertest.Text(".code", &code))
	s.do(browsertest.Type("#code", code+kb.Enter))
	s.at("/account/")
	s.do(browsertest.Until(`document.body.textContent.includes('` + moved + `')`))

	p.open(s.Mail(t, address, auth.KindEmailChanged).Link, "")
	p.press("Secure my account")
	s.open("/account/")
	s.at("/account/sign-in") // the session that changed the address is over
	reset := s.Mail(t, address, auth.KindResetPassword).Link
	p.open(reset, "")
	p.leave(browsertest.Type("#new_password", "violet-harbour-93-lamps"+kb.Enter))
	s.do(browsertest.Type("#login", address), browsertest.Type("#password", "violet-harbour-93-lamps"+kb.Enter))
	s.at("/account/")
	s.do(browsertest.Until(`document.body.textContent.includes('` + address + `')`))
}

// A stranger enters somebody's address in an account of their own: its owner refuses on
// the phone, and the code of the page shown before is worth nothing.
func TestAddressChangeIsRefusedOnThePhone(t *testing.T) {
	s := serveSite(t)
	s.changes(moved)
	p := newPhone(t)
	link := s.Mail(t, moved, auth.KindChangeEmail).Link
	p.open(link, "This wasn't me")
	p.press("That was me")
	var code string
	browsertest.Do(p.ctx, t, browsertest.Text(".code", &code))
	p.press("This wasn't me")
	s.do(browsertest.Type("#code", code+kb.Enter), browsertest.Until(`document.readyState === 'complete' && document.getElementById('code-error')`))
	s.open("/account/")
	s.do(browsertest.Until(`document.body.textContent.includes('` + address + `') && !document.body.textContent.includes('` + moved + `')`))
}
