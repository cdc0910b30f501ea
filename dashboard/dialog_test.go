package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/browsertest"
)

// With scripts, a form opens over its page, says what is wrong where it was entered, and
// what it did is shown on the page behind it.
func TestDialogs(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	ctx := o.window("owner@example.com", true)
	at := ids.Replace("/dashboard/users/{ada}")
	browsertest.Do(ctx, t, chromedp.Navigate(o.url+at), chromedp.Click(`a[href$="/ban"]`, chromedp.ByQuery),
		chromedp.WaitVisible(`dialog[open] [name=typed]`, chromedp.ByQuery),
		chromedp.SendKeys(`dialog [name=reason]`, "spam", chromedp.ByQuery), chromedp.SendKeys(`dialog [name=typed]`, "somebody else"+kb.Enter, chromedp.ByQuery),
		chromedp.WaitVisible(`dialog .wrong`, chromedp.ByQuery),
		chromedp.SendKeys(`dialog [name=typed]`, "ada@example.com"+kb.Enter, chromedp.ByQuery),
		chromedp.WaitVisible(`main .notice`, chromedp.ByQuery), browsertest.Until(`document.querySelector('main').textContent.includes('Banned for good.') && !document.querySelector('dialog[open]')`),
		chromedp.Click(`a[href$="/unban"]`, chromedp.ByQuery), chromedp.WaitVisible(`dialog[open] form`, chromedp.ByQuery), chromedp.KeyEvent(kb.Escape),
		browsertest.Until(`!document.querySelector('dialog[open]')`))
	u, err := o.adm.User(t.Context(), admin.System("test"), at[strings.LastIndex(at, "/")+1:])
	if err != nil || !u.Banned(o.Clock.Now()) {
		t.Errorf("the account is %v, %v", u, err)
	}
}

// The keyboard leads to the screens, to the search and to what its keys do.
func TestKeys(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ctx := o.window("owner@example.com", true)
	browsertest.Do(ctx, t, chromedp.KeyEvent("g"), chromedp.KeyEvent("u"), chromedp.WaitVisible(`input[type=search]`, chromedp.ByQuery),
		chromedp.KeyEvent("/"), browsertest.Until(`document.activeElement.type === 'search'`), chromedp.Evaluate(`document.activeElement.value = ''`, nil), // the driver types the key, too
		chromedp.SendKeys(`input[type=search]`, "owner@example.com"+kb.Enter, chromedp.ByQuery), browsertest.Until(`document.body.textContent.includes("somebody's whole address")`),
		chromedp.KeyEvent("?"), chromedp.WaitVisible(`#help[open]`, chromedp.ByQuery), chromedp.KeyEvent(kb.Escape), browsertest.Until(`!document.querySelector('#help[open]')`))
}
