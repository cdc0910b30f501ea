package pgstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// Wrong codes and a reused refresh token are errors and count nevertheless.
func TestInTxCounts(t *testing.T) {
	s := openDatabase(t)
	if err := put(t.Context(), s, newCode("right", "+49301", 2)); err != nil {
		t.Fatal(err)
	}
	_, sess := withSession(t, s)
	inTx(t, s, func(ctx context.Context, _ pgx.Tx) error {
		for _, want := range []error{store.ErrWrongCode, store.ErrWrongCode, store.ErrTooManyAttempts} {
			if _, _, err := try(ctx, s, "+49301", "wrong"); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		for counter, want := range []error{nil, nil, store.ErrReused, store.ErrSessionEnded} {
			if counter > 1 {
				counter = 0
			}
			if _, _, err := s.AdvanceSession(ctx, store.Advance{Change: byTest(), SessionID: sess.ID, Counter: uint32(counter), IdleUntil: time.Now().Add(time.Hour)}); !errors.Is(err, want) {
				t.Errorf("refresh: %v, want %v", err, want)
			}
		}
		return nil
	})
	if _, _, err := try(t.Context(), s, "+49301", "right"); !errors.Is(err, store.ErrTooManyAttempts) {
		t.Errorf("the right code after the commit: %v", err)
	}
	if _, _, err := s.Session(t.Context(), sess.ID, time.Now()); !errors.Is(err, store.ErrSessionEnded) {
		t.Errorf("the session after the commit: %v", err)
	}
}

// Nor do the errors of an application's trigger.
func TestTriggerErrorsAreNoOutcomes(t *testing.T) {
	s := openDatabase(t)
	exec(t, s.Pool(), `create table public.users (id integer constraint users_pkey primary key, other integer references public.users);
		insert into public.users values (1);
		create function public.mirror() returns trigger language plpgsql as $$ begin
			if new.email like 'twice%' then insert into public.users values (1); elsif new.email like 'text%' then perform 'nonsense'::text::uuid; else insert into public.users values (2, 3); end if;
			return null;
		end $$;
		create trigger mirror after insert on auth.users for each row execute function public.mirror()`)
	for _, email := range []string{"twice@example.com", "dangling@example.com", "text@example.com"} {
		_, err := s.CreateUser(t.Context(), newUser(email))
		if sqlState(err) == "" || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", email, err)
		}
	}
}

// A refused call leaves the transaction usable, and the work before it stays.
func TestInTxRefusals(t *testing.T) {
	s := openDatabase(t)
	ada, _ := withSession(t, s)
	taken := newUser("taken@example.com")
	if _, err := s.CreateUser(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	inTx(t, s, func(ctx context.Context, _ pgx.Tx) error {
		before := newUser("before@example.com")
		if _, err := s.CreateUser(ctx, before); err != nil {
			t.Error(err)
		}
		stale := int64(77)
		old := byTest()
		old.IfUsers = []store.UserAt{{ID: ada.ID, Revision: &stale}}
		for what, c := range map[string]struct {
			want error
			run  func() error
		}{
			"an address that is taken": {store.ErrConflict, func() error { _, err := s.CreateUser(ctx, newUser("Taken@example.com")); return err }},
			"the same by a patch":      {store.ErrConflict, func() error { _, err := patch(ctx, s, ada.ID, store.UserPatch{Email: &taken.User.Email}); return err }},
			"nobody":                   {store.ErrNotFound, func() error { return put(ctx, s, ofUser(newCode("1", "", 0), uuid.NewString())) }},
			"no id":                    {store.ErrNotFound, func() error { _, err := s.User(ctx, store.ByID("no id")); return err }},
			"a stale patch": {store.ErrStale, func() error {
				_, err := s.UpdateUser(ctx, store.UpdateUser{Change: old, UserID: ada.ID, Patch: store.UserPatch{Revoke: &store.SessionFilter{}}})
				return err
			}},
			"a stale sign-in": {store.ErrStale, func() error {
				_, err := s.CreateSession(ctx, store.CreateSession{Change: old, NewSession: store.NewSession{Session: newSession(ada.ID)}})
				return err
			}},
		} {
			if err := c.run(); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
		}
		if _, err := s.User(ctx, store.ByID(before.User.ID)); err != nil {
			t.Errorf("what went before: %v", err)
		}
		return nil
	})
	if n := count(t, s.Pool(), "select count(*) from auth.users"); n != 3 {
		t.Errorf("%d users", n)
	}
	if n := count(t, s.Pool(), "select count(*) from auth.sessions where revoked_at is null"); n != 1 {
		t.Errorf("%d sessions", n)
	}
}
