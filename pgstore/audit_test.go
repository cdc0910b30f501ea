package pgstore_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// A failure to write the audit log locks nobody out: users' actions succeed, and their
// events are recorded when the log can be written again. Operators' actions fail instead,
// and change nothing.
func TestPeopleOutliveTheAuditLog(t *testing.T) {
	t.Parallel() // it waits for locks on its own tables
	for name, obstruct := range map[string]func(t *testing.T, s *pgstore.Store, schema string) (mend func()){
		"the table is not there": func(t *testing.T, s *pgstore.Store, schema string) func() {
			exec(t, s.Pool(), "alter table "+schema+".events rename to elsewhere")
			return func() { exec(t, s.Pool(), "alter table "+schema+".elsewhere rename to events") }
		},
		"somebody holds it": func(t *testing.T, s *pgstore.Store, schema string) func() {
			tx, err := s.Pool().Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "lock table "+schema+".events in access exclusive mode"); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		},
		"it takes no rows": func(t *testing.T, s *pgstore.Store, schema string) func() {
			exec(t, s.Pool(), "alter table "+schema+".events add constraint full_disk check (false) not valid")
			return func() { exec(t, s.Pool(), "alter table "+schema+".events drop constraint full_disk") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, schema := openSchema(t)
			var told []store.Event
			env := authtest.NewOn(t, s, auth.WithHooks(auth.Hooks{OnEvent: func(_ context.Context, e store.Event) { told = append(told, e) }}))
			adm, err := admin.New(t.Context(), env.Auth, admin.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ada := env.LoginAs(t, "ada@example.com")
			kit := host.Of(env)
			told = nil
			mend := obstruct(t, s, schema)
			ctx := t.Context()
			if _, err := env.SignUp(ctx, auth.SignUpParams{Email: "bob@example.com", Password: authtest.Password}); err != nil {
				t.Errorf("sign-up: %v", err)
			}
			if _, err := env.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}); err != nil {
				t.Errorf("login: %v", err)
			}
			asked, err := env.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: "ada@example.com"})
			if err != nil {
				t.Fatal(err)
			}
			m := env.Mail(t, "ada@example.com", store.KindMagicLink)
			if _, err := env.VerifyMagicLink(ctx, auth.VerifyMagicLinkParams{Email: "ada@example.com", Code: m.Code, RequestID: asked.RequestID}); err != nil {
				t.Errorf("magic link: %v", err)
			}
			_, err = adm.BanUser(ctx, admin.System("test").Accepting(), admin.BanUserParams{UserID: ada.User.ID, Reason: "x"})
			u, readErr := s.User(ctx, store.ByID(ada.User.ID))
			if err == nil || readErr != nil || u.Banned(env.Clock.Now()) {
				t.Errorf("an operator's change came about unrecorded: %v, %v, banned until %v", err, readErr, u.BannedUntil)
			}
			sum, err := env.ImportUsers(ctx, slices.Values([]auth.ImportUserParams{{Email: "eve@example.com"}}), nil)
			_, readErr = s.User(ctx, store.ByEmail("eve@example.com"))
			if err == nil || errors.Is(err, context.DeadlineExceeded) || sum.Created != 0 || !errors.Is(readErr, store.ErrNotFound) {
				t.Errorf("an import came about unrecorded, or waited for longer than events may: %v, %+v, %v", err, sum, readErr)
			}
			if err := kit.Flush(ctx); err == nil {
				t.Error("written all the same")
			}
			mend()
			if err := kit.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			list, err := s.Events(ctx, store.EventQuery{Limit: 200})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range told {
				if e.Type == store.EventRefreshed {
					continue
				}
				at := slices.IndexFunc(list, func(k store.Event) bool { return k.ID == e.ID })
				if at < 0 || list[at].UserID != e.UserID || e.UserID == "" {
					t.Errorf("%s of %q is recorded as %d of %+v", e.Type, e.UserID, at, list)
				}
			}
			if n := len(told); n < 3 {
				t.Errorf("%d events", n)
			}
			if _, err := adm.BanUser(ctx, admin.System("test").Accepting(), admin.BanUserParams{UserID: ada.User.ID, Reason: "x"}); err != nil {
				t.Error(err)
			}
		})
	}
}

