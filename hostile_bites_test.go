package auth_test

import (
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// promised are the limits that a route says may refuse it.
func promised(t *testing.T) map[string][]string {
	t.Helper()
	return auth.RouteLimits(newWorld(t).Auth)
}

// drawnBy are the limits that the requests of a route draw from, with right
// guesses and with wrong ones.
func drawnBy(t *testing.T, pattern string, spoil sabotage) map[string]bool {
	t.Helper()
	drawn := map[string]bool{}
	for _, r := range hostileRows()[pattern] {
		w := newHostileWorld(t, r)
		right := w.play(trial{row: r, spoil: spoil})
		plays := []*played{right}
		for _, field := range right.fields {
			plays = append(plays, w.play(trial{row: r, wrong: field, spoil: spoil}))
		}
		for _, p := range plays {
			for limit, n := range p.drawn {
				drawn[limit] = drawn[limit] || n > 0
			}
		}
	}
	return drawn
}

// Every route draws from the limits that it says may refuse it, and nobody
// forgets one of them.
func TestHostileStoreDraws(t *testing.T) {
	t.Parallel()
	for pattern, limits := range promised(t) {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			drawn := drawnBy(t, pattern, sabotage{})
			for _, limit := range limits {
				if !drawn[limit] {
					t.Errorf("nothing is drawn from %s", limit)
				}
			}
		})
	}
}

// forgets makes the draws from a limit cost nothing.
func (w *hostileWorld) forgets(limit string) sabotage {
	return sabotage{draws: func(draws []store.Draw) []store.Draw {
		for i := range draws {
			if w.limits[draws[i].Rate.Burst] == limit {
				draws[i].Cost = 0
			}
		}
		return draws
	}}
}

// keepsQuietOf makes changes record no event of a type.
func keepsQuietOf(e auth.EventType) sabotage {
	return sabotage{edit: func(_ string, c *store.Change) {
		c.Events = slices.DeleteFunc(slices.Clone(c.Events), func(o store.OutcomeEvent) bool { return o.Event.Type == e })
	}}
}

// An event that a change forgets is found.
func TestHostileStoreBitesEvents(t *testing.T) {
	if os.Getenv(onPostgres) != "" {
		return // about the test, not about the store
	}
	t.Parallel()
	var mu sync.Mutex
	made, found := map[auth.EventType]bool{}, map[auth.EventType]string{}
	t.Run("mutants", func(t *testing.T) {
		for pattern, rows := range hostileRows() {
			for _, r := range rows {
				t.Run(pattern+" "+r.name+" by "+string(r.kind), func(t *testing.T) {
					t.Parallel()
					w := newHostileWorld(t, r)
					told := map[auth.EventType]bool{}
					for _, way := range w.play(trial{row: r}).changedWays() {
						for _, e := range way.events {
							told[e] = true
						}
					}
					for e := range told {
						mu.Lock()
						open := found[e] == ""
						made[e] = true
						mu.Unlock()
						if !open {
							continue
						}
						if v := changesHaveEvents(w.play(trial{row: r, spoil: keepsQuietOf(e)}), nil); len(v) > 0 {
							mu.Lock()
							found[e] = v[0]
							mu.Unlock()
						}
					}
				})
			}
		}
	})
	for _, e := range slices.Sorted(maps.Keys(made)) {
		if found[e] == "" {
			t.Errorf("a change without %s goes unnoticed", e)
		}
	}
}

// A limit that is forgotten is found: what succeeds was not drawn for, or a wrong
// guess does not stay counted.
func TestHostileStoreBitesDraws(t *testing.T) {
	if os.Getenv(onPostgres) != "" {
		return // about the test, not about the store
	}
	t.Parallel()
	for pattern, limits := range promised(t) {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			open := slices.Clone(limits)
			for _, r := range hostileRows()[pattern] {
				if len(open) == 0 {
					return
				}
				w := newHostileWorld(t, r)
				right := w.refer(r, "", sabotage{})
				refs := []*reference{right}
				for _, field := range right.fields {
					refs = append(refs, w.refer(r, field, sabotage{}))
				}
				open = slices.DeleteFunc(open, func(limit string) bool { return bites(w, limit, refs) })
			}
			for _, limit := range open {
				t.Errorf("%s may be forgotten", limit)
			}
		})
	}
}

// bites tells whether the invariants find that a limit is forgotten by one of the
// requests that draw from it, and, of guesses that are wrong, by each of them.
func bites(w *hostileWorld, limit string, refs []*reference) (found bool) {
	for _, ref := range refs {
		if ref.drawn[limit] == 0 {
			continue
		}
		p := w.play(trial{row: ref.trial.row, wrong: ref.wrong, spoil: w.forgets(limit)})
		if len(successIsDrawn(p, ref)) > 0 {
			found = true
		}
		if ref.wrong != "" && guesses()[ref.wrong] == limit && len(guessesAreCounted(p, ref)) == 0 {
			return false
		}
	}
	return found
}
