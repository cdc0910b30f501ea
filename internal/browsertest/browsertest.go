// Package browsertest drives a real browser in tests: an installed headless Chromium.
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// testTimeout limits a whole test. The longest fill dozens of forms or view dozens of
// screens, under the race detector and next to other tests.
const testTimeout = 5 * time.Minute

// New opens a window of the given size. Without a browser it fails the test instead of
// skipping it.
func New(t *testing.T, width, height int, flags ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	profile, err := os.MkdirTemp("", "browsertest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) }) // the browser may still be writing: ignore the error
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(width, height),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.UserDataDir(profile))
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(opts, flags...)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Run(ctx); err != nil { // the first Run starts the browser, which stops with its context
		t.Fatal(err)
	}
	return ctx
}

func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("the browser tests need Chromium: install the package chromium (make test does where it can)")
	return ""
}

// Do runs steps. It fails the test at the first one that fails, with the text of the
// page.
func Do(ctx context.Context, t *testing.T, steps ...chromedp.Action) {
	t.Helper()
	walk := ctx
	if end, ok := ctx.Deadline(); ok { // keeps time to read the page after a failure
		var cancel context.CancelFunc
		walk, cancel = context.WithDeadline(ctx, end.Add(-2*answerWithin))
		defer cancel()
	}
	if err := chromedp.Run(walk, steps...); err != nil {
		var text string
		short, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		_ = chromedp.Run(short, Text("body", &text))
		t.Fatalf("%v; the page shows:\n%s", err, text)
	}
}

// Until waits until an expression is true on the current page. Unlike chromedp.Poll it
// survives a navigation that replaces the page during the poll.
func Until(expression string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var holds bool
			short, cancel := context.WithTimeout(ctx, answerWithin) // a page that was replaced may never answer
			err := chromedp.Evaluate(`Boolean(`+expression+`)`, &holds).Do(short)
			late := short.Err() != nil && ctx.Err() == nil
			cancel()
			var gone *cdproto.Error
			var throws *runtime.ExceptionDetails
			switch {
			case err == nil && holds:
				return nil
			case err != nil && !late && !errors.As(err, &gone) && !errors.As(err, &throws): // an error of the browser, not of the page
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s: %w", expression, ctx.Err())
			case <-tick.C:
			}
		}
	})
}

// Shot saves a screenshot of the page, if AUTH_TEST_SCREENSHOTS names a folder.
func Shot(t *testing.T, name string) chromedp.Action {
	t.Helper()
	dir := os.Getenv("AUTH_TEST_SCREENSHOTS")
	return chromedp.ActionFunc(func(ctx context.Context) error {
		if dir == "" {
			return nil
		}
		var png []byte
		if err := chromedp.CaptureScreenshot(&png).Do(ctx); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600) //nolint:gosec // a folder named by the developer
	})
}
