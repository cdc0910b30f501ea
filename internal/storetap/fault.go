package storetap

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/authmount/auth/store"
)

// Fault is a failure of a call.
type Fault string

// The faults. The caller leaves by canceling the context with Hooks.Leave. The store
// decides how the call ends.
const (
	NoFault      Fault = ""
	LeavesBefore Fault = "the caller leaves before it"
	LeavesDuring Fault = "the caller leaves while it runs"
	LeavesAfter  Fault = "the caller leaves after it"
	FailsBefore  Fault = "it fails without an effect"
	FailsAfter   Fault = "its answer is lost" // after the effect
	Waits        Fault = "it waits"           // until Hooks.Release is closed or the context ends
)

// Faults returns all faults.
func Faults() []Fault {
	return []Fault{LeavesBefore, LeavesDuring, LeavesAfter, FailsBefore, FailsAfter, Waits}
}

// ErrFault is the error of a failed call.
var ErrFault = errors.New("storetap: the store cannot be reached")

// begin applies a fault to a call that is about to start. It returns the function to run
// at the call's end.
func (h *Hooks) begin(f Fault, ctx *context.Context) (end func(err *error, results []any)) {
	end = func(*error, []any) {}
	switch f {
	case LeavesBefore:
		h.Leave()
	case LeavesDuring:
		l := &leaving{Context: *ctx, leave: h.Leave}
		*ctx = l
		end = func(*error, []any) { l.once.Do(h.Leave) }
	case LeavesAfter:
		end = func(*error, []any) { h.Leave() }
	case FailsBefore:
		// A store does nothing for a canceled context.
		over, cancel := context.WithCancel(*ctx)
		cancel()
		*ctx = over
		end = lose
	case FailsAfter:
		end = lose
	case Waits:
		select {
		case <-h.Release:
		case <-(*ctx).Done():
		}
	}
	return end
}

// lose replaces all results of a call by ErrFault.
func lose(err *error, results []any) {
	*err = ErrFault
	for _, r := range results {
		reflect.ValueOf(r).Elem().SetZero()
	}
}

// leaving is a context that leaves when the call checks it for the second time. The first
// check is at the call's start, the second during its work.
type leaving struct {
	context.Context
	leave func()

	mu   sync.Mutex
	seen bool
	once sync.Once
}

func (l *leaving) looked() {
	l.mu.Lock()
	seen := l.seen
	l.seen = true
	l.mu.Unlock()
	if seen {
		l.once.Do(l.leave)
	}
}

func (l *leaving) Done() <-chan struct{} {
	l.looked()
	return l.Context.Done()
}

func (l *leaving) Err() error {
	l.looked()
	return l.Context.Err()
}

// taken returns the hooks that Take runs in addition to every call's hooks.
func (t *Tap) taken(ctx context.Context) (edit func([]store.Draw) []store.Draw, took func([]store.Draw, store.Decision)) {
	t.mu.Lock()
	h := t.hooks
	t.mu.Unlock()
	edit, took = h.Draws, h.Took
	if edit == nil || ctx.Value(insideKey{}) != nil {
		edit = func(d []store.Draw) []store.Draw { return d }
	}
	if took == nil || ctx.Value(insideKey{}) != nil {
		took = func([]store.Draw, store.Decision) {}
	}
	return edit, took
}
