package gather

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// fly makes the calls that wait, until there are none. It belongs to no call, so
// that one that is given up takes no other along.
func (g *Group[A, R]) fly() {
	ended := false
	defer func() {
		if !ended { // Many ended the goroutine
			g.land()
		}
	}()
	for {
		runtime.Gosched() // whoever can run may have a call for this flight
		calls := g.board()
		if calls == nil {
			ended = true
			return
		}
		g.together(calls)
	}
}

// board takes the calls of the next flight, or ends it if there are none.
func (g *Group[A, R]) board() []*Call[A, R] {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), g.conf.Most)
	if n == 0 {
		g.flights--
		return nil
	}
	calls := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	g.departed = time.Since(g.start)
	g.wake(g.departed)
	return calls
}

// together makes calls and tells their callers, whatever becomes of Many.
func (g *Group[A, R]) together(calls []*Call[A, R]) {
	err, fatal := errGone, true
	defer func() {
		if v := recover(); v != nil {
			err, fatal = panicked(v), true
		}
		for _, c := range calls {
			switch {
			case fatal:
				c.err = err
			case err != nil: // refused: nothing was done
				c.settled = false
			}
			close(c.landed)
		}
	}()
	contexts := make([]context.Context, len(calls))
	for i, c := range calls {
		contexts[i] = c.ctx
	}
	failed := g.conf.Many(context.WithValue(context.Background(), callersKey{}, contexts), calls)
	unknown := failed != nil && (g.conf.Refused == nil || !g.conf.Refused(failed))
	err, fatal = failed, unknown
}

// errGone is for a Many that neither returned nor panicked (runtime.Goexit).
var errGone = errors.New("gather: the goroutine of a shared call was ended")

// PanicError is what callers get if their call panicked. It hides the value, even
// if that is an error: a panic is no outcome that a caller could act upon.
type PanicError struct {
	Value any    // of the panic
	Stack []byte // of the goroutine, for the log
}

// Error includes the stack: it is where the mistake is found.
func (e *PanicError) Error() string { return fmt.Sprintf("gather: panic: %v\n\n%s", e.Value, e.Stack) }

func panicked(value any) error { return &PanicError{value, debug.Stack()} }
