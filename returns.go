package auth

import (
	"context"
	"sync"
	"time"
)

const (
	returnsAfter   = time.Second      // what no guess took along is given back by itself
	returnsAtOnce  = 16               // taken along by one guess
	returnsBatch   = 256              // by a statement of their own
	returnsAtMost  = 1 << 14          // buckets that wait
	returnsTimeout = 10 * time.Second // of that statement
)

// returns are tries that were drawn and are given back: the next guess of this
// process takes them along in front of its own draws, so that a right password
// costs no statement more than a wrong one. Losing them, in a crash or when there
// are too many, costs tries and lets nobody in.
type returns struct {
	take  func(ctx context.Context, draws []Draw) error
	after func(d time.Duration, f func()) // time.AfterFunc

	mu      sync.Mutex
	waiting map[string]Draw
	armed   bool // after was called, and has not come
	closed  bool

	flushing sync.Mutex
}

// newReturns gives back to the store, by the service's clock.
func (a *Auth) newReturns() *returns {
	take := func(ctx context.Context, draws []Draw) error {
		_, err := a.store.Take(ctx, draws, a.now())
		return err
	}
	return &returns{take: take, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }, waiting: map[string]Draw{}}
}

// add gives tries back: as many as their cost says, and never more than there
// were.
func (r *returns) add(draws ...Draw) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range draws {
		if d.Rate.Burst <= 0 || r.closed {
			continue
		}
		old, ok := r.waiting[d.Key]
		if !ok && len(r.waiting) >= returnsAtMost {
			continue
		}
		d.Cost = max(d.Cost+old.Cost, -d.Rate.Burst)
		r.waiting[d.Key] = d
	}
	if len(r.waiting) > 0 && !r.armed {
		r.armed = true
		r.after(returnsAfter, r.come)
	}
}

// pick takes up to n that wait off the list, first those of the buckets that are
// about to be drawn from.
func (r *returns) pick(n int, about []Draw) []Draw {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Draw
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

func (r *returns) come() {
	r.mu.Lock()
	r.armed = false
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), returnsTimeout)
	defer cancel()
	_ = r.flush(ctx) // lost, if it fails
}

// flush gives back all that wait.
func (r *returns) flush(ctx context.Context) error {
	r.flushing.Lock()
	defer r.flushing.Unlock()
	for {
		list := r.pick(returnsBatch, nil)
		if len(list) == 0 {
			return nil
		}
		if err := r.take(ctx, list); err != nil {
			return err
		}
	}
}

// close flushes, and takes no more.
func (r *returns) close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	return r.flush(ctx)
}

// flights are the guesses that are drawn and not judged yet, by what they are
// about. A right one gives its try back, so that a guess that finds none left
// waits for those before it.
type flights struct {
	mu sync.Mutex
	of map[string]*flight
}

type flight struct {
	holders int
	turn    chan struct{} // held by the one that draws
	n       int           // drawn and not judged yet
	ended   chan struct{} // closed when one of those has ended
}

// hold joins the guesses about key, until leave.
func (f *flights) hold(key string) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[key] == nil {
		f.of[key] = &flight{turn: make(chan struct{}, 1), ended: make(chan struct{})}
	}
	f.of[key].holders++
	return f.of[key]
}

// leave undoes hold; drawn tells that the guess had drawn.
func (f *flights) leave(key string, drawn bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.of[key]
	if drawn {
		at.n--
		close(at.ended)
		at.ended = make(chan struct{})
	}
	if at.holders--; at.holders == 0 {
		delete(f.of, key)
	}
}

// drew counts a guess that has drawn.
func (f *flights) drew(at *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at.n++
}

// others is closed when one of the guesses that have drawn ends; nil if there are
// none.
func (f *flights) others(at *flight) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at.n == 0 {
		return nil
	}
	return at.ended
}
