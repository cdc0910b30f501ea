package auth

import (
	"context"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

const (
	refundAfter   = time.Second      // a refund waits this long for an attempt to carry it
	refundsAtOnce = 16               // carried by one attempt
	refundsBatch  = 256              // in a statement of their own
	refundsAtMost = 1 << 14          // buckets with waiting refunds
	refundTimeout = 10 * time.Second // of that statement
)

// refunds holds refunds of attempts. The process's next attempt writes them together
// with its own draws, so that a right password costs no more statements than a wrong
// one. If refunds are lost, in a crash or because there are too many, users have fewer
// attempts.
type refunds struct {
	take  func(ctx context.Context, draws []store.Draw) error
	after func(d time.Duration, f func()) // time.AfterFunc

	mu      sync.Mutex
	waiting map[string]store.Draw
	armed   bool // after was called, and overdue has not run yet
	closed  bool

	flushing sync.Mutex
}

// newRefunds returns refunds that are written to the store.
func (a *Auth) newRefunds() *refunds {
	take := func(ctx context.Context, draws []store.Draw) error {
		_, err := a.store.Take(ctx, draws, a.now())
		return err
	}
	return &refunds{take: take, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }, waiting: map[string]store.Draw{}}
}

// takeWithRefunds draws, after waiting refunds: all those of the same buckets, then others
// while there are fewer than n. Its decision covers the draws alone, as Store.Take returns
// it.
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

// add queues refunds. A draw's negative cost says how much; a bucket never gets more
// than its burst.
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

// pick removes waiting refunds from the queue, and returns them: all those of the buckets in
// about, then others while there are fewer than n.
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

// flush writes all waiting refunds.
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

// close flushes, and accepts no more refunds.
func (r *refunds) close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	return r.flush(ctx)
}
