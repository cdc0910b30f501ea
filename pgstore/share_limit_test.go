package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/gather"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/pgstore"
)

// gate holds up draws on their way to the database until it is opened, so that
// those that come meanwhile share statements.
type gate struct {
	came    chan struct{}
	open    chan struct{}
	callers atomic.Int64 // of statements that were made for several
	shut    atomic.Bool  // not while the schema is made
}

func (g *gate) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if g.shut.Load() && (strings.Contains(q.SQL, "auth.take(") || strings.Contains(q.SQL, "insert into auth.limits")) {
		g.callers.Add(int64(len(gather.Callers(ctx))))
		g.came <- struct{}{}
		<-g.open
	}
	return ctx
}

func (*gate) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func newGate(t *testing.T) (*gate, *pgstore.Store) {
	t.Helper()
	g := &gate{came: make(chan struct{}, 1000), open: make(chan struct{})}
	s := openTraced(t, g)
	g.shut.Store(true)
	return g, s
}

// outcome is of a call of Take.
type outcome struct {
	auth.Decision
	err error
}

// together has calls wait for one another, and makes them.
func (g *gate) together(t *testing.T, s *pgstore.Store, calls [][]auth.Draw, at time.Time) []outcome {
	t.Helper()
	var come, wg sync.WaitGroup
	list := make([]outcome, len(calls))
	come.Add(len(calls))
	for i, draws := range calls {
		wg.Go(func() {
			come.Done()
			list[i].Decision, list[i].err = s.Take(t.Context(), draws, at)
		})
	}
	come.Wait()
	for range 3 { // half of the connections
		<-g.came
	}
	close(g.open)
	wg.Wait()
	return list
}

var ten = auth.Rate{Burst: 10, Per: time.Minute}

// Draws of the same bucket in one statement are judged one after the other: as
// many are allowed as the bucket has, and each is told another rest. A call that
// is refused takes nothing from the buckets that it shares with others.
func TestDrawsShareStatements(t *testing.T) {
	g, s := newGate(t)
	one := func(key string, cost int) auth.Draw { return auth.Draw{Key: key, Rate: ten, Cost: cost} }
	var calls [][]auth.Draw
	for range 25 {
		calls = append(calls, []auth.Draw{one("crowded", 1)})
	}
	for i := range 20 {
		draws := []auth.Draw{one("a", 1), one("b", 1)}
		if i%2 == 0 {
			slices.Reverse(draws)
		}
		calls = append(calls, draws, []auth.Draw{one("a", 1), one("never", 11)}, []auth.Draw{one(fmt.Sprint("own ", i), 1)})
	}
	calls = append(calls, []auth.Draw{one("no text \x00", 1)})
	list := g.together(t, s, calls, now)

	var rests []int
	allowed := map[string]int{}
	for i, o := range list {
		key := calls[i][len(calls[i])-1].Key
		if strings.HasPrefix(key, "no text") {
			if o.err == nil {
				t.Error("a key that is no text is taken")
			}
			continue
		}
		if o.err != nil {
			t.Errorf("%s: %v", key, o.err)
		}
		if o.Allowed {
			allowed[key]++
			if key == "crowded" {
				rests = append(rests, o.Remaining[0])
			}
		}
	}
	if slices.Sort(rests); !slices.Equal(rests, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("the crowded bucket left %v", rests)
	}
	if n := allowed["a"] + allowed["b"]; n != 10 || allowed["never"] != 0 {
		t.Errorf("%d of two buckets, %d of one that never gives", n, allowed["never"])
	}
	for i := range 20 {
		if allowed[fmt.Sprint("own ", i)] != 1 {
			t.Errorf("bucket %d refuses", i)
		}
	}
	if n := int(g.callers.Load()); n < len(calls)/2 {
		t.Errorf("%d of %d calls shared", n, len(calls))
	}
}

