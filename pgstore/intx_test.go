package pgstore_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

func TestInTxIsUndoneByRollback(t *testing.T) {
	s := openDatabase(t)
	// More than one connection, because the test reads inside and outside at the same
	// time.
	outside, err := pgstore.Open(t.Context(), s.Pool().Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(outside.Close)
	env := authtest.NewOn(t, s)
	exec(t, s.Pool(), "create table public.members (user_id uuid references auth.users)")
	var id string
	for _, end := range []error{errRollback, nil} {
		inTx(t, s, func(ctx context.Context, tx pgx.Tx) error {
			u, err := env.ImportUser(ctx, auth.ImportUserParams{Email: "ada@example.com", EmailVerified: true})
			if err != nil {
				t.Fatal(err)
			}
			id = u.ID
			if _, err := tx.Exec(ctx, "insert into public.members values ($1)", id); err != nil {
				t.Errorf("a row that refers to the user: %v", err)
			}
			if n := count(t, tx, "select count(*) from auth.users where id = $1", id); n != 1 {
				t.Errorf("inside: %d users", n)
			}
			if _, err := s.User(ctx, store.ByID(id)); err != nil {
				t.Errorf("inside: %v", err)
			}
			if _, err := outside.User(t.Context(), store.ByID(id)); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("outside, before the commit: %v", err)
			}
			return end
		})
		_, err := s.User(t.Context(), store.ByID(id))
		if end == nil && err != nil || end != nil && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after %v: %v", end, err)
		}
	}
	if n := count(t, s.Pool(), "select count(*) from public.members"); n != 1 {
		t.Errorf("%d members", n)
	}
}

// A whole sign-up with its session, together with the application's own work.
func TestInTxSignUp(t *testing.T) {
	s := openDatabase(t)
	env := authtest.NewOn(t, s)
	p := auth.SignUpParams{Email: "ada@example.com", Password: authtest.Password}
	var tokens *auth.Tokens
	for _, end := range []error{errRollback, nil} {
		inTx(t, s, func(ctx context.Context, _ pgx.Tx) error {
			res, err := env.SignUp(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			tokens = res.Tokens
			return end
		})
		_, err := env.Refresh(t.Context(), auth.RefreshParams{RefreshToken: tokens.RefreshToken})
		if end == nil && err != nil || end != nil && !errors.Is(err, auth.CodeSessionEnded) {
			t.Errorf("refresh after %v: %v", end, err)
		}
	}
}

// Outcomes that are errors for the caller leave the transaction usable, and the work
// before them stays.
func TestInTxOutcomesDoNotAbort(t *testing.T) {
	s := openDatabase(t)
	env := authtest.NewOn(t, s)
	importUser := func(ctx context.Context, email string) error {
		_, err := env.ImportUser(ctx, auth.ImportUserParams{Email: email})
		return err
	}
	if err := importUser(t.Context(), "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	inTx(t, s, func(ctx context.Context, _ pgx.Tx) error {
		if err := importUser(ctx, "bob@example.com"); err != nil {
			t.Error(err)
		}
		if err := importUser(ctx, "ADA@example.com"); !errors.Is(err, auth.CodeUserAlreadyExists) {
			t.Errorf("a conflict: %v", err)
		}
		if _, err := s.User(ctx, store.ByID("no id")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an id that is none: %v", err)
		}
		if err := importUser(ctx, "carol@example.com"); err != nil {
			t.Errorf("after all this: %v", err)
		}
		return nil
	})
	if n := count(t, s.Pool(), "select count(*) from auth.users where email in ('ada@example.com', 'bob@example.com', 'carol@example.com')"); n != 3 {
		t.Errorf("%d users", n)
	}
}

// post sends JSON and answers status and body.
func post(t *testing.T, env *authtest.Env, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	env.Handler().ServeHTTP(rec, r)
	return rec.Code, rec.Body.String()
}

// The errors of a hook's own statements say nothing about the account: their constraints
// may have the same names as the store's.
func TestHookErrorsAreNoOutcomes(t *testing.T) {
	s := openDatabase(t)
	exec(t, s.Pool(), `create table public.users (id integer constraint users_pkey primary key, other integer constraint users_phone_key references public.users);
		insert into public.users values (1)`)
	var sql string
	env := authtest.NewOn(t, s, auth.WithHooks(auth.Hooks{OnUserCreating: func(ctx context.Context, _ store.User) error {
		var n int
		return pgstore.Tx(ctx).QueryRow(ctx, sql).Scan(&n)
	}}))
	for what, text := range map[string]string{
		"a unique constraint":        "insert into public.users values (1) returning id",
		"a foreign key":              "insert into public.users values (2, 3) returning id",
		"a row that is not there":    "select id from public.users where id = 7",
		"text that is no uuid":       "select 1 where 'nonsense'::text::uuid is null",
		"a row of auth's that is":    "insert into auth.limits (key, tat, seen) values ('k', 1, 1), ('k', 2, 2) returning 1",
		"an error that is no outage": "select 1/0",
	} {
		sql = text
		if status, body := post(t, env, "/auth/v1/signup", `{"email":"ada@example.com","password":"`+authtest.Password+`"}`); status != http.StatusInternalServerError || !strings.Contains(body, `"internal"`) {
			t.Errorf("sign-up with %s: %d %s", what, status, body)
		}
		_, err := env.ImportUser(t.Context(), auth.ImportUserParams{Email: "ada@example.com"})
		if !errors.Is(err, auth.CodeInternal) {
			t.Errorf("import with %s: %v", what, err)
		}
		env.Clock.Advance(time.Hour)
		if _, err := env.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "ada@example.com"}); err != nil {
			t.Fatal(err)
		}
		_, token, _ := strings.Cut(env.Mail(t, "ada@example.com", store.KindMagicLink).Link, "token=")
		if _, err := env.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: token}); !errors.Is(err, auth.CodeInternal) {
			t.Errorf("magic link with %s: %v", what, err)
		}
		env.Inbox.Clear()
		if n := count(t, s.Pool(), "select count(*) from auth.users"); n != 0 {
			t.Errorf("%s: %d users", what, n)
		}
	}
}
