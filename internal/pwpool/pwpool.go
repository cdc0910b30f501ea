// Package pwpool bounds how much expensive work, such as hashing passwords, goes
// on at once: as much as there are workers, with a queue of limited length in
// front, and an honest refusal beyond. The queue is fair: a flood waits behind
// itself.
package pwpool

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrOverloaded says that the queue, or the caller's share of it, is full.
var ErrOverloaded = errors.New("too many are waiting for their turn")

// Caller is in whose name work is asked for. What is not known is empty, and has
// no share that it could exceed; all unknown clients count as one in the order
// of turns.
type Caller struct {
	Client  string // such as the network address
	Account string // such as the user's id
}

// Pool is safe for concurrent use. It has no goroutines of its own.
type Pool struct {
	queue int           // places to wait in
	share int           // of them, for one client and for one account
	cpu   chan struct{} // around the work alone

	mu       sync.Mutex
	free     int // places around the question and the work; above 0 only if nobody waits
	waiting  int
	clients  map[string]*client // who wait or are at work
	order    []*client          // those who wait, who had no turn for the longest first
	accounts map[string]int     // who wait, by account
}

// client are the callers of one client.
type client struct {
	name    string
	waiting []*waiter // the longest first
	within  int       // past the queue
}

// waiter is one caller in the queue.
type waiter struct {
	account string
	turn    chan error // nil: it is its turn
}

// New makes a pool of workers, at least 1, that lets as many callers wait as
// queue says. Of these places, one client, or all who want one account, have at
// most a quarter, and at least one.
func New(workers, queue int) *Pool {
	return &Pool{
		queue: queue, share: max(1, queue/4), free: 2 * workers, cpu: make(chan struct{}, workers),
		clients: map[string]*client{}, accounts: map[string]int{},
	}
}

// Run does the work in the caller's goroutine once it is its turn. admit, which
// may be nil, is asked right before; its error is returned and nothing is done.
// No more than twice as many callers as there are workers are past admit at a
// time: few enough that what it was told still holds, and enough to keep the
// processors busy while it waits for a database.
//
// The next turn is that of the client who has the fewest past the queue, and
// among equals of the one that has waited for a turn the longest; within a
// client, who came first. If the queue is full, or an account's share of it, a client
// with fewer callers there than another takes the place of the other's last.
//
// Whoever's ctx ends while waiting makes room for the next. Errors:
// ErrOverloaded, at once or when the place in the queue goes to another client;
// ctx's; admit's; work's.
func (p *Pool) Run(ctx context.Context, who Caller, admit func(context.Context) error, work func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.enter(ctx, who); err != nil {
		return err
	}
	defer p.leave(who.Client)
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

// enter waits for a turn; after a nil, leave has to follow.
func (p *Pool) enter(ctx context.Context, who Caller) error {
	w, err := p.join(who)
	if w == nil {
		return err
	}
	select {
	case err := <-w.turn:
		return err
	case <-ctx.Done():
	}
	if !p.giveUp(who.Client, w) && <-w.turn == nil {
		p.leave(who.Client) // its turn came at the same moment
	}
	return ctx.Err()
}

// join takes a free place or else stands in the queue; in both cases the error is
// nil, and only in the second there is a waiter.
func (p *Pool) join(who Caller) (*waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[who.Client]
	if c == nil {
		c = &client{name: who.Client}
	}
	if p.free > 0 {
		p.free--
		c.within++
		p.clients[c.name] = c
		return nil, nil
	}
	sameAccount := func(w *waiter) bool { return w.account == who.Account }
	switch {
	case who.Client != "" && len(c.waiting) >= p.share,
		who.Account != "" && p.accounts[who.Account] >= p.share && !p.makeRoom(c, sameAccount),
		p.waiting >= p.queue && !p.makeRoom(c, anybody):
		return nil, ErrOverloaded
	}
	w := &waiter{account: who.Account, turn: make(chan error, 1)}
	p.clients[c.name] = c
	if len(c.waiting) == 0 {
		p.order = append(p.order, c)
	}
	c.waiting = append(c.waiting, w)
	p.waiting++
	if w.account != "" {
		p.accounts[w.account]++
	}
	return w, nil
}

func anybody(*waiter) bool { return true }

// makeRoom sends a caller away who competes with one that c wants to add: the
// last one of the client that has the most of them, if that is still more than c
// would have.
func (p *Pool) makeRoom(c *client, competes func(*waiter) bool) bool {
	count := func(c *client) (n, last int) {
		for i, w := range c.waiting {
			if competes(w) {
				n, last = n+1, i
			}
		}
		return n, last
	}
	own, _ := count(c)
	var from *client
	most, at := own+1, 0
	for _, other := range p.order {
		if n, last := count(other); n > most {
			from, most, at = other, n, last
		}
	}
	if from == nil {
		return false
	}
	p.take(from, at).turn <- ErrOverloaded
	return true
}

// take takes a caller out of the queue.
func (p *Pool) take(c *client, i int) *waiter {
	w := c.waiting[i]
	c.waiting = slices.Delete(c.waiting, i, i+1)
	p.waiting--
	if w.account != "" {
		if p.accounts[w.account]--; p.accounts[w.account] == 0 {
			delete(p.accounts, w.account)
		}
	}
	if len(c.waiting) == 0 {
		at := slices.Index(p.order, c)
		p.order = slices.Delete(p.order, at, at+1)
	}
	p.forget(c)
	return w
}

// forget drops a client that has nobody here.
func (p *Pool) forget(c *client) {
	if len(c.waiting) == 0 && c.within == 0 {
		delete(p.clients, c.name)
	}
}

// giveUp takes a caller out of the queue who waits no longer; false if it is not
// there any more.
func (p *Pool) giveUp(name string, w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[name]
	if c == nil {
		return false
	}
	i := slices.Index(c.waiting, w)
	if i < 0 {
		return false
	}
	p.take(c, i)
	return true
}

// leave hands a place on to whose turn is next.
func (p *Pool) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[name]
	c.within--
	p.forget(c)
	if len(p.order) == 0 {
		p.free++
		return
	}
	next := p.next()
	next.within++
	p.take(next, 0).turn <- nil
	if at := slices.Index(p.order, next); at >= 0 { // it has more
		p.order = append(slices.Delete(p.order, at, at+1), next)
	}
}

// next is the client whose turn it is.
func (p *Pool) next() *client {
	best := p.order[0]
	for _, c := range p.order[1:] {
		if best.within == 0 {
			break
		}
		if c.within < best.within {
			best = c
		}
	}
	return best
}