// Whatever calls share a statement, each is decided as if it came alone, in turn:
// with keys that come twice, rates that change, and draws of nothing.
func TestTakeTogetherAgreesWithMemstore(t *testing.T) {
	s, m := open(t), memstore.New()
	rates := []auth.Rate{{Burst: 5, Per: time.Minute}, {Burst: 1, Per: time.Minute}, {Burst: 7, Per: time.Second}, {Burst: 3, Per: time.Hour}, {}}
	costs := []int{0, 1, 1, 1, 2, 5, -1, -2}
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // to be repeated, not to be secret
	at := now
	for step := range 200 {
		calls := make([][]auth.Draw, 1+r.IntN(6))
		times := make([]time.Time, len(calls))
		for i := range calls {
			for range 1 + r.IntN(3) {
				calls[i] = append(calls[i], auth.Draw{Key: fmt.Sprint(r.IntN(4)), Rate: rates[r.IntN(len(rates))], Cost: costs[r.IntN(len(costs))]})
			}
			calls[i][0].Cost = 1 // what only asks goes alone
			times[i] = at
			at = at.Add(time.Duration(r.Int64N(int64(5 * time.Second))))
		}
		got, err := s.TakeTogether(t.Context(), calls, times)
		if err != nil {
			t.Fatal(err)
		}
		for i, draws := range calls {
			want, err := m.Take(t.Context(), draws, times[i])
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got[i], want) {
				t.Fatalf("seed %d, step %d, call %d of %+v: %+v, want %+v", seed, step, i, calls, got[i], want)
			}
		}
	}
}

// A bucket that an application's transaction holds is waited for by those who draw
// from it, and by nobody else, however many they are.
func TestDrawsWaitForTheirOwnBucket(t *testing.T) {
	c := newCrowd(t, 0, "auth.limits")
	ctx := t.Context()
	draw := func(key string) error {
		d, err := c.Take(ctx, []auth.Draw{{Key: key, Rate: ten, Cost: 1}}, now)
		if err == nil && !d.Allowed {
			err = errors.New("refused")
		}
		return err
	}
	for _, held := range []string{"a new one", "one that is there"} {
		var wg sync.WaitGroup
		inTx(t, c.Store, func(in context.Context, _ pgx.Tx) error {
			if _, err := c.Take(in, []auth.Draw{{Key: "held", Rate: ten, Cost: 1}}, now); err != nil {
				return err
			}
			for range 3 { // as many as may be under way
				wg.Go(func() {
					if err := draw("held"); err != nil {
						t.Errorf("%s: %v", held, err)
					}
				})
			}
			blocked(t, c.Store, "auth", 3)
			for i := range 20 {
				if err := draw(fmt.Sprint(held, i)); err != nil {
					t.Errorf("beside %s: %v", held, err)
				}
			}
			return nil
		})
		wg.Wait()
	}
	if d, err := c.Take(ctx, []auth.Draw{{Key: "held", Rate: ten}}, now); err != nil || d.Remaining[0] != 2 {
		t.Errorf("%+v, %v", d, err)
	}
}

// Whoever leaves before the statement does draws nothing, and takes nobody along.
func TestDrawsOfThoseWhoLeave(t *testing.T) {
	g, s := newGate(t)
	gone, leave := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { // holds the first statement up
		_, err := s.Take(t.Context(), []auth.Draw{{Key: "k", Rate: ten, Cost: 1}}, now)
		over <- err
	}()
	<-g.came
	for range 2 { // and these the others
		go func() {
			_, err := s.Take(t.Context(), []auth.Draw{{Key: "k", Rate: ten, Cost: 1}}, now)
			over <- err
		}()
		<-g.came
	}
	go func() {
		_, err := s.Take(gone, []auth.Draw{{Key: "k", Rate: ten, Cost: 1}}, now)
		over <- err
	}()
	leave()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("whoever left: %v", err)
	}
	close(g.open)
	for range 3 {
		if err := <-over; err != nil {
			t.Error(err)
		}
	}
	if d, err := s.Take(t.Context(), []auth.Draw{{Key: "k", Rate: ten}}, now); err != nil || d.Remaining[0] != 7 {
		t.Errorf("%+v, %v", d, err)
	}
}
