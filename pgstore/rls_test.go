package pgstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/pgstore/rls"
	"github.com/authmount/auth/store"
)

// openDatabase creates a store in the schema auth of a database of its own, on a pool with
// one connection: each call finds the state that the one before left.
func openDatabase(t *testing.T, opts ...pgstore.Option) *pgstore.Store {
	t.Helper()
	opts = append([]pgstore.Option{pgstore.WithRowLevelSecurity(), pgstore.AutoMigrate()}, opts...)
	s, err := pgstore.Open(t.Context(), pgtest.Database(t)+" pool_max_conns=1", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// sqlState is the code of a database's error.
func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func exec(t *testing.T, p *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := p.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// count returns the number that a statement selects.
func count(t *testing.T, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, sql string, args ...any,
) (n int) {
	t.Helper()
	if err := q.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// identity is the database's view of the caller.
type identity struct {
	User             string
	UID, Role, Email *string
	JWT              map[string]any
}

func whoami(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) (id identity, err error) {
	err = q.QueryRow(ctx, "select current_user::text, auth.uid()::text, auth.role(), auth.email(), auth.jwt()").Scan(&id.User, &id.UID, &id.Role, &id.Email, &id.JWT)
	return id, err
}

func ptr(s string) *string { return &s }

func TestAsUser(t *testing.T) {
	s := openDatabase(t)
	before, err := whoami(t.Context(), s.Pool())
	if err != nil {
		t.Fatal(err)
	}
	if before.UID != nil || before.Role != nil || before.Email != nil || before.JWT != nil {
		t.Errorf("outside: %+v", before)
	}
	id := uuid.NewString()
	claims := &auth.Claims{
		UserID: id, SessionID: "the-session", Role: "authenticated", Roles: []string{"editor"}, Email: "ada@example.com", EmailVerified: true,
		AAL: store.LevelAAL2, AMR: []store.AMR{{Method: "password", Timestamp: 7}}, AppMetadata: map[string]any{"team": "a"},
		Custom: map[string]any{"org": "acme"},
	}
	var got identity
	err = rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) (err error) {
		got, err = whoami(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := identity{User: "authenticated", UID: &id, Role: ptr("authenticated"), Email: ptr("ada@example.com"), JWT: map[string]any{
		"sub": id, "session_id": "the-session", "role": "authenticated", "roles": []any{"editor"}, "permissions": []any{},
		"email": "ada@example.com", "email_verified": true, "phone": nil, "aal": "aal2", "amr": []any{map[string]any{"method": "password", "timestamp": 7.0}},
		"app_metadata": map[string]any{"team": "a"}, "org": "acme",
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("inside:\n%+v, want\n%+v", got, want)
	}
	after, err := whoami(t.Context(), s.Pool()) // on the only connection
	if err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("afterwards: %+v, %v", after, err)
	}
}

// Policies see the impersonator, so that they can hide data from them. Claims that cannot
// be represented are an error, and no statement runs with half of them.
func TestAsUserWhileImpersonated(t *testing.T) {
	s := openDatabase(t)
	claims := &auth.Claims{UserID: uuid.NewString(), SessionID: uuid.NewString(), Impersonator: &store.SessionRef{ID: uuid.NewString(), UserID: uuid.NewString()}}
	var sub, session string
	err := rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "select auth.jwt()->'act'->>'sub', auth.jwt()->'act'->>'session_id'").Scan(&sub, &session)
	})
	if err != nil || sub != claims.Impersonator.UserID || session != claims.Impersonator.ID {
		t.Errorf("%q by %q, %v", sub, session, err)
	}
	claims.Custom = map[string]any{"x": make(chan int)}
	err = rls.AsUser(t.Context(), s.Pool(), claims, func(pgx.Tx) error { t.Error("called"); return nil })
	var unsupported *json.UnsupportedTypeError
	if !errors.As(err, &unsupported) {
		t.Errorf("claims that JSON has no words for: %v", err)
	}
}

// Claims without metadata have empty metadata, not null: a policy that reads them would
// fail.
func TestAsUserWithoutMetadata(t *testing.T) {
	s := openDatabase(t)
	var metadata, team string
	err := rls.AsUser(t.Context(), s.Pool(), &auth.Claims{UserID: uuid.NewString()}, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "select claims->>'app_metadata', coalesce(claims->'app_metadata'->>'team', 'none') from (select current_setting('request.jwt.claims')::jsonb as claims) c").Scan(&metadata, &team)
	})
	if err != nil || metadata != "{}" || team != "none" {
		t.Errorf("%q, %q, %v", metadata, team, err)
	}
}

