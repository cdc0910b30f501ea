package auth

import (
	"context"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

const (
	refundAfter   = time.Second      // what no guess took along is given back by itself
	refundsAtOnce = 16               // taken along by one guess
	refundsBatch  = 256              // by a statement of their own
	refundsAtMost = 1 << 14          // buckets that wait
	refundTimeout = 10 * time.Second // of that statement
)

// refunds are tries that were drawn and are given back: the next guess of this
// process takes them along in front of its own draws, so that a right password
// costs no statement more than a wrong one. Losing them, in a crash or when there
// are too many, costs tries and lets nobody in.
type refunds struct {
	take  func(ctx context.Context, draws []store.Draw) error
	after func(d time.Duration, f func()) // time.AfterFunc

	mu      sync.Mutex
	waiting map[string]store.Draw
	armed   bool // after was called, and not overdue yet
	closed  bool

	flushing sync.Mutex
}

// newRefunds gives back to the store, by the service's clock.
func (a *Auth) newRefunds() *refunds {
	take := func(ctx context.Context, draws []store.Draw) error {
		_, err := a.store.Take(ctx, draws, a.now())
		return err
	}
	return &refunds{take: take, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }, waiting: map[string]store.Draw{}}
}

// takeWithRefunds draws, with what waits to be given back of the same buckets in
// front, and of others, up to n in all. Like the store's, its decision is about the
// draws alone.
func (a *Auth) takeWithRefunds(ctx context.Context, draws []store.Draw, n int) (store.Decision, error) {
	back := a.refunds.pick(n, draws)
	d, err := a.store.Take(ctx, append(back, draws...), a.now())
	if err != nil {
		return d, err
	}
	d.Remaining = d.Remaining[min(len(back), len(d.Remaining)):]
	if !d.Allowed {
		a.refunds.add(back...)
	}
	return d, nil
}

// add gives tries back: as many as their cost says, and never more than there
// were.
func (r *refunds) add(draws ...store.Draw) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range draws {
		if d.Rate.Burst <= 0 || r.closed {
			continue
		}
		old, ok := r.waiting[d.Key]
		if !ok && len(r.waiting) >= refundsAtMost {
			continue
		}
		d.Cost = max(d.Cost+old.Cost, -d.Rate.Burst)
		r.waiting[d.Key] = d
	}
	if len(r.waiting) > 0 && !r.armed {
		r.armed = true
		r.after(refundAfter, r.overdue)
	}
}

// pick takes up to n that wait off the list, first those of the buckets that are
// about to be drawn from.
func (r *refunds) pick(n int, about []store.Draw) []store.Draw {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []store.Draw
	for _, d := range about {
		if w, ok := r.waiting[d.Key]; ok {
			list = append(list, w)
			delete(r.waiting, d.Key)
		}
	}
	for _, w := range r.waiting {
		if len(list) >= n {
			break
		}
		list = append(list, w)
		delete(r.waiting, w.Key)
	}
	return list
}

func (r *refunds) overdue() {
	r.mu.Lock()
	r.armed = false
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), refundTimeout)
	defer cancel()
	_ = r.flush(ctx) // lost, if it fails
}

// flush gives back all that wait.
func (r *refunds) flush(ctx context.Context) error {
	r.flushing.Lock()
	defer r.flushing.Unlock()
	for {
		list := r.pick(refundsBatch, nil)
		if len(list) == 0 {
			return nil
		}
		if err := r.take(ctx, list); err != nil {
			return err
		}
	}
}

// close flushes, and takes no more.
func (r *refunds) close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	return r.flush(ctx)
}
