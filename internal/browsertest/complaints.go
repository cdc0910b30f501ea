package browsertest

import (
	"context"
	"strings"
	"sync"
	"testing"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Complaints fails the test, when it ends, for whatever the browser complained about
// from now on: messages on its console, exceptions, breaches of a policy.
func Complaints(ctx context.Context, t *testing.T) {
	t.Helper()
	var mu sync.Mutex
	var said []string
	chromedp.ListenTarget(ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch ev := ev.(type) {
		case *runtime.EventConsoleAPICalled:
			said = append(said, "console")
		case *runtime.EventExceptionThrown:
			said = append(said, ev.ExceptionDetails.Error())
		case *cdplog.EventEntryAdded:
			if ev.Entry.Level == cdplog.LevelVerbose { // advice
				return
			}
			if ev.Entry.Source != cdplog.SourceNetwork || !strings.Contains(ev.Entry.Text, "responded with a status of 4") { // a form that was refused
				said = append(said, ev.Entry.Text)
			}
		}
	})
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if len(said) > 0 {
			t.Errorf("the browser says: %s", strings.Join(said, "\n"))
		}
	})
	Do(ctx, t, cdplog.Enable())
}
