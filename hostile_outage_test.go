package auth_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth/internal/storetap"
)

// Whichever call of a request fails, nobody is refused as if it were for something
// that they did: they may try again, or it was done without what failed.
func TestOutagesAreNoRefusals(t *testing.T) {
	t.Parallel()
	if os.Getenv(onPostgres) != "" {
		return // what a call returns that fails is the tap's, whatever the store
	}
	for _, pattern := range slices.Sorted(maps.Keys(hostileRows())) {
		for _, r := range hostileRows()[pattern] {
			t.Run(pattern+" "+r.name+" by "+string(r.kind), func(t *testing.T) {
				t.Parallel()
				w := newHostileWorld(t, r)
				ref := w.refer(r, "", sabotage{})
				for k := 1; k <= ref.n; k++ {
					p := w.play(trial{row: r, fault: storetap.FailsBefore, k: k})
					got, want := resultOf(p.answer()), resultOf(ref.answer())
					if p.hit && got != want && got != "303 unavailable" && !strings.HasPrefix(got, "503") {
						t.Errorf("%s: answers %s", p.trial, got)
					}
				}
			})
		}
	}
}
