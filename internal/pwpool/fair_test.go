package pwpool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// crowd are callers of a pool in a bubble. The test ends their work one at a time.
type crowd struct {
	t        *testing.T
	p        *Pool
	letGo    chan struct{}
	mu       sync.Mutex
	turns    []string // callers in the order of their work
	refused  map[string]int
	finished map[string]int
}

func newCrowd(t *testing.T, workers, queue int) *crowd {
	return &crowd{t: t, p: New(workers, queue), letGo: make(chan struct{}), refused: map[string]int{}, finished: map[string]int{}}
}

func nameOf(who Caller) string { return strings.Join(who.Networks, " ") + "/" + who.Account }

// comes adds one caller, and waits until it works, waits or has left.
func (c *crowd) comes(ctx context.Context, who Caller) {
	name := nameOf(who)
	go func() {
		err := c.p.Run(ctx, who, nil, func() error {
			c.mu.Lock()
			c.turns = append(c.turns, name)
			c.mu.Unlock()
			<-c.letGo
			return nil
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case err == nil:
			c.finished[name]++
		case errors.Is(err, ErrOverloaded):
			c.refused[name]++
		case !errors.Is(err, context.Canceled):
			c.t.Error(err)
		}
	}()
	synctest.Wait()
}

// finish lets n callers finish, one after the other.
func (c *crowd) finish(n int) {
	for range n {
		c.letGo <- struct{}{}
		synctest.Wait()
	}
}

func (c *crowd) rejections() (n int) {
	for _, of := range c.refused {
		n += of
	}
	return n
}

// done lets all callers finish.
func (c *crowd) done() {
	close(c.letGo)
	synctest.Wait()
	noPlaceLost(c.t, c.p)
}

// A client that floods delays only itself: another client is next, and only the flooding
// client is rejected beyond its share.
func TestFloodDelaysOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 512)
		for range 650 {
			c.comes(t.Context(), by("flood", "one"))
		}
		if n := c.refused["flood/one"]; n != 650-2-128 { // two are past the queue
			t.Fatalf("%d refused", n)
		}
		c.comes(t.Context(), by("other", "two"))
		c.finish(2) // one works, one is past the queue
		if got := c.turns; !slices.Equal(got, []string{"flood/one", "flood/one", "other/two"}) {
			t.Errorf("turns: %v", got)
		}
		if c.refused["other/two"] != 0 {
			t.Error("the other one was refused")
		}
		c.done()
		if c.finished["flood/one"] != 130 || c.finished["other/two"] != 1 {
			t.Errorf("finished: %v", c.finished)
		}
	})
}

// Callers for one account have a limited share of the queue, from any clients. Other
// accounts are not affected.
func TestAccountShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 8)
		for i := range 10 {
			c.comes(t.Context(), by(fmt.Sprint(i), "victim"))
		}
		if refused := c.rejections(); refused != 10-2-2 {
			t.Errorf("%d refused, want all but two past the queue and two in it", refused)
		}
		c.comes(t.Context(), by("9", "own"))
		if c.refused["9/own"] != 0 {
			t.Error("another account was refused")
		}
		c.finish(3) // the share is free again
		before := c.rejections()
		c.comes(t.Context(), by("10", "victim"))
		if c.rejections() != before {
			t.Errorf("refused: %v", c.refused)
		}
		c.done()
	})
}

// One client cannot use up the share of an account: the owner at another client is
// admitted.
func TestOwnerIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 64)
		for range 40 {
			c.comes(t.Context(), by("flood", "victim"))
		}
		c.comes(t.Context(), by("home", "victim"))
		if c.p.everybody.accounts["victim"] != 16 || c.refused["home/victim"] != 0 {
			t.Fatalf("%d wait for the account; refused: %v", c.p.everybody.accounts["victim"], c.refused)
		}
		c.finish(2)
		if c.turns[len(c.turns)-1] != "home/victim" {
			t.Errorf("turns: %v", c.turns)
		}
		c.done()
	})
}

// A full queue admits a client with fewer waiting callers than another: many clients
// together cannot exclude one.
func TestFullQueueDisplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 8)
		for i := range 12 { // two past the queue, eight in it
			c.comes(t.Context(), by(fmt.Sprint(i%4), ""))
		}
		if c.p.everybody.all.waiting != 8 {
			t.Fatalf("%d waiting", c.p.everybody.all.waiting)
		}
		before := c.rejections()
		c.comes(t.Context(), by("late", ""))
		if c.refused["late/"] != 0 || c.rejections() != before+1 || c.p.everybody.all.waiting != 8 {
			t.Errorf("refused %v, %d waiting", c.refused, c.p.everybody.all.waiting)
		}
		c.done()
		if c.finished["late/"] != 1 {
			t.Errorf("finished: %v", c.finished)
		}
	})
}

