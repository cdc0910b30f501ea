package pgstore_test

import (
	"context"
	"errors"
	"log"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	if err := one.DeleteUser(ctx, auth.DeleteUserParams{Caller: auth.Caller{UserID: eve.User.ID}}); err != nil {
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

// watch runs a feed and answers where its end is told.
func watch(ctx context.Context, s *pgstore.Store) chan error {
	done := make(chan error, 1)
	go func() { done <- s.WatchRevocations(ctx, func(auth.Revocation) {}) }()
	return done
}

// ended waits for the end of a feed.
func ended(t *testing.T, done chan error) {
	t.Helper()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
}

// listening waits until so many feeds of a schema listen.
func listening(t *testing.T, s *pgstore.Store, schema string, n int) {
	t.Helper()
	for range 500 {
		if count(t, s.Pool(), "select count(*) from pg_stat_activity where pid <> pg_backend_pid() and (query = 'listen ' || $1 || '_revoked' or query like 'select % from ' || $1 || '.revocations where at%')", schema) == n {
			return
		}
		pause(10 * time.Millisecond)
	}
	t.Fatalf("there never were %d feeds", n)
}

// A store that was closed leaves no connection behind.
func TestRevocationsEndWithStore(t *testing.T) {
	outside, schema := openSchema(t)
	s, err := pgstore.New(outside.Pool(), pgstore.InSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	done := watch(t.Context(), s)
	listening(t, outside, schema, 1)
	s.Close()
	ended(t, done)
	listening(t, outside, schema, 0)
	if err := outside.Ping(t.Context()); err != nil {
		t.Errorf("the application's pool: %v", err)
	}
	ended(t, watch(t.Context(), s))
}

// The feed's connection is made as the pool's are: where a password lasts for
// minutes, a hook puts it in.
func TestRevocationsConnectAsThePool(t *testing.T) {
	outside, schema := openSchema(t)
	cfg := outside.Pool().Config()
	var before, after atomic.Int32
	user := cfg.ConnConfig.User
	cfg.ConnConfig.User = "nobody"
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		before.Add(1)
		c.User = user
		return nil
	}
	cfg.AfterConnect = func(context.Context, *pgx.Conn) error { after.Add(1); return nil }
	p, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := pgstore.New(p, pgstore.InSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	watch(t.Context(), s)
	listening(t, outside, schema, 1)
	if before.Load() == 0 || after.Load() == 0 {
		t.Error("hooks were passed by")
	}
}

// A database that takes connections and says nothing is given up, so that the
// next one is tried.
func TestRevocationsWaitForNobody(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	s, err := pgstore.Open(t.Context(), "postgres://nobody@"+l.Addr().String()+"/nowhere?sslmode=disable", pgstore.Timeout(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	done := watch(t.Context(), s)
	for range 2 {
		select {
		case c := <-accepted:
			defer func() { _ = c.Close() }()
		case <-time.After(10 * time.Second):
			t.Fatal("it waits for the first one still")
		}
	}
	s.Close()
	ended(t, done)
}
