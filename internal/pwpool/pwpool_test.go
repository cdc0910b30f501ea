package pwpool

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func noPlaceLost(t *testing.T, p *Pool) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free != 2*cap(p.cpu) || len(p.cpu) != 0 {
		t.Errorf("places were lost: %d free, %d working", p.free, len(p.cpu))
	}
	for _, l := range []*lane{p.knownDevices, p.everybody} {
		if n := l.all; n.waiting != 0 || n.running != 0 || len(n.members) != 0 || len(n.order) != 0 || len(n.callers) != 0 || len(l.accounts) != 0 || len(l.rejecting) != 0 {
			t.Errorf("%+v of the lane remain, %d accounts, %d networks with rejections", *n, len(l.accounts), len(l.rejecting))
		}
	}
}

// by returns a caller of a client in no other network.
func by(client, account string) Caller { return Caller{Networks: []string{client}, Account: account} }

// At most as many callers work as there are workers, few are between admit and work, and
// callers beyond the queue are rejected.
func TestPoolLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(3, 10)
		var working, admitted, mostWorking, refused, done atomic.Int32
		release := make(chan struct{})
		for range 400 {
			go func() {
				err := p.Run(t.Context(), Caller{}, func(context.Context) error {
					admitted.Add(1)
					return nil
				}, func() error {
					n := working.Add(1)
					for most := mostWorking.Load(); n > most && !mostWorking.CompareAndSwap(most, n); most = mostWorking.Load() {
					}
					<-release
					working.Add(-1)
					return nil
				})
				switch {
				case err == nil:
					done.Add(1)
				case errors.Is(err, ErrOverloaded):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}()
		}
		synctest.Wait() // until every caller is blocked or gone
		if working.Load() != 3 || admitted.Load() != 6 || refused.Load() != 400-6-10 {
			t.Errorf("working %d, admitted %d, refused %d", working.Load(), admitted.Load(), refused.Load())
		}
		close(release)
		synctest.Wait()
		if mostWorking.Load() != 3 || done.Load() != 16 {
			t.Errorf("at most %d working, %d done", mostWorking.Load(), done.Load())
		}
		noPlaceLost(t, p)
	})
}

// A caller that is canceled while it waits, in either stage, frees its place and does no
// work.
func TestPoolCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, 1)
		p.cpu <- struct{}{} // one caller works
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 3)
		for range 3 { // two wait for the processor, one in the queue
			go func() {
				results <- p.Run(ctx, Caller{}, nil, func() error { t.Error("worked for nobody"); return nil })
			}()
		}
		synctest.Wait()
		if p.free != 0 || p.everybody.all.waiting != 1 || len(results) != 0 {
			t.Fatalf("%d free, %d waiting, %d gone", p.free, p.everybody.all.waiting, len(results))
		}
		if err := p.Run(t.Context(), Caller{}, nil, func() error { t.Error("worked"); return nil }); !errors.Is(err, ErrOverloaded) {
			t.Errorf("error %v", err)
		}
		cancel()
		for range 3 {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		}
		<-p.cpu
		noPlaceLost(t, p)
		worked := false
		if err := p.Run(t.Context(), Caller{}, nil, func() error { worked = true; return nil }); err != nil || !worked {
			t.Errorf("worked %v, error %v", worked, err)
		}
	})
}

// Every return from Run frees the place.
func TestPoolFreesPlaces(t *testing.T) {
	refused, failed := errors.New("refused"), errors.New("failed")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	admit := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	for name, c := range map[string]struct {
		ctx    context.Context
		admit  func(context.Context) error
		work   func() error
		want   error
		works  bool
		panics bool
	}{
		"done":            {ctx: t.Context(), works: true},
		"admitted":        {ctx: t.Context(), admit: admit(nil), works: true},
		"refused":         {ctx: t.Context(), admit: admit(refused), want: refused},
		"failed":          {ctx: t.Context(), work: func() error { return failed }, want: failed, works: true},
		"gone before":     {ctx: gone, want: context.Canceled},
		"panic in work":   {ctx: t.Context(), work: func() error { panic("bug") }, works: true, panics: true},
		"panic in admit":  {ctx: t.Context(), admit: func(context.Context) error { panic("bug") }, panics: true},
		"gone when asked": {ctx: t.Context(), admit: func(context.Context) error { return context.DeadlineExceeded }, want: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(1, 1)
			worked, panicked := false, false
			var err error
			func() {
				defer func() { panicked = recover() != nil }()
				err = p.Run(c.ctx, by("a", "b"), c.admit, func() error {
					worked = true
					if c.work == nil {
						return nil
					}
					return c.work()
				})
			}()
			if !errors.Is(err, c.want) || worked != c.works || panicked != c.panics {
				t.Errorf("error %v, worked %v, panicked %v", err, worked, panicked)
			}
			noPlaceLost(t, p)
		})
	}
}

// A canceled caller does no work, even if places are free.
func TestCanceledBeforeRun(t *testing.T) {
	p := New(1, 1)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 64 {
		if err := p.Run(gone, Caller{}, nil, func() error { t.Error("worked"); return nil }); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
	}
	err := p.Run(t.Context(), Caller{}, nil, func() error { return nil })
	if err != nil {
		t.Error(err)
	}
}

// admit gets the caller's context.
func TestAdmitContext(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "here")
	err := New(1, 1).Run(ctx, Caller{}, func(ctx context.Context) error {
		if ctx.Value(key{}) != "here" {
			t.Error("another context")
		}
		return nil
	}, func() error { return nil })
	if err != nil {
		t.Error(err)
	}
}
