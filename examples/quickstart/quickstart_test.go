package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth/internal/browsertest"
)

// start builds and runs the program, and returns its URL.
func start(t *testing.T) string {
	t.Helper()
	url, _, _ := launch(t)
	return url
}

// launch runs the program, and returns its further output.
func launch(t *testing.T) (url string, cmd *exec.Cmd, says *bufio.Reader) {
	t.Helper()
	return launchIn(t, t.TempDir(), "127.0.0.1:0")
}

// launchIn is launch in a working directory.
func launchIn(t *testing.T, dir, addr string) (url string, cmd *exec.Cmd, says *bufio.Reader) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "quickstart")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd = exec.CommandContext(t.Context(), bin, "-addr", addr)
	cmd.Dir = dir
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
	return said(t, says, `Open (http://localhost:\d+)`), cmd, says
}

// said returns the first line of output that matches.
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

// The first user becomes the owner with the printed link.
func TestFirstOwnerLink(t *testing.T) {
	url, _, says := launch(t)
	link := said(t, says, `^\s+(http\S+/dashboard/first-owner\?token=\S+)`)
	if !strings.HasPrefix(link, url) {
		t.Errorf("the link is %s", link)
	}
}

// A signal shuts the program down cleanly.
func TestStops(t *testing.T) {
	_, cmd, _ := launch(t)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// The data and the sessions survive a restart, in the working directory.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	url, cmd, says := launchIn(t, dir, "127.0.0.1:0")
	ctx := browsertest.New(t, 900, 1000)
	browsertest.Do(ctx, t, chromedp.Navigate(url), browsertest.Visible("#signup"), browsertest.Type("#su-email", "ada@example.com"),
		browsertest.Type("#su-password", "correct horse battery"), browsertest.Click("#signup button"), browsertest.Visible("#signed-in"))
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, says)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "quickstart.db")); err != nil {
		t.Error(err)
	}
	again, _, _ := launchIn(t, dir, strings.TrimPrefix(url, "http://localhost"))
	if again != url {
		t.Fatalf("%s, then %s", url, again)
	}
	browsertest.Do(ctx, t, chromedp.Navigate(url), browsertest.Visible("#signed-in"))
	wantText(ctx, t, "#me-e-mail", "ada@example.com")
	browsertest.Do(ctx, t, browsertest.Click("#refresh"), browsertest.Until(`document.getElementById('message').textContent.includes('New tokens')`))
}

