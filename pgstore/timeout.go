package pgstore

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// patience is the time for which a statement continues after its caller has left. Only
// a statement that waits, for a locked row for instance, takes as long.
const patience = time.Second

// timeouts ends calls that take too long. All calls have the same time limit, so the
// oldest ones expire first, and one timer for the oldest is enough. With
// context.WithTimeout each call would have its own timer. On an idle machine that is
// the next timer of the runtime, which wakes a thread to wait for it; that costs a
// tenth of the time for reading a session.
type timeouts struct {
	mu        sync.Mutex
	all, left line // calls with a caller, and calls that their caller has left
}

// line lists the running calls, from the oldest to the newest.
type line struct {
	oldest, end *bounded
	timer       *time.Timer
	set         bool // the timer is running, though perhaps for no call
}

// bounded is the context of a call with a time limit. Its Err is
// context.DeadlineExceeded afterwards.
//
// It has the caller's values, and ends with the caller's context while the call waits
// to start. A statement that was sent may finish, because cancelling it means closing
// the connection. Callers who cancel requests by the hundred would otherwise make the
// pool open connections anew, which costs far more than the statements.
type bounded struct {
	context.Context //nolint:containedctx // this is a context
	cancel          context.CancelCauseFunc
	caller          context.Context //nolint:containedctx // may end without ending this context
	forget          func() bool     // stops listening to the caller
	state           atomic.Int32
	deadline        time.Time

	// Its place in a line; nil: in none.
	line         *line
	newer, older *bounded
	until        time.Time
	cause        error // the error at until
}

// The states of a bounded.
const (
	waits int32 = iota
	works
	wasLeft // the caller left while the call waited
)

// begin starts the time limit of a call. The caller passes the result to done
// afterwards.
func (t *timeouts) begin(ctx context.Context, most time.Duration) *bounded {
	b := &bounded{caller: ctx}
	b.Context, b.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	t.mu.Lock()
	b.deadline = time.Now().Add(most)
	t.join(&t.all, b, b.deadline, most, context.DeadlineExceeded)
	t.mu.Unlock()
	if ctx.Done() != nil {
		b.forget = context.AfterFunc(ctx, func() { t.leaves(b) })
	}
	return b
}

func (t *timeouts) done(b *bounded) {
	if b.forget != nil {
		b.forget()
	}
	t.mu.Lock()
	t.quit(b)
	t.mu.Unlock()
	b.cancel(nil)
}

// work is called before a statement is sent. After its first call, the end of the
// caller's context no longer ends the call. It returns an error if the call has already
// ended.
func (b *bounded) work() error {
	if b.state.Load() == works {
		return b.Err()
	}
	if err := cmp.Or(b.caller.Err(), b.Err()); err != nil {
		return err
	}
	if !b.state.CompareAndSwap(waits, works) {
		return b.caller.Err()
	}
	return nil
}

// leaves is called when the caller's context ends.
func (t *timeouts) leaves(b *bounded) {
	if b.state.CompareAndSwap(waits, wasLeft) {
		b.cancel(b.caller.Err())
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	until := time.Now().Add(patience)
	if b.line == nil || b.until.Before(until) {
		return // finished, or about to expire
	}
	t.quit(b)
	t.join(&t.left, b, until, patience, b.caller.Err())
}

// join appends a call to a line. t.mu is held.
func (t *timeouts) join(l *line, b *bounded, until time.Time, most time.Duration, cause error) {
	b.line, b.until, b.cause = l, until, cause
	if b.older = l.end; b.older == nil {
		l.oldest = b
	} else {
		b.older.newer = b
	}
	l.end = b
	switch {
	case l.set: // for an older call, so it fires early enough
	case l.timer == nil:
		l.timer = time.AfterFunc(most, func() { t.expire(l) })
	default:
		l.timer.Reset(most)
	}
	l.set = true
}

// quit removes a call from its line. t.mu is held.
func (t *timeouts) quit(b *bounded) {
	l := b.line
	if l == nil {
		return
	}
	if b.older == nil {
		l.oldest = b.newer
	} else {
		b.older.newer = b.newer
	}
	if b.newer == nil {
		l.end = b.older
	} else {
		b.newer.older = b.older
	}
	b.line, b.older, b.newer = nil, nil, nil
}

// expire ends the calls of a line that have reached their time limit.
func (t *timeouts) expire(l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for b := l.oldest; b != nil && !now.Before(b.until); b = l.oldest {
		t.quit(b)
		b.cancel(b.cause)
	}
	if l.set = l.oldest != nil; l.set {
		l.timer.Reset(l.oldest.until.Sub(now))
	}
}

// Deadline implements context.Context.
func (b *bounded) Deadline() (time.Time, bool) { return b.deadline, true }

// Err implements context.Context.
func (b *bounded) Err() error {
	if b.Context.Err() == nil {
		return nil
	}
	return context.Cause(b.Context)
}
