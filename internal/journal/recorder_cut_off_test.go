package journal

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/authmount/auth/store"
)

// Events survive a canceled write and keep waiting: at the first attempt, while a batch is
// split, or when rejected events are written again.
func TestCanceledWritesLoseNothing(t *testing.T) {
	list := []store.Event{{ID: "1", Type: store.EventAdminDenied}, {ID: "2", Type: store.EventAdminDenied}, {ID: "bad", Type: store.EventAdminDenied}, {ID: "4", Type: store.EventAdminDenied}}
	refused := errors.New("refused")
	tries := 0
	write := func(part []store.Event) error {
		tries++
		if slices.ContainsFunc(part, func(e store.Event) bool { return e.ID == "bad" }) {
			return refused
		}
		return nil
	}
	whole, _, _, _ := newTestRecorder()
	whole.write = func(_ context.Context, part []store.Event) error { return write(part) }
	whole.waiting = slices.Clone(list)
	if err := whole.Flush(t.Context()); err != nil || whole.Lost() != 1 || len(whole.waiting) != 0 {
		t.Fatalf("%v, %d lost, %d wait", err, whole.Lost(), len(whole.waiting))
	}
	calls := tries
	if calls < 5 {
		t.Fatalf("only %d calls", calls)
	}
	for k := 1; k <= calls; k++ {
		r, _, _, _ := newTestRecorder()
		ctx, cut := context.WithCancel(t.Context())
		tries = 0
		r.write = func(ctx context.Context, part []store.Event) error {
			err := write(part)
			if tries == k {
				cut()
			}
			if ctx.Err() != nil && err == nil && tries > k {
				err = ctx.Err()
			}
			return err
		}
		r.waiting = slices.Clone(list)
		err := r.Flush(ctx)
		cut()
		if err == nil || len(r.waiting) != len(list) || r.Lost() != 0 || tries > k+1 { // at most one call after the cancellation
			t.Errorf("cut off at call %d: %v, %d wait, %d lost, %d calls", k, err, len(r.waiting), r.Lost(), tries)
		}
	}
}
