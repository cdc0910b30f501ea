// Package pwpool limits how much expensive work, such as hashing passwords, runs at once:
// it has a fixed number of workers and a bounded queue, and rejects further work. The
// queue is fair between networks: a flood delays only its own requests.
package pwpool

import (
	"context"
	"errors"
	"sync"
)

// ErrOverloaded: the queue, or the caller's share of it, is full.
var ErrOverloaded = errors.New("too many callers are waiting")

// Caller identifies the caller for fairness. An empty field is unknown and has no limit
// of its own. All callers without networks count as one network when the next caller is
// chosen.
type Caller struct {
	// Networks contain the client, the widest first, such as the /48, /56 and /64 of an IPv6
	// address. The last one is the client itself, and contains no other network.
	Networks []string

	Account string // such as the user's id

	// KnownDevice reports that the client uses a device on which the account's user has
	// signed in before. It must not depend on the secret that the work checks.
	KnownDevice bool
}

// Pool is safe for concurrent use. It has no goroutines of its own.
type Pool struct {
	cpu chan struct{} // one slot per running work

	mu           sync.Mutex
	free         int // free places for admit and work; above 0 only if the lanes are empty
	knownDevices *lane
	everybody    *lane
	last         *lane // the lane of the last caller that left the queue
}

// New returns a pool with this many workers, at least 1, and places in the queue. A
// quarter as many places, at least one, are in addition for callers on known devices.
// One client, or the callers for one account, get at most a quarter of either, and at
// least one.
func New(workers, queue int) *Pool {
	return &Pool{
		cpu: make(chan struct{}, workers), free: 2 * workers,
		knownDevices: newLane(max(1, queue/4)), everybody: newLane(queue),
	}
}

// Run does the work in the caller's goroutine once a worker is free. It calls admit,
// which may be nil, right before the work; if admit fails, Run returns its error and does
// no work. At most twice as many callers as workers are past admit at a time: few enough
// that admit's result is still correct, and enough to keep the processors busy while
// admit waits for a database.
//
// Turns: the network with the fewest running callers is next; among equals, the one served
// least recently. For IPv6 the rule applies to the /48, then to the /56 in it, then to the
// /64. The callers of one client keep the order of their arrival. Callers on known
// devices alternate with all others.
//
// Rejections: if the queue is full, or an account's share of it, the network with the most
// waiting callers loses one, by the same widths. Among equals a random network does, more
// probably if it lost callers before. It may be the new caller's own. Rejected callers do
// not count against the account.
//
// A caller on a known device that finds no place among the known devices takes one among
// all others.
//
// A caller whose ctx is done while it waits frees its place. Errors: ErrOverloaded, at
// once or when another caller takes the place in the queue; the errors of ctx, admit and
// work.
func (p *Pool) Run(ctx context.Context, caller Caller, admit func(context.Context) error, work func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	from, err := p.enter(ctx, caller)
	if err != nil {
		return err
	}
	defer p.leave(from)
	if admit != nil {
		if err := admit(ctx); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p.cpu <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.cpu }()
	return work()
}

// enter waits until the caller may run. It returns the network that leave needs.
func (p *Pool) enter(ctx context.Context, caller Caller) (*network, error) {
	if caller.KnownDevice {
		from, err := p.wait(ctx, p.knownDevices, caller)
		if !errors.Is(err, ErrOverloaded) {
			return from, err
		}
	}
	return p.wait(ctx, p.everybody, caller)
}

// wait is enter in one lane.
func (p *Pool) wait(ctx context.Context, l *lane, caller Caller) (*network, error) {
	w := p.join(l, caller)
	select {
	case err := <-w.admitted:
		return w.from, err
	case <-ctx.Done():
	}
	if !p.cancel(l, w) && <-w.admitted == nil {
		p.leave(w.from) // it was called at the same moment
	}
	return nil, ctx.Err()
}

// join takes a free place or a place in the queue.
func (p *Pool) join(l *lane, caller Caller) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &waiter{from: l.network(caller.Networks), account: caller.Account, admitted: make(chan error, 1)}
	if p.free > 0 {
		p.free--
		w.run()
	} else {
		l.join(w)
	}
	return w
}

// cancel removes a canceled caller from the queue. It returns false if the caller is no
// longer there.
func (p *Pool) cancel(l *lane, w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return l.cancel(w)
}

// leave gives a caller's place to the next caller.
func (p *Pool) leave(from *network) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := from; n != nil; n = n.parent {
		n.running--
	}
	from.dropIdle()
	first, second := p.knownDevices, p.everybody
	if p.last == first {
		first, second = second, first
	}
	for _, l := range []*lane{first, second} {
		if l.next() {
			p.last = l
			return
		}
	}
	p.free++
}
