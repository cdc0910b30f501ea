package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/dashboard"
	"github.com/authmount/auth/internal/browsertest"
)

// With scripts, a form opens over its page and reports mistakes next to their fields, and
// its result is shown on the page below.
func TestDialogs(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	ctx := o.window("owner@example.com", true)
	at := ids.Replace("/dashboard/users/{ada}")
	browsertest.Do(ctx, t, chromedp.Navigate(o.url+at), browsertest.Click(`a[href$="/ban"]`),
		browsertest.Visible(`dialog[open] [name=typed]`),
		browsertest.Type(`dialog [name=reason]`, "spam"), browsertest.Type(`dialog [name=typed]`, "somebody else"+kb.Enter),
		browsertest.Visible(`dialog .wrong`),
		browsertest.Type(`dialog [name=typed]`, "ada@example.com"+kb.Enter),
		browsertest.Visible(`main .notice`), browsertest.Until(`document.querySelector('main').textContent.includes('Banned permanently.') && !document.querySelector('dialog[open]')`),
		browsertest.Click(`a[href$="/unban"]`), browsertest.Visible(`dialog[open] form`), browsertest.Press(kb.Escape),
		browsertest.Until(`!document.querySelector('dialog[open]')`))
	u, err := o.adm.User(t.Context(), admin.System("test").Accepting(), at[strings.LastIndex(at, "/")+1:])
	if err != nil || !u.Banned(o.Clock.Now()) {
		t.Errorf("the account is %v, %v", u, err)
	}
}

// Every form works with scripts, too, opened from the page that links to it if there is
// one.
func TestEveryFormWithScripts(t *testing.T) {
	t.Parallel()
	ctx := browsertest.New(t, 1440, 900)
	browsertest.FailOnErrors(ctx, t)
	opened := 0
	for _, at := range dashboard.Forms() { // one after the other: cookies ignore ports
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

// fillIn enters values into the open form, and sends it.
const fillIn = `(() => {
	const f = document.querySelector('dialog[open] .entry, main .entry[method=post]');
	for (const [name, list] of Object.entries(%s)) {
		for (const e of f.querySelectorAll('[name="' + name + '"]')) {
			if (e.type === 'checkbox') e.checked = list.includes(e.value); else if (e.type !== 'hidden') e.value = list.join('\n');
		}
	}
	f.requestSubmit();
})()`

// goes presses g and another key until the page is there. On a busy machine more time
// passes between the two keys than the module allows, and the browser may not answer for a
// key whose page went away. It waits longer each time, because keys that come too early
// reload a page that is on its way.
func goes(key, to string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for wait := 2 * time.Second; ; wait *= 2 {
			short, cancel := context.WithTimeout(ctx, wait)
			err := chromedp.Run(short, browsertest.Press("g"), browsertest.Press(key), browsertest.Until(`location.pathname === '`+to+`' && document.readyState === 'complete'`))
			cancel()
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
	})
}

// The live log updates only while the user is active: it does not keep an absent user's
// session from ending.
func TestLiveTailRests(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ctx := o.window("owner@example.com", true)
	const hold = `window.setInterval = (f) => { window.tick = f; }; const go = window.fetch; window.asked = 0; window.fetch = (...a) => { window.asked++; return go(...a); };
const now = Date.now; window.later = 0; Date.now = () => now() + window.later;`
	ticks := func(script string, want int) chromedp.Action {
		return chromedp.ActionFunc(func(ctx context.Context) error {
			var n int
			err := chromedp.Evaluate(script+`; (async () => { await window.tick(); return window.asked; })()`, &n, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }).Do(ctx)
			if err == nil && n != want {
				err = fmt.Errorf("%d requests after %q, want %d", n, script, want)
			}
			return err
		})
	}
	browsertest.Do(ctx, t, chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(hold).Do(ctx)
		return err
	}), chromedp.Navigate(o.url+"/dashboard/audit?live=1"), browsertest.Until(`window.tick`),
		ticks("0", 1), ticks("window.later = 14 * 60000", 2), ticks("window.later = 16 * 60000", 2),
		ticks("dispatchEvent(new Event('pointermove'))", 3), ticks("window.later = 30 * 60000", 4), ticks("window.later = 32 * 60000", 4))
}

// The keyboard reaches the screens, the search and the actions of its keys.
func TestKeys(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ctx := o.window("owner@example.com", true)
	browsertest.Do(ctx, t, goes("u", "/dashboard/users"), browsertest.Until(`document.querySelector('input[type=search]').checkVisibility()`),
		browsertest.Press("/"), browsertest.Until(`document.activeElement.type === 'search'`), chromedp.Evaluate(`document.activeElement.value = ''`, nil), // the driver types the key, too
		browsertest.Press("owner@example.com"+kb.Enter), browsertest.Until(`document.body.textContent.includes("one complete address") && document.readyState === 'complete'`), // before that nothing listens to keys
		browsertest.Press("?"), browsertest.Until(`document.querySelector('#help[open]').checkVisibility()`), browsertest.Press(kb.Escape), browsertest.Until(`!document.querySelector('#help[open]')`))
}
