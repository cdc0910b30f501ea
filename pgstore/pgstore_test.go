package pgstore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// pool is shared by the tests that need no database of their own.
var pool = sync.OnceValues(func() (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(sharedURL)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 20
	return pgxpool.NewWithConfig(context.Background(), cfg)
})

var (
	sharedURL  string
	sharedOnce sync.Once
	schemas    atomic.Int32
)

// open creates a store in a schema of its own.
func open(t testing.TB, opts ...pgstore.Option) *pgstore.Store {
	t.Helper()
	s, _ := openSchema(t, opts...)
	return s
}

// openSchema is open, for tests that look into the schema.
func openSchema(t testing.TB, opts ...pgstore.Option) (*pgstore.Store, string) {
	t.Helper()
	url := pgtest.URL(t)
	sharedOnce.Do(func() { sharedURL = url })
	p, err := pool()
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf("auth_%d", schemas.Add(1))
	s, err := pgstore.New(p, append([]pgstore.Option{pgstore.WithSchema(schema)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := p.Exec(ctx, "drop schema "+schema+" cascade"); err != nil {
			t.Error(err)
		}
	})
	return s, schema
}

// openTraced creates a store in a database of its own, with a tracer of its statements.
func openTraced(t *testing.T, tracer pgx.QueryTracer, opts ...pgstore.Option) *pgstore.Store {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.ConnConfig.Tracer = tracer
	cfg.MaxConns = 6
	p, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	s, err := pgstore.New(p, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Each method of the suite fails first, at each of its statements in turn, and has changed
// nothing then.
func TestConformance(t *testing.T) {
	t.Parallel() // beside TestLeastPrivilege: either mostly waits for the server
	plain, _ := openSchema(t)
	b := &breaker{seen: map[string]bool{}}
	cfg := plain.Pool().Config()
	cfg.ConnConfig.Tracer = b
	breaking, err := pgxpool.NewWithConfig(t.Context(), cfg)
	done(t, err)
	t.Cleanup(breaking.Close)
	var schemaOf sync.Map
	r := &pgtest.Reused[*pgstore.Store]{As: plain.Pool(), Open: func() (*pgstore.Store, string) {
		_, schema := openSchema(t)
		s, err := pgstore.New(breaking, pgstore.WithSchema(schema))
		done(t, err)
		schemaOf.Store(s, schema)
		return s, schema
	}}
	storetest.Run(t, func(t *testing.T) store.Store {
		s := r.Store(t)
		schema, _ := schemaOf.Load(s)
		t.Cleanup(func() { checkSessionsAtMost(t, schema.(string)) })
		return faulty{s, b, t}
	})
}

// checkSessionsAtMost fails if a user has more sessions than are counted, because a
// sign-in would then revoke none: every method that creates a session has to count it.
func checkSessionsAtMost(t *testing.T, schema string) {
	t.Helper()
	p, err := pool()
	if err != nil {
		t.Fatal(err)
	}
	var uncounted int
	err = p.QueryRow(context.Background(), strings.ReplaceAll(`select count(*) from auth.users u
		where u.sessions_at_most < (select count(*) from auth.sessions s where s.user_id = u.id and s.revoked_at is null)`, "auth.", schema+".")).Scan(&uncounted)
	if err != nil || uncounted > 0 {
		t.Errorf("%d users have more sessions than are counted, %v", uncounted, err)
	}
}