// A user tries the quickstart: sign up, verify, sign out, reset the password, sign in,
// and use a magic link.
func TestWalk(t *testing.T) {
	url := start(t)
	ctx := browsertest.New(t, 900, 1000)
	do := func(steps ...chromedp.Action) { t.Helper(); browsertest.Do(ctx, t, steps...) }
	shot := func(name string) chromedp.Action { return browsertest.Shot(t, name) }
	says := func(want string) {
		t.Helper()
		do(browsertest.Until(`document.getElementById('message').textContent.includes(` + quote(want) + `)`))
	}
	// openMessage opens the link of the newest message with a subject.
	openMessage := func(subject string) {
		t.Helper()
		do(chromedp.Navigate(url+"/dev/inbox"), browsertest.Click(`//article[contains(h2, "`+subject+`")]//a`), browsertest.Visible("#title"))
	}
	// openNewest opens the link of the newest message.
	openNewest := func(subject string) {
		t.Helper()
		do(chromedp.Navigate(url+"/dev/inbox"), browsertest.Until(`document.querySelector('article h2') && document.querySelector('article h2').textContent.includes(`+quote(subject)+`)`),
			shot("inbox"), browsertest.Click("article .link a"), browsertest.Visible("#title"))
	}

	do(chromedp.Navigate(url), browsertest.Visible("#signup"), shot("start"),
		browsertest.Type("#su-email", "ada@example.com"), browsertest.Type("#su-name", "Ada Lovelace"), browsertest.Type("#su-password", "password"),
		browsertest.Click("#signup button"))
	says("common")
	do(browsertest.SetValue("#su-password", "correct horse battery"), browsertest.Click("#signup button"), browsertest.Visible("#signed-in"),
		browsertest.Visible("#me-confirmed"), shot("signed-in"))
	says("inbox")
	wantText(ctx, t, "#me-confirmed", "not yet")

	openNewest("Confirm")
	do(shot("confirm-email"), browsertest.Type("#password", "correct horse battery"), browsertest.Click(`//form[.//input[@id="password"]]//button`), browsertest.Visible("#signed-in"), browsertest.Visible("#me-confirmed"))
	wantText(ctx, t, "#me-confirmed", "yes")
	says("Your address is confirmed. Next:")
	do(browsertest.Click("#hello"))
	says("Hello ada@example.com")
	do(browsertest.Click("#refresh"))
	says("New tokens")
	do(browsertest.Click("#logout"), browsertest.Visible("#signed-out"))

	do(browsertest.Click("#tab-forgot"), browsertest.Type("#fp-email", "ada@example.com"), browsertest.Click("#forgot button"))
	says("reset link")
	openNewest("Choose a password")
	do(shot("reset-password"), browsertest.Type("#new_password", "qwertyuiop"), browsertest.Click("main button"), browsertest.Visible("#problem"), shot("reset-refused"),
		browsertest.Type("#new_password", "another horse battery"), browsertest.Click("main button"), browsertest.Visible("#signed-out"))
	do(browsertest.Click("#tab-login"), browsertest.Type("#li-email", "ada@example.com"), browsertest.Type("#li-password", "correct horse battery"), browsertest.Click("#login button"))
	says("not right")
	do(browsertest.SetValue("#li-password", "another horse battery"), browsertest.Click("#login button"), browsertest.Visible("#signed-in"),
		browsertest.Click("#logout"), browsertest.Visible("#signed-out"))

	do(browsertest.Click("#tab-magic"), browsertest.Type("#ml-email", "ada@example.com"), browsertest.Click("#magic button"))
	says("sign-in link")
	openNewest("sign-in link")
	do(shot("confirm-sign-in"), browsertest.Click("main button"), browsertest.Visible("#signed-in"))
	says("Signed in by magic link")

	// By phone, on a separate page: the code comes from the inbox's JSON.
	do(browsertest.Click("#logout"), browsertest.Visible("#signed-out"), browsertest.Click("#tab-phone"), browsertest.Type("#ph-phone", "+49 30 123456"),
		browsertest.Click("#ph-button"), browsertest.Visible("#ph-otp"))
	var code string
	do(chromedp.Evaluate(`fetch('/dev/messages').then(r => r.json()).then(l => l[l.length - 1].code)`, &code, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }),
		shot("phone"))
	do(browsertest.Type("#ph-otp", code), browsertest.Click("#ph-button"), browsertest.Visible("#signed-in"), shot("phone-signed-in"))
	says("Signed in by phone")

	// A second factor with a real code generator: enabled after a sign-in by link, then
	// required at sign-in with a password.
	var secret string
	enterCode := func(field string, ahead time.Duration) chromedp.Action { // when its turn comes: the secret is read before
		return chromedp.ActionFunc(func(ctx context.Context) error {
			code, err := totp.GenerateCode(secret, time.Now().Add(ahead))
			if err != nil {
				return err
			}
			return browsertest.Type(field, code).Do(ctx)
		})
	}
	do(browsertest.Click("#logout"), browsertest.Visible("#signed-out"), browsertest.Click("#tab-magic"), browsertest.SetValue("#ml-email", "bob@example.com"), browsertest.Click("#magic button"))
	says("sign-in link")
	openNewest("sign-in link")
	do(browsertest.Click("main button"), browsertest.Visible("#signed-in"), browsertest.Visible("#me-confirmed"),
		browsertest.Click("#mfa-setup"), browsertest.Until(`document.getElementById('mfa-qr').naturalWidth > 100`), browsertest.Text("#mfa-secret", &secret), shot("mfa-setup"),
		enterCode("#mfa-first", 0), browsertest.Click("#mfa-enable button"), browsertest.Visible("#mfa-codes"), shot("mfa-on"))
	says("factor is on")
	do(chromedp.Evaluate(`call('POST', '/me/password', {new_password: 'a third horse battery'})`, nil, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }),
		browsertest.Click("#logout"), browsertest.Visible("#signed-out"), browsertest.Click("#tab-login"), browsertest.SetValue("#li-email", "bob@example.com"),
		browsertest.SetValue("#li-password", "a third horse battery"), browsertest.Click("#login button"), browsertest.Visible("#second"), shot("mfa-asked"),
		enterCode("#mfa-code", 30*time.Second), browsertest.Click("#mfa button"), browsertest.Visible("#signed-in"))
	says("both factors")

	// By a provider: a new user, then canceled, then linked to an account.
	do(browsertest.Click("#logout"), browsertest.Visible("#signed-out"), browsertest.Click("#dev"), browsertest.Visible("input[name=person_email]"),
		shot("provider"), browsertest.SetValue("input[name=person_email]", "eve@example.com"), browsertest.Click("button[value=go]"), browsertest.Visible("#signed-in"), browsertest.Visible("#unlink"))
	says("Signed in by Dev provider")
	wantText(ctx, t, "#me-confirmed", "yes")
	do(shot("provider-signed-in"), browsertest.Click("#unlink"))
	says("last sign-in method")
	do(browsertest.Click("#logout"), browsertest.Visible("#signed-out"), browsertest.Click("#dev"), browsertest.Visible("input[name=person_email]"), browsertest.Click("button[value=cancel]"), browsertest.Visible("#signed-out"))
	says("cancelled")
	do(browsertest.Click("#tab-signup"), browsertest.SetValue("#su-email", "carol@example.com"), browsertest.SetValue("#su-password", "correct horse battery"), browsertest.Click("#signup button"),
		browsertest.Visible("#link"), browsertest.Click("#link"))
	says("Confirm your e-mail address or phone number first")
	openNewest("Confirm")
	do(browsertest.Type("#password", "correct horse battery"), browsertest.Click(`//form[.//input[@id="password"]]//button`), browsertest.Visible("#signed-in"), browsertest.Visible("#link"),
		browsertest.Click("#link"), browsertest.Visible("input[name=person_email]"), browsertest.SetValue("input[name=person_email]", "carol@work.test"),
		browsertest.Click("button[value=go]"), browsertest.Visible("#unlink"))
	wantText(ctx, t, "#me-e-mail", "carol@example.com")
	do(browsertest.Click("#unlink"), browsertest.Visible("#link"))
	says("Unlinked")

	openMessage("sign-in link") // already used
	wantText(ctx, t, "#title", "Something went wrong")
	do(shot("problem"))
}

