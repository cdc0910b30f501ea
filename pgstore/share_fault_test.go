package pgstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/gather"
	"github.com/authmount/auth/store"
)

// lossy is a tracer that loses the statements that calls share.
type lossy struct {
	waits chan struct{} // one for each statement that contains this
	part  string
	lost  atomic.Int64 // calls
}

func (l *lossy) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	if !strings.Contains(d.SQL, l.part) {
		return ctx
	}
	if n := len(gather.Callers(ctx)); n > 0 {
		l.lost.Add(int64(n))
		d.Args[0] = make(chan int)
	}
	l.waits <- struct{}{}
	return ctx
}

func (*lossy) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// If a statement shared by several calls is lost, its effect is unknown: each call gets an
// error, and none is repeated in silence, which would draw or refresh twice.
func TestSharedStatementsThatAreLostAreTold(t *testing.T) {
	t.Parallel()
	const callers = 20
	l := &lossy{part: "\x00", waits: make(chan struct{}, 1000)}
	c := &crowd{Store: openTraced(t, l), now: time.Now().UTC().Truncate(time.Microsecond)}
	for range callers {
		c.sessions = append(c.sessions, signUp(t, c.Store))
	}
	for _, test := range []struct {
		name, part, table string
		call              func(ctx context.Context, i int) error
	}{
		{"reads", aRead, "sessions", func(ctx context.Context, i int) error {
			_, _, err := c.Session(ctx, c.sessions[i].ID, c.now)
			return err
		}},
		{"refreshes", aRefresh, "sessions", func(ctx context.Context, i int) error { _, _, err := c.advance(ctx, i, 0); return err }},
		{"draws", aDraw, "limits", func(ctx context.Context, i int) error {
			_, err := c.Take(ctx, []store.Draw{{Key: fmt.Sprint("key ", i), Rate: store.Rate{Burst: 5, Per: time.Hour}, Cost: 1}}, c.now)
			return err
		}},
	} {
		unlock := c.lock(t, "lock table auth."+test.table+" in access exclusive mode")
		l.part = test.part
		l.lost.Store(0)
		var told atomic.Int64
		var wg, come sync.WaitGroup
		for i := range callers {
			come.Add(1)
			wg.Go(func() {
				come.Done()
				switch err := test.call(t.Context(), i); {
				case err == nil:
				case strings.Contains(err.Error(), "chan int"):
					told.Add(1)
				default:
					t.Errorf("%s: %v", test.name, err)
				}
			})
		}
		come.Wait()
		<-l.waits
		unlock()
		wg.Wait()
		if lost := l.lost.Load(); lost == 0 || told.Load() != lost {
			t.Errorf("%s: %d calls were lost, %d told", test.name, lost, told.Load())
		}
	}
}
