package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// figures is a store of figures that keeps each addition as it comes.
type figures struct {
	adds  []store.AddCounts
	fault error
}

func (f *figures) write(_ context.Context, c store.AddCounts) error {
	if f.fault != nil {
		return f.fault
	}
	f.adds = append(f.adds, c)
	return nil
}

func newTestCounter(now *time.Time) (*counter, *figures, *alarms, *bytes.Buffer) {
	store, alarm, out := &figures{}, &alarms{}, &bytes.Buffer{}
	return &counter{
		write: store.write, after: alarm.set, now: func() time.Time { return *now }, log: slog.New(slog.NewTextHandler(out, nil)),
		counts: map[counted]int64{}, active: map[string]time.Time{}, seen: map[string]bool{},
	}, store, alarm, out
}

// Figures are of the hour in which something happened; what could not be added is
// added later, as much and of the same hour, and whoever runs the service is told once
// until it can be again.
func TestFiguresAreOfTheirHour(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 59, 59, 0, time.UTC)
	first, second := now.Truncate(time.Hour), now.Truncate(time.Hour).Add(time.Hour)
	c, st, alarm, out := newTestCounter(&now)
	st.fault = errors.New("away")
	c.count(store.MetricLimits, "guesses")
	c.count(store.MetricLimits, "guesses")
	c.event(Event{Type: EventRefreshed, UserID: "ada", At: now})
	for range 3 {
		alarm.ring()
	}
	if n := strings.Count(out.String(), "figures not added"); n != 1 || len(alarm.calls) != 4 || !slices.Equal(slices.Compact(alarm.after), []time.Duration{10 * time.Second}) {
		t.Errorf("told %d times, tries after %v", n, alarm.after)
	}
	now = now.Add(time.Second)
	c.count(store.MetricLimits, "guesses")
	st.fault = nil
	alarm.ring()
	if len(st.adds) != 1 {
		t.Fatalf("%+v", st.adds)
	}
	got := st.adds[0]
	slices.SortFunc(got.Counts, func(a, b store.Count) int { return a.At.Compare(b.At) })
	want := store.AddCounts{Counts: []store.Count{{Metric: store.MetricLimits, Label: "guesses", At: first, N: 2}, {Metric: store.MetricLimits, Label: "guesses", At: second, N: 1}}, Active: []store.Activity{{UserID: "ada", At: now.Add(-time.Second)}}}
	if !reflect.DeepEqual(got, want) || len(alarm.calls) != 4 {
		t.Errorf("%+v\nwant %+v, %d calls", got, want, len(alarm.calls))
	}
	st.fault = errors.New("away")
	c.count(store.MetricLimits, "")
	alarm.ring()
	if n := strings.Count(out.String(), "figures not added"); n != 2 || len(alarm.calls) != 6 {
		t.Errorf("told %d times, %d calls", n, len(alarm.calls))
	}
	if err := c.close(t.Context()); err == nil {
		t.Error("closed without what could not be added")
	}
	st.fault = nil
	if err := c.close(t.Context()); err != nil || len(st.adds) != 2 {
		t.Errorf("%v, %+v", err, st.adds)
	}
	alarm.ring() // the last one that was set
	if c.count(store.MetricLimits, ""); len(alarm.calls) != 6 {
		t.Error("it goes on after its end")
	}
}

