package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// meeting is two changes: the second starts while the first is in progress.
type meeting struct {
	first, second func(ctx context.Context) error
	want          error // of the second, if the first commits
}

// A change that waited for another one is checked against the result of that one: at READ
// COMMITTED, its statements' snapshots are older.
func TestConditionsAreJudgedAfterWaiting(t *testing.T) {
	type place struct {
		s      *pgstore.Store
		schema string
	}
	var places pgtest.Reused[place]
	places.Open = func() (place, string) {
		s, schema := openSchema(t)
		places.As = s.Pool()
		return place{s, schema}, schema
	}
	for name, open := range map[string]func(*testing.T, *pgstore.Store) meeting{
		"its session ends":                 sessionEnds,
		"its session ends with a ban":      sessionIsBanned,
		"its session ends by reuse":        sessionIsReused,
		"its token is used":                tokenIsUsed,
		"its key ends":                     keyEnds,
		"the last but one owner goes":      ownerGoes,
		"the last but one owner is banned": ownerIsBanned,
		"a role changes":                   roleChanges,
		"a role is given":                  roleIsGiven,
		"the user changes, at a sign-in":   userChangesAtSignIn,
		"the user changes, at a code":      userChangesAtCode,
		"the user changes, at a patch":     userChangesAtPatch,
		"the same key":                     sameIdempotencyKey,
		"a refresh of what ends":           refreshOfEnded,
		"a refresh of who is banned":       refreshOfBanned,
		"a factor of the same kind":        sameFactor,
		"a token of a user who goes":       tokenOfDeleted,
	} {
		for _, end := range []error{nil, errRollback} {
			t.Run(fmt.Sprintf("%s, after %v", name, end), func(t *testing.T) {
				at := places.Store(t)
				m := open(t, at.s)
				done := make(chan error, 1)
				inTx(t, at.s, func(in context.Context, _ pgx.Tx) error {
					if err := m.first(in); err != nil {
						t.Errorf("%s: the first: %v", name, err)
					}
					go func() { done <- m.second(t.Context()) }()
					blocked(t, at.s, at.schema, 1)
					return end
				})
				want := m.want
				if end != nil {
					want = nil
				}
				if err := <-done; !errors.Is(err, want) {
					t.Errorf("%s: the second, after %v: %v, want %v", name, end, err, want)
				}
			})
		}
	}
}

func bySession(sess store.Session) store.Change {
	c := byTest()
	c.By = store.Authority{Session: &store.SessionRef{ID: sess.ID, UserID: sess.UserID}}
	return c
}

func rename(s *pgstore.Store, c store.Change, userID string) func(context.Context) error {
	name := "Ada"
	return func(ctx context.Context) error {
		_, err := s.UpdateUser(ctx, store.UpdateUser{Change: c, UserID: userID, Patch: store.UserPatch{FullName: &name}})
		return err
	}
}

func banAt(s *pgstore.Store, c store.Change, userID string) func(context.Context) error {
	until := time.Now().Add(time.Hour)
	return func(ctx context.Context) error {
		_, err := s.UpdateUser(ctx, store.UpdateUser{Change: c, UserID: userID, Patch: store.UserPatch{BannedUntil: &until, Revoke: &store.SessionFilter{}}})
		return err
	}
}

func revoke(s *pgstore.Store, userID string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.RevokeSessions(ctx, store.RevokeSessions{Change: byTest(), UserID: userID})
		return err
	}
}

func sessionEnds(t *testing.T, s *pgstore.Store) meeting {
	u, sess := withSession(t, s)
	return meeting{revoke(s, u.ID), rename(s, bySession(sess), withUser(t, s).ID), store.ErrSessionEnded}
}

func sessionIsBanned(t *testing.T, s *pgstore.Store) meeting {
	u, sess := withSession(t, s)
	until := time.Now().Add(time.Hour)
	return meeting{func(ctx context.Context) error {
		_, err := patch(ctx, s, u.ID, store.UserPatch{BannedUntil: &until})
		return err
	}, rename(s, bySession(sess), u.ID), store.ErrBanned}
}

