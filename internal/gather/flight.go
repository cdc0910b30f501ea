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

// run makes the waiting calls until there are none. It does not run on a caller's
// goroutine, so that a canceled call does not affect others.
func (g *Group[A, R]) run() {
	ended := false
	defer func() {
		if !ended { // Many exited the goroutine
			g.finish()
		}
	}()
	for {
		runtime.Gosched() // other goroutines may add calls to this flight
		calls := g.takeWaiting()
		if calls == nil {
			ended = true
			return
		}
		g.callMany(calls)
	}
}

// takeWaiting removes the calls of the next flight from the queue, or ends the flight if there
// are none.
func (g *Group[A, R]) takeWaiting() []*Call[A, R] {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), g.conf.MaxCalls)
	if n == 0 {
		g.flights--
		return nil
	}
	calls := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	g.lastStart = time.Since(g.start)
	g.scheduleNext(g.lastStart)
	return calls
}

// callMany makes the calls with Many and reports the results to their callers, even if
// Many panics.
func (g *Group[A, R]) callMany(calls []*Call[A, R]) {
	err, fatal := errExited, true
	defer func() {
		if v := recover(); v != nil {
			err, fatal = panicked(v), true
		}
		for _, c := range calls {
			switch {
			case fatal:
				c.err = err
			case err != nil: // refused: no call had an effect
				c.returned = false
			}
			close(c.done)
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

// errExited is the result if Many neither returned nor panicked (runtime.Goexit).
var errExited = errors.New("gather: the goroutine of a shared call exited")

// PanicError is the error of a call that panicked. It does not unwrap the value, even if
// that is an error, because a panic is not an outcome that callers can handle.
type PanicError struct {
	Value any    // value of the panic
	Stack []byte // stack of the goroutine, for the log
}

// Error includes the stack, which shows the location of the bug.
func (e *PanicError) Error() string { return fmt.Sprintf("gather: panic: %v\n\n%s", e.Value, e.Stack) }

func panicked(value any) error { return &PanicError{value, debug.Stack()} }
