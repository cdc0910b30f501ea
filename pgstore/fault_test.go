package pgstore_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/gather"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// breaker is a tracer that makes statements fail in calls that request it: of a sequence
// of statements, one later with each call.
type breaker struct {
	mu   sync.Mutex
	seen map[string]bool // the statements of a call, up to the one that failed
}

type brokenKey struct{}

// broken is one call.
type broken struct {
	sent  strings.Builder // the SQL sent up to now
	at    string          // the statement that failed; empty: none did
	again bool            // in a way that the store may retry
	after bool            // after one in the same batch that has an outcome of its own
}

// next reports whether the next statement of a call is to fail.
func (b *breaker) next(c *broken, sql string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.sent.WriteString(sql + ";")
	sent := c.sent.String()
	if c.at != "" || b.seen[sent] || strings.HasPrefix(sql, "rollback") {
		return false
	}
	b.seen[sent], c.at = true, sql
	return true
}

// of returns the call of a statement, or nil if calls share it.
func (b *breaker) of(ctx context.Context) *broken {
	if callers := gather.Callers(ctx); len(callers) > 1 {
		return nil
	} else if len(callers) == 1 {
		ctx = callers[0]
	}
	c, _ := ctx.Value(brokenKey{}).(*broken)
	return c
}

// TraceQueryStart makes a statement fail by a parameter that cannot be sent. It prevents
// one without parameters from being sent.
func (b *breaker) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c := b.of(ctx)
	switch {
	case c == nil || !b.next(c, d.SQL):
	case len(d.Args) > 0:
		d.Args[0] = make(chan int)
	default:
		c.again = true
		gone, cancel := context.WithCancel(ctx)
		cancel()
		return gone
	}
	return ctx
}

// TraceBatchStart alters one of several statements so that the database refuses it.
func (b *breaker) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	if c := b.of(ctx); c != nil {
		for i, q := range d.Batch.QueuedQueries {
			if b.next(c, q.SQL) {
				q.SQL, q.Arguments, c.after = "select 1 / 0", nil, i > 0
			}
		}
	}
	return ctx
}

func (*breaker) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (*breaker) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*breaker) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// isFault reports whether an error is of a statement that was made to fail.
func isFault(err error) bool {
	return errors.Is(err, context.Canceled) || sqlState(err) == "22012" || err != nil && strings.Contains(err.Error(), "chan int")
}

// isOutcome reports whether an error is the outcome of a statement before the one that
// failed.
func isOutcome(err error) bool {
	var taken *store.ConflictError
	return errors.Is(err, store.ErrNotFound) || errors.As(err, &taken)
}

// until repeats a call, with the failure one statement later each time, until none fails.
// A call with a failed statement has to return an error.
func (b *breaker) until(ctx context.Context, t testing.TB, call func(context.Context) error) error {
	t.Helper()
	for range 100 {
		c := &broken{}
		err := call(context.WithValue(ctx, brokenKey{}, c))
		told := isFault(err)
		if c.at == "" || c.again && !told {
			return err
		}
		if !told && (!c.after || !isOutcome(err)) {
			t.Errorf("%v, though a statement failed: %.200s", err, c.at)
		}
	}
	t.Error("there is no end of statements")
	return nil
}

// If any statement of a method fails, so does the method, and its error says where.
func TestFaultsAreTold(t *testing.T) {
	t.Parallel()
	b := &breaker{seen: map[string]bool{}}
	s := openTraced(t, b)
	apart := []string{"Check", "CheckFiles", "Migrate", "MigrateFiles", "WatchRevocations", "InTransaction"}
	for i := range reflect.TypeOf(s).NumMethod() {
		m := reflect.TypeOf(s).Method(i)
		if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]() || slices.Contains(apart, m.Name) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			clear(b.seen)
			_ = b.until(t.Context(), t, func(ctx context.Context) error {
				args := []reflect.Value{reflect.ValueOf(s), reflect.ValueOf(ctx)}
				for i := 2; i < m.Type.NumIn(); i++ {
					args = append(args, filled(m.Type.In(i)))
				}
				call := m.Func.Call
				if m.Type.IsVariadic() {
					call = m.Func.CallSlice
				}
				results := call(args)
				err, _ := results[len(results)-1].Interface().(error)
				return err
			})
			if len(b.seen) == 0 {
				t.Error("it has no statement")
			}
		})
	}
}

// faulty is a store that first has each call fail, at each of its statements. A call that
// failed has done nothing: repeated, it runs as if it were the first.
type faulty struct {
	*pgstore.Store
	b *breaker
	t *testing.T
}

func none1[A any](f faulty, ctx context.Context, a A, call func(context.Context, A) error) error {
	return f.b.until(ctx, f.t, func(ctx context.Context) error { return call(ctx, a) })
}

func one1[A, R any](f faulty, ctx context.Context, a A, call func(context.Context, A) (R, error)) (r R, err error) {
	err = f.b.until(ctx, f.t, func(ctx context.Context) error { r, err = call(ctx, a); return err })
	return r, err
}

func two1[A, R, S any](f faulty, ctx context.Context, a A, call func(context.Context, A) (R, S, error)) (r R, s S, err error) {
	err = f.b.until(ctx, f.t, func(ctx context.Context) error { r, s, err = call(ctx, a); return err })
	return r, s, err
}