// Clients alternate, each in the order of its callers. A canceled caller leaves the queue
// at once and is skipped.
func TestClientsAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 64)
		gone, cancel := context.WithCancel(t.Context())
		for _, who := range []string{"a", "a", "a1", "a2", "b1", "a3", "b2", "c1"} {
			c.comes(t.Context(), by(who[:1], who))
		}
		c.comes(gone, by("d", "d1"))
		c.comes(gone, by("a", "a4"))
		waiting := c.p.everybody.all.waiting
		cancel()
		synctest.Wait()
		if waiting-c.p.everybody.all.waiting != 2 {
			t.Errorf("%d waiting before, %d after two gave up", waiting, c.p.everybody.all.waiting)
		}
		c.finish(7)
		if want := []string{"a/a", "a/a", "b/b1", "a/a1", "c/c1", "b/b2", "a/a2", "a/a3"}; !slices.Equal(c.turns, want) {
			t.Errorf("turns %v, want %v", c.turns, want)
		}
		c.done()
	})
}

// With random arrivals and departures: no waiting client is served twice while another
// one waits, limits hold, and no place is lost.
func TestNoClientStarves(t *testing.T) {
	seed := rand.Uint64() //nolint:gosec // of a test
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test's
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			workers, queue := 1+rng.IntN(3), 1+rng.IntN(40)
			c := newCrowd(t, workers, queue)
			var cancels []context.CancelFunc
			since := map[string]map[string]int{} // for each waiting client: how often others were served since
			for range 300 {
				turns := len(c.turns)
				switch n := rng.IntN(10); {
				case n < 6:
					ctx, cancel := context.WithCancel(t.Context())
					cancels = append(cancels, cancel)
					c.comes(ctx, by(fmt.Sprint(rng.IntN(1+rng.IntN(8))), fmt.Sprint(rng.IntN(12))))
				case n < 7 && len(cancels) > 0:
					cancels[rng.IntN(len(cancels))]()
					synctest.Wait()
				case len(c.p.cpu) > 0:
					c.finish(1)
				}
				if c.p.everybody.all.waiting > queue || len(c.p.cpu) > workers {
					t.Fatalf("%d waiting of %d, %d working of %d", c.p.everybody.all.waiting, queue, len(c.p.cpu), workers)
				}
				now := map[string]map[string]int{}
				for _, waits := range c.p.everybody.all.order {
					now[waits.name] = since[waits.name]
					if now[waits.name] == nil || slices.ContainsFunc(c.turns[turns:], func(s string) bool { return s[:1] == waits.name }) {
						now[waits.name] = map[string]int{}
					}
					for _, turn := range c.turns[turns:] {
						now[waits.name][turn[:1]]++
						// A running caller was admitted before, and its client has lower
						// priority while it runs.
						if now[waits.name][turn[:1]] > 2*2*workers+2 {
							t.Fatalf("%q had %d turns while %q waited", turn, now[waits.name][turn[:1]], waits.name)
						}
					}
				}
				since = now
			}
			for _, cancel := range cancels {
				cancel()
			}
			c.done()
		})
	}
}

// Everything in parallel, for the race detector.
func TestPoolInParallel(t *testing.T) {
	p := New(2, 16)
	var working, done, refused, gone atomic.Int32
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%5 == 0 {
				go cancel()
			}
			err := p.Run(ctx, by(fmt.Sprint(i%7), fmt.Sprint(i%3)), nil, func() error {
				if working.Add(1) > 2 {
					t.Error("more at work than there are workers")
				}
				working.Add(-1)
				return nil
			})
			switch {
			case err == nil:
				done.Add(1)
			case errors.Is(err, ErrOverloaded):
				refused.Add(1)
			case errors.Is(err, context.Canceled):
				gone.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := done.Load() + refused.Load() + gone.Load(); n != 400 || done.Load() == 0 {
		t.Errorf("%d done, %d refused, %d gone", done.Load(), refused.Load(), gone.Load())
	}
	noPlaceLost(t, p)
}

func BenchmarkRunAlone(b *testing.B) {
	p := New(2, 512)
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Run(b.Context(), by("a", "b"), nil, func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRunQueued has 100 callers of 16 clients per processor, most of them waiting.
func BenchmarkRunQueued(b *testing.B) {
	p := New(2, 4096)
	names := [16]string{}
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	var n atomic.Int32
	b.SetParallelism(100)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		who := by(names[n.Add(1)%16], "")
		for pb.Next() {
			if err := p.Run(b.Context(), who, nil, func() error { return nil }); err != nil {
				b.Error(err)
			}
		}
	})
}