// Who was active is counted once a day, by batches, and no more of them are remembered
// than there is room for; nobody in particular is nobody.
func TestActivityIsCountedOnceADay(t *testing.T) {
	now := time.Date(2026, 1, 2, 23, 59, 59, 0, time.UTC)
	c, st, _, _ := newTestCounter(&now)
	seen := func(who string) { c.event(Event{Type: EventRefreshed, UserID: who, At: now}) }
	counted := func() (all map[string]int, batches []int) {
		t.Helper()
		st.adds, all = nil, map[string]int{}
		if err := c.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, add := range st.adds {
			batches = append(batches, len(add.Active))
			for _, a := range add.Active {
				all[a.UserID]++
			}
		}
		return all, batches
	}
	for _, who := range []string{"ada", "", "bob", "ada"} {
		seen(who)
	}
	if got, _ := counted(); !maps.Equal(got, map[string]int{"ada": 1, "bob": 1}) {
		t.Errorf("counted %v", got)
	}
	if seen("ada"); len(c.active) != 0 {
		t.Error("counted twice on a day")
	}
	now = now.Add(time.Second)
	seen("ada")
	if got, _ := counted(); !maps.Equal(got, map[string]int{"ada": 1}) {
		t.Errorf("counted on the next day %v", got)
	}
	for i := range activeAtMost + 1 {
		seen(fmt.Sprint(i))
	}
	if len(c.active) != activeAtMost || len(c.seen) > activeAtMost {
		t.Errorf("%d wait, %d are known", len(c.active), len(c.seen))
	}
	if got, batches := counted(); len(got) != activeAtMost || slices.Max(batches) != activeBatch || len(batches) != activeAtMost/activeBatch {
		t.Errorf("%d counted, in %d batches", len(got), len(batches))
	}
	none := &counter{}
	none.count(store.MetricLimits, "") // of a store that keeps none
	none.event(Event{Type: EventSignedIn, UserID: "ada", At: now})
	if len(none.counts)+len(none.active) > 0 {
		t.Error("counted for nobody")
	}
	if got := codeOf(errors.New("x")); got != string(CodeInternal) {
		t.Errorf("an error without a code counts as %s", got)
	}
}

// A decision is about what is drawn, and not about what is given back with it, which
// goes back to those that wait where nothing came of it; an error loses it.
func TestDecisionsAreAboutWhatIsDrawn(t *testing.T) {
	rate := Rate{Burst: 5, Per: time.Hour}
	draw := func(key string, cost int) store.Draw { return store.Draw{Key: key, Rate: rate, Cost: cost} }
	for name, c := range map[string]struct {
		d    store.Decision
		err  error
		n    int
		took []store.Draw
		want store.Decision
		left int
	}{
		"allowed":          {store.Decision{Allowed: true, Remaining: []int{5, 4, 3, 2}}, nil, 2, []store.Draw{draw("a", -1), draw("z", -2), draw("a", 1), draw("b", 1)}, store.Decision{Allowed: true, Remaining: []int{3, 2}}, 0},
		"refused":          {store.Decision{Remaining: []int{5, 4, 0, 2}, RetryAfter: time.Minute}, nil, 2, []store.Draw{draw("a", -1), draw("z", -2), draw("a", 1), draw("b", 1)}, store.Decision{Remaining: []int{0, 2}, RetryAfter: time.Minute}, 2},
		"of its own alone": {store.Decision{Allowed: true, Remaining: []int{5, 3, 2}}, nil, 1, []store.Draw{draw("a", -1), draw("a", 1), draw("b", 1)}, store.Decision{Allowed: true, Remaining: []int{3, 2}}, 1},
		"without numbers":  {store.Decision{Allowed: true}, nil, 2, []store.Draw{draw("a", -1), draw("z", -2), draw("a", 1), draw("b", 1)}, store.Decision{Allowed: true, Remaining: nil}, 0},
		"failed":           {store.Decision{}, errors.New("away"), 2, []store.Draw{draw("a", -1), draw("z", -2), draw("a", 1), draw("b", 1)}, store.Decision{}, 0},
	} {
		var took []store.Draw
		st := &drawing{take: func(draws []store.Draw) (store.Decision, error) { took = slices.Clone(draws); return c.d, c.err }}
		a := &Auth{store: st, cfg: config{now: time.Now}}
		a.refunds = a.newRefunds()
		a.refunds.after = func(time.Duration, func()) {}
		a.refunds.add(draw("a", -1), draw("z", -2))
		got, err := a.takeWithRefunds(t.Context(), []store.Draw{draw("a", 1), draw("b", 1)}, c.n)
		if !errors.Is(err, c.err) || !reflect.DeepEqual(got, c.want) || !slices.Equal(took, c.took) || len(a.refunds.waiting) != c.left {
			t.Errorf("%s: %+v, %v; took %+v, %d wait", name, got, err, took, len(a.refunds.waiting))
		}
	}
}
