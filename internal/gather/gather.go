// Package gather combines calls of one kind into shared round trips. The round trip to
// the database is most of the cost of a small statement, so calls that arrive while one
// is running wait for its end and are then sent together:
//
//	reads := gather.New(gather.Config[string, Row]{One: readOne, Many: readMany, Refused: isRefusal, Limit: 4})
//	row, err := reads.Do(ctx, id)
//
// A call never joins a round trip that has already started: it sees everything that was
// done before it arrived. A call that arrives while none is running is made alone, on its
// caller's goroutine.
//
// Calls that share a round trip do not affect each other: if the shared call fails,
// because a row is locked or one call is invalid, each is made again alone, and a
// canceled caller cancels no other call.
package gather

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Config says how the calls of a Group are made. One, Many and Limit are required.
type Config[A, R any] struct {
	// One makes one call. ctx is its caller's context.
	One func(ctx context.Context, arg A) (R, error)

	// Many makes several calls: all of them, or none and an error. It passes each result
	// to [Call.Return]; a call without a result is made again, alone, by One. ctx has no
	// deadline or values of the callers, because it belongs to none of them: Many sets
	// its own timeout. [Callers] and [Call.Context] return the callers' contexts, for the
	// links of a tracer.
	Many func(ctx context.Context, calls []*Call[A, R]) error

	// Refused reports whether an error of Many means that no call had an effect: each
	// call is then made again alone, so that it fails only for its own reasons. After any
	// other error the effect is unknown, and every call fails with that error. If Refused
	// is nil, no error is a refusal.
	Refused func(err error) bool

	Limit int // most round trips at the same time; calls that are made again do not count

	MaxCalls int           // most calls in one round trip; default: 64
	Patience time.Duration // how long calls wait for a running round trip before the next one starts, if Limit allows; default: 1 ms, longer than a round trip to a nearby database
}

// Group makes calls of one kind. It is safe for concurrent use.
type Group[A, R any] struct {
	conf  Config[A, R]
	start time.Time // departed is relative to it

	mu        sync.Mutex
	waiting   []*Call[A, R]
	flights   int           // running round trips
	lastStart time.Duration // start of the last one

	// timer ends the wait for a slow round trip. It is set only while calls wait, so that
	// a single call does not need it. It may fire too early or without need.
	timer    *time.Timer
	timerSet bool
}

// Call is a call in a shared round trip.
type Call[A, R any] struct {
	Arg A

	ctx      context.Context //nolint:containedctx // the caller's context, for Many
	done     chan struct{}   // closed when the fields below are set
	result   R
	returned bool  // Return was called
	err      error // the error; the call may still have had an effect
}

// Context returns the caller's context, for its values, such as a span to link to. Many
// must make the call even if the context is done.
func (c *Call[A, R]) Context() context.Context { return c.ctx }

// Return sets the call's result. It takes effect if Many then returns no error. Many
// calls it before it returns.
func (c *Call[A, R]) Return(result R) { c.result, c.returned = result, true }

type callersKey struct{}

// Callers returns the contexts of the callers of a round trip, if ctx is the context of a
// Config.Many or derived from it; nil otherwise.
func Callers(ctx context.Context) []context.Context {
	list, _ := ctx.Value(callersKey{}).([]context.Context)
	return list
}

// New returns a Group. It panics if One, Many or Limit is missing.
func New[A, R any](c Config[A, R]) *Group[A, R] {
	if c.One == nil || c.Many == nil || c.Limit < 1 {
		panic("gather: One, Many and Limit are required")
	}
	if c.MaxCalls == 0 {
		c.MaxCalls = 64
	}
	if c.Patience == 0 {
		c.Patience = time.Millisecond
	}
	return &Group[A, R]{conf: c, start: time.Now()}
}

// Do makes a call: alone if none is running, otherwise with others. It returns the result
// of One or Many. If ctx is done while the call waits, it returns ctx's error, and the
// call may or may not have been made. If One or Many panics, it returns a *PanicError.
func (g *Group[A, R]) Do(ctx context.Context, arg A) (R, error) {
	g.mu.Lock()
	now := time.Since(g.start)
	if g.flights == 0 || len(g.waiting) == 0 && g.flights < g.conf.Limit && now-g.lastStart >= g.conf.Patience {
		g.flights++
		g.lastStart = now
		g.mu.Unlock()
		return g.doFirst(ctx, arg)
	}
	c := &Call[A, R]{Arg: arg, ctx: ctx, done: make(chan struct{})}
	g.waiting = append(g.waiting, c)
	g.scheduleNext(now)
	g.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		g.leave(c)
		return *new(R), ctx.Err()
	}
	switch {
	case c.err != nil:
		return *new(R), c.err
	case c.returned:
		return c.result, nil
	}
	return g.callOne(ctx, arg)
}

// leave removes a call from the waiting ones.
func (g *Group[A, R]) leave(c *Call[A, R]) {
	g.mu.Lock()
	g.waiting = slices.DeleteFunc(g.waiting, func(other *Call[A, R]) bool { return other == c })
	g.mu.Unlock()
}

// doFirst makes a flight with one call.
func (g *Group[A, R]) doFirst(ctx context.Context, arg A) (R, error) {
	defer g.finish()
	return g.callOne(ctx, arg)
}

func (g *Group[A, R]) callOne(ctx context.Context, arg A) (_ R, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	return g.conf.One(ctx, arg)
}

// finish ends a flight, or continues it with the waiting calls.
func (g *Group[A, R]) finish() {
	g.mu.Lock()
	if len(g.waiting) == 0 {
		g.flights--
	} else {
		go g.run()
	}
	g.mu.Unlock()
}

// scheduleNext sets the timer so that calls wait no longer than Patience. At the limit no timer
// is needed, because the next flight that ends takes the waiting calls. The caller holds
// g.mu.
func (g *Group[A, R]) scheduleNext(now time.Duration) {
	if g.timerSet || len(g.waiting) == 0 || g.flights >= g.conf.Limit {
		return
	}
	g.timerSet = true
	rest := max(0, g.lastStart+g.conf.Patience-now)
	if g.timer == nil {
		g.timer = time.AfterFunc(rest, g.startAnother)
	} else {
		g.timer.Reset(rest)
	}
}

// startAnother starts one more flight if calls are waiting.
func (g *Group[A, R]) startAnother() {
	g.mu.Lock()
	g.timerSet = false
	now := time.Since(g.start)
	more := len(g.waiting) > 0 && g.flights < g.conf.Limit && now-g.lastStart >= g.conf.Patience
	if more {
		g.flights++
	} else {
		g.scheduleNext(now) // other flights have started meanwhile
	}
	g.mu.Unlock()
	if more {
		g.run()
	}
}
