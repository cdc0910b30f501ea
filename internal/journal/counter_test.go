package journal

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

// figures is a store that records each addition.
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

func newTestCounter(now *time.Time) (*Counter, *figures, *alarms, *bytes.Buffer) {
	store, alarm, out := &figures{}, &alarms{}, &bytes.Buffer{}
	return &Counter{
		write: store.write, after: alarm.set, now: func() time.Time { return *now }, log: slog.New(slog.NewTextHandler(out, nil)),
		counts: map[countKey]int64{}, active: map[string]time.Time{}, seen: map[string]bool{}, codeOf: error.Error,
	}, store, alarm, out
}

// Counts belong to the hour of the event. Counts that could not be added are added later,
// for the same hour. Only the first failure is logged.
func TestCountsByHour(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 59, 59, 0, time.UTC)
	first, second := now.Truncate(time.Hour), now.Truncate(time.Hour).Add(time.Hour)
	c, st, alarm, out := newTestCounter(&now)
	st.fault = errors.New("away")
	c.Count(store.MetricLimits, "guesses")
	c.Count(store.MetricLimits, "guesses")
	c.Observe(store.Event{Type: store.EventRefreshed, UserID: "ada", At: now})
	for range 3 {
		alarm.ring()
	}
	if n := strings.Count(out.String(), "cannot add to the statistics"); n != 1 || len(alarm.calls) != 4 || !slices.Equal(slices.Compact(alarm.after), []time.Duration{10 * time.Second}) {
		t.Errorf("told %d times, tries after %v", n, alarm.after)
	}
	now = now.Add(time.Second)
	c.Count(store.MetricLimits, "guesses")
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
	c.Count(store.MetricLimits, "")
	alarm.ring()
	if n := strings.Count(out.String(), "cannot add to the statistics"); n != 2 || len(alarm.calls) != 6 {
		t.Errorf("told %d times, %d calls", n, len(alarm.calls))
	}
	if err := c.Close(t.Context()); err == nil {
		t.Error("closed without what could not be added")
	}
	st.fault = nil
	if err := c.Close(t.Context()); err != nil || len(st.adds) != 2 {
		t.Errorf("%v, %+v", err, st.adds)
	}
	alarm.ring() // the newest call
	if c.Count(store.MetricLimits, ""); len(alarm.calls) != 6 {
		t.Error("it goes on after its end")
	}
}

// Active accounts are counted once a day, in batches, and at most maxActive are stored.
// Events without an account do not count.
func TestActivityIsCountedOnceADay(t *testing.T) {
	now := time.Date(2026, 1, 2, 23, 59, 59, 0, time.UTC)
	c, st, _, _ := newTestCounter(&now)
	seen := func(who string) { c.Observe(store.Event{Type: store.EventRefreshed, UserID: who, At: now}) }
	counted := func() (all map[string]int, batches []int) {
		t.Helper()
		st.adds, all = nil, map[string]int{}
		if err := c.Flush(t.Context()); err != nil {
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
	for i := range maxActive + 1 {
		seen(fmt.Sprint(i))
	}
	if len(c.active) != maxActive || len(c.seen) > maxActive {
		t.Errorf("%d wait, %d are known", len(c.active), len(c.seen))
	}
	if got, batches := counted(); len(got) != maxActive || slices.Max(batches) != activeBatch || len(batches) != maxActive/activeBatch {
		t.Errorf("%d counted, in %d batches", len(got), len(batches))
	}
	none := &Counter{}
	none.Count(store.MetricLimits, "") // a store without statistics
	none.Observe(store.Event{Type: store.EventSignedIn, UserID: "ada", At: now})
	if len(none.counts)+len(none.active) > 0 {
		t.Error("counted for nobody")
	}
}
