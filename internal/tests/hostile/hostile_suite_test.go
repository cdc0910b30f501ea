package hostile_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// promised are the limits that may refuse a route according to its documentation.
func promised(t *testing.T) map[string][]string {
	t.Helper()
	return harness.RouteLimits(harness.NewWorld(t).Auth)
}

// drawnBy are the limits that the requests of a route draw from, with right secrets and with
// wrong ones.
func drawnBy(t *testing.T, pattern string, spoil harness.Sabotage) map[string]bool {
	t.Helper()
	drawn := map[string]bool{}
	for _, r := range harness.HostileRows()[pattern] {
		w := harness.NewHostileWorld(t, r)
		right := w.Play(harness.Trial{Row: r, Spoil: spoil})
		plays := []*harness.Played{right}
		for _, field := range right.Fields {
			plays = append(plays, w.Play(harness.Trial{Row: r, Wrong: field, Spoil: spoil}))
		}
		for _, p := range plays {
			for limit, n := range p.Drawn {
				drawn[limit] = drawn[limit] || n > 0
			}
		}
	}
	return drawn
}

// Every route counts against the limits that its document names, and against no other.
func TestHostileStoreDraws(t *testing.T) {
	t.Parallel()
	named := promised(t)
	for pattern := range harness.HostileRows() {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			drawn := drawnBy(t, pattern, harness.Sabotage{})
			for _, limit := range named[pattern] {
				if !drawn[limit] {
					t.Errorf("nothing is drawn from %s", limit)
				}
			}
			may := named[pattern]
			for row, unseen := range refusedUnseen {
				if strings.HasPrefix(row, pattern+" ") {
					may = append(may, strings.Fields(unseen.limits)...)
				}
			}
			for limit, yes := range drawn {
				if yes && limit != "" && !strings.HasPrefix(limit, "Notices") && !slices.Contains(may, limit) { // notices refuse nobody
					t.Errorf("%s may refuse it, and the document does not say so", limit)
				}
			}
		})
	}
}

// forgets sets the cost of draws from a limit to zero.
func forgets(w *harness.HostileWorld, limit string) harness.Sabotage {
	return harness.Sabotage{Draws: func(draws []store.Draw) []store.Draw {
		for i := range draws {
			if w.Limits[draws[i].Rate.Burst] == limit {
				draws[i].Cost = 0
			}
		}
		return draws
	}}
}

// keepsQuietOf removes events of a type from changes.
func keepsQuietOf(e auth.EventType) harness.Sabotage {
	return harness.Sabotage{Edit: func(_ string, c *store.Change) {
		c.Events = slices.DeleteFunc(slices.Clone(c.Events), func(o store.OutcomeEvent) bool { return o.Event.Type == e })
	}}
}

// An event that a change forgets is found.
func TestHostileStoreBitesEvents(t *testing.T) {
	if harness.OnAnotherStore() {
		return // about the test, not about the store
	}
	t.Parallel()
	var mu sync.Mutex
	made, found := map[auth.EventType]bool{}, map[auth.EventType]string{}
	t.Run("mutants", func(t *testing.T) {
		for pattern, rows := range harness.HostileRows() {
			for _, r := range rows {
				t.Run(pattern+" "+r.Name+" by "+string(r.Kind), func(t *testing.T) {
					t.Parallel()
					w := harness.NewHostileWorld(t, r)
					told := map[auth.EventType]bool{}
					for _, way := range changedWays(w.Play(harness.Trial{Row: r})) {
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
						if v := changesHaveEvents(w.Play(harness.Trial{Row: r, Spoil: keepsQuietOf(e)}), nil); len(v) > 0 {
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

// The invariants detect a limit that is forgotten: a request succeeds without a draw, or a
// wrong attempt does not stay counted.
func TestHostileStoreBitesDraws(t *testing.T) {
	if harness.OnAnotherStore() {
		return // about the test, not about the store
	}
	t.Parallel()
	for pattern, limits := range promised(t) {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			open := slices.Clone(limits)
			for _, r := range harness.HostileRows()[pattern] {
				if len(open) == 0 {
					return
				}
				w := harness.NewHostileWorld(t, r)
				right := refer(w, r, "", harness.Sabotage{})
				refs := []*reference{right}
				for _, field := range right.Fields {
					refs = append(refs, refer(w, r, field, harness.Sabotage{}))
				}
				open = slices.DeleteFunc(open, func(limit string) bool { return bites(w, limit, refs) })
			}
			for _, limit := range open {
				t.Errorf("%s may be forgotten", limit)
			}
		})
	}
}

// bites reports whether the invariants detect a forgotten limit in one of the requests that
// draw from it and, for wrong attempts, in each of them.
func bites(w *harness.HostileWorld, limit string, refs []*reference) (found bool) {
	for _, ref := range refs {
		if ref.Drawn[limit] == 0 {
			continue
		}
		p := w.Play(harness.Trial{Row: ref.Row, Wrong: ref.Wrong, Spoil: forgets(w, limit)})
		if len(successIsDrawn(p, ref)) > 0 {
			found = true
		}
		if ref.Wrong != "" && harness.AttemptFields()[ref.Wrong] == limit && len(guessesAreCounted(p, ref)) == 0 {
			return false
		}
	}
	return found
}
