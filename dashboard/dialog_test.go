package dashboard_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/dashboard"
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

// Every form that there is does what it says with scripts, too, opened from the page
// that leads to it where one does.
func TestEveryFormWithScripts(t *testing.T) {
	t.Parallel()
	ctx := browsertest.New(t, 1440, 900)
	browsertest.Complaints(ctx, t)
	opened := 0
	for _, at := range dashboard.Forms() { // one after the other: cookies know no ports
		deed := deeds[at]
		if deed.at == "" {
			continue
		}
		t.Run(at, func(t *testing.T) {
			o := newOffice(t, nil, admin.Options{})
			ids := o.ids()
			o.enter(ctx, t, "owner@example.com")
			form := map[string][]string{}
			for name, list := range deed.form {
				form[name] = []string{}
				for _, text := range list {
					form[name] = append(form[name], ids.Replace(text))
				}
			}
			values, err := json.Marshal(form)
			if err != nil {
				t.Fatal(err)
			}
			path, _ := json.Marshal("/dashboard" + ids.Replace(deed.at))
			var from string
			var found bool
			browsertest.Do(ctx, t, chromedp.Navigate(o.url+"/dashboard"+ids.Replace(deed.at)),
				chromedp.Evaluate(`document.querySelector('.entry a.button.other').href`, &from))
			browsertest.Do(ctx, t, chromedp.Navigate(from),
				chromedp.Evaluate(fmt.Sprintf(`{ const a = [...document.querySelectorAll('main a.button')].find((a) => a.getAttribute('href').split('?')[0] === %s); a?.click(); !!a }`, path), &found))
			if found {
				opened++
			} else {
				browsertest.Do(ctx, t, chromedp.Navigate(o.url+"/dashboard"+ids.Replace(deed.at)))
			}
			browsertest.Do(ctx, t, browsertest.Until(`!!document.querySelector('dialog[open] .entry, main .entry[method=post]')`),
				chromedp.Evaluate(fmt.Sprintf(fillIn, values), nil),
				browsertest.Until(fmt.Sprintf(`document.querySelector('main, dialog').textContent.replace(/\s+/g, ' ').includes(%q) || document.querySelector('dialog[open]')?.textContent.replace(/\s+/g, ' ').includes(%q)`, deed.want, deed.want)))
		})
	}
	if opened < 20 {
		t.Errorf("only %d forms were opened from a page", opened)
	}
}

// fillIn enters values into the form that is open, and sends it.
const fillIn = `(() => {
	const f = document.querySelector('dialog[open] .entry, main .entry[method=post]');
	for (const [name, list] of Object.entries(%s)) {
		for (const e of f.querySelectorAll('[name="' + name + '"]')) {
			if (e.type === 'checkbox') e.checked = list.includes(e.value); else if (e.type !== 'hidden') e.value = list.join('\n');
		}
	}
	f.requestSubmit();
})()`

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
