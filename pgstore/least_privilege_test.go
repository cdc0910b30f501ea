package pgstore_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/pgstore/rls"
	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

// recipe is the SQL of docs/deployment.md: the roles, the grants on the schema,
// and the membership.
func recipe(t *testing.T) (roles, grants, membership string) {
	t.Helper()
	text, err := os.ReadFile("../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## A role of its own\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of SQL", len(blocks))
	}
	return blocks[0][1], blocks[1][1], blocks[2][1]
}

// privileges are two roles on a database of their own: one that migrates and one
// that the application connects as.
type privileges struct {
	owner, app *pgxpool.Pool
	ownerName  string
	appName    string
	admin      string // connection string
	schemas    int
}

func newPrivileges(t *testing.T) *privileges {
	t.Helper()
	p := &privileges{admin: pgtest.Database(t)}
	unmigrated(t, p.admin, pgstore.AutoMigrate(), pgstore.WithRowLevelSecurity(), pgstore.WithSchema("roles")) // creates anon and authenticated
	connect := func(url string) *pgxpool.Pool {
		pool, err := pgxpool.New(t.Context(), url+" pool_max_conns=20")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	var url string
	p.ownerName, url = pgtest.Role(t, p.admin)
	p.owner = connect(url)
	p.appName, url = pgtest.Role(t, p.admin)
	p.app = connect(url)
	admin := connect(p.admin)
	exec(t, admin, "grant create on database "+p.owner.Config().ConnConfig.Database+" to "+p.ownerName)
	return p
}

// forApp puts the names of this test into the recipe's SQL.
func (p *privileges) forApp(sql, schema string) string {
	sql = regexp.MustCompile(`\bapp\b`).ReplaceAllString(sql, p.appName)
	return regexp.MustCompile(`\bauth\b`).ReplaceAllString(sql, schema)
}

// open creates a store for the application in a schema that the owner migrated, with the
// grants of the recipe.
func (p *privileges) open(t *testing.T) *pgstore.Store {
	t.Helper()
	s, _ := p.openSchema(t)
	return s
}

func (p *privileges) openSchema(t *testing.T) (*pgstore.Store, string) {
	t.Helper()
	_, grants, _ := recipe(t)
	p.schemas++
	schema := "auth"
	if p.schemas > 1 {
		schema = fmt.Sprintf("auth_%d", p.schemas)
	}
	owner, err := pgstore.New(p.owner, pgstore.WithSchema(schema), pgstore.WithRowLevelSecurity())
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // one by one, because all at once take more locks than Postgres has by default
		if _, err := p.owner.Exec(context.Background(), "drop schema "+schema+" cascade"); err != nil {
			t.Error(err)
		}
	})
	exec(t, p.owner, p.forApp(grants, schema))
	s, err := pgstore.New(p.app, pgstore.WithSchema(schema), pgstore.WithRowLevelSecurity())
	if err != nil {
		t.Fatal(err)
	}
	return s, schema
}

// The whole conformance suite, with a role that owns nothing.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel() // in parallel with TestConformance, in a database of its own
	p := newPrivileges(t)
	r := &pgtest.Reused[store.Store]{As: p.owner, Open: func() (store.Store, string) { return p.openSchema(t) }}
	storetest.Run(t, func(t *testing.T) store.Store { return r.Store(t) })
}

