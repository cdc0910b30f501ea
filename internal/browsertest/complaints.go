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

// FailOnErrors fails the test at its end if the browser reported anything since this call:
// console messages, exceptions, violations of a policy.
func FailOnErrors(ctx context.Context, t *testing.T) {
	t.Helper()
	var mu sync.Mutex
	var messages []string
	chromedp.ListenTarget(ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch ev := ev.(type) {
		case *runtime.EventConsoleAPICalled:
			messages = append(messages, "console")
		case *runtime.EventExceptionThrown:
			messages = append(messages, ev.ExceptionDetails.Error())
		case *cdplog.EventEntryAdded:
			switch {
			case ev.Entry.Level == cdplog.LevelVerbose: // advice
				return
			case strings.HasPrefix(ev.Entry.Text, "Autofocus processing was blocked because a document already has a focused element"): // the test was faster than the page
				return
			}
			if ev.Entry.Source != cdplog.SourceNetwork || !strings.Contains(ev.Entry.Text, "responded with a status of 4") { // a rejected form
				messages = append(messages, ev.Entry.Text)
			}
		}
	})
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if len(messages) > 0 {
			t.Errorf("the browser reports: %s", strings.Join(messages, "\n"))
		}
	})
	Do(ctx, t, cdplog.Enable())
}
