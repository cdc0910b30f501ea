package pgstore_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// errRollback rolls back a test's transaction.
var errRollback = errors.New("rolled back on purpose")

// inTx runs f inside a transaction of the application's that ends according to f's error.
func inTx(t *testing.T, s *pgstore.Store, f func(ctx context.Context, tx pgx.Tx) error) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) error { return f(pgstore.InTx(t.Context(), tx), tx) })
	if err != nil && !errors.Is(err, errRollback) {
		t.Fatal(err)
	}
}

// newUser describes a user.
func newUser(email string) store.CreateUser {
	at := time.Now().UTC().Truncate(time.Microsecond)
	return store.CreateUser{Change: byTest(), NewUser: store.NewUser{User: store.User{ID: uuid.NewString(), Email: email, CreatedAt: at, UpdatedAt: at}}}
}

func newSession(userID string) store.Session {
	at := time.Now().UTC().Truncate(time.Microsecond)
	return store.Session{ID: uuid.NewString(), UserID: userID, AAL: store.LevelAAL1, CreatedAt: at, LastActiveAt: at, RotatedAt: at, IdleUntil: at.Add(time.Hour)}
}

// withUser creates a user, and withSession one with a session.
func withUser(t *testing.T, s *pgstore.Store) store.User {
	t.Helper()
	u, err := s.CreateUser(t.Context(), newUser(""))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func withSession(t *testing.T, s *pgstore.Store) (store.User, store.Session) {
	t.Helper()
	u := withUser(t, s)
	return u, addSession(t, s, u.ID)
}

func addSession(t *testing.T, s *pgstore.Store, userID string) store.Session {
	t.Helper()
	sess := newSession(userID)
	if _, err := s.CreateSession(t.Context(), store.CreateSession{Change: byTest(), NewSession: store.NewSession{Session: sess}}); err != nil {
		t.Fatal(err)
	}
	return sess
}

func hashOf(s string) []byte {
	h := sha256.Sum256([]byte(s))
	return h[:]
}

// newCode returns a code for a subject.
func newCode(code, subject string, tries int) store.Token {
	at := time.Now().UTC().Truncate(time.Microsecond)
	return store.Token{Purpose: store.PurposePhoneCode, Hash: hashOf(code), Subject: subject, CreatedAt: at, ExpiresAt: at.Add(time.Hour), MaxAttempts: tries}
}

// put stores a token.
func put(ctx context.Context, s *pgstore.Store, t store.Token) error {
	return s.PutToken(ctx, store.PutToken{Change: byTest(), Token: t})
}

// try makes an attempt at a phone code.
func try(ctx context.Context, s *pgstore.Store, subject, guess string) (store.Token, store.User, error) {
	return s.RedeemCode(ctx, store.CodeAttempt{Change: byTest(), Purpose: store.PurposePhoneCode, Subject: subject, Hash: hashOf(guess)})
}

// patch changes a user.
func patch(ctx context.Context, s *pgstore.Store, userID string, p store.UserPatch) (store.User, error) {
	return s.UpdateUser(ctx, store.UpdateUser{Change: byTest(), UserID: userID, Patch: p})
}

// pause lets another connection continue.
func pause(d time.Duration) { <-time.After(d) }

// blocked waits until the given number of statements on a schema wait for a lock.
func blocked(t *testing.T, s *pgstore.Store, schema string, n int) {
	t.Helper()
	for range 500 {
		var have int
		err := s.Pool().QueryRow(t.Context(), "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and position($1 in query) > 0 and pid <> pg_backend_pid()", schema+".").Scan(&have)
		if err != nil {
			t.Fatal(err)
		}
		if have >= n {
			return
		}
		pause(10 * time.Millisecond)
	}
	t.Fatalf("%d statements never waited", n)
}

// ofUser gives a token a user.
func ofUser(t store.Token, userID string) store.Token {
	t.UserID = userID
	return t
}

// with adds conditions and an event to a change.
func with(c store.Change, still ...store.UserAt) store.Change {
	c.IfUsers = still
	c.Events = []store.OutcomeEvent{{Event: store.Event{ID: uuid.NewString(), Type: store.EventSignedIn, At: c.Now}}}
	return c
}

// ifReused has a change record an event if it is a late refresh.
func ifReused(c store.Change) store.Change {
	c = with(c)
	c.Events[0].On = store.OutcomeReused
	return c
}
