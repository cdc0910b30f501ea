// Package pgstores gives tests stores on Postgres, of one pool, each in a schema of
// its own.
package pgstores

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

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
		pgtest.AtEnd(func() { _, _ = shared.pool.Exec(context.Background(), "drop schema if exists "+schema+" cascade") }) // a server of somebody's own stays as it was
		return schema, schema
	}
}

// New is a store in a schema of its own, which is emptied for another test once this
// one has ended. The package's TestMain has to call pgtest.Main.
func New(tb testing.TB) store.Store {
	tb.Helper()
	url := pgtest.URL(tb)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	shared.once.Do(func() { open(url) })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	// Longer than a call of an application may take: a machine that stood still for a while is no defect.
	s, err := pgstore.New(shared.pool, pgstore.WithSchema(shared.schemas.Store(tb)), pgstore.WithTimeout(2*time.Minute))
	if err == nil {
		err = s.Migrate(ctx)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
