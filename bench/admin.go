package main

import (
	"context"
	"crypto/md5" //nolint:gosec // as Postgres makes the operators' ids
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// The sizes for the measurements of the admin endpoints. One row in a hundred of the
// audit log is of one of a few operators.
const (
	adminUsers  = 1_000_000
	adminEvents = 5_000_000
	operators   = 20
)

// adminGoal is the allowed ratio of a page to a bare query for its rows.
const adminGoal = 1.5

// page is a page of operators, and a bare query for the same rows.
type page struct {
	name string
	ours func(ctx context.Context, who admin.Actor) (int, error)
	sql  string
	args func() []any

	took [4][]float64 // median of each round in µs: by an operator, by application code, and the bare query for each
}

// actorRows are the rows that an operator's request reads in addition: the operator's
// account.
const actorRows = `select s.*, u.* from auth.sessions s join auth.users u on u.id = s.user_id where s.id = $1::uuid`

// accountRows are the rows of an account's page: the account and its data.
const accountRows = `select u.*,
	(select jsonb_agg(d) from auth.devices d where d.user_id = u.id),
	(select jsonb_agg(t) from auth.tokens t where t.user_id = u.id),
	(select jsonb_agg(m) from auth.messages m where m.user_id = u.id)
	from auth.users u where u.email_key = $1::text`

// loadEvents fills the audit log with 90 days of events by users and operators.
const loadEvents = `insert into auth.events (id, type, at, user_id, session_id, data)
	select gen_random_uuid(), case when g % 100 = 0 then 'user.banned' when g % 3 = 0 then 'session.ended' else 'user.signed_in' end,
		now() - g * (interval '90 days' / $1::integer), u.id, null,
		case when g % 100 = 0
			then jsonb_build_object('actor', jsonb_build_object('kind', 'user', 'id', md5((g / 100 % $2::integer)::text)::uuid), 'client', jsonb_build_object('ip', '198.51.100.7'),
				'record', jsonb_build_object('actor', 'operator', 'target', u.email, 'request_id', g::text, 'operation', 'POST /users/{id}/ban'))
			else jsonb_build_object('actor', jsonb_build_object('kind', 'user', 'id', u.id), 'method', 'password', 'client', jsonb_build_object('ip', '203.0.113.' || g % 200, 'user_agent', $3::text)) end
	from generate_series(1, $1::integer) g join lateral (select id, email from auth.users where email_key = 'user' || lpad((g::bigint * 7919 % $4::integer)::text, 7, '0') || '@example.com') u on true`

// office creates a database with the sizes above.
func (b *bench) office(ctx context.Context) (*pgxpool.Pool, error) {
	began := time.Now()
	database, err := load(ctx, b.cluster, "office", "bcrypt", adminUsers)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, loadEvents, adminEvents, operators, userAgent, adminUsers); err != nil {
		pool.Close()
		return nil, err
	}
	if _, err := pool.Exec(ctx, "vacuum analyze auth.events"); err != nil {
		pool.Close()
		return nil, err
	}
	if err := settle(ctx, database); err != nil {
		pool.Close()
		return nil, err
	}
	b.printf("%d users with %d sessions and %d events loaded in %.0f s\n", adminUsers, adminUsers*sessionsEach, adminEvents, time.Since(began).Seconds())
	return pool, nil
}

