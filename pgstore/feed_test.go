package pgstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pgstore"
)

// lookTracer counts the feed's reads.
type lookTracer struct{ looks atomic.Int64 }

func (l *lookTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	if len(d.SQL) > 6 && d.SQL[:6] == "select" {
		l.looks.Add(1)
	}
	return ctx
}
func (l *lookTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Many that end at once are read a few times, not once for each of them.
func TestRevocationsFlood(t *testing.T) {
	s, schema := openSchema(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &lookTracer{}
	cfg, err := pgxpool.ParseConfig(sharedURL)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ConnConfig.Tracer = l
	p, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	watcher, err := pgstore.New(p, pgstore.InSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	u, _ := withSession(t, s)
	const n = 2000
	if _, err := s.Pool().Exec(ctx, "insert into "+schema+".sessions (id, user_id, counter, rotated_at, aal, created_at, last_active_at, idle_until) select gen_random_uuid(), $1, 0, now(), 'aal1', now(), now(), now() + interval '1 hour' from generate_series(1, $2)", u.ID, n); err != nil {
		t.Fatal(err)
	}
	var told atomic.Int64
	ids := make(chan string)
	go func() {
		_ = watcher.WatchRevocations(ctx, func(r auth.Revocation) {
			told.Add(1)
			select {
			case ids <- r.SessionID:
			case <-ctx.Done():
			}
		})
	}()
	listening(t, s, schema, 1)
	if ended, err := s.RevokeSessions(ctx, u.ID, auth.SessionFilter{}, time.Now()); err != nil || ended < n {
		t.Fatal(ended, err)
	}
	seen := map[string]bool{}
	deadline := time.After(20 * time.Second)
	for len(seen) < n {
		select {
		case id := <-ids:
			seen[id] = true
		case <-deadline:
			t.Fatalf("%d told of", len(seen))
		}
	}
	for quiet := time.After(2 * time.Second); quiet != nil; {
		select {
		case <-ids:
		case <-quiet:
			quiet = nil
		}
	}
	if looks := l.looks.Load(); looks > 20 {
		t.Errorf("%d reads, told %d times of %d", looks, told.Load(), n)
	}
}

// What a long transaction ended is told once that commits, whatever others ended
// meanwhile.
func TestRevocationsCommittedLate(t *testing.T) {
	_, _, store, told := instances(t)
	ctx := t.Context()
	_, early := withSession(t, store)
	_, later := withSession(t, store)
	err := pgx.BeginFunc(ctx, store.Pool(), func(tx pgx.Tx) error {
		if _, err := store.RevokeSessions(pgstore.InTx(ctx, tx), early.UserID, auth.SessionFilter{}, time.Now()); err != nil {
			return err
		}
		// The transaction takes two minutes, in effect.
		if _, err := tx.Exec(ctx, "update "+schemaOf(t, store)+".revocations set at = at - interval '2 minutes' where session_id = $1", early.ID); err != nil {
			return err
		}
		if _, err := store.RevokeSessions(ctx, later.UserID, auth.SessionFilter{}, time.Now()); err != nil {
			return err
		}
		await(t, told, later.ID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, told, early.ID)
}

func schemaOf(t *testing.T, s *pgstore.Store) string {
	t.Helper()
	var name string
	if err := s.Pool().QueryRow(t.Context(), "select schemaname from pg_tables where tablename = 'revocations' order by length(schemaname) desc, schemaname desc limit 1").Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}

// The clocks of the application and the database differ by a few seconds.
func TestBanUnderClockSkew(t *testing.T) {
	for _, skew := range []time.Duration{3 * time.Second, -3 * time.Second} {
		store := open(t)
		secret := auth.WithSecret([]byte("a secret of more than thirty-two bytes"))
		env := authtest.NewOn(t, store, secret, auth.WithClock(func() time.Time { return time.Now().Add(skew) }))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		told := make(chan auth.Revocation, 100)
		go func() { _ = store.WatchRevocations(ctx, func(r auth.Revocation) { env.Revoke(r); told <- r }) }()
		bob := env.LoginAs(t, "bob@example.com")
		until := time.Now().Add(time.Hour)
		if _, err := store.UpdateUser(ctx, bob.User.ID, auth.UserPatch{BannedUntil: &until}, time.Now().Add(skew)); err != nil {
			t.Fatal(err)
		}
		await(t, told, bob.User.ID)
		refused(t, env, bob)
	}
}

// An instance that starts hears of what ended before: access tokens of it may be
// about for a day.
func TestRevocationsFromBefore(t *testing.T) {
	s, schema := openSchema(t)
	_, old := withSession(t, s)
	_, older := withSession(t, s)
	for _, sess := range []auth.Session{old, older} {
		if _, err := s.RevokeSessions(t.Context(), sess.UserID, auth.SessionFilter{}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, s.Pool(), "update "+schema+".revocations set at = now() - interval '24 hours 30 seconds' where session_id = $1", old.ID)
	exec(t, s.Pool(), "update "+schema+".revocations set at = now() - interval '26 hours' where session_id = $1", older.ID)
	told := make(chan auth.Revocation, 10)
	go func() { _ = s.WatchRevocations(t.Context(), func(r auth.Revocation) { told <- r }) }()
	await(t, told, old.ID)
	// A sweep keeps what instances have to hear of, and no more.
	if _, err := s.Sweep(t.Context(), time.Now(), 100); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s.Pool(), "select count(*) from "+schema+".revocations where session_id = $1", old.ID); n != 1 {
		t.Error("a sweep deleted what instances have to hear of")
	}
	if n := count(t, s.Pool(), "select count(*) from "+schema+".revocations"); n != 1 {
		t.Errorf("%d revocations", n)
	}
}
