package pgstore_test

import (
	"flag"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

// levels are the stricter isolation levels that a database may have as its default. A
// change must not fail there because of a conflict that Postgres would not report at read
// committed.
var levels = []string{"serializable", "repeatable read"}

var all = flag.Bool("all", false, "run the conformance suite at both stricter isolation levels on Postgres, and not only at the strictest on other engines")

// isolated returns a pool of a database with a default isolation level.
func isolated(t *testing.T, url, level string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	done(t, err)
	cfg.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
	cfg.MaxConns = 10
	p, err := pgxpool.NewWithConfig(t.Context(), cfg)
	done(t, err)
	t.Cleanup(p.Close)
	return p
}

func TestConformanceAtStricterIsolation(t *testing.T) {
	if !*all {
		return // TestConformanceAtOtherEngines has the strictest
	}
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			p := isolated(t, pgtest.URL(t), level)
			plain := open(t)
			r := &pgtest.Reused[*pgstore.Store]{As: plain.Pool(), Open: func() (*pgstore.Store, string) {
				_, schema := openSchema(t)
				s, err := pgstore.New(p, pgstore.WithSchema(schema))
				done(t, err)
				return s, schema
			}}
			storetest.Run(t, func(t *testing.T) store.Store { return r.Store(t) })
		})
	}
}

func TestMigrateParallelAtStricterIsolation(t *testing.T) {
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			url := pgtest.Database(t)
			var stores []*pgstore.Store
			for range 6 {
				s, err := pgstore.New(isolated(t, url, level))
				done(t, err)
				stores = append(stores, s)
			}
			var wg sync.WaitGroup
			for _, s := range stores {
				wg.Go(func() {
					if err := s.Migrate(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			smoke(t, stores[0])
		})
	}
}

// A database that accepts no changes does not count as healthy.
func TestPingOfAReadOnlyDatabase(t *testing.T) {
	cfg, err := pgxpool.ParseConfig(pgtest.URL(t))
	done(t, err)
	cfg.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	p, err := pgxpool.NewWithConfig(t.Context(), cfg)
	done(t, err)
	t.Cleanup(p.Close)
	s, err := pgstore.New(p)
	done(t, err)
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("read-only: %v", err)
	}
	done(t, open(t).Ping(t.Context()))
}
