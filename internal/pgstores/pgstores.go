// Package pgstores provides Postgres stores for tests. They share a pool, and each has its
// own schema.
package pgstores

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

var shared struct {
	once    sync.Once
	pool    *pgxpool.Pool
	err     error
	schemas pgtest.Reused[string]
	of      sync.Map // maps a store to its schema
}

func open(url string) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		shared.err = err
		return
	}
	cfg.MaxConns = 20
	shared.pool, shared.err = pgxpool.NewWithConfig(context.Background(), cfg)
	made := 0
	shared.schemas.As = shared.pool
	shared.schemas.Open = func() (string, string) {
		made++
		schema := fmt.Sprintf("test_%d_%d", os.Getpid(), made)
		pgtest.AtEnd(func() { _, _ = shared.pool.Exec(context.Background(), "drop schema if exists "+schema+" cascade") }) // leave no schema on a server of the developer's
		return schema, schema
	}
}

// New returns a store in its own schema. The schema is emptied and reused after the test.
// The package's TestMain must call pgtest.Main.
func New(tb testing.TB) store.Store {
	tb.Helper()
	url := pgtest.URL(tb)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	shared.once.Do(func() { open(url) })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	// Longer than an application's timeout, because a test machine may stall.
	schema := shared.schemas.Store(tb)
	s, err := pgstore.New(shared.pool, pgstore.WithSchema(schema), pgstore.WithTimeout(2*time.Minute))
	if err == nil {
		err = s.Migrate(ctx)
	}
	if err != nil {
		tb.Fatal(err)
	}
	shared.of.Store(s, schema)
	return s
}

// Rows returns all rows of a store that New returned, by table, as JSON decodes them.
func Rows(tb testing.TB, s store.Store) map[string]any {
	tb.Helper()
	schema, _ := shared.of.Load(s)
	ctx, all := tb.Context(), map[string]any{}
	tables, err := shared.pool.Query(ctx, "select tablename from pg_tables where schemaname = $1", schema)
	if err != nil {
		tb.Fatal(err)
	}
	names, err := pgx.CollectRows(tables, pgx.RowTo[string])
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range names {
		rows, err := shared.pool.Query(ctx, fmt.Sprintf("select to_jsonb(t) from %s t", pgx.Identifier{schema.(string), name}.Sanitize())) //nolint:misspell // the name is of package pgx
		if err != nil {
			tb.Fatal(err)
		}
		if all[name], err = pgx.CollectRows(rows, pgx.RowTo[any]); err != nil {
			tb.Fatal(err)
		}
	}
	return all
}