func TestLeastPrivilegeRecipe(t *testing.T) {
	p := newPrivileges(t)
	roles, _, membership := recipe(t)
	s := p.open(t)

	// The roles of the recipe are those that the migration would create.
	admin, err := pgx.Connect(t.Context(), p.admin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	tx, err := admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rename := strings.NewReplacer("role anon", "role x_anon", "role authenticated", "role x_authenticated", "role app", "role x_app",
		"role migrator", "role x_migrator", "to migrator", "to x_migrator", "database mydb", "database "+p.owner.Config().ConnConfig.Database)
	if _, err := tx.Exec(t.Context(), rename.Replace(roles)); err != nil {
		t.Errorf("%s: %v", roles, err)
	}
	if n := count(t, tx, `select count(*) from (select rolcanlogin, rolinherit, rolsuper, rolbypassrls from pg_roles
		where rolname in ('anon', 'authenticated', 'x_anon', 'x_authenticated') group by 1, 2, 3, 4) kinds`); n != 1 {
		t.Errorf("%d kinds of roles", n)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	// Everything is up to date: there is nothing to migrate and no error.
	if err := s.Migrate(t.Context()); err != nil {
		t.Errorf("migrating what is up to date: %v", err)
	}
	authtest.NewOn(t, s).LoginAs(t, "ada@example.com")
	for _, sql := range []string{
		"create table auth.mine ()", "drop table auth.users", "alter table auth.users add x integer", "truncate auth.users",
		"alter table auth.users disable trigger user_deleted", "drop function auth.uid()", "create schema mine", "set role " + p.ownerName, "set role authenticated",
	} {
		if _, err := p.app.Exec(t.Context(), sql); sqlState(err) != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}

	// Later migrations' tables and functions.
	exec(t, p.owner, "create table auth.later (id integer); create function auth.even_later() returns integer language sql as 'select 1'; revoke all on function auth.even_later from public")
	if n := count(t, p.app, "select auth.even_later() from (select count(*) from auth.later) n"); n != 1 {
		t.Error("what comes later is out of reach")
	}

	// Row-level security: the owner's tables are closed to everybody at first.
	exec(t, p.owner, `create table auth.notes (owner uuid default auth.uid()); alter table auth.notes enable row level security;
		create policy own on auth.notes to authenticated using (owner = auth.uid()); revoke all on auth.notes from `+p.appName+`; grant select, insert on auth.notes to authenticated`)
	if _, err := admin.Exec(t.Context(), p.forApp(membership, "auth")); err != nil {
		t.Fatal(err)
	}
	u, err := s.User(t.Context(), store.ByEmail("ada@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	claims := &auth.Claims{UserID: u.ID}
	err = rls.AsUser(t.Context(), p.app, claims, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "insert into auth.notes default values")
		if n := count(t, tx, "select count(*) from auth.notes"); n != 1 {
			t.Errorf("%d notes of one's own", n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if n := count(t, p.app, "select count(*) from auth.notes"); n != 0 {
		t.Errorf("without AsUser: %d notes", n)
	}
}

// A role that may ban notifies the feed without the right to write to it, and the trigger
// lends it no rights: the functions it calls are Postgres's, even if the role defines its
// own.
func TestTriggerLendsNoRights(t *testing.T) {
	p := newPrivileges(t)
	s := p.open(t)
	u, err := s.CreateUser(t.Context(), newUser("ada@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	exec(t, p.owner, "revoke all on all tables in schema auth from "+p.appName+"; grant select (id), update (banned_until) on auth.users to "+p.appName)
	admin, err := pgx.Connect(t.Context(), p.admin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	if _, err := admin.Exec(t.Context(), "create schema trap authorization "+p.appName); err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), p.app, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `grant usage on schema trap to public;
			create function trap.pg_notify(text, text) returns void language plpgsql as $$ begin raise exception 'as %', current_user; end $$;
			create function trap.clock_timestamp() returns timestamptz language plpgsql as $$ begin raise exception 'as %', current_user; end $$;
			set local search_path = trap, pg_catalog`)
		if err != nil {
			return err
		}
		_, err = tx.Exec(t.Context(), "update auth.users set banned_until = 'infinity' where id = $1", u.ID)
		return err
	})
	if err != nil {
		t.Errorf("ban: %v", err)
	}
	if n := count(t, p.owner, "select count(*) from auth.revocations where user_id = $1", u.ID); n != 1 {
		t.Errorf("%d revocations", n)
	}
}

// The privileges that the migration grants to everybody, and to the roles that policies
// are written for.
func TestGrants(t *testing.T) {
	s := openDatabase(t)
	const granted = `select coalesce(string_agg(line, E'\n' order by line), '') from (
		select concat_ws(' ', coalesce(r.rolname, 'public'), a.privilege_type, o.name) as line from (
			select nspname as name, nspacl as acl from pg_namespace where nspname = 'auth'
			union all select relname, relacl from pg_class where relnamespace = 'auth'::regnamespace
			union all select attrelid::regclass || '.' || attname, attacl from pg_attribute where attrelid in (select oid from pg_class where relnamespace = 'auth'::regnamespace)
			union all select proname, coalesce(proacl, acldefault('f', proowner)) from pg_proc where pronamespace = 'auth'::regnamespace) o,
		aclexplode(o.acl) a left join pg_roles r on r.oid = a.grantee where r.rolname is distinct from current_user) lines`
	var got string
	if err := s.Pool().QueryRow(t.Context(), granted).Scan(&got); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"anon EXECUTE authorize", "anon EXECUTE email", "anon EXECUTE jwt", "anon EXECUTE role", "anon EXECUTE uid", "anon USAGE auth",
		"authenticated EXECUTE authorize", "authenticated EXECUTE email", "authenticated EXECUTE jwt", "authenticated EXECUTE role", "authenticated EXECUTE uid", "authenticated USAGE auth",
	}, "\n")
	if got != want {
		t.Errorf("granted:\n%s\nwant:\n%s", got, want)
	}
}
