package pgstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimeouts(t *testing.T) {
	const most = 10 * time.Second
	// after returns the time until a context ends.
	after := func(ctx context.Context) time.Duration {
		began := time.Now()
		<-ctx.Done()
		return time.Since(began)
	}
	for name, check := range map[string]func(t *testing.T, ts *timeouts){
		"each has its own": func(t *testing.T, ts *timeouts) {
			first := ts.begin(t.Context(), most)
			time.AfterFunc(3*time.Second, func() {
				second := ts.begin(t.Context(), most)
				third := ts.begin(t.Context(), most)
				time.AfterFunc(time.Second, func() { ts.done(second) })
				if took := after(third); took != most || !errors.Is(third.Err(), context.DeadlineExceeded) {
					t.Errorf("third: %v after %v", third.Err(), took)
				}
				if !errors.Is(second.Err(), context.Canceled) {
					t.Errorf("second: %v", second.Err())
				}
			})
			if took := after(first); took != most || !errors.Is(first.Err(), context.DeadlineExceeded) {
				t.Errorf("first: %v after %v", first.Err(), took)
			}
			ts.done(first)
		},
		"the oldest leaves": func(t *testing.T, ts *timeouts) {
			first := ts.begin(t.Context(), most)
			<-time.After(time.Second)
			second := ts.begin(t.Context(), most)
			ts.done(first)
			if took := after(second); took != most || !errors.Is(second.Err(), context.DeadlineExceeded) {
				t.Errorf("%v after %v", second.Err(), took)
			}
		},
		"after a while of nothing": func(t *testing.T, ts *timeouts) {
			ts.done(ts.begin(t.Context(), most))
			<-time.After(most + time.Second)
			if b := ts.begin(t.Context(), most); after(b) != most || !errors.Is(b.Err(), context.DeadlineExceeded) {
				t.Error(b.Err())
			}
		},
		"cancelled by the caller": func(t *testing.T, ts *timeouts) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if b := ts.begin(ctx, most); after(b) != time.Second || !errors.Is(b.Err(), context.Canceled) {
				t.Error(b.Err())
			}
		},
		"the caller's own deadline": func(t *testing.T, ts *timeouts) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			b := ts.begin(ctx, most)
			if after(b) != time.Second || !errors.Is(b.Err(), context.DeadlineExceeded) {
				t.Error(b.Err())
			}
		},
		"cancelled while it works": func(t *testing.T, ts *timeouts) {
			ctx, cancel := context.WithCancel(t.Context())
			b, other := ts.begin(ctx, most), ts.begin(ctx, most)
			time.AfterFunc(time.Second, cancel)
			if err := errors.Join(b.work(), b.work()); err != nil { // a call may be repeated
				t.Error(err)
			}
			time.AfterFunc(time.Second+patience/2, func() { ts.done(other) })
			if took := after(b); took != time.Second+patience || !errors.Is(b.Err(), context.Canceled) {
				t.Errorf("%v after %v", b.Err(), took)
			}
			if err := b.work(); !errors.Is(err, context.Canceled) {
				t.Errorf("it goes on: %v", err)
			}
		},
		"cancelled shortly before its end": func(t *testing.T, ts *timeouts) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(most-patience/2, cancel)
			b := ts.begin(ctx, most)
			if err := b.work(); err != nil {
				t.Error(err)
			}
			if took := after(b); took != most || !errors.Is(b.Err(), context.DeadlineExceeded) {
				t.Errorf("%v after %v", b.Err(), took)
			}
		},
		"cancelled before it works": func(t *testing.T, ts *timeouts) {
			ctx, cancel := context.WithCancel(t.Context())
			b := ts.begin(ctx, most)
			cancel()
			if err := b.work(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		},
		"cancelled when it is over": func(t *testing.T, ts *timeouts) {
			ctx, cancel := context.WithCancel(t.Context())
			b := ts.begin(ctx, most)
			if err := b.work(); err != nil {
				t.Error(err)
			}
			ts.done(b)
			cancel()
		},
		"what is made of it": func(t *testing.T, ts *timeouts) {
			type key struct{}
			b := ts.begin(t.Context(), most)
			if d, ok := b.Deadline(); !ok || time.Until(d) != most {
				t.Error(d, ok)
			}
			child := context.WithValue(b, key{}, 1)
			if after(child) != most || !errors.Is(child.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(child), context.DeadlineExceeded) {
				t.Error(child.Err(), context.Cause(child))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ts := &timeouts{}
				check(t, ts)
				<-time.After(3 * most)
				ts.mu.Lock()
				defer ts.mu.Unlock()
				for _, l := range []*line{&ts.all, &ts.left} {
					if l.oldest != nil || l.end != nil || l.set {
						t.Error("not empty afterwards")
					}
				}
			})
		})
	}
}
