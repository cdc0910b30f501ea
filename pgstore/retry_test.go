package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// A statement that gave way to another one is retried, a few times. Other failures are
// not, because they might have had their effect or would fail again.
func TestRetries(t *testing.T) {
	s := openDatabase(t)
	// A sequence is not rolled back, and so counts the attempts.
	exec(t, s.Pool(), `create sequence public.attempts;
		create function public.fails() returns trigger language plpgsql as 'begin return new; end';
		create trigger fails before insert on auth.users for each row execute function public.fails()`)
	called := 0
	hook := func(context.Context, store.User) error { called++; return nil }
	for _, c := range []struct {
		code     string
		fails    int // the number of attempts that fail
		attempts int
		ok       bool
	}{
		{"40001", 1, 2, true}, {"40P01", 1, 2, true}, {"40001", 99, 3, false},
		{"57014", 1, 1, false}, {"53100", 1, 1, false}, {"55P03", 1, 1, false}, {"08006", 1, 1, false}, {"23514", 1, 1, false}, {"P0001", 1, 1, false},
	} {
		exec(t, s.Pool(), fmt.Sprintf(`alter sequence public.attempts restart;
			create or replace function public.fails() returns trigger language plpgsql as $$ begin
				if nextval('public.attempts') <= %d then raise exception 'on purpose' using errcode = '%s'; end if;
				return new;
			end $$`, c.fails, c.code))
		check := func(what string, attempts int, ok bool, err error) {
			t.Helper()
			if ok && err != nil || !ok && sqlState(err) != c.code {
				t.Errorf("%s, %s: %v", c.code, what, err)
			}
			if n := count(t, s.Pool(), "select last_value from public.attempts"); n != attempts {
				t.Errorf("%s, %s: %d attempts, want %d", c.code, what, n, attempts)
			}
			exec(t, s.Pool(), "alter sequence public.attempts restart")
		}
		_, err := s.CreateUser(t.Context(), newUser(""))
		check("a statement", c.attempts, c.ok, err)
		called = 0
		nu := newUser("")
		nu.Creating = hook
		_, err = s.CreateUser(t.Context(), nu)
		check("a transaction", c.attempts, c.ok, err)
		if called > 1 {
			t.Errorf("%s: the hook was called %d times", c.code, called)
		}
		// The application retries its own transactions.
		err = pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) error {
			_, err := s.CreateUser(pgstore.InTx(t.Context(), tx), newUser(""))
			return err
		})
		check("the application's transaction", 1, false, err)
	}
	exec(t, s.Pool(), "drop trigger fails on auth.users")

	// So does the hook's work in the transaction.
	called = 0
	nu := newUser("ada@example.com")
	nu.Creating = func(ctx context.Context, _ store.User) error {
		if called++; called == 1 {
			_, err := pgstore.Tx(ctx).Exec(ctx, "do $$ begin raise exception 'gives way' using errcode = '40001'; end $$")
			return err
		}
		return nil
	}
	if _, err := s.CreateUser(t.Context(), nu); err != nil || called != 2 {
		t.Errorf("%v after %d calls", err, called)
	}
}

// No caller waits longer than the store's timeout: for a row, in a transaction or not, or
// for a connection.
func TestTimeout(t *testing.T) {
	patient := openDatabase(t)
	s, err := pgstore.Open(t.Context(), patient.Pool().Config().ConnString(), pgstore.WithTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	u, err := patient.CreateUser(t.Context(), newUser("ada@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"a statement": func() error {
			_, err := s.CreateSession(t.Context(), store.CreateSession{Change: byTest(), NewSession: store.NewSession{Session: newSession(u.ID)}})
			return err
		},
		"a transaction": func() error {
			_, err := patch(t.Context(), s, u.ID, store.UserPatch{Revoke: &store.SessionFilter{}})
			return err
		},
	}
	late := func(what string, f func() error) {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- f() }()
		select {
		case err := <-done:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s waits still", what)
		}
	}
	err = pgx.BeginFunc(t.Context(), patient.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "select from auth.users for update"); err != nil {
			return err
		}
		for what, f := range calls {
			late(what, f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Pool().Acquire(t.Context()) // the only connection
	if err != nil {
		t.Fatal(err)
	}
	late("a connection", func() error { return s.Ping(t.Context()) })
	c.Release()
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	for what, f := range calls {
		if err := f(); err != nil {
			t.Errorf("%s, once nobody is in the way: %v", what, err)
		}
	}
	for _, d := range []time.Duration{0, -time.Second} {
		if _, err := pgstore.New(s.Pool(), pgstore.WithTimeout(d)); err == nil {
			t.Errorf("a timeout of %v", d)
		}
	}
}
