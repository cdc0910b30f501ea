package pgstore_test

import (
	"context"
	"errors"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pgstore"
)

// instances are two services on one database, the second of which watches what
// the first one ends.
func instances(t *testing.T) (one, two *authtest.Env, store *pgstore.Store, told chan auth.Revocation) {
	t.Helper()
	store = open(t)
	secret := auth.WithSecret([]byte("a secret of more than thirty-two bytes"))
	one = authtest.NewOn(t, store, secret, auth.WithClock(time.Now))
	two = authtest.NewOn(t, store, secret, auth.WithClock(time.Now), one.SameKeys())
	told = make(chan auth.Revocation, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = store.WatchRevocations(ctx, func(r auth.Revocation) { two.Revoke(r); told <- r })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return one, two, store, told
}

// await waits until the feed told of a session or user.
func await(t *testing.T, told chan auth.Revocation, id string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case r := <-told:
			if r.SessionID == id || r.UserID == id {
				return
			}
		case <-deadline:
			t.Fatalf("nobody told of %s", id)
		}
	}
}

func refused(t *testing.T, e *authtest.Env, s *authtest.SignedIn) {
	t.Helper()
	if _, err := e.Verify(s.AccessToken); !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("verify: %v", err)
	}
}

// What ends in one instance is refused in the others, without a read.
func TestRevocationsReachEveryInstance(t *testing.T) {
	one, two, store, told := instances(t)
	ctx := t.Context()
	ada, elsewhere, bob, eve := one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "bob@example.com"), one.LoginAs(t, "eve@example.com")
	for _, s := range []*authtest.SignedIn{ada, elsewhere, bob, eve} {
		if _, err := two.Verify(s.AccessToken); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if err := one.Logout(ctx, ada.User.ID, ada.SessionID, auth.LogoutLocal); err != nil {
		t.Fatal(err)
	}
	await(t, told, ada.SessionID)
	t.Logf("the other instance knew after %s", time.Since(began))
	refused(t, two, ada)
	if _, err := two.Verify(elsewhere.AccessToken); err != nil {
		t.Errorf("the other session: %v", err)
	}
	until := time.Now().Add(time.Hour)
	if _, err := store.UpdateUser(ctx, bob.User.ID, auth.UserPatch{BannedUntil: &until}, time.Now()); err != nil {
		t.Fatal(err)
	}
	await(t, told, bob.User.ID)
	refused(t, two, bob)
	if err := one.DeleteUser(ctx, eve.User.ID); err != nil {
		t.Fatal(err)
	}
	await(t, told, eve.User.ID)
	refused(t, two, eve)
}

// A feed that breaks off begins anew and tells what happened meanwhile.
func TestRevocationsCatchUp(t *testing.T) {
	one, two, store, told := instances(t)
	ctx := t.Context()
	first, second := one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "ada@example.com")
	if err := one.Logout(ctx, first.User.ID, first.SessionID, auth.LogoutLocal); err != nil {
		t.Fatal(err)
	}
	await(t, told, first.SessionID) // it listens
	if err := one.Logout(ctx, second.User.ID, second.SessionID, auth.LogoutLocal); err != nil {
		t.Fatal(err)
	}
	var ended int
	err := store.Pool().QueryRow(ctx, "select count(pg_terminate_backend(pid)) from pg_stat_activity where query ilike 'listen%' or query ilike '%revocations where at%' and pid <> pg_backend_pid()").Scan(&ended)
	if err != nil || ended == 0 {
		t.Fatalf("ended %d connections, %v", ended, err)
	}
	await(t, told, second.SessionID)
	refused(t, two, second)
}

// An address that cannot be parsed does not go unnoticed in a goroutine.
func TestWatchRevocationsBadURL(t *testing.T) {
	store := open(t)
	var logged lockedBuffer
	log.SetOutput(&logged) // where slog's default writes
	defer log.SetOutput(os.Stderr)
	err := store.WatchRevocations(t.Context(), func(auth.Revocation) {}, "postgres://app:pass w0rd@localhost/app")
	if err == nil || !strings.Contains(logged.String(), "no feed of revocations") || strings.Contains(logged.String(), "w0rd") {
		t.Errorf("%v, logged %q", err, logged.String())
	}
}
