package pgstore

import (
	"context"
	"sync"
	"time"
)

// timeouts ends calls that take too long. All of them may take equally long, so
// that those that began first are over first, and one timer, set for the oldest,
// does for all. With context.WithTimeout each call has a timer of its own; where
// little else goes on that is the first to go off, and the runtime wakes a thread
// to wait for it, which costs a tenth of what reading a session takes.
type timeouts struct {
	mu          sync.Mutex
	oldest, end *bounded // the calls under way, from the oldest to the newest
	timer       *time.Timer
	set         bool // the timer will go off, though perhaps for nobody
}

// bounded is the context of a call that must not take too long. Its Err is
// context.DeadlineExceeded after that.
type bounded struct {
	context.Context //nolint:containedctx // this is a context
	cancel          context.CancelCauseFunc
	deadline        time.Time

	newer, older *bounded
	listed       bool
}

// begin bounds a call, which has to be given to done when it is over.
func (t *timeouts) begin(ctx context.Context, most time.Duration) *bounded {
	b := &bounded{listed: true}
	b.Context, b.cancel = context.WithCancelCause(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	b.deadline = time.Now().Add(most)
	if b.older = t.end; b.older == nil {
		t.oldest = b
	} else {
		b.older.newer = b
	}
	t.end = b
	switch {
	case t.set: // for an older call, so that it goes off early enough
	case t.timer == nil:
		t.timer = time.AfterFunc(most, t.expire)
	default:
		t.timer.Reset(most)
	}
	t.set = true
	return b
}

func (t *timeouts) done(b *bounded) {
	t.mu.Lock()
	t.leave(b)
	t.mu.Unlock()
	b.cancel(nil)
}

// leave takes a call off the list. t.mu is held.
func (t *timeouts) leave(b *bounded) {
	if !b.listed {
		return
	}
	b.listed = false
	if b.older == nil {
		t.oldest = b.newer
	} else {
		b.older.newer = b.newer
	}
	if b.newer == nil {
		t.end = b.older
	} else {
		b.newer.older = b.older
	}
	b.older, b.newer = nil, nil
}

// expire ends the calls whose time is over.
func (t *timeouts) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for b := t.oldest; b != nil && !now.Before(b.deadline); b = t.oldest {
		t.leave(b)
		b.cancel(context.DeadlineExceeded)
	}
	if t.set = t.oldest != nil; t.set {
		t.timer.Reset(t.oldest.deadline.Sub(now))
	}
}

// Deadline is context.Context's.
func (b *bounded) Deadline() (time.Time, bool) {
	if d, ok := b.Context.Deadline(); ok && d.Before(b.deadline) {
		return d, true
	}
	return b.deadline, true
}

// Err is context.Context's.
func (b *bounded) Err() error {
	err := b.Context.Err()
	if err != nil && context.Cause(b.Context) == context.DeadlineExceeded { //nolint:errorlint // the very one
		return context.DeadlineExceeded
	}
	return err
}
