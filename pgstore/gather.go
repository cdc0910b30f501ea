package pgstore

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// gather lets calls of one kind share statements. Most of what a small statement
// costs is its round trip and its commit; so calls that come while one is under
// way wait for it to end and then go out together. A call never joins a statement
// that was sent before it came: it sees all that was committed until then.
//
// Calls that share a statement do not share a fate: what could not be done in
// company, because a row is locked or one of the others failed, is done alone.
type gather[A, R any] struct {
	one  func(ctx context.Context, arg A) (*R, error)
	many func(ctx context.Context, calls []*call[A, R]) error // all of it, or nothing and an error

	mu      sync.Mutex
	waiting []*call[A, R]
	flights int  // statements under way
	limit   int  // of those
	late    bool // the last to leave takes longer than one should wait for it
}

// call is one that waits.
type call[A, R any] struct {
	arg    A
	landed chan struct{} // closed once the rest is there

	result *R    // nil: it could not be done in company
	err    error // it failed, and may have been done all the same
}

const (
	together = 64               // calls in one statement
	patience = time.Millisecond // with a statement under way; a database nearby takes less
)

// do makes a call: by itself if none is under way, otherwise with others.
func (g *gather[A, R]) do(ctx context.Context, arg A) (*R, error) {
	g.mu.Lock()
	if g.flights == 0 || g.late && g.flights < g.limit {
		g.flights++
		g.late = false
		g.mu.Unlock()
		defer g.land()
		defer g.leave().Stop()
		return g.one(ctx, arg)
	}
	c := &call[A, R]{arg: arg, landed: make(chan struct{})}
	g.waiting = append(g.waiting, c)
	g.mu.Unlock()
	select {
	case <-c.landed:
	case <-ctx.Done():
		g.mu.Lock()
		g.waiting = slices.DeleteFunc(g.waiting, func(other *call[A, R]) bool { return other == c })
		g.mu.Unlock()
		return nil, ctx.Err()
	}
	if c.result == nil && c.err == nil {
		return g.one(ctx, arg)
	}
	return c.result, c.err
}

// land ends a flight, or leaves it to those who wait.
func (g *gather[A, R]) land() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) > 0 {
		go g.fly()
	} else {
		g.flights--
	}
}

// leave begins to wait for a flight, and for no longer than patience.
func (g *gather[A, R]) leave() *time.Timer {
	return time.AfterFunc(patience, func() {
		g.mu.Lock()
		more := len(g.waiting) > 0 && g.flights < g.limit
		if more {
			g.flights++
		}
		g.late = !more
		g.mu.Unlock()
		if more {
			g.fly()
		}
	})
}

// fly makes the calls that wait until none are left. It belongs to no call, so
// that one that is cancelled takes no other along.
func (g *gather[A, R]) fly() {
	for {
		runtime.Gosched() // whoever can run may have a call for this statement
		g.mu.Lock()
		n := min(len(g.waiting), together)
		if n == 0 {
			g.flights--
			g.mu.Unlock()
			return
		}
		calls := slices.Clone(g.waiting[:n])
		g.waiting = slices.Delete(g.waiting, 0, n)
		g.late = false
		g.mu.Unlock()
		timer := g.leave()
		err := g.many(context.Background(), calls)
		timer.Stop()
		for _, c := range calls {
			if !refused(err) {
				c.err = err
			}
			close(c.landed)
		}
	}
}

// refused tells an error that the database gave from one that leaves open what
// it did.
func refused(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e)
}
