package auth_test

import (
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/authmount/auth"
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
	return sabotage{draws: func(draws []auth.Draw) []auth.Draw {
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
	return sabotage{edit: func(_ string, c *auth.Change) {
		c.Events = slices.DeleteFunc(slices.Clone(c.Events), func(o auth.OutcomeEvent) bool { return o.Event.Type == e })
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

// A draw that is forgotten is found, and a wrong guess that it would have
// counted.
func TestHostileStoreBitesDraws(t *testing.T) {
	if os.Getenv(onPostgres) != "" {
		return // about the test, not about the store
	}
	t.Parallel()
	for pattern, limits := range promised(t) {
		for _, limit := range limits {
			t.Run(pattern+" "+limit, func(t *testing.T) {
				t.Parallel()
				w := newHostileWorld(t, hostileRows()[pattern][0])
				if drawnBy(t, pattern, w.forgets(limit))[limit] {
					t.Error("is drawn from in spite of the mutant")
				}
			})
		}
	}
}
