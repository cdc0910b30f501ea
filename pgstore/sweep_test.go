package pgstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// over stores tokens that have expired.
func over(t *testing.T, s *pgstore.Store, names ...string) {
	t.Helper()
	for _, name := range names {
		hash := make([]byte, 32)
		copy(hash, name)
		if err := put(t.Context(), s, store.Token{Purpose: store.PurposeMagicLink, Hash: hash, CreatedAt: now.Add(-time.Hour), ExpiresAt: now.Add(-time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
}

// Only one of several instances sweeps, until it has not done so for a while.
func TestOneInstanceSweeps(t *testing.T) {
	first, schema := openSchema(t)
	second, err := pgstore.New(first.Pool(), pgstore.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	sweep := func(s *pgstore.Store, at time.Time) int {
		t.Helper()
		n, err := s.Sweep(t.Context(), at, 100)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	over(t, first, "a")
	if n := sweep(first, now); n != 1 {
		t.Errorf("the first swept %d", n)
	}
	over(t, first, "b")
	if n := sweep(second, now.Add(time.Minute)); n != 0 {
		t.Errorf("the second swept %d while the first does", n)
	}
	if n := sweep(second, now.Add(time.Hour)); n != 1 {
		t.Errorf("the second swept %d once the first is gone", n)
	}
}

// finished are statements that add rows numbered from one to another, which a
// sweep deletes.
var finished = map[string]string{
	"tokens":         "insert into auth.tokens (purpose, hash, created_at, expires_at) select 'x', sha256(g::text::bytea), now(), 'epoch' from generate_series(%d, %d) g",
	"limits":         "insert into auth.limits select g::text, 0, 0 from generate_series(%d, %d) g",
	"revocations":    "insert into auth.revocations (at) select 'epoch' from generate_series(%d, %d) g",
	"idempotency":    "insert into auth.idempotency (actor, route, key, request_hash, result, expires_at) select 'a', 'r', g::text, '', '', 'epoch' from generate_series(%d, %d) g",
	"counts":         "insert into auth.counts (metric, label, at, n) select 'x', g::text, 'epoch', 1 from generate_series(%d, %d) g",
	"active":         "insert into auth.active (since, period, user_id) select 'epoch', 'day', md5(g::text)::uuid from generate_series(%d, %d) g",
	"devices":        "with u as (insert into auth.users (id, created_at, updated_at) values (gen_random_uuid(), now(), now()) returning id) insert into auth.devices (user_id, device, first_seen_at, last_seen_at) select id, g::text, 'epoch', 'epoch' from u, generate_series(%d, %d) g",
	"messages":       "insert into auth.messages (id, body, created_at, next_at, expires_at) select gen_random_uuid(), '', now(), now(), 'epoch' from generate_series(%d, %d) g",
	"message_log":    "insert into auth.message_log (id, kind, channel, shown, recipient, created_at, updated_at) select gen_random_uuid(), '', '', '', '', 'epoch', 'epoch' from generate_series(%d, %d) g",
	"jobs":           "insert into auth.jobs (id, kind, state, actor, params, created_at, expires_at) select gen_random_uuid(), 'x', case when g %% 2 = 0 then 'done' else 'receiving' end, '', '', now(), 'epoch' from generate_series(%d, %d) g",
	"impersonations": "with u as (insert into auth.users (id, created_at, updated_at) values (gen_random_uuid(), now(), now()) returning id), s as (insert into auth.sessions (id, user_id, counter, rotated_at, aal, created_at, last_active_at, idle_until) select gen_random_uuid(), id, 0, now(), 'aal1', now(), now(), '2999-01-01' from u returning id, user_id) insert into auth.impersonations (id, user_id, actor_id, actor_session, created_at, expires_at, user_revision, actor_revision, sequence, roles_revision) select gen_random_uuid(), user_id, user_id, id, now(), 'epoch', 0, 0, 1, 0 from s, generate_series(%d, %d) g",
	"sessions":       "with u as (insert into auth.users (id, created_at, updated_at) values (gen_random_uuid(), now(), now()) returning id) insert into auth.sessions (id, user_id, counter, rotated_at, aal, created_at, last_active_at, idle_until) select gen_random_uuid(), id, 0, now(), 'aal1', now(), now(), 'epoch' from u, generate_series(%d, %d) g",
}

// finish adds rows that a sweep deletes.
func finish(t *testing.T, s *pgstore.Store, schema, table string, from, to int) {
	t.Helper()
	exec(t, s.Pool(), strings.ReplaceAll(fmt.Sprintf(finished[table], from, to), "auth.", schema+"."))
}

// A sweep skips rows that are locked.
func TestSweepWaitsForNobody(t *testing.T) {
	s, schema := openSchema(t, pgstore.WithTimeout(5*time.Second))
	ctx := t.Context()
	for held := range finished {
		for table := range finished {
			finish(t, s, schema, table, 1, 1)
		}
		err := pgx.BeginFunc(ctx, s.Pool(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "select from "+schema+"."+held+" for update"); err != nil {
				return err
			}
			if n, err := s.Sweep(ctx, now, 100); n != len(finished)-1 || err != nil {
				t.Errorf("%s: swept %d, %v", held, n, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Sweep(ctx, now, 100); n != 1 || err != nil {
			t.Errorf("%s: swept %d, %v", held, n, err)
		}
	}
}

// A sweep stops at its limit, even if the planner takes the tables for almost empty.
func TestSweepLimitUnderStaleStatistics(t *testing.T) {
	s, schema := openSchema(t)
	ctx := t.Context()
	for table := range finished {
		finish(t, s, schema, table, 1, 1)
		exec(t, s.Pool(), "analyze "+schema+"."+table)
		finish(t, s, schema, table, 2, 31)
		total := 0
		for {
			n, err := s.Sweep(ctx, time.Now(), 5)
			if err != nil {
				t.Fatal(err)
			}
			if n > 5 {
				t.Errorf("%s: swept %d of at most 5", table, n)
			}
			if total += n; n == 0 {
				break
			}
		}
		if total != 31 {
			t.Errorf("%s: swept %d of 31", table, total)
		}
	}
}

// Neither a sweep nor a deletion reads whole tables, except the buckets. Those change at
// every draw, and an index would make draws more expensive: by a tenth for an existing
// bucket (its row would not be updated in place) and a fifth for a new one.
func TestSweepAndDeletionUseIndexes(t *testing.T) {
	s, schema := openSchema(t)
	u, _ := withSession(t, s)
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, sharedURL) // has read nothing yet
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Small tables are read whole unless that is ruled out. Any index may serve to
		// find a table empty, and the tables joined to it are then not read.
		if _, err := tx.Exec(ctx, fmt.Sprintf(`set local enable_seqscan = off;
			insert into %[1]s.tokens (purpose, hash, created_at, expires_at) select 'x', sha256(g::text::bytea), now(), 'infinity' from generate_series(1, 1000) g;
			insert into %[1]s.events (id, type, at) select gen_random_uuid(), 'x', 'infinity' from generate_series(1, 1000) g;
			insert into %[1]s.idempotency (actor, route, key, request_hash, result, expires_at) select 'a', 'r', g::text, '', '', 'infinity' from generate_series(1, 1000) g;
			insert into %[1]s.limits select g::text, 9e18, 0 from generate_series(1, 1000) g;
			insert into %[1]s.counts (metric, label, at, n) select 'x', g::text, 'infinity', 1 from generate_series(1, 1000) g;
			insert into %[1]s.active (since, period, user_id) select 'infinity', 'day', md5(g::text)::uuid from generate_series(1, 1000) g;
			insert into %[1]s.message_log (id, kind, channel, shown, recipient, created_at, updated_at) select gen_random_uuid(), '', '', '', g::text, 'infinity', 'infinity' from generate_series(1, 1000) g;
			insert into %[1]s.revocations (at, session_id) select 'infinity', gen_random_uuid() from generate_series(1, 1000) g;
			analyze %[1]s.message_log, %[1]s.counts, %[1]s.active, %[1]s.tokens, %[1]s.events, %[1]s.idempotency, %[1]s.limits, %[1]s.revocations`, schema)); err != nil {
			return err
		}
		in := pgstore.InTx(ctx, tx)
		if _, err := s.Sweep(in, now, 100); err != nil {
			return err
		}
		if _, err := s.SweepEvents(in, now, now, 100); err != nil {
			return err
		}
		for _, index := range []string{"tokens_expires_at_idx", "sessions_ends_on_idx", "revocations_at_idx", "events_at_idx", "idempotency_expires_at_idx", "devices_seen_on_idx", "counts_pkey", "active_pkey", "message_log_created_at_idx"} {
			if count(t, tx, "select coalesce(pg_stat_get_xact_numscans(to_regclass($1)), 0)", schema+"."+index) == 0 {
				t.Errorf("%s is not used", index)
			}
		}
		if err := s.DeleteUser(in, store.DeleteUser{Change: byTest(), UserID: u.ID}); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, "select relname::text from pg_stat_xact_user_tables where schemaname = $1 and seq_scan > 0", schema)
		if err != nil {
			return err
		}
		whole, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if len(whole) != 1 || whole[0] != "limits" {
			t.Errorf("read as a whole: %v", whole)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
