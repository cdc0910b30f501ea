package pgtest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// empty deletes everything from a schema, and the records of the deletions last.
const empty = `do $$
	declare name text;
	begin
		for name in select tablename from pg_tables where schemaname = 'SCHEMA' and tablename not in ('schema_version', 'role_revision', 'first_owner') order by tablename = 'revocations', tablename loop
			execute format('delete from SCHEMA.%I', name);
		end loop;
		update SCHEMA.role_revision set revision = 0, privileged = '{}';
		update SCHEMA.first_owner set user_id = null;
	end $$`

// Reused provides stores that are emptied when a test ends, because migrating takes
// longer than most tests.
type Reused[S any] struct {
	Open func() (store S, schema string) // creates another one
	As   *pgxpool.Pool                   // a role that may empty a schema

	mu   sync.Mutex
	free []reusable[S]
}

type reusable[S any] struct {
	store  S
	schema string
}

func (r *Reused[S]) acquire() reusable[S] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.free); n > 0 {
		one := r.free[n-1]
		r.free = r.free[:n-1]
		return one
	}
	s, schema := r.Open()
	return reusable[S]{s, schema}
}

// Store returns a store for the duration of a test.
func (r *Reused[S]) Store(tb testing.TB) S {
	tb.Helper()
	one := r.acquire()
	tb.Cleanup(func() {
		if _, err := r.As.Exec(context.Background(), strings.ReplaceAll(empty, "SCHEMA", one.schema)); err != nil {
			tb.Error(err)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.free = append(r.free, one)
	})
	return one.store
}
