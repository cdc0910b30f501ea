package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
)

// catalog is everything in the database outside of Postgres' own schemas: relations with
// their columns, functions, constraints, indexes and privileges, and the versions.
func catalog(t *testing.T, s *pgstore.Store, schema string) []string {
	t.Helper()
	rows, err := s.Pool().Query(t.Context(), `with ours as (select oid, nspname from pg_namespace where nspname not like 'pg\_%' and nspname <> 'information_schema')
		select 'schema ' || nspname from ours
		union all select format('%s %s.%s %s', c.relkind, n.nspname, c.relname, c.relacl) from pg_class c join ours n on n.oid = c.relnamespace
		union all select format('column %s.%s %s %s %s', a.attrelid::regclass, a.attname, a.atttypid::regtype, a.attnotnull, a.attidentity) from pg_attribute a join pg_class c on c.oid = a.attrelid join ours n on n.oid = c.relnamespace
		union all select pg_get_functiondef(p.oid) from pg_proc p join ours n on n.oid = p.pronamespace
		union all select pg_get_constraintdef(c.oid) from pg_constraint c join ours n on n.oid = c.connamespace
		union all select 'role ' || rolname from pg_roles
		order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return append(list, applied(t, s, schema))
}

// A schema created by other migrations is refused, and not changed.
func TestForeignSchema(t *testing.T) {
	for schema, opts := range map[string][]pgstore.Option{"auth": nil, "accounts": {pgstore.WithSchema("accounts"), pgstore.WithRowLevelSecurity()}} {
		for versions, compatible := range map[int]int{1: 1, 18: 1, 19: 19} { // behind or not, and ahead
			t.Run(fmt.Sprintf("%s at %d", schema, versions), func(t *testing.T) {
				url := pgtest.Database(t)
				s := unmigrated(t, url, opts...)
				exec(t, s.Pool(), strings.NewReplacer("auth.", schema+".", "schema auth", "schema "+schema).Replace(`create schema auth;
					create table auth.schema_version (version integer primary key, name text not null, compatible_from integer not null, applied_at timestamptz not null default now());
					create table auth.users (id uuid primary key, email text not null, mfa_enabled boolean not null default false);
					insert into auth.users values (gen_random_uuid(), 'ada@example.com')`))
				for v := range versions {
					exec(t, s.Pool(), fmt.Sprintf("insert into %s.schema_version (version, name, compatible_from) values (%d, '%s', %d)", schema, v+1, []string{"auth", "more"}[min(v, 1)], min(v+1, compatible)))
				}
				before := catalog(t, s, schema)
				auto, openErr := pgstore.Open(t.Context(), url, append([]pgstore.Option{pgstore.AutoMigrate()}, opts...)...)
				if openErr == nil {
					t.Cleanup(auto.Close)
				}
				for what, err := range map[string]error{
					"check": s.Check(t.Context()), "migrate": s.Migrate(t.Context()), "auth.New": newOn(t.Context(), s), "open with AutoMigrate": openErr,
					"a later release": s.MigrateFiles(t.Context(), release(t, "create table auth.more (id integer);")),
				} {
					if !errors.Is(err, pgstore.ErrSchemaForeign) || !strings.Contains(err.Error(), fmt.Sprintf("version 1 of schema %q is named \"auth\", not \"initial\"", schema)) {
						t.Errorf("%s: %v", what, err)
					}
				}
				if after := catalog(t, s, schema); !slices.Equal(before, after) {
					t.Errorf("before\n%s\nafter\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
				}
				if n := count(t, s.Pool(), "select count(*) from "+schema+".users"); n != 1 {
					t.Errorf("%d users", n)
				}
			})
		}
	}
}

// A schema with tables of another program, such as Supabase's own auth, is refused with the
// option that helps, and not changed.
func TestOccupiedSchema(t *testing.T) {
	url := pgtest.Database(t)
	s := unmigrated(t, url)
	exec(t, s.Pool(), "create schema auth; create table auth.instances (id uuid)")
	for range 2 {
		if err := s.Migrate(t.Context()); !errors.Is(err, pgstore.ErrSchemaForeign) || !strings.Contains(err.Error(), "WithSchema") || !strings.Contains(err.Error(), `"instances"`) {
			t.Errorf("%v", err)
		}
	}
	if n := count(t, s.Pool(), "select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'auth'"); n != 1 {
		t.Errorf("%d relations", n)
	}
	other := unmigrated(t, url, pgstore.WithSchema("accounts"))
	if err := other.Migrate(t.Context()); err != nil {
		t.Error(err)
	}
}

// Instances of a new release that start together upgrade a schema in use once.
func TestUpgradeParallel(t *testing.T) {
	url := pgtest.Database(t)
	old := unmigrated(t, url)
	if err := old.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	sess := signUp(t, old)
	now := len(release(t))
	next := release(t, fmt.Sprintf("-- compatible from %d\nalter table auth.users add column added_later text default 'x';\nselect pg_sleep(0.05);\n", now))
	var wg sync.WaitGroup
	for range 6 {
		s := unmigrated(t, url)
		wg.Go(func() {
			if err := s.MigrateFiles(t.Context(), next); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count(t, old.Pool(), "select count(*) from auth.schema_version"); n != now+1 {
		t.Errorf("%d versions, want %d", n, now+1)
	}
	if _, u, err := old.Session(t.Context(), sess.ID, time.Now()); err != nil || u.FullName != "Ada" {
		t.Errorf("a session of before: %+v, %v", u, err)
	}
	smoke(t, old)
}

// An upgrade that fails or is killed in the middle leaves the schema as it was, and the
// next attempt completes it.
func TestUpgradeThatIsCutShort(t *testing.T) {
	s := unmigrated(t, pgtest.Database(t))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	sess, before := signUp(t, s), catalog(t, s, "auth")
	first := "create table auth.more (id integer);\nalter table auth.users add column added_later text;\n"
	for what, rest := range map[string]string{
		"the second migration fails": "select 1/0;",
		"its connection is killed":   "select pg_terminate_backend(pg_backend_pid());",
	} {
		if err := s.MigrateFiles(t.Context(), release(t, first, "update auth.users set added_later = 'x';\n"+rest)); err == nil {
			t.Errorf("%s: no error", what)
		}
		if after := catalog(t, s, "auth"); !slices.Equal(before, after) {
			t.Errorf("%s: before\n%s\nafter\n%s", what, strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := s.MigrateFiles(ctx, release(t, first, "select pg_sleep(60);")); err == nil {
		t.Error("a caller who has gone: no error")
	}
	if after := catalog(t, s, "auth"); !slices.Equal(before, after) {
		t.Error("a caller who has gone changed the schema")
	}
	good := release(t, first, "update auth.users set added_later = 'x';")
	if err := s.MigrateFiles(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s.Pool(), "select count(*) from auth.users where added_later = 'x'"); n != 1 {
		t.Errorf("%d users", n)
	}
	if _, _, err := s.Session(t.Context(), sess.ID, time.Now()); err != nil {
		t.Error(err)
	}
}
