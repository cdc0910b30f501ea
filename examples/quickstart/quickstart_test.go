package main

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth/internal/browsertest"
)

// start builds and runs the program as a newcomer would, and answers its URL.
func start(t *testing.T) string {
	t.Helper()
	url, _ := launch(t)
	return url
}

func launch(t *testing.T) (url string, cmd *exec.Cmd) {
	t.Helper()
	url, cmd, _ = launchWith(t)
	return url, cmd
}

// launchWith runs the program with arguments, and returns what it goes on to say.
func launchWith(t *testing.T, args ...string) (url string, cmd *exec.Cmd, says *bufio.Reader) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "quickstart")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd = exec.CommandContext(t.Context(), bin, append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	says = bufio.NewReader(out)
	line, err := says.ReadString('\n')
	url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(line)
	if err != nil || url == "" {
		t.Fatalf("%q: %v", line, err)
	}
	return url, cmd, says
}

// said is the first thing that the program says of a form.
func said(t *testing.T, says *bufio.Reader, form string) string {
	t.Helper()
	for {
		line, err := says.ReadString('\n')
		if m := regexp.MustCompile(form).FindStringSubmatch(line); m != nil {
			return m[1]
		}
		if err != nil {
			t.Fatalf("it does not say %s: %v", form, err)
		}
	}
}

// With -demo a newcomer is in the dashboard at once, and there is something to see.
func TestDemo(t *testing.T) {
	url, _, says := launchWith(t, "-demo")
	password := said(t, says, `with the password (\S+)`)
	ctx := browsertest.New(t, 1440, 900)
	browsertest.Do(ctx, t, chromedp.Navigate(url+"/dashboard/?period=30d"),
		chromedp.SendKeys(`[name=login]`, demoOwner, chromedp.ByQuery), chromedp.SendKeys(`[name=password]`, password+kb.Enter, chromedp.ByQuery),
		chromedp.WaitVisible(`.plot rect`, chromedp.ByQuery), browsertest.Shot(t, "demo-overview"),
		chromedp.Navigate(url+"/dashboard/users"), chromedp.WaitVisible(`//a[text()="radia@example.com" or .//*[text()="radia@example.com"]]`, chromedp.BySearch), browsertest.Shot(t, "demo-users"),
		chromedp.Click(`//a[.//*[text()="radia@example.com"]]`, chromedp.BySearch), chromedp.WaitVisible(`a[href$="/ban"]`, chromedp.ByQuery), browsertest.Shot(t, "demo-user"),
		chromedp.Click(`a[href$="/ban"]`, chromedp.ByQuery), chromedp.WaitVisible(`dialog[open] [name=typed]`, chromedp.ByQuery), browsertest.Shot(t, "demo-ban"),
		chromedp.KeyEvent(kb.Escape), chromedp.Click(`a[href$="tab=timeline"]`, chromedp.ByQuery), chromedp.WaitVisible(`table time`, chromedp.ByQuery),
		chromedp.EmulateViewport(390, 800), browsertest.Shot(t, "demo-timeline"), chromedp.EmulateViewport(1440, 900))
	for _, screen := range []string{"roles", "settings", "audit", "sessions", "keys", "invitations", "messages"} {
		browsertest.Do(ctx, t, chromedp.Navigate(url+"/dashboard/"+screen), chromedp.WaitVisible(`h1`, chromedp.ByQuery), browsertest.Shot(t, "demo-"+screen))
	}
}

// Without, whoever signs up becomes the owner by the link that it prints.
func TestFirstOwnerLink(t *testing.T) {
	url, _, says := launchWith(t)
	link := said(t, says, `^\s+(http\S+/dashboard/first-owner\?token=\S+)`)
	if !strings.HasPrefix(link, url) {
		t.Errorf("the link is %s", link)
	}
}

