package gather_test

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/authmount/auth/internal/gather"
)

// network simulates a round trip: two channel operations and a server that does one thing
// at a time.
type network chan chan struct{}

func newNetwork(b *testing.B) network {
	n := make(network)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for back := range n {
			back <- struct{}{}
		}
	}()
	b.Cleanup(func() { close(n); <-done })
	return n
}

func (n network) roundTrip() {
	back := make(chan struct{})
	n <- back
	<-back
}

var sink atomic.Int64

// The overhead of a single call over the bare call.
func BenchmarkLone(b *testing.B) {
	one := func(_ context.Context, n int) (int, error) { return n + 1, nil }
	b.Run("bare", func(b *testing.B) {
		ctx := b.Context()
		f := one
		for i := range b.N {
			n, _ := f(ctx, i)
			sink.Store(int64(n))
		}
	})
	b.Run("group", func(b *testing.B) {
		ctx := b.Context()
		g := gather.New(gather.Config[int, int]{One: one, Many: func(context.Context, []*gather.Call[int, int]) error { return nil }, Limit: 4})
		b.ReportAllocs()
		for i := range b.N {
			n, _ := g.Do(ctx, i)
			sink.Store(int64(n))
		}
	})
}

// Concurrent calls, each in its own round trip or shared.
func BenchmarkParallel(b *testing.B) {
	for _, callers := range []int{8, 32} {
		name := strconv.Itoa(callers)
		b.Run(name+"/bare", func(b *testing.B) {
			n := newNetwork(b)
			b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					n.roundTrip()
				}
			})
		})
		b.Run(name+"/group", func(b *testing.B) {
			n := newNetwork(b)
			var trips atomic.Int64
			g := gather.New(gather.Config[int, int]{
				One: func(_ context.Context, arg int) (int, error) {
					trips.Add(1)
					n.roundTrip()
					return arg, nil
				},
				Many: func(_ context.Context, calls []*gather.Call[int, int]) error {
					trips.Add(1)
					n.roundTrip()
					for _, c := range calls {
						c.Return(c.Arg)
					}
					return nil
				},
				Limit: 4,
			})
			b.ReportAllocs()
			b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := g.Do(b.Context(), 1); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/float64(trips.Load()), "calls/trip")
		})
	}
}
