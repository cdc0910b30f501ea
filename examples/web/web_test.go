package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/authmount/auth/internal/axetest"
	"github.com/authmount/auth/internal/browsertest"
	"github.com/authmount/auth/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// start builds and runs the program, and returns its URL and a function that stops it.
func start(t *testing.T) (url string, stop func() error) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "web")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(context.Background(), bin, "-addr", "127.0.0.1:0")
	cmd.Env = append(cmd.Environ(), "DATABASE_URL="+pgtest.Database(t))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(line)
	if err != nil || url == "" {
		t.Fatalf("%q: %v", line, err)
	}
	return url, func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return cmd.Wait()
	}
}

// A user with notes: sign up, add a note, sign out, sign in, delete it.
func TestWalk(t *testing.T) {
	url, stop := start(t)
	ctx := browsertest.New(t, 1440, 900)
	do := func(steps ...chromedp.Action) { t.Helper(); browsertest.Do(ctx, t, steps...) }
	at := func(path string) {
		t.Helper()
		do(browsertest.Until(`location.pathname === '` + path + `' && document.readyState === 'complete'`))
	}
	const password = "correct horse battery"
	do(chromedp.Navigate(url))
	at("/account/sign-in")
	do(browsertest.Click(`a[href*="/sign-up"]`))
	at("/account/sign-up")
	do(browsertest.Type("#email", "ada@example.com"), browsertest.Type("#password", password+kb.Enter))
	at("/account/email/code")
	do(browsertest.Click(`.links a[href="/notes"]`))
	at("/notes")
	do(browsertest.Type("#body", "buy milk"), browsertest.Click("main form button"))
	do(browsertest.Until(`document.querySelector('li span')?.textContent === 'buy milk'`))
	axetest.Check(ctx, t, axetest.Source(t), "notes", axetest.Looks(), func(look string) chromedp.Action { return browsertest.Shot(t, look) })
	do(browsertest.Click(`header a`))
	at("/account/")
	do(browsertest.Click(`form[action$="/sign-out"] button`))
	at("/account/signed-out")
	do(chromedp.Navigate(url + "/notes"))
	at("/account/sign-in")
	do(browsertest.Type("#login", "ada@example.com"), browsertest.Type("#password", password+kb.Enter))
	at("/notes")
	do(browsertest.Click("li button"))
	do(browsertest.Until(`document.readyState === 'complete' && document.querySelectorAll('li').length === 0`))
	if err := stop(); err != nil {
		t.Errorf("it does not end in order: %v", err)
	}
}
