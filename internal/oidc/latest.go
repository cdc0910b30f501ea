package oidc

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// latest is a value that is fetched when it is needed, by one caller for all,
// and kept for a while. An old one outlives a failure to renew it.
type latest[T any] struct {
	timeout time.Duration // of a fetch

	mu    sync.Mutex
	value T
	at    time.Time     // of value; zero: none yet
	again time.Time     // not to be fetched anew before, after a failure
	busy  chan struct{} // closed when the fetch under way has ended
	err   error         // of the last fetch
}

// get returns the value if it is younger than life, and fetches it otherwise.
// With a life of 0 only a new one will do.
func (l *latest[T]) get(ctx context.Context, now time.Time, life time.Duration, fetch func(context.Context) (T, error)) (T, error) {
	l.mu.Lock()
	if !l.at.IsZero() && (now.Sub(l.at) < life || (life > 0 && now.Before(l.again))) {
		defer l.mu.Unlock()
		return l.value, nil
	}
	wait, old := l.busy, l.at
	if wait == nil {
		wait = make(chan struct{})
		l.busy = wait
		go l.renew(context.WithoutCancel(ctx), now, fetch, wait)
	}
	l.mu.Unlock()
	oldWillDo := !old.IsZero() && life > 0
	if oldWillDo {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience(ctx))
		defer cancel()
	}
	select {
	case <-ctx.Done():
		if !oldWillDo {
			return *new(T), ctx.Err()
		}
	case <-wait:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() {
		return l.value, l.err
	}
	return l.value, nil
}

// patience is how long to wait for a new value where the old one would do: a part
// of the time there is.
func patience(ctx context.Context) time.Duration {
	d := 2 * time.Second
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)/4)
	}
	return d
}

// renew fetches apart from any one caller: they may leave while others wait.
func (l *latest[T]) renew(ctx context.Context, now time.Time, fetch func(context.Context) (T, error), done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	v, err := guarded(ctx, fetch)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = err; err == nil {
		l.value, l.at = v, now
	} else {
		l.again = now.Add(time.Minute) // do not ask a provider in trouble every time
	}
	l.busy = nil
	close(done)
}

// guarded turns a panic over a provider's document into an error. What was
// panicked with may quote the document.
func guarded[T any](ctx context.Context, fetch func(context.Context) (T, error)) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic over the document: %T", r)
		}
	}()
	return fetch(ctx)
}
