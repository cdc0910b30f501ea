package journal

import (
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// These values have no other test. Change the documentation together with them.
func TestConstants(t *testing.T) {
	for what, c := range map[string]struct{ is, want time.Duration }{
		"an event waits for others":                       {recordDelay, time.Second},
		"the longest pause between tries to write events": {recordPause, 30 * time.Second},
		"the statement that writes events":                {recordTimeout, 15 * time.Second},
		"figures wait to be added":                        {countDelay, 10 * time.Second},
		"the statement that adds figures":                 {countTimeout, 15 * time.Second},
	} {
		if c.is != c.want {
			t.Errorf("%s: %s, not %s", what, c.is, c.want)
		}
	}
	for what, c := range map[string]struct{ is, want int }{
		"events of a statement":                               {recordBatch, 256},
		"parts that a batch of events is divided into":        {maxSplitAttempts, 32},
		"refusals of one actor that are recorded in a minute": {maxDeniedPerMinute, 60},
		"accounts of a statement of figures":                  {activeBatch, 1000},
		"bytes of a label in an event":                        {maxLabel, 512},
	} {
		if c.is != c.want {
			t.Errorf("%s: %d, not %d", what, c.is, c.want)
		}
	}
	for n, whole := range map[int]bool{0: true, maxLabel: true, maxLabel + 1: false} {
		text := strings.Repeat("x", n)
		r := boundedRecord(&store.Record{Actor: text, Target: text, RequestID: text})
		if (r.Actor == text && r.Target == text && r.RequestID == text) != whole {
			t.Errorf("a label of %d bytes: %d are kept", n, len(r.Actor))
		}
	}
}