// A claim that the token left out is missing rather than empty, so that a policy can
// distinguish both.
func TestAsUserWithOmittedClaims(t *testing.T) {
	s := openDatabase(t)
	var got identity
	claims := &auth.Claims{UserID: uuid.NewString(), Roles: []string{"editor"}, Omitted: []string{"app_metadata", "permissions", "orgs"}}
	err := rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) (err error) {
		got, err = whoami(t.Context(), tx)
		return err
	})
	if err != nil || !reflect.DeepEqual(got.JWT["omitted"], []any{"app_metadata", "permissions", "orgs"}) {
		t.Fatalf("%+v, %v", got.JWT, err)
	}
	for _, name := range claims.Omitted {
		if v, there := got.JWT[name]; there {
			t.Errorf("%s: %v", name, v)
		}
	}
}

// Without claims the role is anon and there is no user: policies that compare with
// auth.uid() match no row.
func TestAsNobody(t *testing.T) {
	s := openDatabase(t)
	var got identity
	err := rls.AsUser(t.Context(), s.Pool(), nil, func(tx pgx.Tx) (err error) {
		got, err = whoami(t.Context(), tx)
		return err
	})
	if want := (identity{User: "anon", Role: ptr("anon"), JWT: map[string]any{"role": "anon"}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	err = rls.AsUser(t.Context(), s.Pool(), &auth.Claims{}, func(pgx.Tx) error { return nil })
	if err == nil {
		t.Error("claims that name no user became authenticated")
	}
}

// No text in a token is used as a role, ends a string or hides another claim.
func TestAsUserTakesClaimsAsText(t *testing.T) {
	s := openDatabase(t)
	nasty := "'; reset role; -- \" \\ $1 \u2028 żółć 🐘 </script>"
	id := uuid.NewString()
	claims := &auth.Claims{
		UserID: id, Role: "postgres", Email: nasty, Roles: []string{nasty}, AppMetadata: map[string]any{nasty: nasty},
		Custom: map[string]any{"sub": uuid.NewString(), "role": "postgres", "aal": "aal2", "email": "other", "more": nasty},
	}
	var got identity
	err := rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) (err error) {
		got, err = whoami(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.User != "authenticated" || *got.Role != "authenticated" || *got.UID != id || *got.Email != nasty {
		t.Errorf("%+v", got)
	}
	if got.JWT["aal"] != "" || got.JWT["more"] != nasty || !reflect.DeepEqual(got.JWT["app_metadata"], map[string]any{nasty: nasty}) || !reflect.DeepEqual(got.JWT["roles"], []any{nasty}) {
		t.Errorf("%v", got.JWT)
	}
	claims.UserID = nasty
	err = rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) error { _, err := whoami(t.Context(), tx); return err })
	if sqlState(err) != "22P02" {
		t.Errorf("a user whose id is none: %v", err)
	}
}

func TestAsUserSeesNoTableOfAuth(t *testing.T) {
	s := openDatabase(t)
	rows, err := s.Pool().Query(t.Context(), "select tablename::text from pg_tables where schemaname = 'auth'")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 8 {
		t.Fatalf("%v, %v", tables, err)
	}
	for _, claims := range []*auth.Claims{nil, {UserID: uuid.NewString()}} {
		for _, table := range tables {
			for _, sql := range []string{"select from auth." + table, "delete from auth." + table, "insert into auth." + table + " default values", "truncate auth." + table} {
				err := rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), sql); return err })
				if sqlState(err) != "42501" {
					t.Errorf("%v: %s: %v", claims, sql, err)
				}
			}
		}
		for _, sql := range []string{"select auth.take('{}', '{}', '{}', '{}', 0)", "select auth.note_revocation()", "create table auth.mine ()"} {
			err := rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), sql); return err })
			if sqlState(err) != "42501" {
				t.Errorf("%v: %s: %v", claims, sql, err)
			}
		}
	}
}