// A user adds a passkey and signs in with it.
func TestPasskey(t *testing.T) {
	url := start(t)
	ctx := browsertest.New(t, 900, 1000)
	says := func(want string) chromedp.Action {
		return browsertest.Until(`document.getElementById('message').textContent.includes(` + quote(want) + `)`)
	}
	browsertest.Do(ctx, t, webauthn.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := webauthn.AddVirtualAuthenticator(&webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		}).Do(ctx)
		return err
	}))
	browsertest.Do(ctx, t, chromedp.Navigate(url), browsertest.Click("#dev"), browsertest.SetValue("input[name=person_email]", "ada@example.com"), browsertest.Click("button[value=go]"),
		browsertest.Click("#passkey-add"), says("log out and sign in with it"), browsertest.Click("#logout"), browsertest.Click("#passkey"), says("Signed in with a passkey"), browsertest.Visible("#me-confirmed"))
}

// On a phone, in dark mode.
func TestSmallAndDark(t *testing.T) {
	url := start(t)
	ctx := browsertest.New(t, 375, 740, chromedp.Flag("blink-settings", "preferredColorScheme=0"))
	var wide bool
	fits := chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth`, &wide)
	browsertest.Do(ctx, t, chromedp.EmulateViewport(375, 740), chromedp.Navigate(url), browsertest.Visible("#signup"), browsertest.Shot(t, "small-dark-start"), fits)
	if wide {
		t.Error("the page is wider than a phone")
	}
	browsertest.Do(ctx, t, chromedp.Navigate(url+"/auth/v1/magic-link/verify?token=x"), browsertest.Visible("#title"), browsertest.Shot(t, "small-dark-problem"), fits)
	if wide {
		t.Error("the page is wider than a phone")
	}
}

func wantText(ctx context.Context, t *testing.T, selector, want string) {
	t.Helper()
	var got string
	browsertest.Do(ctx, t, browsertest.Text(selector, &got))
	if strings.TrimSpace(got) != want {
		t.Errorf("%s says %q, want %q", selector, got, want)
	}
}

func quote(s string) string { return "'" + s + "'" }
