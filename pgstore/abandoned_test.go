package pgstore_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/gather"
	"github.com/authmount/auth/store"
)

type leavingKey struct{}

// leaving is a context that calls f when a statement is about to be sent with it, with the
// statement's number, from one.
func leaving(ctx context.Context, f func(statement int)) context.Context {
	n := 0
	return context.WithValue(ctx, leavingKey{}, func() { n++; f(n) })
}

// leavers is a tracer that calls the functions of leaving.
type leavers struct{}

func (leavers) leave(ctx context.Context) {
	for _, c := range append(gather.Callers(ctx), ctx) {
		if f, ok := c.Value(leavingKey{}).(func()); ok {
			f()
		}
	}
}

func (l leavers) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	l.leave(ctx)
	return ctx
}

func (l leavers) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	l.leave(ctx)
	return ctx
}

func (leavers) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (leavers) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (leavers) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// A caller who leaves while a statement is under way costs no connection, for every
// method: the statement finishes, and its outcome is returned.
func TestCallersLeaveMidway(t *testing.T) {
	s := openTraced(t, leavers{})
	ctx := reflect.TypeFor[context.Context]()
	// These methods run once, when a service starts, or all the time.
	apart := []string{"Check", "CheckFiles", "Migrate", "MigrateFiles", "WatchRevocations"}
	for i := range reflect.TypeOf(s).NumMethod() {
		m := reflect.TypeOf(s).Method(i)
		if m.Type.NumIn() < 2 || m.Type.In(1) != ctx || slices.Contains(apart, m.Name) || m.Name == "InTransaction" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			sent := 1
			for at := 1; at <= sent; at++ {
				caller, leave := context.WithCancel(t.Context())
				caller = leaving(caller, func(n int) {
					if sent = max(sent, n); n == at {
						leave()
					}
				})
				before := s.Pool().Stat().NewConnsCount()
				args := []reflect.Value{reflect.ValueOf(s), reflect.ValueOf(caller)}
				for i := 2; i < m.Type.NumIn(); i++ {
					args = append(args, filled(m.Type.In(i)))
				}
				call := m.Func.Call
				if m.Type.IsVariadic() {
					call = m.Func.CallSlice
				}
				results := call(args)
				if caller.Err() == nil {
					t.Fatalf("statement %d was never sent", at)
				}
				if err, _ := results[len(results)-1].Interface().(error); errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("at statement %d: %v", at, err)
				}
				if err := s.Ping(t.Context()); err != nil {
					t.Fatal(err)
				}
				if n := s.Pool().Stat().NewConnsCount() - before; n > 0 {
					t.Errorf("at statement %d: %d new connections", at, n)
				}
			}
		})
	}
}

// filled is a value that a store accepts: texts are ids, and the change is permitted.
func filled(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[store.Change]():
		v.Set(reflect.ValueOf(byTest()))
	case t == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Now().UTC()))
	case t == reflect.TypeFor[store.UserPatch]():
		name := "x"
		v.Set(reflect.ValueOf(store.UserPatch{FullName: &name}))
	case t.Kind() == reflect.String:
		v.SetString(uuid.NewString())
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		v.SetInt(10)
	case t.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
		v.Index(0).Set(filled(t.Elem()))
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				v.Field(i).Set(filled(t.Field(i).Type))
			}
		}
	}
	return v
}

// Requests that are canceled during a statement, as a client may do all day, do not make
// the pool open new connections.
func TestAbandonedRequests(t *testing.T) {
	const rounds, clients = 30, 10
	c := newCrowd(t, 0, aRead)
	env := authtest.NewOn(t, c.Store, auth.WithLogger(slog.New(slog.DiscardHandler)))
	in := env.LoginAs(t, "ada@example.com")
	var arrived, left sync.WaitGroup
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Leaves") != "" {
			arrived.Done()
			context.AfterFunc(r.Context(), left.Done)
		}
		env.Handler().ServeHTTP(w, r)
	}))
	defer srv.Close()
	get := func(ctx context.Context, leaves string) (status int, err error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/auth/v1/me", http.NoBody)
		if err != nil {
			return 0, err
		}
		in.Sign(r)
		r.Header.Set("X-Leaves", leaves)
		res, err := srv.Client().Do(r)
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
	before := c.Pool().Stat().NewConnsCount()
	for range rounds {
		unlock := c.lock(t, "lock table auth.sessions in access exclusive mode")
		ctx, giveUp := context.WithCancel(t.Context())
		arrived.Add(clients)
		left.Add(clients)
		var over sync.WaitGroup
		for range clients {
			over.Go(func() {
				if _, err := get(ctx, "yes"); !errors.Is(err, context.Canceled) {
					t.Errorf("a request that is given up: %v", err)
				}
			})
		}
		arrived.Wait()
		blocked(t, c.Store, "auth", 1)
		giveUp()
		over.Wait()
		left.Wait()
		unlock()
	}
	if status, err := get(t.Context(), ""); status != http.StatusOK {
		t.Errorf("a request that is not: %d, %v", status, err)
	}
	if n := c.Pool().Stat().NewConnsCount() - before; n >= 10 {
		t.Errorf("%d connections for %d requests that were given up", n, rounds*clients)
	}
}

// A caller who leaves while they wait changes nothing, and waits no longer. If they leave
// while a statement waits for locks, it is canceled soon.
func TestCallersLeaveWaiting(t *testing.T) {
	s := openTraced(t, leavers{})
	u := withUser(t, s)
	name := "changed"
	update := func(ctx context.Context) error {
		_, err := patch(ctx, s, u.ID, store.UserPatch{FullName: &name})
		return err
	}
	calls := map[string]func(context.Context) error{
		"a transaction": update,
		"a statement":   s.Ping,
		"a shared one":  func(ctx context.Context) error { _, _, err := s.Session(ctx, uuid.NewString(), time.Now()); return err },
	}
	t.Run("for a connection", func(t *testing.T) {
		for range s.Pool().Config().MaxConns {
			c, err := s.Pool().Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Release()
		}
		for what, call := range calls {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			began := time.Now()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 900*time.Millisecond {
				t.Errorf("%s: %v after %v", what, err, time.Since(began))
			}
			cancel()
		}
	})
	t.Run("for a lock", func(t *testing.T) {
		err := pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "select from auth.users for update"); err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(t.Context())
			began := time.Now()
			if err := update(leaving(ctx, func(int) { cancel() })); !errors.Is(err, context.Canceled) || time.Since(began) > 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	if got, err := s.User(t.Context(), store.ByID(u.ID)); err != nil || got.FullName == name {
		t.Errorf("%+v, %v", got, err)
	}
}
