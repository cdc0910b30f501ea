package pgstore_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
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

// Many revocations at once are read in a few queries, not one by one.
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
	watcher, err := pgstore.New(p, pgstore.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	userID := signUp(t, s).UserID
	const n = 2000
	if _, err := s.Pool().Exec(ctx, "insert into "+schema+".sessions (id, user_id, counter, rotated_at, aal, created_at, last_active_at, idle_until) select gen_random_uuid(), $1, 0, now(), 'aal1', now(), now(), now() + interval '1 hour' from generate_series(1, $2)", userID, n); err != nil {
		t.Fatal(err)
	}
	var told atomic.Int64
	ids := make(chan string)
	go func() {
		_ = watcher.WatchRevocations(ctx, pgstore.WatchParams{Logger: slog.New(slog.DiscardHandler), Notify: func(r store.Revocation) {
			told.Add(1)
			select {
			case ids <- r.SessionID:
			case <-ctx.Done():
			}
		}})
	}()
	listening(t, s, schema, 1)
	end(t, s, userID)
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

// Revocations of a long transaction are reported once it commits, even if later ones were
// reported meanwhile.
func TestRevocationsCommittedLate(t *testing.T) {
	t.Parallel() // it waits for a feed of its own
	s, schema := openSchema(t)
	f := follow(t, s)
	ctx := t.Context()
	early, later := signUp(t, s), signUp(t, s)
	err := pgx.BeginFunc(ctx, s.Pool(), func(tx pgx.Tx) error {
		if _, err := s.RevokeSessions(pgstore.InTx(ctx, tx), store.RevokeSessions{Change: byTest(), UserID: early.UserID}); err != nil {
			return err
		}
		// This makes the transaction take two minutes, in effect.
		if _, err := tx.Exec(ctx, "update "+schema+".revocations set at = at - interval '2 minutes' where session_id = $1", early.ID); err != nil {
			return err
		}
		end(t, s, later.UserID)
		f.await(t, later.ID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f.await(t, early.ID)
}

// An instance that starts gets earlier revocations, because their access tokens may be in
// use for a day.
func TestRevocationsFromBefore(t *testing.T) {
	s, schema := openSchema(t)
	old, older := signUp(t, s), signUp(t, s)
	end(t, s, old.UserID)
	end(t, s, older.UserID)
	exec(t, s.Pool(), "update "+schema+".revocations set at = now() - interval '24 hours 30 seconds' where session_id = $1", old.ID)
	exec(t, s.Pool(), "update "+schema+".revocations set at = now() - interval '26 hours' where session_id = $1", older.ID)
	follow(t, s).await(t, old.ID)
	// A sweep keeps the revocations that instances still have to get, and no more.
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
