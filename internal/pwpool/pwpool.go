// Package pwpool limits how much expensive work, such as hashing passwords, runs at once:
// it has a fixed number of workers and a bounded queue, and rejects further work. The
// queue is fair between clients: a flood delays only its own requests.
package pwpool

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrOverloaded: the queue, or the caller's share of it, is full.
var ErrOverloaded = errors.New("too many callers are waiting")

// Caller identifies the caller for fairness. An empty field is unknown and has no limit
// of its own. All unknown clients count as one client when the next caller is chosen.
type Caller struct {
	Client  string // such as the IP address
	Account string // such as the user's id
}

// Pool is safe for concurrent use. It has no goroutines of its own.
type Pool struct {
	queue int           // places in the queue
	share int           // most places for one client, and for one account
	cpu   chan struct{} // one slot per running work

	mu       sync.Mutex
	free     int // free places for admit and work; above 0 only if the queue is empty
	waiting  int
	clients  map[string]*client // clients with callers that wait or run
	order    []*client          // clients with waiting callers; the one served least recently first
	accounts map[string]int     // number of waiting callers by account
}

// client holds the callers of one client.
type client struct {
	name    string
	waiting []*waiter // the first to arrive first
	running int       // callers past the queue
}

// waiter is a caller in the queue.
type waiter struct {
	account  string
	admitted chan error // receives nil when the caller may run
}

// New returns a pool with this many workers, at least 1, and places in the queue. One
// client, or the callers for one account, get at most a quarter of the places, and at
// least one.
func New(workers, queue int) *Pool {
	return &Pool{
		queue: queue, share: max(1, queue/4), free: 2 * workers, cpu: make(chan struct{}, workers),
		clients: map[string]*client{}, accounts: map[string]int{},
	}
}

// Run does the work in the caller's goroutine once a worker is free. It calls admit,
// which may be nil, right before the work; if admit fails, Run returns its error and does
// no work. At most twice as many callers as workers are past admit at a time: few enough
// that admit's result is still correct, and enough to keep the processors busy while
// admit waits for a database.
//
// The next caller is of the client with the fewest callers past the queue; of several
// such clients, of the one served least recently; within a client, the first to arrive.
// If the queue is full, or an account's share of it, a client with fewer waiting callers
// replaces the last caller of a client with more.
//
// A caller whose ctx is done while it waits frees its place. Errors: ErrOverloaded, at
// once or when another client takes the place in the queue; the errors of ctx, admit and
// work.
func (p *Pool) Run(ctx context.Context, caller Caller, admit func(context.Context) error, work func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.enter(ctx, caller); err != nil {
		return err
	}
	defer p.leave(caller.Client)
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

// enter waits until the caller may run. If it returns nil, the caller must call leave.
func (p *Pool) enter(ctx context.Context, caller Caller) error {
	w, err := p.join(caller)
	if w == nil {
		return err
	}
	select {
	case err := <-w.admitted:
		return err
	case <-ctx.Done():
	}
	if !p.cancel(caller.Client, w) && <-w.admitted == nil {
		p.leave(caller.Client) // it was called at the same moment
	}
	return ctx.Err()
}

// join takes a free place or a place in the queue. The error is nil in both cases; the
// waiter is nil for a free place.
func (p *Pool) join(caller Caller) (*waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[caller.Client]
	if c == nil {
		c = &client{name: caller.Client}
	}
	if p.free > 0 {
		p.free--
		c.running++
		p.clients[c.name] = c
		return nil, nil
	}
	sameAccount := func(w *waiter) bool { return w.account == caller.Account }
	switch {
	case caller.Client != "" && len(c.waiting) >= p.share,
		caller.Account != "" && p.accounts[caller.Account] >= p.share && !p.displace(c, sameAccount),
		p.waiting >= p.queue && !p.displace(c, anyWaiter):
		return nil, ErrOverloaded
	}
	w := &waiter{account: caller.Account, admitted: make(chan error, 1)}
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

func anyWaiter(*waiter) bool { return true }

// displace rejects a waiting caller that competes with a new one of c: the last caller of
// the client that has the most of them, if that is more than c would have.
func (p *Pool) displace(c *client, competes func(*waiter) bool) bool {
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
	p.remove(from, at).admitted <- ErrOverloaded
	return true
}

// remove removes a caller from the queue.
func (p *Pool) remove(c *client, i int) *waiter {
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
	p.dropIdle(c)
	return w
}

// dropIdle removes a client without callers.
func (p *Pool) dropIdle(c *client) {
	if len(c.waiting) == 0 && c.running == 0 {
		delete(p.clients, c.name)
	}
}

// cancel removes a canceled caller from the queue. It returns false if the caller is no
// longer there.
func (p *Pool) cancel(name string, w *waiter) bool {
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
	p.remove(c, i)
	return true
}

// leave gives the place to the next caller.
func (p *Pool) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[name]
	c.running--
	p.dropIdle(c)
	if len(p.order) == 0 {
		p.free++
		return
	}
	next := p.next()
	next.running++
	p.remove(next, 0).admitted <- nil
	if at := slices.Index(p.order, next); at >= 0 { // it has more waiting callers
		p.order = append(slices.Delete(p.order, at, at+1), next)
	}
}

// next returns the client of the next caller.
func (p *Pool) next() *client {
	best := p.order[0]
	for _, c := range p.order[1:] {
		if best.running == 0 {
			break
		}
		if c.running < best.running {
			best = c
		}
	}
	return best
}
