package pgstore

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// patience is for how long a statement goes on whose caller has gone. Only one
// that waits, for a row that is locked for instance, takes as long.
const patience = time.Second

// timeouts ends calls that take too long. All of them may take equally long, so
// that those that began first are over first, and one timer, set for the oldest,
// does for all. With context.WithTimeout each call has a timer of its own; where
// little else goes on that is the first to go off, and the runtime wakes a thread
// to wait for it, which costs a tenth of what reading a session takes.
type timeouts struct {
	mu        sync.Mutex
	all, left line // those with a caller, those whose caller has gone
}

// line is the calls under way, from the oldest to the newest.
type line struct {
	oldest, end *bounded
	timer       *time.Timer
	set         bool // the timer will go off, though perhaps for nobody
}

// bounded is the context of a call that must not take too long. Its Err is
// context.DeadlineExceeded after that.
//
// It has the caller's values, and ends with the caller's context while the call
// waits to begin. A statement that is on its way is let finish: ending it means to
// close the connection, so that whoever gives requests up by the hundred would
// have the pool open connections anew, which costs far more than the statements.
type bounded struct {
	context.Context //nolint:containedctx // this is a context
	cancel          context.CancelCauseFunc
	caller          context.Context //nolint:containedctx // what ends without ending this one
	forget          func() bool     // stops listening to the caller
	state           atomic.Int32
	deadline        time.Time

	// Of the line that it is in; nil: in none.
	line         *line
	newer, older *bounded
	until        time.Time
	cause        error // why it ends then
}

// The states of a bounded.
const (
	waits int32 = iota
	works
	wasLeft // while it waited
)

// begin bounds a call, which has to be given to done when it is over.
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

// work is called before a statement is sent. From the first on the call outlasts
// its caller. It returns an error if the call has ended before.
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

// leaves is called once the caller of a call has gone.
func (t *timeouts) leaves(b *bounded) {
	if b.state.CompareAndSwap(waits, wasLeft) {
		b.cancel(b.caller.Err())
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	until := time.Now().Add(patience)
	if b.line == nil || b.until.Before(until) {
		return // over, or about to be
	}
	t.quit(b)
	t.join(&t.left, b, until, patience, b.caller.Err())
}

// join puts a call at the end of a line. t.mu is held.
func (t *timeouts) join(l *line, b *bounded, until time.Time, most time.Duration, cause error) {
	b.line, b.until, b.cause = l, until, cause
	if b.older = l.end; b.older == nil {
		l.oldest = b
	} else {
		b.older.newer = b
	}
	l.end = b
	switch {
	case l.set: // for an older call, so that it goes off early enough
	case l.timer == nil:
		l.timer = time.AfterFunc(most, func() { t.expire(l) })
	default:
		l.timer.Reset(most)
	}
	l.set = true
}

// quit takes a call off its line. t.mu is held.
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

// expire ends the calls of a line whose time is over.
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

// Deadline is context.Context's.
func (b *bounded) Deadline() (time.Time, bool) { return b.deadline, true }

// Err is context.Context's.
func (b *bounded) Err() error {
	if b.Context.Err() == nil {
		return nil
	}
	return context.Cause(b.Context)
}
