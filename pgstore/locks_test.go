package pgstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// An attempt that waited while the code was superseded is one at the new code.
func TestGuessWhileCodeIsSuperseded(t *testing.T) {
	s, schema := openSchema(t)
	for name, c := range map[string]struct {
		guess string
		want  error
		after error // of the right attempt that follows
		tries int
	}{
		"wrong": {"000000", store.ErrWrongCode, nil, 1},
		"old":   {"111111", store.ErrWrongCode, nil, 1},
		"right": {"222222", nil, store.ErrNotFound, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if err := put(ctx, s, newCode("111111", "+49"+name, 5)); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			err := pgx.BeginFunc(ctx, s.Pool(), func(tx pgx.Tx) error {
				if err := put(pgstore.InTx(ctx, tx), s, newCode("222222", "+49"+name, 5)); err != nil {
					return err
				}
				go func() {
					_, _, err := try(ctx, s, "+49"+name, c.guess)
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
			got, _, err := try(ctx, s, "+49"+name, "222222")
			if !errors.Is(err, c.after) || got.Attempts != c.tries {
				t.Errorf("the right guess afterwards: %v with %d tries counted, want %v with %d", err, got.Attempts, c.after, c.tries)
			}
		})
	}
}

// An administrator's SQL may ban a user permanently.
func TestInfiniteBan(t *testing.T) {
	s, schema := openSchema(t)
	u, sess := withSession(t, s)
	if _, err := s.Pool().Exec(t.Context(), "update "+schema+".users set banned_until = 'infinity' where id = $1", u.ID); err != nil {
		t.Fatal(err)
	}
	got, err := s.User(t.Context(), store.ByID(u.ID))
	if err != nil || !got.Banned(time.Now()) {
		t.Errorf("banned until %v, %v", got.BannedUntil, err)
	}
	if _, _, err := s.Session(t.Context(), sess.ID, time.Now()); !errors.Is(err, store.ErrBanned) {
		t.Errorf("session: %v", err)
	}
	if _, _, err := s.AdvanceSession(t.Context(), store.Advance{Change: byTest(), SessionID: sess.ID, IdleUntil: time.Now().Add(time.Hour)}); !errors.Is(err, store.ErrBanned) {
		t.Errorf("advance: %v", err)
	}
}

// A transaction that changes more than one of a user's rows locks the user first.
func TestNoDeadlocks(t *testing.T) {
	s, _ := openSchema(t)
	ctx := t.Context()
	deadlocks := func() (n int) {
		pause(1500 * time.Millisecond) // Postgres reports statistics once a second
		if err := s.Pool().QueryRow(ctx, "select deadlocks from pg_stat_database where datname = current_database()").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := deadlocks()
	for name, f := range map[string]func(t *testing.T, u store.User) []func() error{
		"redeem and drop": func(t *testing.T, u store.User) []func() error {
			tok := newCode(u.ID, u.ID, 0)
			tok.UserID = u.ID
			if err := put(ctx, s, tok); err != nil {
				t.Fatal(err)
			}
			return []func() error{
				func() error {
					_, _, err := s.RedeemToken(ctx, store.Redemption{Change: byTest(), Purpose: tok.Purpose, Hash: tok.Hash, Effect: store.Effect{Patch: &store.UserPatch{EmailVerifiedAt: &now}}})
					return err
				},
				func() error {
					_, err := patch(ctx, s, u.ID, store.UserPatch{DropTokens: []store.Purpose{tok.Purpose}})
					return err
				},
			}
		},
		"redeem and delete": func(t *testing.T, u store.User) []func() error {
			tok := newCode(u.ID, u.ID, 0)
			tok.UserID = u.ID
			if err := put(ctx, s, tok); err != nil {
				t.Fatal(err)
			}
			return []func() error{
				func() error {
					_, _, err := s.RedeemToken(ctx, store.Redemption{Change: byTest(), Purpose: tok.Purpose, Hash: tok.Hash, Effect: store.Effect{Patch: &store.UserPatch{EmailVerifiedAt: &now}}})
					return err
				},
				func() error { return s.DeleteUser(ctx, store.DeleteUser{Change: byTest(), UserID: u.ID}) },
			}
		},
		"remove factor twice": func(t *testing.T, u store.User) []func() error {
			if _, err := s.EnableFactor(ctx, pendingAnew(t, s, newSession(u.ID))); err != nil {
				t.Fatal(err)
			}
			return []func() error{
				func() error {
					_, err := s.RemoveFactor(ctx, store.RemoveFactor{Change: byTest(), UserID: u.ID})
					return err
				},
				func() error { return s.DeleteUser(ctx, store.DeleteUser{Change: byTest(), UserID: u.ID}) },
				func() error {
					_, err := patch(ctx, s, u.ID, store.UserPatch{DropFactors: true})
					return err
				},
			}
		},
		"revoke and enable": func(t *testing.T, u store.User) []func() error {
			var kept store.Session
			for range 10 {
				kept = addSession(t, s, u.ID)
			}
			enable := pending(t, s, kept)
			return []func() error{
				func() error {
					_, err := s.RevokeSessions(ctx, store.RevokeSessions{Change: byTest(), UserID: u.ID})
					return err
				},
				func() error {
					_, err := s.EnableFactor(ctx, enable)
					return err
				},
				func() error {
					_, err := patch(ctx, s, u.ID, store.UserPatch{Revoke: &store.SessionFilter{}})
					return err
				},
			}
		},
	} {
		for range 60 {
			u, err := s.CreateUser(ctx, newUser(""))
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for _, c := range f(t, u) {
				wg.Go(func() {
					if err := c(); err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrSessionEnded) && !errors.Is(err, store.ErrConflict) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			wg.Wait()
		}
	}
	if after := deadlocks(); after > before {
		t.Errorf("%d deadlocks", after-before)
	}
}

// pendingAnew stores a pending factor; the result would enable it with a new session.
func pendingAnew(t *testing.T, s *pgstore.Store, sess store.Session) store.EnableFactor {
	t.Helper()
	e := pending(t, s, sess)
	sess.AAL = store.LevelAAL2
	e.Completion = store.Completion{Create: &store.NewSession{Session: sess}}
	return e
}

// pending stores a pending factor; the result would enable it within a session.
func pending(t *testing.T, s *pgstore.Store, sess store.Session) store.EnableFactor {
	t.Helper()
	f := store.Factor{ID: newSession("").ID, UserID: sess.UserID, Kind: store.FactorTOTP, Required: true, Secret: []byte("x"), CreatedAt: now}
	if err := s.PutFactor(t.Context(), store.PutFactor{Change: byTest(), Factor: f}); err != nil {
		t.Fatal(err)
	}
	return store.EnableFactor{Change: byTest(), UserID: sess.UserID, FactorID: f.ID, Completion: store.Completion{Raise: &store.RaisedLevel{SessionID: sess.ID, Method: store.AMR{Method: "totp"}}}}
}

// A code that was superseded meanwhile may belong to a user who was created meanwhile.
func TestCodeOfUserMadeMeanwhile(t *testing.T) {
	s, schema := openSchema(t)
	ctx := t.Context()
	if err := put(ctx, s, newCode("1", "p", 5)); err != nil {
		t.Fatal(err)
	}
	var want, got store.User
	done := make(chan error, 1)
	err := pgx.BeginFunc(ctx, s.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select from "+schema+".tokens for update"); err != nil {
			return err
		}
		go func() {
			_, u, err := try(context.Background(), s, "p", "2")
			got = u
			done <- err
		}()
		blocked(t, s, schema, 1)
		var err error
		if want, err = s.CreateUser(ctx, newUser("")); err != nil {
			return err
		}
		c := newCode("2", "p", 5)
		c.UserID = want.ID
		return put(pgstore.InTx(ctx, tx), s, c)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || got.ID != want.ID {
		t.Errorf("user %+v, %v", got, err)
	}
}

// redemptions are the kinds of effects that a token of a user may have.
func redemptions(t *testing.T, s *pgstore.Store) map[string]func() store.Redemption {
	kinds := map[string]func() store.Redemption{}
	for name, patch := range map[string]*store.UserPatch{
		"nothing": nil, "the user's row": {EmailVerifiedAt: &now}, "the user's sessions": {Revoke: &store.SessionFilter{}}, "the user's tokens": {DropTokens: []store.Purpose{store.PurposeReset}},
	} {
		kinds[name] = func() store.Redemption {
			u, err := s.CreateUser(t.Context(), newUser(""))
			if err != nil {
				t.Fatal(err)
			}
			tok := newCode(u.ID, u.ID, 0)
			tok.UserID = u.ID
			if err := put(t.Context(), s, tok); err != nil {
				t.Fatal(err)
			}
			return store.Redemption{Change: byTest(), Purpose: tok.Purpose, Hash: tok.Hash, Effect: store.Effect{UserID: u.ID, Patch: patch}}
		}
	}
	kinds["a new user"] = func() store.Redemption {
		tok := newCode(newSession("").ID, "", 0)
		if err := put(t.Context(), s, tok); err != nil {
			t.Fatal(err)
		}
		nu := newUser("")
		return store.Redemption{Change: byTest(), Purpose: tok.Purpose, Hash: tok.Hash, Effect: store.Effect{Create: &nu.NewUser}}
	}
	return kinds
}

// A redemption that meets a concurrent one waits for its end.
func TestRedemptionsWaitForEachOther(t *testing.T) {
	s, schema := openSchema(t)
	ctx := t.Context()
	for name, kind := range redemptions(t, s) {
		for _, end := range []error{nil, errRollback} {
			r := kind()
			done := make(chan error, 1)
			inTx(t, s, func(in context.Context, _ pgx.Tx) error {
				if _, _, err := s.RedeemToken(in, r); err != nil {
					t.Errorf("%s: the first: %v", name, err)
				}
				again := r
				if r.Create != nil {
					nu := newUser("")
					again.Create = &nu.NewUser
				}
				go func() { _, _, err := s.RedeemToken(ctx, again); done <- err }()
				blocked(t, s, schema, 1)
				return end
			})
			want := store.ErrNotFound
			if end != nil {
				want = nil
			}
			if err := <-done; !errors.Is(err, want) {
				t.Errorf("%s: the second, after %v: %v, want %v", name, end, err, want)
			}
		}
	}
}

// A redemption with an effect on the user holds no token while it waits for the user,
// because another transaction may hold the user and want the token.
func TestRedemptionLocksUserFirst(t *testing.T) {
	s, schema := openSchema(t)
	ctx := t.Context()
	for name, kind := range redemptions(t, s) {
		if name == "nothing" || name == "a new user" {
			continue
		}
		r := kind()
		done := make(chan error, 1)
		err := pgx.BeginFunc(ctx, s.Pool(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "select from "+schema+".users where id = $1 for update", r.UserID); err != nil {
				return err
			}
			go func() { _, _, err := s.RedeemToken(ctx, r); done <- err }()
			blocked(t, s, schema, 1)
			_, err := tx.Exec(ctx, "set local lock_timeout = '200ms'; delete from "+schema+".tokens")
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := <-done; !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: the redemption: %v", name, err)
		}
	}
}

// A change of identities that meets a concurrent one sees the identity that the other one
// linked.
func TestLinksWaitForEachOther(t *testing.T) {
	s, schema := openSchema(t)
	ctx := t.Context()
	link := func(subject string) *store.Identity {
		return &store.Identity{ID: newSession("").ID, Provider: "p", Subject: subject, CreatedAt: now, LastSignInAt: now}
	}
	for name, c := range map[string]struct {
		first string
		patch store.UserPatch
		left  int
	}{
		"link the same": {"1", store.UserPatch{Link: link("1")}, 1},
		"link another":  {"2", store.UserPatch{Link: link("3")}, 2},
		"unlink":        {"4", store.UserPatch{Unlink: &store.UserKey{Provider: "p", Subject: "4"}}, 0},
		"drop all":      {"5", store.UserPatch{DropCredentials: true}, 0},
	} {
		u, err := s.CreateUser(ctx, newUser(""))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		inTx(t, s, func(in context.Context, _ pgx.Tx) error {
			if _, err := patch(in, s, u.ID, store.UserPatch{Link: link(c.first)}); err != nil {
				t.Errorf("%s: the first: %v", name, err)
			}
			go func() { _, err := patch(ctx, s, u.ID, c.patch); done <- err }()
			blocked(t, s, schema, 1)
			return nil
		})
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := s.User(ctx, store.ByID(u.ID)); err != nil || len(got.Identities) != c.left {
			t.Errorf("%s: %+v, %v; want %d identities", name, got.Identities, err, c.left)
		}
	}
}
