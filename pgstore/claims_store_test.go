package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pgstore"
)

// A wrong guess counts whether or not the function would have had something to
// say.
func TestWrongGuessCountsWithoutClaims(t *testing.T) {
	s := openDatabase(t, pgstore.ClaimsFunction("public.claims_for"))
	exec(t, s.Pool(), "create function public.claims_for(uuid) returns jsonb language sql as $$ select '{}'::jsonb $$")
	u, err := s.CreateUser(t.Context(), newUser("ada@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	exec(t, s.Pool(), "create or replace function public.claims_for(uuid) returns jsonb language plpgsql as $$ begin raise exception 'out of order'; end $$")
	code := newCode("right", "+49301", 2)
	code.UserID = u.ID
	if err := put(t.Context(), s, code); err != nil {
		t.Fatal(err)
	}
	guess := func(guess string) error {
		_, _, err := try(t.Context(), s, code.Subject, guess)
		return err
	}
	if err := guess("right"); sqlState(err) != "P0001" {
		t.Errorf("the right guess: %v", err)
	}
	for _, want := range []error{auth.ErrWrongCode, auth.ErrWrongCode, auth.ErrTooManyTries} {
		if err := guess("wrong"); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if err := guess("right"); !errors.Is(err, auth.ErrTooManyTries) {
		t.Errorf("the right guess afterwards: %v", err)
	}
}

// Whoever the function fails for can be banned all the same.
func TestBanWithoutClaims(t *testing.T) {
	s := openDatabase(t, pgstore.ClaimsFunction("public.claims_for"))
	exec(t, s.Pool(), "create function public.claims_for(uuid) returns jsonb language sql as $$ select '{}'::jsonb $$")
	u, sess := withSession(t, s)
	exec(t, s.Pool(), "create or replace function public.claims_for(uuid) returns jsonb language plpgsql as $$ begin raise exception 'no org'; end $$")
	until := time.Now().Add(time.Hour)
	if _, err := patch(t.Context(), s, u.ID, auth.UserPatch{BannedUntil: &until, Revoke: &auth.SessionFilter{}}); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Session(t.Context(), sess.ID, time.Now()); !errors.Is(err, auth.ErrBanned) {
		t.Errorf("session: %v", err)
	}
}

func TestClaimsFunctionName(t *testing.T) {
	for _, name := range []string{"", "a b", "f(x)", "a.b.c", "x;drop", `"q"`, "F"} {
		if _, err := pgstore.Schema(pgstore.ClaimsFunction(name)); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}

// A refresh token that comes twice ends its session, also where nobody's claims
// can be told.
func TestReuseEndsSessionWithoutClaims(t *testing.T) {
	s := openDatabase(t, pgstore.ClaimsFunction("public.claims_for"))
	exec(t, s.Pool(), "create function public.claims_for(uuid) returns jsonb language sql as $$ select '{}'::jsonb $$")
	_, sess := withSession(t, s)
	at := time.Now()
	advance := func(counter uint32) error {
		_, _, err := s.AdvanceSession(t.Context(), auth.Advance{Change: byTest(), SessionID: sess.ID, Counter: counter, IdleUntil: at.Add(time.Hour)})
		return err
	}
	if err := errors.Join(advance(0), advance(1)); err != nil {
		t.Fatal(err)
	}
	exec(t, s.Pool(), "create or replace function public.claims_for(uuid) returns jsonb language plpgsql as $$ begin raise exception 'out of order'; end $$")
	if err := advance(0); !errors.Is(err, auth.ErrReused) {
		t.Errorf("an old token: %v", err)
	}
	if err := advance(2); !errors.Is(err, auth.ErrSessionEnded) {
		t.Errorf("the current one afterwards: %v", err)
	}
}