// Invalid ids select no events, with any other filter. As the end of a page they come
// before all others of their instant.
func TestEventsOfNobody(t *testing.T) {
	t.Parallel()
	s, _ := openSchema(t)
	u := withUser(t, s)
	e := store.Event{ID: uuid.NewString(), Type: store.EventSignedIn, At: now, UserID: u.ID, Actor: store.Actor{Kind: store.ActorUser, ID: u.ID}}
	done(t, s.AddEvents(t.Context(), []store.Event{e}))
	for what, row := range map[string]struct {
		q    store.EventQuery
		want int
	}{
		"all":                          {store.EventQuery{}, 1},
		"an id":                        {store.EventQuery{ID: "x"}, 0},
		"about":                        {store.EventQuery{UserID: "x"}, 0},
		"by or about":                  {store.EventQuery{Involving: "x"}, 0},
		"by or about, by somebody":     {store.EventQuery{ActorID: u.ID, Involving: "x"}, 0},
		"about, by somebody":           {store.EventQuery{ActorID: u.ID, UserID: "x"}, 0},
		"nothing but a null character": {store.EventQuery{Involving: "\x00"}, 0},
		"behind one at that instant":   {store.EventQuery{Before: &store.Event{ID: "x", At: now}}, 0},
		"behind one later":             {store.EventQuery{Before: &store.Event{ID: "x", At: now.Add(time.Microsecond)}}, 1},
	} {
		if list, err := s.Events(t.Context(), row.q); err != nil || len(list) != row.want || list == nil {
			t.Errorf("%s: %+v, %v", what, list, err)
		}
	}
}

// auditLog fills the audit log: a few events of each, among a great many.
const auditLog = `
	insert into auth.events (id, type, at, user_id, data)
		select gen_random_uuid(), case g % 50 when 0 then 'user.banned' when 1 then 'user.unbanned' when 2 then 'sign_in.failed' else 'user.signed_in' end,
			now() - g * interval '1 second', md5((g % 5000)::text)::uuid,
			jsonb_build_object('actor', jsonb_build_object('kind', 'user', 'id', md5((g % 5000 + (g % 50 = 0)::int)::text)::uuid::text),
				'client', jsonb_build_object('ip', '10.0.' || g % 200 || '.' || g % 250))
			|| case when g % 50 < 2 then jsonb_build_object('record', jsonb_build_object('target', 'role' || g % 100, 'request_id', 'r' || g, 'denied', g % 100 = 0)) else '{}' end
		from generate_series(1, 40000) g;
	analyze auth.events`

