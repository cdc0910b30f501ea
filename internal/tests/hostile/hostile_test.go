package hostile_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
)

// A new route without a row fails.
func TestHostileStoreIsWhole(t *testing.T) {
	t.Parallel()
	routes, rows := harness.Routes(harness.NewWorld(t).Auth), harness.HostileRows()
	for _, pattern := range routes {
		if len(rows[pattern]) == 0 {
			t.Errorf("%s: what if its store fails?", pattern)
		}
	}
	for pattern := range rows {
		if !slices.Contains(routes, pattern) {
			t.Errorf("%s is no route", pattern)
		}
	}
}

// chances are the trials of a row of n store calls that a run takes.
func chances(t *testing.T) func(t *testing.T, n int) []harness.Trial {
	t.Helper()
	all := func(_ *testing.T, n int) (list []harness.Trial) {
		for k := 1; k <= n; k++ {
			for _, f := range storetap.Faults() {
				list = append(list, harness.Trial{Fault: f, K: k})
			}
		}
		return list
	}
	if harness.All() {
		return all
	}
	some := 6
	if harness.OnAnotherStore() {
		some = 1
	}
	seed := harness.DrawSeed(t)
	return func(t *testing.T, n int) []harness.Trial {
		t.Helper()
		list, rnd := all(t, n), harness.Sampler(t, seed)
		rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list[:min(some, len(list))]
	}
}

// refer plays a row undisturbed.
func refer(w *harness.HostileWorld, r harness.Row, wrong string, spoil harness.Sabotage) *reference {
	ref := &reference{Played: w.Play(harness.Trial{Row: r, Wrong: wrong, Spoil: spoil})}
	ref.then = again(ref.Played)
	return ref
}

// violations are the invariants that a trial violates.
func violations(p *harness.Played, ref *reference) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(invariants())) {
		for _, v := range invariants()[name](p, ref) {
			list = append(list, fmt.Sprintf("%s, answered %s: %s: %s", p.Trial, harness.CodeOf(p.Answer()), name, v))
		}
	}
	return list
}

func TestHostileStore(t *testing.T) { // not parallel: it counts goroutines
	before := runtime.NumGoroutine()
	draw := chances(t)
	t.Run("rows", func(t *testing.T) { playAll(t, draw) })
	harness.Settled(t, before)
}

func playAll(t *testing.T, draw func(t *testing.T, n int) []harness.Trial) {
	t.Helper()
	for _, pattern := range slices.Sorted(maps.Keys(harness.HostileRows())) {
		for _, r := range harness.HostileRows()[pattern] {
			t.Run(pattern+" "+r.Name+" by "+string(r.Kind), func(t *testing.T) {
				t.Parallel()
				w := harness.NewHostileWorld(t, r)
				ref := refer(w, r, "", harness.Sabotage{})
				acts := r.Acts()
				for i, tr := range draw(t, ref.N) {
					tr.Row = r
					p := w.Play(tr)
					for _, v := range violations(p, ref) {
						t.Error(v)
					}
					if len(acts) == 0 {
						continue
					}
					a := acts[i%len(acts)]
					for _, v := range outlives(p, a) {
						t.Errorf("%s, answered %s, then %s: something outlives what it rested on: %s", tr, harness.CodeOf(p.Answer()), a, v)
					}
				}
			})
		}
	}
}
