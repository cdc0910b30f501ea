package auth

import (
	"context"
	"errors"
	"fmt"
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