// Every query of the audit log reads only the rows that its filter selects, by an index:
// not the table, and no index whole.
func TestAuditLogPlans(t *testing.T) {
	planner := &pgtest.Planner{}
	st := openTraced(t, planner)
	if _, err := st.Pool().Exec(t.Context(), auditLog); err != nil {
		t.Fatal(err)
	}
	one := scalar[string](t, st, "select md5('7')::uuid::text")
	id := scalar[string](t, st, "select id::text from auth.events limit 1")
	for name, c := range map[string]struct {
		q       store.EventQuery
		indexes []string
	}{
		"by time":                {store.EventQuery{}, []string{"events_at_idx"}},
		"one":                    {store.EventQuery{ID: id}, []string{"events_pkey"}},
		"about":                  {store.EventQuery{UserID: one}, []string{"events_user_id_idx"}},
		"about or by":            {store.EventQuery{Involving: one}, []string{"events_user_id_idx", "events_actor_idx"}},
		"by":                     {store.EventQuery{ActorID: one}, []string{"events_user_id_idx", "events_actor_idx"}},
		"by code":                {store.EventQuery{ActorID: "billing"}, []string{"events_actor_idx"}},
		"of a target":            {store.EventQuery{Target: one}, []string{"events_user_id_idx"}},
		"of a named target":      {store.EventQuery{Target: "role0"}, []string{"events_target_idx"}},
		"of a type":              {store.EventQuery{Type: "user.banned"}, []string{"events_type_idx"}},
		"of a type that is not":  {store.EventQuery{Type: "user.gone"}, []string{"events_type_idx"}},
		"of types":               {store.EventQuery{Type: "user.*"}, []string{"events_type_idx"}},
		"of types that are not":  {store.EventQuery{Type: "gone.*"}, []string{"events_type_idx"}},
		"from an address":        {store.EventQuery{IP: netip.MustParseAddr("10.0.7.7")}, []string{"events_ip_idx"}},
		"of a request":           {store.EventQuery{RequestID: "r50"}, []string{"events_request_idx"}},
		"denied":                 {store.EventQuery{Outcome: store.EventDenied}, []string{"events_denied_idx"}},
		"by somebody, of a type": {store.EventQuery{ActorID: one, Type: "user.*", Outcome: store.EventDone}, []string{"events_user_id_idx", "events_actor_idx"}},
		"about and address":      {store.EventQuery{UserID: one, IP: netip.MustParseAddr("10.0.7.7")}, []string{"events_user_id_idx", "events_ip_idx"}},
	} {
		for _, page := range []string{"first", "next"} {
			c.q.Limit = 50
			if page == "next" {
				list, err := st.Events(t.Context(), c.q)
				if err != nil {
					t.Fatal(err)
				}
				if len(list) == 0 {
					continue
				}
				c.q.Before = &list[len(list)/2]
			}
			plans, err := planner.Explain(func() error {
				_, err := st.Events(t.Context(), c.q)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range plans {
				t.Logf("%s, %s page: %v", name, page, p)
				if err := p.Reads(5*c.q.Limit, c.indexes...); err != nil {
					t.Errorf("%s, %s page: %v", name, page, err)
				}
			}
		}
	}
}

// Statistics are read by their keys, and totals only as far as they are exact.
func TestStatsPlans(t *testing.T) {
	planner := &pgtest.Planner{}
	st := openTraced(t, planner)
	ctx := t.Context()
	for _, sql := range []string{
		population,
		`insert into auth.counts (metric, label, at, n) select 'm' || g % 40, 'l', now() - g / 40 * interval '1 hour', 1 from generate_series(1, 40000) g`,
		`insert into auth.counts (metric, label, at, n) select 'sign_ins', 'l', date_trunc('hour', now()) - g * interval '1 hour', 1 from generate_series(1, 30) g`,
		`insert into auth.active (since, period, user_id) select now()::date, 'day', id from auth.users`,
		`analyze`,
	} {
		if _, err := st.Pool().Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	now := scalar[time.Time](t, st, "select now()").UTC()
	who := scalar[string](t, st, "select id::text from auth.users limit 1")
	for name, c := range map[string]struct {
		rows    int
		indexes []string
		run     func() error
	}{
		"totals": {store.CountedExactly + 1, []string{"users_pkey", "users_mfa_idx", "users_banned_idx", "pg_class_oid_index", "pg_class_relname_nsp_index"}, func() error {
			_, err := st.Totals(ctx, now)
			return err
		}},
		"counts": {30, []string{"counts_pkey"}, func() error {
			_, err := st.Counts(ctx, store.CountQuery{Metrics: []store.Metric{store.MetricSignIns}, From: now.AddDate(0, 0, -2), To: now})
			return err
		}},
		"add": {3, nil, func() error {
			return st.AddCounts(ctx, store.AddCounts{Counts: []store.Count{{Metric: store.MetricSignUps, Label: "l", At: now, N: 1}}, Active: []store.Activity{{UserID: who, At: now}}})
		}},
	} {
		plans, err := planner.Explain(c.run)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plans {
			t.Logf("%s: %v", name, p)
			if err := p.Reads(c.rows, c.indexes...); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	got, err := st.Totals(ctx, now)
	if err != nil || got.Users.Exact || got.Users.N != 20000 {
		t.Errorf("%+v, %v", got, err)
	}
}

// unaudited is a store that records no sign-in.
type unaudited struct{ *pgstore.Store }

func (s unaudited) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	c.Events = nil
	return s.Store.CreateSession(ctx, c)
}

// Logins with the audit log and without: whole, and the statement that creates the session
// alone, where password hashing does not hide the difference.
func BenchmarkAudit(b *testing.B) {
	s, _ := openSchema(b)
	for name, st := range map[string]store.Store{"audited": s, "unaudited": unaudited{s}} {
		env := authtest.NewOn(b, st, auth.WithRateLimits(auth.RateLimits{Off: true}), auth.WithPasswords(auth.PasswordOptions{Argon2id: auth.Argon2idParams{Memory: 19456, Time: 2, Threads: 1}}), auth.WithClock(time.Now))
		u := env.LoginAs(b, "ada@example.com").User
		b.Run("login/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := env.Login(b.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("statement/"+name, func(b *testing.B) {
			for b.Loop() {
				c := store.CreateSession{Change: with(byTest()), NewSession: store.NewSession{Session: newSession(u.ID), KeepSessions: 100}}
				c.Unrecorded = func([]store.Event) {}
				if _, err := st.CreateSession(b.Context(), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// scalar is the result of a statement.
func scalar[T any](t *testing.T, s *pgstore.Store, sql string) (v T) {
	t.Helper()
	if err := s.Pool().QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
