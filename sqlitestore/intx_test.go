package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/sqlitestore"
	"github.com/authmount/auth/store"
)

var errUndo = errors.New("undone on purpose")

// members creates a table of the application.
func members(t *testing.T, s *sqlitestore.Store) {
	t.Helper()
	ok(t, s.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "create table members (user_id text not null references auth_users on delete cascade) strict")
		return err
	}))
}

// count returns the number of a table's rows.
func count(t *testing.T, s *sqlitestore.Store, table string) (n int) {
	t.Helper()
	ok(t, s.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "select count(*) from "+table).Scan(&n)
	}))
	return n
}

// Auth's changes and the application's rows take effect together, or not at all, and
// messages wait for the commit.
func TestInTx(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "auth.db"))
	env := authtest.NewOn(t, s)
	members(t, s)
	for _, end := range []error{errUndo, nil} {
		var tokens *auth.Tokens
		err := s.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			if sqlitestore.Tx(ctx) != tx || !s.InTransaction(ctx) {
				t.Error("the context does not carry the transaction")
			}
			signed, err := env.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: authtest.Password})
			ok(t, err)
			tokens = signed.Tokens
			imported, err := env.ImportUser(ctx, auth.ImportUserParams{Email: "bob@example.com"})
			ok(t, err)
			_, err = tx.ExecContext(ctx, "insert into members values (?), (?)", signed.User.ID, imported.ID)
			ok(t, err)
			if _, err := env.ImportUser(ctx, auth.ImportUserParams{Email: "BOB@example.com"}); !errors.Is(err, auth.CodeUserAlreadyExists) {
				t.Errorf("a refused change: %v", err)
			}
			if n := len(env.Inbox.Messages()); n != 0 {
				t.Errorf("%d messages before the commit", n)
			}
			return end
		})
		if err != end { //nolint:errorlint // the error itself, unchanged
			t.Fatalf("%v, want %v", err, end)
		}
		want := 2
		if end != nil {
			want = 0
		}
		if users, rows := count(t, s, "auth_users"), count(t, s, "members"); users != want || rows != want {
			t.Errorf("after %v: %d users, %d members", end, users, rows)
		}
		_, err = env.Refresh(t.Context(), auth.RefreshParams{RefreshToken: tokens.RefreshToken})
		if end == nil && err != nil || end != nil && !errors.Is(err, auth.CodeSessionEnded) {
			t.Errorf("refresh after %v: %v", end, err)
		}
	}
	env.Clock.Advance(time.Minute)
	if m := env.Mail(t, "ada@example.com", store.KindVerifyEmail); m.Link == "" {
		t.Error("no message after the commit")
	}
}

// Wrong codes and a reused refresh token are errors, and count nevertheless.
func TestInTxCounts(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "auth.db"))
	code := store.Token{Purpose: store.PurposePhoneCode, Hash: []byte("right"), Subject: "+49301", CreatedAt: now, ExpiresAt: now.Add(time.Hour), MaxAttempts: 2}
	ok(t, s.PutToken(t.Context(), store.PutToken{Change: byTest(), Token: code}))
	c := newUser("")
	sess := newSession(c.User.ID)
	c.Session = &sess
	_, err := s.CreateUser(t.Context(), c)
	ok(t, err)
	guess := order{Task: "guess"}
	ok(t, s.InTx(t.Context(), func(ctx context.Context, _ *sql.Tx) error {
		for _, want := range []error{store.ErrWrongCode, store.ErrWrongCode, store.ErrTooManyAttempts} {
			if got := guess.call(ctx, s, "wrong"); got != want.Error() {
				t.Errorf("%s, want %v", got, want)
			}
		}
		for _, want := range []string{"done", store.ErrReused.Error(), store.ErrSessionEnded.Error()} {
			if got := (order{Task: "refresh"}).call(ctx, s, sess.ID); got != want {
				t.Errorf("refresh: %s, want %s", got, want)
			}
		}
		return nil
	}))
	if got := guess.call(t.Context(), s, "right"); got != store.ErrTooManyAttempts.Error() {
		t.Errorf("the right code after the commit: %s", got)
	}
	if _, _, err := s.Session(t.Context(), sess.ID, now); !errors.Is(err, store.ErrSessionEnded) {
		t.Errorf("the session after the commit: %v", err)
	}
}