// However fn ends, its work and its identity end with it.
func TestAsUserEnds(t *testing.T) {
	s := openDatabase(t)
	exec(t, s.Pool(), "create table public.things (n integer); grant insert on public.things to authenticated")
	claims := &auth.Claims{UserID: uuid.NewString()}
	insert := func(tx pgx.Tx) {
		if _, err := tx.Exec(t.Context(), "insert into public.things values (1)"); err != nil {
			t.Error(err)
		}
	}
	clean := func(what string, things int) {
		t.Helper()
		id, err := whoami(t.Context(), s.Pool())
		if err != nil || id.User != s.Pool().Config().ConnConfig.User || id.JWT != nil {
			t.Errorf("after %s: %+v, %v", what, id, err)
		}
		if n := count(t, s.Pool(), "select count(*) from public.things"); n != things {
			t.Errorf("after %s: %d rows, want %d", what, n, things)
		}
	}
	failed := errors.New("failed")
	if err := rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) error { insert(tx); return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	clean("an error", 0)
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("panic %v", v)
			}
		}()
		_ = rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) error { insert(tx); panic("boom") })
	}()
	clean("a panic", 0)
	ctx, cancel := context.WithCancel(t.Context())
	if err := rls.AsUser(ctx, s.Pool(), claims, func(tx pgx.Tx) error { insert(tx); cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	clean("a cancelled request", 0)
	err := rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) error {
		insert(tx)
		_, err := tx.Exec(t.Context(), "reset role")
		return err
	})
	if err != nil {
		t.Error(err)
	}
	clean("a role that was reset", 1)
	err = rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) error {
		insert(tx)
		_, _ = tx.Exec(t.Context(), "select 1/0")
		return nil
	})
	if !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Errorf("an error that fn kept to itself: %v", err)
	}
	clean("an error that fn kept to itself", 1)
	err = rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "commit")
		return err
	})
	if err == nil {
		t.Error("fn went on as the pool's user, and nobody was told")
	}
	clean("a transaction that fn ended", 1)
}

func TestAsUserNeedsMembership(t *testing.T) {
	url := pgtest.Database(t)
	owner, err := pgstore.Open(t.Context(), url, pgstore.AutoMigrate(), pgstore.WithRowLevelSecurity())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Close)
	_, as := pgtest.Role(t, url)
	app, err := pgxpool.New(t.Context(), as)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	err = rls.AsUser(t.Context(), app, nil, func(pgx.Tx) error { t.Error("called"); return nil })
	if sqlState(err) != "42501" {
		t.Error(err)
	}
}

// Parallel requests on few connections do not affect each other.
func TestAsUserParallel(t *testing.T) {
	s := openDatabase(t)
	p, err := pgxpool.New(t.Context(), s.Pool().Config().ConnString()+" pool_max_conns=3")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	var wg sync.WaitGroup
	for range 30 {
		id := uuid.NewString()
		wg.Go(func() {
			err := rls.AsUser(t.Context(), p, &auth.Claims{UserID: id, Email: id}, func(tx pgx.Tx) error {
				got, err := whoami(t.Context(), tx)
				if err == nil && (*got.UID != id || *got.Email != id) {
					b, _ := json.Marshal(got)
					t.Errorf("%s is %s", id, b)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
