package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/pgstore/rls"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// app is the running example over HTTP, connected as notes_app.
type app struct {
	t    *testing.T
	url  string
	auth *auth.Auth
	pool *pgxpool.Pool
}

func start(t *testing.T) *app {
	t.Helper()
	owner := pgtest.Database(t)
	for range 2 { // migrating again changes nothing
		if err := migrate(t.Context(), owner); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // roles survive the database
		conn, err := pgx.Connect(context.Background(), owner)
		if err == nil {
			_, err = conn.Exec(context.Background(), "drop owned by notes_app; drop role notes_app")
			_ = conn.Close(context.Background())
		}
		if err != nil {
			t.Error(err)
		}
	})
	cfg, err := pgx.ParseConfig(owner)
	if err != nil {
		t.Fatal(err)
	}
	cfg.User, cfg.Password = "notes_app", "notes"
	store, err := pgstore.Open(t.Context(), pgtest.InDatabase(cfg, cfg.Database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	srv := httptest.NewUnstartedServer(nil)
	url := "http://" + srv.Listener.Addr().String()
	a, err := auth.New(t.Context(), store, auth.WithDevMode(), auth.WithBaseURL(url+"/auth/v1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(context.Background()) })
	srv.Config.Handler = routes(a, store.Pool())
	srv.Start()
	t.Cleanup(srv.Close)
	return &app{t, url, a, store.Pool()}
}

// call sends a request and returns its status; it decodes the body into into.
func (a *app) call(token, method, path, body string, into any) int {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		a.t.Fatalf("%s %s: %v: %s", method, path, err, b)
	}
	return res.StatusCode
}

// signIn creates an account and returns the access token of a login.
func (a *app) signIn(email string) string {
	a.t.Helper()
	var in struct {
		AccessToken string `json:"access_token"`
	}
	body := `{"email":"` + email + `","password":"correct horse battery"}`
	for _, path := range []string{"/auth/v1/signup", "/auth/v1/login"} {
		if status := a.call("", "POST", path, body, &in); status != http.StatusOK {
			a.t.Fatalf("%s: %d", path, status)
		}
	}
	return in.AccessToken
}

// texts returns the notes that a user sees.
func (a *app) texts(token string) string {
	a.t.Helper()
	var list []note
	if status := a.call(token, "GET", "/notes", "", &list); status != http.StatusOK {
		a.t.Fatalf("list: %d", status)
	}
	var texts []string
	for _, n := range list {
		texts = append(texts, n.Text)
	}
	return strings.Join(texts, ", ")
}

func (a *app) wantTexts(token, want string) {
	a.t.Helper()
	if got := a.texts(token); got != want {
		a.t.Errorf("notes %q, want %q", got, want)
	}
}

func TestPoliciesKeepPeopleApart(t *testing.T) {
	a := start(t)
	ada, bob := a.signIn("ada@example.com"), a.signIn("bob@example.com")
	var adas note
	if status := a.call(ada, "POST", "/notes", `{"text":"ada's"}`, &adas); status != http.StatusOK {
		t.Fatal(status)
	}
	if status := a.call(bob, "POST", "/notes", `{"text":"bob's"}`, nil); status != http.StatusOK {
		t.Fatal(status)
	}
	a.wantTexts(ada, "ada's")
	a.wantTexts(bob, "bob's")
	a.wantTexts("", "")

	path := "/notes/1"
	if status := a.call(bob, "PUT", path, `{"text":"taken"}`, nil); status != http.StatusNotFound {
		t.Errorf("bob changes ada's note: %d", status)
	}
	if status := a.call(bob, "DELETE", path, "", nil); status != http.StatusNotFound {
		t.Errorf("bob deletes ada's note: %d", status)
	}
	for method, path := range map[string]string{"POST": "/notes", "PUT": path, "DELETE": path} {
		if status := a.call("", method, path, `{"text":"x"}`, nil); status != http.StatusUnauthorized {
			t.Errorf("nobody, %s: %d", method, status)
		}
	}
	a.wantTexts(ada, "ada's")
	if status := a.call(ada, "PUT", path, `{"text":"ada's, changed"}`, nil); status != http.StatusOK {
		t.Errorf("ada changes her note: %d", status)
	}
	a.wantTexts(ada, "ada's, changed")
	if status := a.call(ada, "DELETE", path, "", nil); status != http.StatusOK {
		t.Errorf("ada deletes her note: %d", status)
	}
	a.wantTexts(ada, "")
	a.wantTexts(bob, "bob's")
	for _, body := range []string{"", "{", `{"text":7}`} {
		if status := a.call(ada, "POST", "/notes", body, nil); status != http.StatusBadRequest {
			t.Errorf("%q: %d", body, status)
		}
	}
	if status := a.call(ada, "DELETE", "/notes/x", "", nil); status != http.StatusNotFound {
		t.Errorf("a note whose id is none: %d", status)
	}
}

// An editor sees and changes other users' notes but cannot delete them. A former editor
// no longer sees them.
func TestEditorsChangeOthersNotes(t *testing.T) {
	a := start(t)
	adm, err := roles(t.Context(), a.auth)
	if err != nil {
		t.Fatal(err)
	}
	a.call(a.signIn("ada@example.com"), "POST", "/notes", `{"text":"ada's"}`, nil)
	bob, code := a.signIn("bob@example.com"), admin.System("test").Accepting()
	who, err := a.auth.Verify(bob)
	if err != nil {
		t.Fatal(err)
	}
	change := func(want int) {
		t.Helper()
		if status := a.call(bob, "PUT", "/notes/1", `{"text":"edited"}`, nil); status != want {
			t.Errorf("bob changes ada's note: %d, want %d", status, want)
		}
	}
	signIn := func() {
		t.Helper()
		var in struct {
			AccessToken string `json:"access_token"`
		}
		if status := a.call("", "POST", "/auth/v1/login", `{"email":"bob@example.com","password":"correct horse battery"}`, &in); status != http.StatusOK {
			t.Fatal(status)
		}
		bob = in.AccessToken
	}
	change(http.StatusNotFound)
	if _, err := adm.Grant(t.Context(), code, admin.GrantParams{UserID: who.UserID, Role: "editor"}); err != nil {
		t.Fatal(err)
	}
	change(http.StatusUnauthorized) // the token is older than the change
	signIn()
	a.wantTexts(bob, "ada's")
	change(http.StatusOK)
	a.wantTexts(bob, "edited")
	if status := a.call(bob, "DELETE", "/notes/1", "", nil); status != http.StatusNotFound {
		t.Errorf("bob deletes ada's note: %d", status)
	}
	if _, err := adm.Withdraw(t.Context(), code, who.UserID, "editor"); err != nil {
		t.Fatal(err)
	}
	signIn()
	a.wantTexts(bob, "")
	change(http.StatusNotFound)
}

// Queries that request too much by mistake.
func TestPoliciesHoldForAnyQuery(t *testing.T) {
	a := start(t)
	ada, bob := a.signIn("ada@example.com"), a.signIn("bob@example.com")
	a.call(ada, "POST", "/notes", `{"text":"ada's"}`, nil)
	a.call(bob, "POST", "/notes", `{"text":"bob's"}`, nil)
	adas, err := a.auth.Verify(ada)
	if err != nil {
		t.Fatal(err)
	}
	bobs, err := a.auth.Verify(bob)
	if err != nil {
		t.Fatal(err)
	}
	// try returns how many rows a statement of bob affects, or its error.
	try := func(claims *auth.Claims, sql string, args ...any) (rows int64, state string) {
		t.Helper()
		err := rls.AsUser(t.Context(), a.pool, claims, func(tx pgx.Tx) error {
			tag, err := tx.Exec(t.Context(), sql, args...)
			rows = tag.RowsAffected()
			return err
		})
		var e *pgconn.PgError
		if errors.As(err, &e) {
			return 0, e.Code
		}
		if err != nil {
			t.Fatal(err)
		}
		return rows, ""
	}
	const denied, none = "42501", ""
	for _, c := range []struct {
		sql   string
		args  []any
		bob   int64
		state string
		anon  string // result without a user
	}{
		{"select from notes", nil, 1, none, none},
		{"select from notes where owner = $1", []any{adas.UserID}, 0, none, none},
		{"select from notes where true or owner is null", nil, 1, none, none},
		{"update notes set text = 'bob was here' where owner = $1", []any{adas.UserID}, 0, none, denied},
		{"update notes set text = 'mine'", nil, 1, none, denied},
		{"update notes set owner = $1", []any{adas.UserID}, 0, denied, denied},
		{"insert into notes (owner, text) values ($1, 'from bob, as ada')", []any{adas.UserID}, 0, denied, denied},
		{"delete from notes where owner = $1", []any{adas.UserID}, 0, none, denied},
		{"select from auth.users", nil, 0, denied, denied},
		{"truncate notes", nil, 0, denied, denied},
		{"alter table notes disable row level security", nil, 0, denied, denied},
		{"delete from notes", nil, 1, none, denied},
	} {
		if rows, state := try(bobs, c.sql, c.args...); rows != c.bob || state != c.state {
			t.Errorf("bob: %s: %d rows, %q; want %d, %q", c.sql, rows, state, c.bob, c.state)
		}
		if rows, state := try(nil, c.sql, c.args...); rows != 0 || state != c.anon {
			t.Errorf("anon: %s: %d rows, %q; want 0, %q", c.sql, rows, state, c.anon)
		}
	}
	a.wantTexts(ada, "ada's")

	// Without AsUser a query returns nothing.
	tag, err := a.pool.Exec(t.Context(), "select from notes")
	if err != nil || tag.RowsAffected() != 0 {
		t.Errorf("without AsUser: %v, %v", tag, err)
	}
	// The notes are deleted with the account.
	if _, err := a.pool.Exec(t.Context(), "delete from auth.users where id = $1", adas.UserID); err != nil {
		t.Fatal(err)
	}
	a.wantTexts(ada, "")
}

// Grants and policies are two independent barriers; each is tested alone.
func TestGrantsAndPolicies(t *testing.T) {
	a := start(t)
	ada := a.signIn("ada@example.com")
	a.call(ada, "POST", "/notes", `{"text":"ada's"}`, nil)
	adas, err := a.auth.Verify(ada)
	if err != nil {
		t.Fatal(err)
	}
	// Grants limit the statements. The owner's own are not listed.
	var got string
	err = a.pool.QueryRow(t.Context(), `select string_agg(line, '; ' order by line) from (
		select grantee::regrole || ' ' || string_agg(lower(privilege_type), ', ' order by privilege_type) as line
		from pg_class, aclexplode(relacl) where oid = 'notes'::regclass and grantee <> relowner group by grantee) lines`).Scan(&got)
	if want := "anon select; authenticated delete, insert, select, update"; err != nil || got != want {
		t.Errorf("granted: %s, %v; want %s", got, err, want)
	}
	// Policies limit the rows. Without a user no row is visible, even with a user's id.
	err = rls.AsUser(t.Context(), a.pool, nil, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "select set_config('request.jwt.claims', $1, true)", `{"sub":"`+adas.UserID+`"}`); err != nil {
			return err
		}
		tag, err := tx.Exec(t.Context(), "select from notes where owner = auth.uid()")
		if tag.RowsAffected() != 0 {
			t.Errorf("anon sees %d notes of ada's", tag.RowsAffected())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	// Both apply to the server's role.
	var bound bool
	err = a.pool.QueryRow(t.Context(), `select not rolsuper and not rolbypassrls and not rolcreaterole and not rolcreatedb and not pg_has_role(current_user, relowner, 'member')
		from pg_roles, pg_class where rolname = current_user and pg_class.oid = 'notes'::regclass`).Scan(&bound)
	if err != nil || !bound {
		t.Errorf("notes_app stands above policies: %v", err)
	}
}
