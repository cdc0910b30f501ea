// Package gather lets calls of one kind share round trips. Most of what a small
// statement costs is its way to the database and back; so calls that come while
// one is under way wait for it to end and then go out together:
//
//	reads := gather.New(gather.Config[string, Row]{One: readOne, Many: readMany, Refused: isRefusal, Limit: 4})
//	row, err := reads.Do(ctx, id)
//
// A call never joins what was sent before it came: it sees everything that was
// done until then. A call that finds nothing under way goes out by itself, on its
// caller's goroutine.
//
// Calls that share a round trip do not share a fate: what could not be done in
// company, because a row is locked or one of the others failed, is done alone,
// and a caller who leaves takes nobody along.
package gather

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Config says how the calls of a Group are made. One, Many and Limit have to be
// given.
type Config[A, R any] struct {
	// One makes one call. ctx is its caller's.
	One func(ctx context.Context, arg A) (R, error)

	// Many makes several calls: all of them, or none and an error. It passes each
	// result to [Call.Return]; a call without one is made again, alone, by One.
	// ctx carries nothing of the callers', neither a deadline nor values, as it
	// belongs to none of them: Many sets its own timeout, and [Callers] and
	// [Call.Context] lead to the callers' contexts, for a tracer's links.
	Many func(ctx context.Context, calls []*Call[A, R]) error

	// Refused tells an error of Many's after which it is certain that nothing
	// was done: each call is then made again, alone, so that it fails for its own
	// reasons only. After any other error what was done is unknown, and every
	// call fails with it. nil: no error is a refusal.
	Refused func(err error) bool

	Limit int // round trips under way at the same time; those that are made again do not count

	Most     int           // calls in one round trip; 0: 64
	Patience time.Duration // how long calls wait for a round trip before the next one leaves, if Limit allows; 0: 1 ms, which a database nearby does not need
}

// Group makes calls of one kind. Its methods may be called concurrently.
type Group[A, R any] struct {
	conf  Config[A, R]
	start time.Time // what departed is counted from

	mu       sync.Mutex
	waiting  []*Call[A, R]
	flights  int           // round trips under way
	departed time.Duration // when the last of them left

	// The timer ends the wait for a round trip that is slow. It is set only once
	// somebody waits, so that a call that meets no other does without. It may go
	// off too early, and for nobody.
	timer *time.Timer
	set   bool
}

// Call is one of those that share a round trip.
type Call[A, R any] struct {
	Arg A

	ctx     context.Context //nolint:containedctx // the caller's, lent to Many
	landed  chan struct{}   // closed once the rest is there
	result  R
	settled bool  // there is a result
	err     error // it failed, and may have been done all the same
}

// Context is the caller's context: for its values, such as a span to link to. It
// may have ended, which is no reason to leave the call out.
func (c *Call[A, R]) Context() context.Context { return c.ctx }

// Return passes the caller its result, which counts only if Many then returns no
// error. It is for Many to call, before it returns.
func (c *Call[A, R]) Return(result R) { c.result, c.settled = result, true }

type callersKey struct{}

// Callers are the contexts of those for whom a round trip is made, if ctx is
// that of a Config.Many or was made from it; nil otherwise.
func Callers(ctx context.Context) []context.Context {
	list, _ := ctx.Value(callersKey{}).([]context.Context)
	return list
}

// New makes a Group. It panics if One, Many or Limit is missing.
func New[A, R any](c Config[A, R]) *Group[A, R] {
	if c.One == nil || c.Many == nil || c.Limit < 1 {
		panic("gather: One, Many and Limit have to be given")
	}
	if c.Most == 0 {
		c.Most = 64
	}
	if c.Patience == 0 {
		c.Patience = time.Millisecond
	}
	return &Group[A, R]{conf: c, start: time.Now()}
}

// Do makes a call: by itself if none is under way, otherwise with others. It
// returns what One or Many did; ctx's error if that ends while the call waits,
// which leaves open whether it was made; a *PanicError if One or Many panicked.
func (g *Group[A, R]) Do(ctx context.Context, arg A) (R, error) {
	g.mu.Lock()
	now := time.Since(g.start)
	if g.flights == 0 || len(g.waiting) == 0 && g.flights < g.conf.Limit && now-g.departed >= g.conf.Patience {
		g.flights++
		g.departed = now
		g.mu.Unlock()
		return g.first(ctx, arg)
	}
	c := &Call[A, R]{Arg: arg, ctx: ctx, landed: make(chan struct{})}
	g.waiting = append(g.waiting, c)
	g.wake(now)
	g.mu.Unlock()
	select {
	case <-c.landed:
	case <-ctx.Done():
		g.leave(c)
		return *new(R), ctx.Err()
	}
	switch {
	case c.err != nil:
		return *new(R), c.err
	case c.settled:
		return c.result, nil
	}
	return g.alone(ctx, arg)
}

// leave takes a call off the list of those that wait.
func (g *Group[A, R]) leave(c *Call[A, R]) {
	g.mu.Lock()
	g.waiting = slices.DeleteFunc(g.waiting, func(other *Call[A, R]) bool { return other == c })
	g.mu.Unlock()
}

// first is a flight with one call.
func (g *Group[A, R]) first(ctx context.Context, arg A) (R, error) {
	defer g.land()
	return g.alone(ctx, arg)
}

func (g *Group[A, R]) alone(ctx context.Context, arg A) (_ R, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	return g.conf.One(ctx, arg)
}

// land ends a flight, or leaves it to those who wait.
func (g *Group[A, R]) land() {
	g.mu.Lock()
	if len(g.waiting) == 0 {
		g.flights--
	} else {
		go g.fly()
	}
	g.mu.Unlock()
}

// wake sees to it that those who wait do so for no longer than Patience. At the
// limit there is nothing to wake them for: the next flight that lands is theirs.
// g.mu is held.
func (g *Group[A, R]) wake(now time.Duration) {
	if g.set || len(g.waiting) == 0 || g.flights >= g.conf.Limit {
		return
	}
	g.set = true
	rest := max(0, g.departed+g.conf.Patience-now)
	if g.timer == nil {
		g.timer = time.AfterFunc(rest, g.impatient)
	} else {
		g.timer.Reset(rest)
	}
}

// impatient begins one more flight if there is somebody for it.
func (g *Group[A, R]) impatient() {
	g.mu.Lock()
	g.set = false
	now := time.Since(g.start)
	more := len(g.waiting) > 0 && g.flights < g.conf.Limit && now-g.departed >= g.conf.Patience
	if more {
		g.flights++
	} else {
		g.wake(now) // others have left meanwhile
	}
	g.mu.Unlock()
	if more {
		g.fly()
	}
}
