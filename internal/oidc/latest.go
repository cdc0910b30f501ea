package oidc

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// latest is a value that is fetched when it is needed, once for all waiting callers, and
// cached for a while. If it cannot be fetched again, the old value remains.
type latest[T any] struct {
	timeout time.Duration // limit of one fetch

	mu      sync.Mutex
	value   T
	at      time.Time     // time of value; zero: no value yet
	retryAt time.Time     // no new fetch before this time, after a failure
	running chan struct{} // closed when the running fetch ends
	err     error         // error of the last fetch
}

// get returns the value if it is younger than life, or else fetches it. With a life of 0
// it always fetches.
func (l *latest[T]) get(ctx context.Context, now time.Time, life time.Duration, fetch func(context.Context) (T, error)) (T, error) {
	l.mu.Lock()
	if !l.at.IsZero() && (now.Sub(l.at) < life || (life > 0 && now.Before(l.retryAt))) {
		defer l.mu.Unlock()
		return l.value, nil
	}
	wait, old := l.running, l.at
	if wait == nil {
		wait = make(chan struct{})
		l.running = wait
		go l.renew(context.WithoutCancel(ctx), now, fetch, wait)
	}
	l.mu.Unlock()
	oldUsable := !old.IsZero() && life > 0
	if oldUsable {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience(ctx))
		defer cancel()
	}
	select {
	case <-ctx.Done():
		if !oldUsable {
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

// settle waits until the running fetch ends, if there is one.
func (l *latest[T]) settle(ctx context.Context) {
	l.mu.Lock()
	wait := l.running
	l.mu.Unlock()
	if wait == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-wait:
	}
}

// patience returns how long to wait for a new value if the old one is usable: a part of
// the time until the deadline.
func patience(ctx context.Context) time.Duration {
	d := 2 * time.Second
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)/4)
	}
	return d
}

// renew fetches the value independently of a single caller, because callers may leave
// while others wait.
func (l *latest[T]) renew(ctx context.Context, now time.Time, fetch func(context.Context) (T, error), done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	v, err := recovered(ctx, fetch)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = err; err == nil {
		l.value, l.at = v, now
	} else {
		l.retryAt = now.Add(time.Minute) // do not ask a failing provider for every request
	}
	l.running = nil
	close(done)
}

// recovered turns a panic in fetch into an error. It omits the panic's value, which may
// quote the document.
func recovered[T any](ctx context.Context, fetch func(context.Context) (T, error)) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic while reading the document: %T", r)
		}
	}()
	return fetch(ctx)
}