// A signal ends it in order.
func TestStops(t *testing.T) {
	_, cmd := launch(t)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// The walk of a person who tries the quickstart: sign up, confirm, log out,
// reset the password, log in, and come by magic link.
func TestWalk(t *testing.T) {
	url := start(t)
	ctx := browsertest.New(t, 900, 1000)
	do := func(steps ...chromedp.Action) { t.Helper(); browsertest.Do(ctx, t, steps...) }
	shot := func(name string) chromedp.Action { return browsertest.Shot(t, name) }
	says := func(want string) {
		t.Helper()
		do(browsertest.Until(`document.getElementById('message').textContent.includes(` + quote(want) + `)`))
	}
	// openMessage follows the link of the newest message of a subject.
	openMessage := func(subject string) {
		t.Helper()
		do(chromedp.Navigate(url+"/dev/inbox"), chromedp.Click(`//article[contains(h2, "`+subject+`")]//a`, chromedp.BySearch), chromedp.WaitVisible("#title", chromedp.ByQuery))
	}
	// openNewest follows the link of the newest message, as one reads mail.
	openNewest := func(subject string) {
		t.Helper()
		do(chromedp.Navigate(url+"/dev/inbox"), browsertest.Until(`document.querySelector('article h2') && document.querySelector('article h2').textContent.includes(`+quote(subject)+`)`),
			shot("inbox"), chromedp.Click("article .link a", chromedp.ByQuery), chromedp.WaitVisible("#title", chromedp.ByQuery))
	}

	do(chromedp.Navigate(url), chromedp.WaitVisible("#signup"), shot("start"),
		chromedp.SendKeys("#su-email", "ada@example.com"), chromedp.SendKeys("#su-name", "Ada Lovelace"), chromedp.SendKeys("#su-password", "password"),
		chromedp.Click("#signup button"))
	says("common")
	do(chromedp.SetValue("#su-password", "correct horse battery"), chromedp.Click("#signup button"), chromedp.WaitVisible("#signed-in"),
		chromedp.WaitVisible("#me-confirmed"), shot("signed-in"))
	says("inbox")
	wantText(ctx, t, "#me-confirmed", "not yet")

	openNewest("Confirm")
	do(shot("confirm-email"), chromedp.Click("main button", chromedp.ByQuery), chromedp.WaitVisible("#signed-in"), chromedp.WaitVisible("#me-confirmed"))
	wantText(ctx, t, "#me-confirmed", "yes")
	do(chromedp.Click("#hello"))
	says("Hello ada@example.com")
	do(chromedp.Click("#refresh"))
	says("New tokens")
	do(chromedp.Click("#logout"), chromedp.WaitVisible("#signed-out"))

	do(chromedp.Click("#tab-forgot"), chromedp.SendKeys("#fp-email", "ada@example.com"), chromedp.Click("#forgot button"))
	says("reset link")
	openNewest("new password")
	do(shot("reset-password"), chromedp.SendKeys("#new_password", "qwertyuiop"), chromedp.Click("main button", chromedp.ByQuery), chromedp.WaitVisible("#problem"), shot("reset-refused"),
		chromedp.SendKeys("#new_password", "another horse battery"), chromedp.Click("main button", chromedp.ByQuery), chromedp.WaitVisible("#signed-out"))
	do(chromedp.Click("#tab-login"), chromedp.SendKeys("#li-email", "ada@example.com"), chromedp.SendKeys("#li-password", "correct horse battery"), chromedp.Click("#login button"))
	says("not right")
	do(chromedp.SetValue("#li-password", "another horse battery"), chromedp.Click("#login button"), chromedp.WaitVisible("#signed-in"),
		chromedp.Click("#logout"), chromedp.WaitVisible("#signed-out"))

	do(chromedp.Click("#tab-magic"), chromedp.SendKeys("#ml-email", "ada@example.com"), chromedp.Click("#magic button"))
	says("sign-in link")
	openNewest("sign-in link")
	do(shot("confirm-sign-in"), chromedp.Click("main button", chromedp.ByQuery), chromedp.WaitVisible("#signed-in"))
	says("Signed in by magic link")

	// By phone, on a page of its own: the code is read from the inbox's JSON.
	do(chromedp.Click("#logout"), chromedp.WaitVisible("#signed-out"), chromedp.Click("#tab-phone"), chromedp.SendKeys("#ph-phone", "+49 30 123456"),
		chromedp.Click("#ph-button"), chromedp.WaitVisible("#ph-otp"))
	var code string
	do(chromedp.Evaluate(`fetch('/dev/messages').then(r => r.json()).then(l => l[l.length - 1].code)`, &code, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }),
		shot("phone"))
	do(chromedp.SendKeys("#ph-otp", code), chromedp.Click("#ph-button"), chromedp.WaitVisible("#signed-in"), shot("phone-signed-in"))
	says("Signed in by phone")

	// A second factor, with a real generator of codes: switched on by somebody who
	// came by link, then asked for at the login with a password.
	var secret string
	enterCode := func(field string, ahead time.Duration) chromedp.Action { // when its turn comes: the secret is read before
		return chromedp.ActionFunc(func(ctx context.Context) error {
			code, err := totp.GenerateCode(secret, time.Now().Add(ahead))
			if err != nil {
				return err
			}
			return chromedp.SendKeys(field, code).Do(ctx)
		})
	}
	do(chromedp.Click("#logout"), chromedp.WaitVisible("#signed-out"), chromedp.Click("#tab-magic"), chromedp.SetValue("#ml-email", "bob@example.com"), chromedp.Click("#magic button"))
	says("sign-in link")
	openNewest("sign-in link")
	do(chromedp.Click("main button", chromedp.ByQuery), chromedp.WaitVisible("#signed-in"), chromedp.WaitVisible("#me-confirmed"),
		chromedp.Click("#mfa-setup"), browsertest.Until(`document.getElementById('mfa-qr').naturalWidth > 100`), chromedp.Text("#mfa-secret", &secret, chromedp.ByQuery), shot("mfa-setup"),
		enterCode("#mfa-first", 0), chromedp.Click("#mfa-enable button"), chromedp.WaitVisible("#mfa-codes"), shot("mfa-on"))
	says("factor is on")
	do(chromedp.Evaluate(`call('POST', '/me/password', {new_password: 'a third horse battery'})`, nil, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }),
		chromedp.Click("#logout"), chromedp.WaitVisible("#signed-out"), chromedp.Click("#tab-login"), chromedp.SetValue("#li-email", "bob@example.com"),
		chromedp.SetValue("#li-password", "a third horse battery"), chromedp.Click("#login button"), chromedp.WaitVisible("#second"), shot("mfa-asked"),
		enterCode("#mfa-code", 30*time.Second), chromedp.Click("#mfa button"), chromedp.WaitVisible("#signed-in"))
	says("both factors")

	// By a provider: a stranger, then cancelled, then linked to an account.
	do(chromedp.Click("#logout"), chromedp.WaitVisible("#signed-out"), chromedp.Click("#dev"), chromedp.WaitVisible("input[name=person_email]"),
		shot("provider"), chromedp.SetValue("input[name=person_email]", "eve@example.com"), chromedp.Click("button[value=go]"), chromedp.WaitVisible("#signed-in"), chromedp.WaitVisible("#unlink"))
	says("Signed in by Dev provider")
	wantText(ctx, t, "#me-confirmed", "yes")
	do(shot("provider-signed-in"), chromedp.Click("#unlink"))
	says("last way to sign in")
	do(chromedp.Click("#logout"), chromedp.WaitVisible("#signed-out"), chromedp.Click("#dev"), chromedp.WaitVisible("input[name=person_email]"), chromedp.Click("button[value=cancel]"), chromedp.WaitVisible("#signed-out"))
	says("cancelled")
	do(chromedp.Click("#tab-signup"), chromedp.SetValue("#su-email", "carol@example.com"), chromedp.SetValue("#su-password", "correct horse battery"), chromedp.Click("#signup button"),
		chromedp.WaitVisible("#link"), chromedp.Click("#link"))
	says("Confirm your e-mail address or phone number first")
	openNewest("Confirm")
	do(chromedp.Click("main button", chromedp.ByQuery), chromedp.WaitVisible("#signed-in"), chromedp.WaitVisible("#link"),
		chromedp.Click("#link"), chromedp.WaitVisible("input[name=person_email]"), chromedp.SetValue("input[name=person_email]", "carol@work.test"),
		chromedp.Click("button[value=go]"), chromedp.WaitVisible("#unlink"))
	wantText(ctx, t, "#me-e-mail", "carol@example.com")
	do(chromedp.Click("#unlink"), chromedp.WaitVisible("#link"))
	says("Unlinked")

	openMessage("sign-in link") // used up
	wantText(ctx, t, "#title", "That did not work")
	do(shot("problem"))
}

// On a phone, in the dark.
func TestSmallAndDark(t *testing.T) {
	url := start(t)
	ctx := browsertest.New(t, 375, 740, chromedp.Flag("blink-settings", "preferredColorScheme=0"))
	var wide bool
	fits := chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth`, &wide)
	browsertest.Do(ctx, t, chromedp.EmulateViewport(375, 740), chromedp.Navigate(url), chromedp.WaitVisible("#signup"), browsertest.Shot(t, "small-dark-start"), fits)
	if wide {
		t.Error("the page is wider than a phone")
	}
	browsertest.Do(ctx, t, chromedp.Navigate(url+"/auth/v1/magic-link/verify?token=x"), chromedp.WaitVisible("#title"), browsertest.Shot(t, "small-dark-problem"), fits)
	if wide {
		t.Error("the page is wider than a phone")
	}
}

func wantText(ctx context.Context, t *testing.T, selector, want string) {
	t.Helper()
	var got string
	browsertest.Do(ctx, t, chromedp.Text(selector, &got, chromedp.ByQuery))
	if strings.TrimSpace(got) != want {
		t.Errorf("%s says %q, want %q", selector, got, want)
	}
}

func quote(s string) string { return "'" + s + "'" }
