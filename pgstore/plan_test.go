package pgstore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/store"
)

// population fills every table of the flows, so that reading one whole would cost more
// than its index.
const population = `
	insert into auth.users (id, email, email_key, linked, created_at, updated_at)
		select gen_random_uuid(), g || '@example.org', g || '@example.org', true, now(), now() from generate_series(1, 20000) g;
	insert into auth.sessions (id, user_id, counter, rotated_at, aal, created_at, last_active_at, idle_until)
		select gen_random_uuid(), id, 0, now(), 'aal1', now(), now(), now() + interval '30 days' from auth.users, generate_series(1, 3);
	insert into auth.devices (user_id, device, first_seen_at, last_seen_at) select id, g::text, now(), now() from auth.users, generate_series(1, 3) g;
	update auth.users set linked = true;
	insert into auth.identities (id, user_id, provider, subject, created_at) select gen_random_uuid(), id, 'google', id::text, now() from auth.users;
	insert into auth.tokens (purpose, hash, subject, created_at, expires_at) select 'phone_code', sha256(g::text::bytea), g::text, now(), 'infinity' from generate_series(100, 20000) g;
	insert into auth.limits (key, tat, seen) select 'somebody ' || g, 0, 0 from generate_series(1, 20000) g;
	analyze`

// Frequent operations find their rows by keys, for any number of users: no statement reads
// a table whole, nor do the functions and triggers that it sets off.
func TestPlans(t *testing.T) {
	planner := &pgtest.Planner{}
	st := openTraced(t, planner)
	pool := st.Pool()
	ada, err := st.CreateUser(t.Context(), newUser("ada@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	hers := addSession(t, st, ada.ID)
	if err := put(t.Context(), st, ofUser(newCode("1", "+49301", 5), ada.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), population); err != nil {
		t.Fatal(err)
	}
	rows, err := pool.Query(t.Context(), "select id::text from auth.sessions where user_id <> $1::uuid limit 50", ada.ID)
	if err != nil {
		t.Fatal(err)
	}
	crowd, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	atOnce := func(call func(session string) error) func() error {
		return func() error {
			errs := make([]error, len(crowd))
			var wg sync.WaitGroup
			for i, session := range crowd {
				wg.Go(func() { errs[i] = call(session) })
			}
			wg.Wait()
			return errors.Join(errs...)
		}
	}
	ctx := t.Context()
	still := []store.UserAt{{ID: ada.ID, Revision: &ada.Revision}}
	for name, flow := range map[string]struct {
		rows    int
		indexes []string
		run     func() error
	}{
		"read": {1, []string{"users_email_key_key", "devices_pkey"}, func() error {
			key := store.ByEmail("ada@example.com")
			key.Device = "device"
			_, err := st.Credentials(ctx, key)
			return err
		}},
		"sign in": {1, []string{"users_pkey", "devices_pkey"}, func() error {
			sess := newSession(ada.ID)
			sess.Device = "device"
			_, err := st.CreateSession(ctx, store.CreateSession{Change: with(byTest(), still...), NewSession: store.NewSession{Session: sess, KeepSessions: 100}})
			return err
		}},
		"refresh": {1, []string{"sessions_pkey", "users_pkey"}, func() error {
			_, _, err := st.AdvanceSession(ctx, store.Advance{Change: ifReused(byTest()), SessionID: hers.ID, IdleUntil: time.Now().Add(time.Hour)})
			return err
		}},
		"me": {1, []string{"sessions_pkey", "users_pkey"}, func() error {
			_, _, err := st.Session(ctx, hers.ID, time.Now())
			return err
		}},
		"code": {1, []string{"tokens_subject_key", "tokens_pkey", "users_pkey"}, func() error {
			_, _, err := try(ctx, st, "+49301", "1")
			return err
		}},
		"refreshes at once": {len(crowd), []string{"sessions_pkey", "users_pkey"}, atOnce(func(session string) error {
			_, _, err := st.AdvanceSession(ctx, store.Advance{Change: byTest(), SessionID: session, IdleUntil: time.Now().Add(time.Hour)})
			return err
		})},
		"reads at once": {len(crowd), []string{"sessions_pkey", "users_pkey"}, atOnce(func(session string) error {
			_, _, err := st.Session(ctx, session, time.Now())
			return err
		})},
	} {
		plans, err := planner.Explain(flow.run)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(plans) == 0 || flow.rows > 1 && len(plans) >= flow.rows {
			t.Errorf("%s: %d statements", name, len(plans))
		}
		for _, p := range plans {
			t.Logf("%s: %v", name, p)
			if err := p.Check(flow.rows, flow.indexes...); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Concurrent draws find their buckets by keys although the table is almost empty, when
// reading it whole looks cheaper: the plan stays while the table grows.
func TestPlansOfDraws(t *testing.T) {
	planner := &pgtest.Planner{}
	st := openTraced(t, planner)
	const crowd = 50
	plans, err := planner.Explain(func() error {
		errs := make([]error, crowd)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = st.Take(t.Context(), []store.Draw{{Key: fmt.Sprint(i), Rate: store.Rate{Burst: 5, Per: time.Minute}, Cost: 1}}, time.Now())
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}
	many := 0
	for _, p := range plans {
		if !strings.Contains(p.SQL, "skip locked") { // a single draw
			continue
		}
		many++
		t.Log(p)
		if err := p.Check(crowd, "limits_pkey"); err != nil {
			t.Error(err)
		}
	}
	if many == 0 {
		t.Errorf("none of %d statements shared", len(plans))
	}
}
