package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// asTransaction is a change with conditions on more than its target.
func asTransaction() store.Change {
	c := byTest()
	c.IfRoles = new(int64)
	return c
}

// A wrong attempt counts even if the claims function would have failed, in one statement
// and in a transaction.
func TestWrongGuessCountsWithoutClaims(t *testing.T) {
	for name, change := range map[string]func() store.Change{"one statement": byTest, "a transaction": asTransaction} {
		s := openDatabase(t, pgstore.WithClaimsFunction("public.claims_for"))
		exec(t, s.Pool(), "create function public.claims_for(uuid) returns jsonb language sql as $$ select '{}'::jsonb $$")
		u := withUser(t, s)
		exec(t, s.Pool(), "create or replace function public.claims_for(uuid) returns jsonb language plpgsql as $$ begin raise exception 'out of order'; end $$")
		if err := put(t.Context(), s, ofUser(newCode("right", "+49301", 2), u.ID)); err != nil {
			t.Fatal(err)
		}
		guess := func(code string) error {
			_, _, err := s.RedeemCode(t.Context(), store.CodeAttempt{Change: change(), Purpose: store.PurposePhoneCode, Subject: "+49301", Hash: hashOf(code)})
			return err
		}
		if err := guess("right"); sqlState(err) != "P0001" {
			t.Errorf("%s: the right guess: %v", name, err)
		}
		for _, want := range []error{store.ErrWrongCode, store.ErrWrongCode, store.ErrTooManyAttempts} {
			if err := guess("wrong"); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
		if err := guess("right"); !errors.Is(err, store.ErrTooManyAttempts) {
			t.Errorf("%s: the right guess afterwards: %v", name, err)
		}
	}
}

// A user for whom the function fails can still be banned.
func TestBanWithoutClaims(t *testing.T) {
	s := openDatabase(t, pgstore.WithClaimsFunction("public.claims_for"))
	exec(t, s.Pool(), "create function public.claims_for(uuid) returns jsonb language sql as $$ select '{}'::jsonb $$")
	u, sess := withSession(t, s)
	exec(t, s.Pool(), "create or replace function public.claims_for(uuid) returns jsonb language plpgsql as $$ begin raise exception 'no org'; end $$")
	until := time.Now().Add(time.Hour)
	if _, err := patch(t.Context(), s, u.ID, store.UserPatch{BannedUntil: &until, Revoke: &store.SessionFilter{}}); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Session(t.Context(), sess.ID, time.Now()); !errors.Is(err, store.ErrBanned) {
		t.Errorf("session: %v", err)
	}
}

func TestClaimsFunctionName(t *testing.T) {
	for _, name := range []string{"", "a b", "f(x)", "a.b.c", "x;drop", `"q"`, "F"} {
		if _, err := pgstore.Schema(pgstore.WithClaimsFunction(name)); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}

// The reuse of a refresh token revokes its session, even if the function fails for its
// user.
func TestReuseEndsSessionWithoutClaims(t *testing.T) {
	for name, change := range map[string]func() store.Change{"one statement": byTest, "a transaction": asTransaction} {
		s := openDatabase(t, pgstore.WithClaimsFunction("public.claims_for"))
		exec(t, s.Pool(), "create function public.claims_for(uuid) returns jsonb language sql as $$ select '{}'::jsonb $$")
		_, sess := withSession(t, s)
		advance := func(counter uint32) error {
			_, _, err := s.AdvanceSession(t.Context(), store.Advance{Change: change(), SessionID: sess.ID, Counter: counter, IdleUntil: time.Now().Add(time.Hour)})
			return err
		}
		if err := errors.Join(advance(0), advance(1)); err != nil {
			t.Fatal(err)
		}
		exec(t, s.Pool(), "create or replace function public.claims_for(uuid) returns jsonb language plpgsql as $$ begin raise exception 'out of order'; end $$")
		if err := advance(0); !errors.Is(err, store.ErrReused) {
			t.Errorf("%s: an old token: %v", name, err)
		}
		if err := advance(2); !errors.Is(err, store.ErrSessionEnded) {
			t.Errorf("%s: the current one afterwards: %v", name, err)
		}
	}
}
