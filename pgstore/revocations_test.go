package pgstore_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// feed has the reports of a store's feed.
type feed struct{ told chan store.Revocation }

// follow watches a store until the test ends, and passes on its reports.
func follow(t *testing.T, s *pgstore.Store, also ...func(store.Revocation)) *feed {
	t.Helper()
	f := &feed{told: make(chan store.Revocation, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.WatchRevocations(ctx, pgstore.WatchParams{Logger: slog.New(slog.DiscardHandler), Notify: func(r store.Revocation) {
			for _, tell := range also {
				tell(r)
			}
			select {
			case f.told <- r:
			case <-ctx.Done():
			}
		}})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

// await waits until the feed has reported a session, or a user alone.
func (f *feed) await(t *testing.T, id string) store.Revocation {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case r := <-f.told:
			if r.SessionID == id || r.SessionID == "" && r.UserID == id {
				return r
			}
		case <-deadline:
			t.Fatalf("nobody told of %s", id)
		}
	}
}

// ban bans a user for an hour.
func ban(t *testing.T, s *pgstore.Store, userID string) {
	t.Helper()
	until := time.Now().Add(time.Hour)
	if _, err := s.UpdateUser(t.Context(), store.UpdateUser{Change: byTest(), UserID: userID, Patch: store.UserPatch{BannedUntil: &until}}); err != nil {
		t.Fatal(err)
	}
}

// A session that ends is reported with its user, so that it ends alone. A deleted user is
// reported alone, so that all sessions end, and a banned one with the revision that newer
// tokens have.
func TestRevocationsTell(t *testing.T) {
	s := open(t)
	f := follow(t, s)
	ada, bob, eve := signUp(t, s), signUp(t, s), signUp(t, s)
	before := time.Now()
	check := func(what, await string, want store.Revocation) {
		t.Helper()
		got := f.await(t, await)
		// The feed allows for clocks that differ.
		if got.At.Before(before) || got.At.After(time.Now().Add(time.Minute)) {
			t.Errorf("%s: ended at %s, now is %s", what, got.At, time.Now())
		}
		if want.At = got.At; got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	end(t, s, ada.UserID)
	check("an ended session", ada.ID, store.Revocation{SessionID: ada.ID, UserID: ada.UserID})
	ban(t, s, bob.UserID)
	check("a banned user", bob.UserID, store.Revocation{UserID: bob.UserID, Stale: 1})
	if err := s.DeleteUser(t.Context(), store.DeleteUser{Change: byTest(), UserID: eve.UserID}); err != nil {
		t.Fatal(err)
	}
	check("a deleted user", eve.UserID, store.Revocation{UserID: eve.UserID})
}

// A feed that breaks off starts again and reports the revocations it missed.
func TestRevocationsCatchUp(t *testing.T) {
	s := openDatabase(t) // shares no connections with other tests
	f := follow(t, s)
	first, second := signUp(t, s), signUp(t, s)
	end(t, s, first.UserID)
	f.await(t, first.ID) // it listens
	end(t, s, second.UserID)
	if n := count(t, s.Pool(), "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"); n == 0 {
		t.Fatal("ended no connection")
	}
	f.await(t, second.ID)
	third := signUp(t, s)
	end(t, s, third.UserID)
	f.await(t, third.ID)
}

// A feed that cannot start returns an error, and does not fail unnoticed in a goroutine.
func TestWatchRevocationsRefuses(t *testing.T) {
	s := unmigrated(t, "postgres://db.test/app")
	tell := func(store.Revocation) {}
	for name, test := range map[string]struct {
		p    pgstore.WatchParams
		says string
	}{
		"a bad URL": {pgstore.WatchParams{Notify: tell, Direct: "postgres://app:pass w0rd@localhost/app"}, "the connection string cannot be parsed"},
		"no Notify": {pgstore.WatchParams{}, "Notify is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			var logged strings.Builder
			test.p.Logger = slog.New(slog.NewTextHandler(&logged, nil))
			err := s.WatchRevocations(t.Context(), test.p)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
			if text := logged.String(); !strings.Contains(text, "there is no feed of revocations") || !strings.Contains(text, test.says) || strings.Contains(text, "w0rd") {
				t.Errorf("logged %q", text)
			}
		})
	}
}

// Direct bypasses the pool's own address, and its failures are logged.
func TestRevocationsDirect(t *testing.T) {
	through, schema := openSchema(t)
	cfg := through.Pool().Config()
	direct := sharedURL
	cfg.ConnConfig.Host, cfg.ConnConfig.Port = "127.0.0.1", 1 // where nobody listens
	p, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := pgstore.New(p, pgstore.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lines := make(chan string, 100)
	logger := slog.New(slog.NewTextHandler(lineWriter(lines), nil))
	lost := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		lost <- s.WatchRevocations(ctx, pgstore.WatchParams{Notify: func(store.Revocation) {}, Logger: logger})
	}()
	if line := <-lines; !strings.Contains(line, "level=WARN") || !strings.Contains(line, "broke off and begins anew") {
		t.Errorf("logged %q", line)
	}
	cancel()
	ended(t, lost)
	told := make(chan store.Revocation, 10)
	go func() {
		_ = s.WatchRevocations(t.Context(), pgstore.WatchParams{Notify: func(r store.Revocation) { told <- r }, Direct: direct, Logger: logger})
	}()
	sess := signUp(t, through)
	end(t, through, sess.UserID)
	(&feed{told}).await(t, sess.ID)
}

// lineWriter passes on log lines.
type lineWriter chan string

func (l lineWriter) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// watch runs a feed and returns a channel for its error.
func watch(ctx context.Context, s *pgstore.Store) chan error {
	done := make(chan error, 1)
	go func() {
		done <- s.WatchRevocations(ctx, pgstore.WatchParams{Notify: func(store.Revocation) {}, Logger: slog.New(slog.DiscardHandler)})
	}()
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

// listening waits until n feeds of a schema listen.
func listening(t *testing.T, s *pgstore.Store, schema string, n int) {
	t.Helper()
	for range 500 {
		if count(t, s.Pool(), "select count(*) from pg_stat_activity where pid <> pg_backend_pid() and (query = 'listen ' || $1 || '_revoked' or query like 'select % from ' || $1 || '.revocations where at%')", schema) == n {
			return
		}
		<-time.After(10 * time.Millisecond) // the database reports nothing to wait for
	}
	t.Fatalf("there never were %d feeds", n)
}

// A closed store leaves no connection open.
func TestRevocationsEndWithStore(t *testing.T) {
	outside, schema := openSchema(t)
	s, err := pgstore.New(outside.Pool(), pgstore.WithSchema(schema))
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

// The feed opens its connection as the pool does: a hook can set short-lived passwords.
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
	s, err := pgstore.New(p, pgstore.WithSchema(schema))
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

// If a database accepts connections and does not respond, the feed gives up and tries the
// next one.
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
	s, err := pgstore.Open(t.Context(), "postgres://nobody@"+l.Addr().String()+"/nowhere?sslmode=disable", pgstore.WithTimeout(50*time.Millisecond))
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
