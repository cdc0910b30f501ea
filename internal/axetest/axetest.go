// Package axetest checks the accessibility of a page with axe-core in a real browser.
// scripts/ensure-axe.sh installs axe-core.
package axetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Source returns the text of axe-core. It fails the test if axe-core is not installed.
func Source(t *testing.T) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	b, err := os.ReadFile(filepath.Join(filepath.Dir(here), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatalf("axe-core is missing: run scripts/ensure-axe.sh (make test does): %v", err)
	}
	return string(b)
}

// run runs the rules of WCAG 2.2, levels A and AA.
const run = `axe.run(document, {
	runOnly: {type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22a', 'wcag22aa']},
	rules: {'target-size': {enabled: true}},
	resultTypes: ['violations'],
}).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.target.join(' ') + ': ' + n.failureSummary)).join('\n') +
	(document.documentElement.scrollWidth > innerWidth ? '\nthe page is wider than the window' : ''))`

// Look is a way to display a page.
type Look struct {
	Scheme        string // "light" or "dark"
	Width, Height int64
}

// Looks returns a phone, a tablet and a desktop, each in dark and in light.
func Looks() []Look {
	var all []Look
	for _, scheme := range []string{"dark", "light"} {
		all = append(all, Look{scheme, 320, 640}, Look{scheme, 768, 1024}, Look{scheme, 1440, 900})
	}
	return all
}

// Check checks the current page in all looks, and leaves it in the last one. each, which
// may be nil, is called for every look.
func Check(ctx context.Context, t *testing.T, axe, name string, looks []Look, each func(look string) chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, chromedp.Evaluate(axe+";0", nil)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, l := range looks {
		look := fmt.Sprintf("%s-%s-%d", name, l.Scheme, l.Width)
		var found string
		steps := []chromedp.Action{
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.Scheme}}),
			chromedp.EmulateViewport(l.Width, l.Height),
			chromedp.Evaluate(run, &found, func(p *cdpruntime.EvaluateParams) *cdpruntime.EvaluateParams { return p.WithAwaitPromise(true) }),
		}
		if each != nil {
			steps = append(steps, each(look))
		}
		if err := chromedp.Run(ctx, steps...); err != nil {
			t.Fatalf("%s: %v", look, err)
		}
		if found = strings.TrimSpace(found); found != "" {
			t.Errorf("%s:\n%s", look, found)
		}
	}
}
