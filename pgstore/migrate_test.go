package pgstore_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/pgstore/rls"
	"github.com/authmount/auth/store"
)

// unmigrated is a store on an empty database.
func unmigrated(t *testing.T, url string, opts ...pgstore.Option) *pgstore.Store {
	t.Helper()
	s, err := pgstore.Open(t.Context(), url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// signUp adds a user with a session.
func signUp(t *testing.T, s *pgstore.Store) store.Session {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Microsecond)
	u := store.User{ID: uuid.NewString(), FullName: "Ada", CreatedAt: now, UpdatedAt: now}
	sess := store.Session{ID: uuid.NewString(), UserID: u.ID, AAL: store.LevelAAL1, CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(time.Hour)}
	_, err := s.CreateUser(t.Context(), store.CreateUser{Change: byTest(), NewUser: store.NewUser{User: u, Session: &sess}})
	if err != nil {
		t.Fatal(err)
	}
	return sess
}

// byTest is a change by the test, now.
func byTest() store.Change {
	return store.Change{Now: time.Now().UTC().Truncate(time.Microsecond), By: store.Authority{System: "test"}}
}

// end revokes all sessions of a user.
func end(t *testing.T, s *pgstore.Store, userID string) {
	t.Helper()
	if ended, err := s.RevokeSessions(t.Context(), store.RevokeSessions{Change: byTest(), UserID: userID}); err != nil || len(ended) == 0 {
		t.Fatalf("ended %v, %v", ended, err)
	}
}

// smoke signs a user up, in and out.
func smoke(t *testing.T, s *pgstore.Store) {
	t.Helper()
	sess := signUp(t, s)
	now := time.Now()
	moved, u, err := s.AdvanceSession(t.Context(), store.Advance{Change: byTest(), SessionID: sess.ID, IdleUntil: now.Add(time.Hour)})
	if err != nil || moved.Counter != 1 || u.FullName != "Ada" {
		t.Fatalf("%+v of %+v, %v", moved, u, err)
	}
	end(t, s, sess.UserID)
	if _, _, err := s.Session(t.Context(), sess.ID, now); !errors.Is(err, store.ErrSessionEnded) {
		t.Errorf("after its end: %v", err)
	}
}

// applied returns the versions and the times at which they were applied.
func applied(t *testing.T, s *pgstore.Store, schema string) string {
	t.Helper()
	var list string
	if err := s.Pool().QueryRow(t.Context(), "select string_agg(v::text, ' ' order by version) from "+schema+".schema_version v").Scan(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestMigrateAgain(t *testing.T) {
	s := unmigrated(t, pgtest.Database(t))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := applied(t, s, "auth")
	signUp(t, s)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := applied(t, s, "auth"); after != before {
		t.Errorf("versions %s, before %s", after, before)
	}
	if n := count(t, s.Pool(), "select count(*) from auth.users"); n != 1 {
		t.Errorf("%d users", n)
	}
}

// Instances that start together on an empty database.
func TestMigrateParallel(t *testing.T) {
	url := pgtest.Database(t)
	stores := make([]*pgstore.Store, 8)
	for i := range stores {
		stores[i] = unmigrated(t, url)
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
}

// Several schemas share the roles, on a cluster without the roles at first.
func TestMigrateParallelSchemas(t *testing.T) {
	srv, err := pgtest.Start("fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Remove)
	var wg sync.WaitGroup
	for _, schema := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		s := unmigrated(t, srv.URL, pgstore.WithSchema(schema), pgstore.WithRowLevelSecurity())
		wg.Go(func() {
			if err := s.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestCheck(t *testing.T) {
	s := unmigrated(t, pgtest.Database(t))
	refused := func(want error, says string) {
		t.Helper()
		if err := s.Check(t.Context()); !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
			t.Errorf("check: %v, want %v and %q", err, want, says)
		}
	}
	const missing = `call Migrate or apply Schema: schema "auth" is at 0, the package at `
	refused(pgstore.ErrSchemaBehind, missing)
	exec(t, s.Pool(), "create schema auth") // created by hand, and empty
	refused(pgstore.ErrSchemaBehind, missing)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	exec(t, s.Pool(), "insert into auth.schema_version (version, name, compatible_from) values (999, 'from the future', 999)")
	refused(pgstore.ErrSchemaAhead, `update the package: schema "auth" is at 999, the package at `)
	if err := s.Migrate(t.Context()); !errors.Is(err, pgstore.ErrSchemaAhead) {
		t.Errorf("migrate: %v", err)
	}
}

// release returns the migrations of a later release: this one's and more, each an SQL
// text.
func release(t *testing.T, more ...string) fstest.MapFS {
	t.Helper()
	paths, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	files := fstest.MapFS{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = &fstest.MapFile{Data: text}
	}
	for _, text := range more {
		files[fmt.Sprintf("%04d_more.sql", len(files)+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// During a deploy, instances of the previous release continue, start and migrate beside
// the new one's migrations, as long as those only add.
func TestRollingDeploy(t *testing.T) {
	for name, opts := range map[string][]pgstore.Option{"auth": nil, "accounts": {pgstore.WithSchema("accounts")}} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			now := len(release(t)) // the version of this release
			adds := fmt.Sprintf("-- compatible from %d\nalter table auth.users add column added_later text;\ncreate table auth.more (id integer);\n", now)
			drops := fmt.Sprintf("-- compatible from %d\nalter table auth.users drop column added_later;\n", now+2)
			again := fmt.Sprintf("-- compatible from %d\ncreate index on auth.more (id);\n", now)
			next, later, last := release(t, adds), release(t, adds, again), release(t, adds, again, drops)
			url := pgtest.Database(t)
			ours := unmigrated(t, url, opts...)
			if err := ours.Migrate(ctx); err != nil {
				t.Fatal(err)
			}
			check := func(who string, files fstest.MapFS, want error) {
				t.Helper()
				fresh := unmigrated(t, url, opts...)
				before := applied(t, ours, name)
				if err := fresh.CheckFiles(ctx, files); !errors.Is(err, want) {
					t.Errorf("%s: check: %v, want %v", who, err, want)
				}
				if errors.Is(want, pgstore.ErrSchemaBehind) {
					return
				}
				if err := fresh.MigrateFiles(ctx, files); !errors.Is(err, want) || applied(t, ours, name) != before {
					t.Errorf("%s: migrate: %v, want %v", who, err, want)
				}
			}
			check("the next release on this one's schema", next, pgstore.ErrSchemaBehind)
			for what, files := range []fstest.MapFS{next, later} {
				if err := unmigrated(t, url, opts...).MigrateFiles(ctx, files); err != nil {
					t.Fatalf("release %d: %v", what, err)
				}
				check("this release beside one that adds", release(t), nil)
				smoke(t, ours)
				smoke(t, unmigrated(t, url, opts...))
			}
			if err := ours.Check(ctx); err != nil {
				t.Error(err)
			}
			if err := unmigrated(t, url, opts...).MigrateFiles(ctx, last); err != nil {
				t.Fatal(err)
			}
			check("this release beside one that took something away", release(t), pgstore.ErrSchemaAhead)
			check("the next one, too", next, pgstore.ErrSchemaAhead)
			check("the one before that", later, nil)
			check("that one itself", last, nil)
			if err := ours.Check(ctx); !errors.Is(err, pgstore.ErrSchemaAhead) || !strings.Contains(err.Error(), fmt.Sprintf("at %d, the package at %d, and it takes %d", now+3, now, now+2)) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A migration that does not declare its compatibility is for its own release only.
func TestMigrationThatSaysNothing(t *testing.T) {
	ours := unmigrated(t, pgtest.Database(t))
	next := release(t, "create table auth.more (id integer);")
	if err := ours.MigrateFiles(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"check": ours.Check(t.Context()), "migrate": ours.Migrate(t.Context())} {
		if !errors.Is(err, pgstore.ErrSchemaAhead) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The error explains that the role may not migrate.
func TestMigrateAsApplication(t *testing.T) {
	url := pgtest.Database(t)
	_, as := pgtest.Role(t, url)
	s := unmigrated(t, as)
	if err := s.Check(t.Context()); !errors.Is(err, pgstore.ErrSchemaBehind) {
		t.Errorf("check: %v", err)
	}
	if err := s.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "let its owner migrate") || sqlState(err) != "42501" {
		t.Errorf("migrate: %v", err)
	}
	if err := unmigrated(t, url).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "lacks privileges on the schema \"auth\"") {
		t.Errorf("check without grants: %v", err)
	}
}

// A connection string that cannot be parsed is not repeated, because of its password.
func TestBadURL(t *testing.T) {
	for _, url := range []string{"postgres://app:pass w0rd@localhost/app", "localhost/app", "postgres://app:secret@localhost:port/app"} {
		_, err := pgstore.Open(t.Context(), url)
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "w0rd") || !strings.Contains(err.Error(), "postgres://user:password@host/database") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Neither a database that is down nor a table that may not be read is taken for
// an empty one.
func TestCheckUnreadable(t *testing.T) {
	url := pgtest.Database(t)
	if err := unmigrated(t, url).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, as := pgtest.Role(t, url)
	for what, s := range map[string]*pgstore.Store{
		"permission denied": unmigrated(t, as),
		"connect":           unmigrated(t, "host=127.0.0.1 port=1 user=nobody dbname=nowhere sslmode=disable"),
	} {
		err := s.Check(t.Context())
		if err == nil || errors.Is(err, pgstore.ErrSchemaBehind) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		if err := s.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "pgstore: migrate: ") {
			t.Errorf("%s: migrate: %v", what, err)
		}
	}
}

// An administrator applies the schema by other means, in one transaction.
func TestSchemaByHand(t *testing.T) {
	for name, opts := range map[string][]pgstore.Option{"auth": nil, "accounts": {pgstore.WithSchema("accounts")}, "policies": {pgstore.WithSchema("policies"), pgstore.WithRowLevelSecurity()}} {
		t.Run(name, func(t *testing.T) {
			sql, err := pgstore.Schema(opts...)
			if err != nil {
				t.Fatal(err)
			}
			s := unmigrated(t, pgtest.Database(t), opts...)
			err = pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), sql)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			before := applied(t, s, name)
			if err := s.Migrate(t.Context()); err != nil || applied(t, s, name) != before {
				t.Errorf("migrated again: %v", err)
			}
			smoke(t, s)
			// Applied by hand or by Migrate, the schema is the same.
			other := unmigrated(t, pgtest.Database(t), opts...)
			if err := other.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if a, b := shape(t, s), shape(t, other); a != b {
				t.Errorf("by hand\n%s\nby Migrate\n%s", a, b)
			}
		})
	}
}

// shape lists columns, indexes and functions with their privileges.
func shape(t *testing.T, s *pgstore.Store) (text string) {
	t.Helper()
	err := s.Pool().QueryRow(t.Context(), `select string_agg(line, E'\n' order by line) from (
		select concat_ws(' ', table_schema, table_name, column_name, data_type, column_default, is_nullable) as line from information_schema.columns where table_schema in ('auth', 'accounts', 'policies')
		union all select indexdef from pg_indexes where schemaname in ('auth', 'accounts', 'policies')
		union all select concat_ws(' ', n.nspname, p.proname, p.proacl, n.nspacl) from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname in ('auth', 'accounts', 'policies')) lines`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A schema of another name holds everything: nothing is read from or left in auth.
func TestInSchema(t *testing.T) {
	s := unmigrated(t, pgtest.Database(t), pgstore.WithSchema("accounts"), pgstore.WithRowLevelSecurity())
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	smoke(t, s)
	if n := count(t, s.Pool(), "select count(*) from pg_namespace where nspname = 'auth'"); n != 0 {
		t.Error("there is a schema auth")
	}
	if n := count(t, s.Pool(), "select count(*) from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'accounts' and p.prosrc ~ '\\mauth[._]'"); n != 0 {
		t.Errorf("%d functions speak of auth", n)
	}
	if n := count(t, s.Pool(), "select count(*) from accounts.users"); n != 1 {
		t.Errorf("%d users", n)
	}
	var role *string
	err := rls.AsUser(t.Context(), s.Pool(), nil, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "select accounts.role()").Scan(&role)
	})
	if err != nil || role == nil || *role != "anon" {
		t.Errorf("accounts.role(): %v, %v", role, err)
	}
	for _, name := range []string{"", "Auth", "a-b", "a.b", `a"b`, "1a", "a;drop", "public", strings.Repeat("a", 64)} {
		if _, err := pgstore.Schema(pgstore.WithSchema(name)); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}

// A service without policies needs no roles for them, and can create them later.
func TestRolesAreForPolicies(t *testing.T) {
	srv, err := pgtest.Start("fsync=off") // the shared one has the roles
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Remove)
	admin := unmigrated(t, srv.URL)
	exec(t, admin.Pool(), "create role app login; grant create on database postgres to app")
	as := strings.Replace(srv.URL, "user=postgres", "user=app", 1)
	for name, opts := range map[string][]pgstore.Option{"auth": nil, "accounts": {pgstore.WithSchema("accounts")}} {
		s := unmigrated(t, as, append(opts, pgstore.AutoMigrate())...)
		smoke(t, s)
		if sql, err := pgstore.Schema(opts...); err != nil || strings.Contains(sql, " authenticated") || strings.Contains(sql, " anon") {
			t.Errorf("%s: the schema speaks of roles: %v", name, err)
		}
	}
	roles := func() int {
		return count(t, admin.Pool(), "select count(*) from pg_roles where rolname in ('anon', 'authenticated')")
	}
	if n := roles(); n != 0 {
		t.Errorf("%d roles", n)
	}
	err = rls.AsUser(t.Context(), admin.Pool(), nil, func(pgx.Tx) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "WithRowLevelSecurity") {
		t.Errorf("without roles: %v", err)
	}
	with := unmigrated(t, srv.URL, pgstore.WithRowLevelSecurity())
	if err := with.Check(t.Context()); !errors.Is(err, pgstore.ErrSchemaBehind) || !strings.Contains(err.Error(), "anon and authenticated") {
		t.Errorf("check: %v", err)
	}
	for range 2 {
		if err := with.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := roles(); n != 2 {
		t.Errorf("%d roles", n)
	}
	if err := rls.AsUser(t.Context(), admin.Pool(), nil, func(tx pgx.Tx) error { _, err := whoami(t.Context(), tx); return err }); err != nil {
		t.Error(err)
	}
	if err := unmigrated(t, as, pgstore.WithRowLevelSecurity(), pgstore.WithSchema("accounts")).Check(t.Context()); !errors.Is(err, pgstore.ErrSchemaBehind) {
		t.Errorf("the roles are there, and may not use that schema: %v", err)
	}
}

// A program that opens an empty database migrates it, even if other instances start at the
// same time.
func TestAutoMigrate(t *testing.T) {
	url := pgtest.Database(t)
	stores := make([]*pgstore.Store, 6)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			s, err := pgstore.Open(t.Context(), url, pgstore.AutoMigrate())
			if err != nil {
				t.Error(err)
				return
			}
			stores[i] = s
			t.Cleanup(s.Close)
			if err := s.Check(t.Context()); err != nil {
				t.Errorf("opened, and not ready: %v", err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	smoke(t, stores[0])
	if n := count(t, stores[0].Pool(), "select count(*) - count(distinct version) from auth.schema_version"); n != 0 {
		t.Errorf("%d steps were taken twice", n)
	}
	_, as := pgtest.Role(t, pgtest.Database(t))
	if s, err := pgstore.Open(t.Context(), as, pgstore.AutoMigrate()); err == nil || s != nil || !strings.Contains(err.Error(), "let its owner migrate") {
		t.Errorf("a role that may not: %v", err)
	}
}

// Without the right to create the roles, the error has the statement for an administrator.
func TestMigrateWithoutRoles(t *testing.T) {
	srv, err := pgtest.Start("fsync=off") // the shared one has the roles
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Remove)
	admin := unmigrated(t, srv.URL)
	exec(t, admin.Pool(), "create role app login; grant create on database postgres to app")
	as := strings.Replace(srv.URL, "user=postgres", "user=app", 1)
	s := unmigrated(t, as, pgstore.WithRowLevelSecurity())
	if err := s.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "anon and authenticated do not exist") || !strings.Contains(err.Error(), "create role anon nologin noinherit") {
		t.Errorf("migrate: %v", err)
	}
	if n := count(t, admin.Pool(), "select count(*) from pg_namespace where nspname = 'auth'"); n != 0 {
		t.Error("half of it is there")
	}
	exec(t, admin.Pool(), "create role anon nologin; create role authenticated nologin")
	if err := s.Migrate(t.Context()); err != nil {
		t.Errorf("once the roles are there: %v", err)
	}
	smoke(t, s)
}

// No error repeats a connection string, because its password would end up in a log.
func TestBadURLIsNotRepeated(t *testing.T) {
	s := unmigrated(t, "postgres://db.test/app")
	for _, url := range []string{"postgres://ada:hunter2@db.test:port/app", "host=db.test password =hunter2 port=x", "host=db.test password = 'hunter2"} {
		if _, err := pgstore.Open(t.Context(), url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("open: %v", err)
		}
		if err := s.WatchRevocations(t.Context(), pgstore.WatchParams{Notify: func(store.Revocation) {}, Direct: url, Logger: slog.New(slog.DiscardHandler)}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("watch: %v", err)
		}
	}
	// An error about an unreachable database does not repeat it either.
	s = unmigrated(t, "postgres://ada:hunter2@127.0.0.1:1/app")
	if err := s.Ping(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("ping: %v", err)
	}
}
