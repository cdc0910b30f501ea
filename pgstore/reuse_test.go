package pgstore_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pgstore"
)

// empty deletes everything from a schema, and what the deletions noted last.
const empty = `do $$
	declare name text;
	begin
		for name in select tablename from pg_tables where schemaname = 'SCHEMA' and tablename not in ('schema_version', 'role_revision') order by tablename = 'revocations', tablename loop
			execute format('delete from SCHEMA.%I', name);
		end loop;
		update SCHEMA.role_revision set revision = 0;
	end $$`

// reused hands out stores that are empty again once a test has ended, since to
// migrate takes longer than most tests.
type reused struct {
	open func() (s *pgstore.Store, schema string)
	as   *pgxpool.Pool // who may empty a schema

	mu   sync.Mutex
	free []reusable
}

type reusable struct {
	store  *pgstore.Store
	schema string
}

func (r *reused) take() reusable {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.free); n > 0 {
		one := r.free[n-1]
		r.free = r.free[:n-1]
		return one
	}
	s, schema := r.open()
	return reusable{s, schema}
}

func (r *reused) store(t *testing.T) auth.Store {
	t.Helper()
	one := r.take()
	t.Cleanup(func() {
		if _, err := r.as.Exec(context.Background(), strings.ReplaceAll(empty, "SCHEMA", one.schema)); err != nil {
			t.Error(err)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.free = append(r.free, one)
	})
	return one.store
}