func refresh(s *pgstore.Store, sess store.Session) func(context.Context) error {
	return func(ctx context.Context) error {
		_, _, err := s.AdvanceSession(ctx, store.Advance{Change: byTest(), SessionID: sess.ID, IdleUntil: time.Now().Add(time.Hour)})
		return err
	}
}

func sessionIsReused(t *testing.T, s *pgstore.Store) meeting {
	_, sess := withSession(t, s)
	if err := refresh(s, sess)(t.Context()); err != nil {
		t.Fatal(err)
	}
	return meeting{func(ctx context.Context) error {
		if err := refresh(s, sess)(ctx); !errors.Is(err, store.ErrReused) {
			return fmt.Errorf("reuse: %w", err)
		}
		return nil
	}, rename(s, bySession(sess), withUser(t, s).ID), store.ErrSessionEnded}
}

// The session is locked before its user is banned.
func refreshOfBanned(t *testing.T, s *pgstore.Store) meeting {
	u, sess := withSession(t, s)
	until := time.Now().Add(time.Hour)
	return meeting{func(ctx context.Context) error {
		_, _, err := s.AddAuthentication(ctx, store.AddAuthentication{Change: byTest(), SessionID: sess.ID, Proof: store.AMR{Method: "password"}})
		if err == nil {
			_, err = patch(ctx, s, u.ID, store.UserPatch{BannedUntil: &until})
		}
		return err
	}, refresh(s, sess), store.ErrBanned}
}

func tokenIsUsed(t *testing.T, s *pgstore.Store) meeting {
	u := withUser(t, s)
	tok := ofUser(newCode(u.ID, u.ID, 0), u.ID)
	if err := put(t.Context(), s, tok); err != nil {
		t.Fatal(err)
	}
	c := byTest()
	c.By = store.Authority{Token: &store.TokenRef{Purpose: tok.Purpose, Hash: tok.Hash}}
	return meeting{func(ctx context.Context) error {
		_, _, err := s.RedeemToken(ctx, store.Redemption{Change: byTest(), Purpose: tok.Purpose, Hash: tok.Hash})
		return err
	}, rename(s, c, u.ID), store.ErrNotFound}
}

func keyEnds(t *testing.T, s *pgstore.Store) meeting {
	k := store.APIKey{ID: uuid.NewString(), Hash: hashOf(uuid.NewString())}
	if _, err := s.PutKey(t.Context(), store.PutKey{Change: byTest(), Key: k}); err != nil {
		t.Fatal(err)
	}
	c := byTest()
	c.By = store.Authority{Key: &store.KeyRef{ID: k.ID}}
	return meeting{func(ctx context.Context) error {
		k.RevokedAt = now
		_, err := s.PutKey(ctx, store.PutKey{Change: byTest(), Key: k})
		return err
	}, rename(s, c, withUser(t, s).ID), store.ErrKeyEnded}
}

// owners returns two owners.
func owners(t *testing.T, s *pgstore.Store) (a, b store.User) {
	t.Helper()
	make := func() store.User {
		nu := newUser("")
		nu.User.Roles, nu.User.AcceptedSequence = []string{store.RoleOwner}, 1
		u, err := s.CreateUser(t.Context(), nu)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	return make(), make()
}

func keepOwner() store.Change {
	c := byTest()
	c.KeepOwner = true
	return c
}

func demote(s *pgstore.Store, userID string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.UpdateUser(ctx, store.UpdateUser{Change: keepOwner(), UserID: userID, Patch: store.UserPatch{Roles: &[]string{}}})
		return err
	}
}

func ownerGoes(t *testing.T, s *pgstore.Store) meeting {
	a, b := owners(t, s)
	return meeting{func(ctx context.Context) error {
		return s.DeleteUser(ctx, store.DeleteUser{Change: keepOwner(), UserID: b.ID})
	}, demote(s, a.ID), store.ErrLastOwner}
}

func ownerIsBanned(t *testing.T, s *pgstore.Store) meeting {
	a, b := owners(t, s)
	return meeting{demote(s, a.ID), banAt(s, keepOwner(), b.ID), store.ErrLastOwner}
}

