// Package pwpool bounds how much expensive work, such as hashing passwords, goes
// on at once: as much as there are workers, with a queue of limited length in
// front, and an honest refusal beyond.
package pwpool

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrOverloaded says that the queue is full.
var ErrOverloaded = errors.New("too many are waiting for their turn")

// Pool is safe for concurrent use. It has no goroutines of its own.
type Pool struct {
	queue     int
	waiting   atomic.Int64  // callers of Run, those at work included
	admission chan struct{} // around the question and the work
	cpu       chan struct{} // around the work alone
}

// New makes a pool of workers, at least 1, that lets as many callers wait as
// queue says.
func New(workers, queue int) *Pool {
	return &Pool{queue: queue, admission: make(chan struct{}, 2*workers), cpu: make(chan struct{}, workers)}
}

// Run does the work in the caller's goroutine once it is its turn. admit, which
// may be nil, is asked right before; its error is returned and nothing is done.
// No more than twice as many callers as there are workers are past admit at a
// time: few enough that what it was told still holds, and enough to keep the
// processors busy while it waits for a database.
//
// Whoever's ctx ends while waiting makes room for the next. Errors:
// ErrOverloaded at once, without a wait; ctx's; admit's; work's.
func (p *Pool) Run(ctx context.Context, admit func(context.Context) error, work func() error) error {
	if p.waiting.Add(1) > int64(p.queue+cap(p.admission)) {
		p.waiting.Add(-1)
		return ErrOverloaded
	}
	defer p.waiting.Add(-1)
	if err := acquire(ctx, p.admission); err != nil {
		return err
	}
	defer func() { <-p.admission }()
	if admit != nil {
		if err := admit(ctx); err != nil {
			return err
		}
	}
	if err := acquire(ctx, p.cpu); err != nil {
		return err
	}
	defer func() { <-p.cpu }()
	return work()
}

func acquire(ctx context.Context, slots chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