// An inner transaction is a part of the outer one. If it fails or panics, only its own work
// is undone.
func TestInTxWithinInTx(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "auth.db"))
	create := func(ctx context.Context, _ *sql.Tx) error {
		_, err := s.CreateUser(ctx, newUser(""))
		return err
	}
	ok(t, s.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		ok(t, create(ctx, tx))
		ok(t, s.InTx(ctx, create))
		if err := s.InTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			return errors.Join(create(ctx, tx), errUndo)
		}); !errors.Is(err, errUndo) {
			t.Error(err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = s.InTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
				ok(t, create(ctx, tx))
				panic("mine")
			})
		}()
		return nil
	}))
	if n := count(t, s, "auth_users"); n != 2 {
		t.Errorf("%d users, want 2", n)
	}
	func() {
		defer func() { _ = recover() }()
		_ = s.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			ok(t, create(ctx, tx))
			panic("mine")
		})
	}()
	if n := count(t, s, "auth_users"); n != 2 {
		t.Errorf("%d users after a panic, want 2", n)
	}
}

// A transaction that the function ended itself is an error, and nothing follows it.
func TestInTxEndedWithin(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "auth.db"))
	for _, end := range []string{"rollback", "commit"} {
		err := s.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, end)
			ok(t, err)
			if _, err := s.CreateUser(ctx, newUser("")); err == nil {
				t.Errorf("a change after %s", end)
			}
			return nil
		})
		if err == nil || count(t, s, "auth_users") != 0 {
			t.Errorf("%s: %v", end, err)
		}
	}
}

// within runs f in OnUserCreating and in InTx, in a transaction of s.
func within(t *testing.T, s *sqlitestore.Store, f func(ctx context.Context) error) {
	t.Helper()
	c := newUser("")
	c.Creating = func(ctx context.Context, _ store.User) error { return f(ctx) }
	_, err := s.CreateUser(t.Context(), c)
	ok(t, err)
	ok(t, s.InTx(t.Context(), func(ctx context.Context, _ *sql.Tx) error { return f(ctx) }))
}

// A change within a transaction, with the context of the request or of another one, would
// wait for itself. It is an error at once, and the transaction goes on.
func TestOtherContextWithin(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "auth.db"))
	elsewhere := open(t, filepath.Join(t.TempDir(), "other.db"))
	within(t, s, func(ctx context.Context) error {
		value, cancel := context.WithCancel(context.WithValue(t.Context(), errUndo, 1))
		defer cancel()
		for what, other := range map[string]context.Context{"the request's": t.Context(), "a derived one": value, "none": context.Background()} {
			for name, call := range map[string]func(ctx context.Context) error{
				"CreateUser": func(ctx context.Context) error { _, err := s.CreateUser(ctx, newUser("")); return err },
				"Take": func(ctx context.Context) error {
					_, err := s.Take(ctx, []store.Draw{{Key: "k", Rate: store.Rate{Burst: 7, Per: time.Hour}, Cost: 1}}, now)
					return err
				},
				"InTx": func(ctx context.Context) error {
					return s.InTx(ctx, func(context.Context, *sql.Tx) error { return nil })
				},
			} {
				if err := call(other); !errors.Is(err, sqlitestore.ErrOtherContext) || !strings.Contains(err.Error(), "needs the context of the transaction") {
					t.Errorf("%s with %s context: %v", name, what, err)
				}
				if err := call(ctx); err != nil {
					t.Errorf("%s with the transaction's: %v", name, err)
				}
			}
			if _, err := s.User(other, store.ByID(uuid.NewString())); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a read with %s context: %v", what, err)
			}
		}
		_, err := elsewhere.CreateUser(t.Context(), newUser("")) // not this transaction's store
		return err
	})
	_, err := s.CreateUser(t.Context(), newUser(""))
	ok(t, err)
}

// Another request waits for the end of the transaction and succeeds, though it shares the
// context that the transaction began with.
func TestOtherRequestsWait(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "auth.db"))
	var wait sync.WaitGroup
	within(t, s, func(context.Context) error {
		for range 5 {
			begun := make(chan struct{})
			wait.Go(func() {
				close(begun)
				if _, err := s.CreateUser(t.Context(), newUser("")); err != nil {
					t.Error(err)
				}
			})
			<-begun
		}
		return nil
	})
	wait.Wait()
	if n := count(t, s, "auth_users"); n != 11 {
		t.Errorf("%d users, want 11", n)
	}
}