// measureAdmin compares lists of the admin endpoints with bare queries for the same rows.
func (b *bench) measureAdmin(ctx context.Context) error {
	pool, err := b.office(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := pgstore.New(pool)
	if err != nil {
		return err
	}
	a, err := newAuth(ctx, store, config{hash: "bcrypt"})
	if err != nil {
		return err
	}
	defer func() { _ = a.Close(ctx) }()
	adm, err := admin.New(ctx, a, admin.Options{RequireMFA: auth.Off})
	if err != nil {
		return err
	}
	owner, err := adm.Grant(ctx, admin.System("bench").Accepting(), admin.GrantParams{UserID: userID(0).String(), Role: auth.RoleOwner})
	if err != nil {
		return err
	}
	who := admin.User(auth.Caller{UserID: owner.ID, SessionID: sessionID(0, 0).String()})
	pages := adminPages(adm)
	for _, p := range pages {
		if err := p.measure(ctx, b, pool, who); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	b.printf("\none page at a time, %d rounds of %v; by code of the application beside a bare query for the same rows, and by an operator, whose session and account are read as well, beside two: one for those\n\n| page | bare, µs | by code, µs | ratio | bare with the actor, µs | by an operator, µs | ratio | to the page alone | goal |\n|---|---|---|---|---|---|---|---|---|\n", b.rounds, b.round)
	for _, p := range pages {
		ratio := func(of, to int) string {
			list := all(b.rounds, func(i int) float64 { return p.took[of][i] / p.took[to][i] })
			return fmt.Sprintf("%.2f (%.2f–%.2f)", median(list), slices.Min(list), slices.Max(list))
		}
		b.printf("| %s | %.0f | %.0f | %s | %.0f | %.0f | %s | %s | ≤ %.1f |\n", p.name, median(p.took[2]), median(p.took[1]), ratio(1, 2), median(p.took[3]), median(p.took[0]), ratio(0, 3), ratio(0, 2), adminGoal)
	}
	return b.measureDashboard(ctx, a, adm)
}

// measure alternates between all contenders.
func (p *page) measure(ctx context.Context, b *bench, pool *pgxpool.Pool, who admin.Actor) error {
	bare := func(sql string, args ...any) (int, error) {
		rows, err := pool.Query(ctx, sql, args...)
		if err != nil {
			return 0, err
		}
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
		return len(list), err
	}
	turns := [4]func() (int, error){
		func() (int, error) { return p.ours(ctx, who) },
		func() (int, error) { return p.ours(ctx, admin.System("bench").Accepting()) },
		func() (int, error) { return bare(p.sql, p.args()...) },
		func() (int, error) {
			if n, err := bare(actorRows, sessionID(0, 0)); n == 0 || err != nil {
				return n, err
			}
			return bare(p.sql, p.args()...)
		},
	}
	for round := -1; round < b.rounds; round++ { // the first round is a warm-up
		for i, turn := range turns {
			var took []float64
			for end := time.Now().Add(b.round); len(took) == 0 || time.Now().Before(end); {
				began := time.Now()
				n, err := turn()
				took = append(took, float64(time.Since(began).Nanoseconds())/1000)
				if err != nil {
					return err
				}
				if n == 0 {
					return fmt.Errorf("contender %d found nothing", i)
				}
			}
			if round >= 0 {
				p.took[i] = append(p.took[i], median(took))
			}
		}
	}
	return nil
}

// adminPages are the measured pages.
func adminPages(adm *admin.Admin) []*page {
	const users = `select * from auth.users where true`
	const events = `select * from auth.events where true`
	list := func(q func() admin.ListUsersParams) func(context.Context, admin.Actor) (int, error) {
		return func(ctx context.Context, who admin.Actor) (int, error) {
			p, err := adm.ListUsers(ctx, who, q())
			return len(p.Users), err
		}
	}
	log := func(q func() admin.AuditLogParams) func(context.Context, admin.Actor) (int, error) {
		return func(ctx context.Context, who admin.Actor) (int, error) {
			p, err := adm.AuditLog(ctx, who, q())
			return len(p.Events), err
		}
	}
	none := func() []any { return nil }
	anybody := func() int { return rand.IntN(adminUsers) } //nolint:gosec // a sample
	lookup := func(ctx context.Context, who admin.Actor) (int, error) {
		_, err := adm.LookupUser(ctx, who, store.ByEmail(email(anybody())))
		return 1, err
	}
	somebody := func() []any { return []any{userID(anybody())} }
	at := func() (time.Time, uuid.UUID) {
		return time.Now().Add(-time.Duration(rand.IntN(80*24)) * time.Hour).UTC().Truncate(time.Microsecond), uuid.New() //nolint:gosec // a sample
	}
	operator := func() string { return uuid.UUID(md5.Sum([]byte(strconv.Itoa(rand.IntN(operators))))).String() } //nolint:gosec // a sample, and as Postgres makes them
	return []*page{
		{name: "accounts, first page", args: none, sql: users + ` order by created_at desc, id desc limit 50`,
			ours: list(func() admin.ListUsersParams { return admin.ListUsersParams{} })},
		{name: "accounts, by address, any page", sql: users + ` and (coalesce(email_key, '') collate "C", id) > ($1::text, $2::uuid) order by coalesce(email_key, '') collate "C", id limit 50`,
			args: func() []any { u := anybody(); return []any{email(u), userID(u)} },
			ours: byEmail(adm, func() (string, string) { u := anybody(); return email(u), userID(u).String() })},
		{name: "accounts, what an address begins with", sql: users + ` and coalesce(email_key, '') collate "C" like $1::text order by created_at desc, id desc limit 50`,
			args: func() []any { return []any{fmt.Sprintf("user%05d%%", anybody()/100)} },
			ours: list(func() admin.ListUsersParams {
				return admin.ListUsersParams{UserFilter: admin.UserFilter{Search: fmt.Sprintf("user%05d", anybody()/100)}}
			})},
		{name: "account by address, beside its row alone", sql: users + ` and email_key = $1::text`, args: func() []any { return []any{email(anybody())} }, ours: lookup},
		{name: "account by address", sql: accountRows, args: func() []any { return []any{email(anybody())} },
			ours: lookup},
		{name: "timeline of an account", sql: events + ` and user_id = $1::uuid order by at desc, id desc limit 50`, args: somebody,
			ours: func(ctx context.Context, who admin.Actor) (int, error) {
				p, err := adm.Timeline(ctx, who, admin.TimelineParams{UserID: userID(anybody()).String()})
				return len(p.Events), err
			}},
		{name: "audit log, any page", sql: events + ` and (at, id) < ($1::timestamptz, $2::uuid) order by at desc, id desc limit 50`,
			args: func() []any { t, id := at(); return []any{t, id} },
			ours: log(func() admin.AuditLogParams {
				t, id := at()
				return admin.AuditLogParams{Cursor: place(map[string]any{"list": "audit-logs", "at": t, "id": id})}
			})},
		{name: "audit log, of one operator", sql: events + ` and data -> 'actor' ->> 'id' = $1::text and (data -> 'actor' ->> 'id') is distinct from user_id::text and (data -> 'actor' ->> 'id') is not null order by at desc, id desc limit 50`,
			args: func() []any { return []any{operator()} },
			ours: log(func() admin.AuditLogParams {
				return admin.AuditLogParams{EventFilter: admin.EventFilter{Actor: operator()}}
			})},
		{name: "audit log, of one type, any page", sql: events + ` and type = 'user.banned' and (at, id) < ($1::timestamptz, $2::uuid) order by at desc, id desc limit 50`,
			args: func() []any { t, id := at(); return []any{t, id} },
			ours: log(func() admin.AuditLogParams {
				t, id := at()
				return admin.AuditLogParams{EventFilter: admin.EventFilter{Action: string(auth.EventUserBanned)}, Cursor: place(map[string]any{"list": "audit-logs", "at": t, "id": id})}
			})},
	}
}

// place is a cursor that points somewhere else than the pages before did.
func place(at map[string]any) string {
	b, err := json.Marshal(at)
	if err != nil {
		panic(err) // texts and times only
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// byEmail lists accounts by their email addresses, from any place on.
func byEmail(adm *admin.Admin, from func() (email, id string)) func(context.Context, admin.Actor) (int, error) {
	p := admin.ListUsersParams{UserFilter: admin.UserFilter{Sort: store.SortEmail, Order: "asc"}}
	at := sync.OnceValues(func() (map[string]any, error) { // the cursor of a first page
		page, err := adm.ListUsers(context.Background(), admin.System("bench").Accepting(), p)
		if err != nil {
			return nil, err
		}
		b, err := base64.RawURLEncoding.DecodeString(*page.NextCursor)
		if err != nil {
			return nil, err
		}
		cursor := map[string]any{}
		return cursor, json.Unmarshal(b, &cursor)
	})
	return func(ctx context.Context, who admin.Actor) (int, error) {
		cursor, err := at()
		if err != nil {
			return 0, err
		}
		cursor = maps.Clone(cursor)
		cursor["email"], cursor["id"] = from()
		q := p
		q.Cursor = place(cursor)
		page, err := adm.ListUsers(ctx, who, q)
		return len(page.Users), err
	}
}
