package pgstore_test

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pgstore"
)

func hashOf(s string) []byte {
	h := sha256.Sum256([]byte(s))
	return h[:]
}

func newCode(code, subject string, tries int) auth.Token {
	at := time.Now().UTC().Truncate(time.Microsecond)
	return auth.Token{Purpose: auth.PurposePhoneCode, Hash: hashOf(code), Subject: subject, CreatedAt: at, ExpiresAt: at.Add(time.Hour), MaxTries: tries}
}

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
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d statements never waited", n)
}

func TestGuessWhileCodeIsSuperseded(t *testing.T) {
	s, schema := openSchema(t)
	for name, c := range map[string]struct {
		guess string
		want  error
		after error // of the right guess that follows
		tries int
	}{
		"wrong": {"000000", auth.ErrWrongCode, nil, 1},
		"old":   {"111111", auth.ErrWrongCode, nil, 1},
		"right": {"222222", nil, auth.ErrNotFound, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if err := s.PutToken(ctx, newCode("111111", "+49"+name, 5)); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			err := pgx.BeginFunc(ctx, s.Pool(), func(tx pgx.Tx) error {
				if err := s.PutToken(pgstore.InTx(ctx, tx), newCode("222222", "+49"+name, 5)); err != nil {
					return err
				}
				go func() {
					_, _, err := s.TryCode(ctx, auth.PurposePhoneCode, "+49"+name, hashOf(c.guess), time.Now())
					done <- err
				}()
				blocked(t, s, schema, 1)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, c.want) {
				t.Errorf("the guess: %v, want %v", err, c.want)
			}
			got, _, err := s.TryCode(ctx, auth.PurposePhoneCode, "+49"+name, hashOf("222222"), time.Now())
			if !errors.Is(err, c.after) || got.Tries != c.tries {
				t.Errorf("the right guess afterwards: %v with %d tries counted, want %v with %d", err, got.Tries, c.after, c.tries)
			}
		})
	}
}

func newSession(userID string) auth.Session {
	id, _ := uuid.NewV7()
	at := time.Now().UTC().Truncate(time.Microsecond)
	return auth.Session{ID: id.String(), UserID: userID, AAL: auth.LevelAAL1, CreatedAt: at, LastActiveAt: at, RotatedAt: at, IdleUntil: at.Add(time.Hour)}
}

func withSession(t *testing.T, s *pgstore.Store) (auth.User, auth.Session) {
	t.Helper()
	u, err := s.CreateUser(t.Context(), newUser(""))
	if err != nil {
		t.Fatal(err)
	}
	sess := newSession(u.ID)
	if _, err := s.CreateSession(t.Context(), auth.NewSession{Session: sess}); err != nil {
		t.Fatal(err)
	}
	return u, sess
}

func TestInfiniteBan(t *testing.T) {
	s, schema := openSchema(t)
	u, sess := withSession(t, s)
	if _, err := s.Pool().Exec(t.Context(), "update "+schema+".users set banned_until = 'infinity' where id = $1", u.ID); err != nil {
		t.Fatal(err)
	}
	got, err := s.User(t.Context(), auth.ByID(u.ID))
	if err != nil || !got.Banned(time.Now()) {
		t.Errorf("banned until %v, %v", got.BannedUntil, err)
	}
	if _, _, err := s.Session(t.Context(), sess.ID, time.Now()); !errors.Is(err, auth.ErrBanned) {
		t.Errorf("session: %v", err)
	}
	if _, _, err := s.AdvanceSession(t.Context(), auth.Advance{SessionID: sess.ID, Now: time.Now(), IdleUntil: time.Now().Add(time.Hour)}); !errors.Is(err, auth.ErrBanned) {
		t.Errorf("advance: %v", err)
	}
}
