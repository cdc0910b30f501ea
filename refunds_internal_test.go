package auth

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// What no guess took along is given back by itself a little later; one call at a
// time is under way for it, however much there is.
func TestReturnsComeByThemselves(t *testing.T) {
	var (
		given []store.Draw
		calls []func()
		fault error
	)
	r := &refunds{
		waiting: map[string]store.Draw{},
		take:    func(_ context.Context, list []store.Draw) error { given = append(given, list...); return fault },
		after: func(d time.Duration, f func()) {
			if d != refundAfter {
				t.Errorf("after %s", d)
			}
			calls = append(calls, f)
		},
	}
	rate := Rate{Burst: 3, Per: time.Hour}
	for range 5 {
		r.add(store.Draw{Key: "a", Rate: rate, Cost: -1}, store.Draw{Key: "off", Cost: -1})
	}
	r.add(store.Draw{Key: "b", Rate: rate, Cost: -2})
	if len(calls) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	if got := r.pick(1, []store.Draw{{Key: "b"}, {Key: "c"}}); len(got) != 1 || got[0].Key != "b" || got[0].Cost != -2 {
		t.Errorf("taken along %+v", got)
	}
	calls[0]()
	if len(given) != 1 || given[0].Key != "a" || given[0].Cost != -3 { // never more than there were
		t.Errorf("given back %+v", given)
	}
	r.add(store.Draw{Key: "a", Rate: rate, Cost: -1})
	fault = errors.New("the store is down")
	if len(calls) != 2 {
		t.Fatalf("%d calls", len(calls))
	}
	calls[1]() // lost
	given, fault = nil, nil
	for i := range refundsAtMost + 10 {
		r.add(store.Draw{Key: fmt.Sprint(i), Rate: rate, Cost: -1})
	}
	if err := r.close(t.Context()); err != nil || len(given) != refundsAtMost {
		t.Errorf("%d at the end, %v", len(given), err)
	}
	r.add(store.Draw{Key: "late", Rate: rate, Cost: -1})
	if len(r.waiting) != 0 {
		t.Error("taken after the end")
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