func putRole(s *pgstore.Store, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.PutRole(ctx, store.PutRole{Change: byTest(), Role: store.RolePermissions{Name: name}})
		return err
	}
}

func roleChanges(t *testing.T, s *pgstore.Store) meeting {
	table, err := s.Roles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := byTest()
	c.IfRoles = &table.Revision
	return meeting{putRole(s, "editor"), rename(s, c, withUser(t, s).ID), store.ErrStale}
}

func roleIsGiven(t *testing.T, s *pgstore.Store) meeting {
	u, name := withUser(t, s), uuid.NewString()
	if err := putRole(s, name)(t.Context()); err != nil {
		t.Fatal(err)
	}
	return meeting{func(ctx context.Context) error {
		_, err := patch(ctx, s, u.ID, store.UserPatch{Roles: &[]string{name}})
		return err
	}, func(ctx context.Context) error {
		_, err := s.DeleteRole(ctx, store.DeleteRole{Change: byTest(), Name: name})
		return err
	}, store.ErrConflict}
}

func asItIs(u store.User, id string) store.Change {
	c := byTest()
	c.IfUsers = []store.UserAt{{ID: id, Revision: &u.Revision}}
	return c
}

func userChangesAtSignIn(t *testing.T, s *pgstore.Store) meeting {
	u := withUser(t, s)
	return meeting{rename(s, byTest(), u.ID), func(ctx context.Context) error {
		_, err := s.CreateSession(ctx, store.CreateSession{Change: asItIs(u, u.ID), NewSession: store.NewSession{Session: newSession(u.ID)}})
		return err
	}, store.ErrStale}
}

func userChangesAtCode(t *testing.T, s *pgstore.Store) meeting {
	u := withUser(t, s)
	if err := put(t.Context(), s, ofUser(newCode("right", u.ID, 5), u.ID)); err != nil {
		t.Fatal(err)
	}
	return meeting{rename(s, byTest(), u.ID), func(ctx context.Context) error {
		_, _, err := s.RedeemCode(ctx, store.CodeAttempt{Change: asItIs(u, ""), Purpose: store.PurposePhoneCode, Subject: u.ID, Hash: hashOf("right")})
		return err
	}, store.ErrStale}
}

func userChangesAtPatch(t *testing.T, s *pgstore.Store) meeting {
	u := withUser(t, s)
	return meeting{rename(s, byTest(), u.ID), rename(s, asItIs(u, u.ID), u.ID), store.ErrStale}
}

func sameIdempotencyKey(t *testing.T, s *pgstore.Store) meeting {
	key := store.Idempotency{Actor: "a", Route: "r", Key: uuid.NewString(), ExpiresAt: time.Now().Add(time.Hour)}
	email := key.Key + "@example.com"
	make := func(ctx context.Context) error {
		nu := newUser(email)
		nu.Idempotency = &key
		_, err := s.CreateUser(ctx, nu)
		return err
	}
	return meeting{make, make, store.ErrRepeated}
}

func refreshOfEnded(t *testing.T, s *pgstore.Store) meeting {
	u, sess := withSession(t, s)
	return meeting{banAt(s, byTest(), u.ID), refresh(s, sess), store.ErrBanned}
}

func sameFactor(t *testing.T, s *pgstore.Store) meeting {
	u := withUser(t, s)
	e := pendingAnew(t, s, newSession(u.ID))
	return meeting{func(ctx context.Context) error {
		_, err := s.EnableFactor(ctx, e)
		return err
	}, func(ctx context.Context) error {
		f := store.Factor{ID: uuid.NewString(), UserID: u.ID, Kind: store.FactorTOTP, CreatedAt: now}
		return s.PutFactor(ctx, store.PutFactor{Change: byTest(), Factor: f})
	}, store.ErrConflict}
}

func tokenOfDeleted(t *testing.T, s *pgstore.Store) meeting {
	u := withUser(t, s)
	return meeting{func(ctx context.Context) error {
		return s.DeleteUser(ctx, store.DeleteUser{Change: byTest(), UserID: u.ID})
	}, func(ctx context.Context) error {
		return put(ctx, s, ofUser(newCode("1", "", 0), u.ID))
	}, store.ErrNotFound}
}
