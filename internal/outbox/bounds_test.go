package outbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// These values have no other test. Change the documentation together with them.
func TestConstants(t *testing.T) {
	for what, c := range map[string]struct{ is, want time.Duration }{
		"between two looks for messages, about":          {claimEvery, 5 * time.Second},
		"the least for which a message is one process's": {minLease, time.Minute},
		"a statement about messages":                     {storeCall, 10 * time.Second},
		"a message that failed can be sent again":        {failedRetention, 24 * time.Hour},
	} {
		if c.is != c.want {
			t.Errorf("%s: %s, not %s", what, c.is, c.want)
		}
	}
	for what, c := range map[string]struct{ is, want int }{
		"messages that are claimed at once":    {claimBatch, 100},
		"bytes that a message is filled up to": {sealedSize, 1024},
	} {
		if c.is != c.want {
			t.Errorf("%s: %d, not %d", what, c.is, c.want)
		}
	}
}

// Values at a limit are accepted, values beyond it are not.
func TestLimits(t *testing.T) {
	xs := func(n int) string { return strings.Repeat("x", max(n, 0)) }
	private := func(n int) string { return ("en-x" + strings.Repeat("-aaaaaaaa", 10))[:n] } // a language tag of length n
	text := func(name string) func(int) bool {
		return func(n int) bool { return checkText(name, xs(n)) == nil }
	}
	for what, c := range map[string]struct {
		takes       func(n int) bool
		least, most int
	}{
		"a subject of a mail":       {text("magic_link.subject"), 1, 150},
		"an introduction of a mail": {text("magic_link.intro"), 1, 1000},
		"a footer":                  {text("footer"), 1, 1000},
		"a language of such a text": {func(n int) bool { return isLanguage(private(n)) }, 0, 16},
		"such texts": {func(n int) bool {
			texts := map[string]string{}
			for i := range n {
				texts[fmt.Sprintf("footer.en-x-%d", i)] = "x"
			}
			return CheckTexts(texts) == nil
		}, 0, 200},
		"a name in a mail":      {func(n int) bool { return n == 0 || SafeName(strings.Repeat("ü", n)) != "" }, 0, 60},
		"an error of a message": {func(n int) bool { return (&queuedMessage{}).storedError(errors.New(xs(n))) == xs(n) }, 0, 500},
	} {
		if c.least > 0 && (c.takes(c.least-1) || !c.takes(c.least)) {
			t.Errorf("%s: %d is not the least", what, c.least)
		}
		if !c.takes(c.most) || c.takes(c.most+1) {
			t.Errorf("%s: %d is not the most", what, c.most)
		}
	}
}
