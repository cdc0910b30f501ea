package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
)

// growthSizes are the numbers of users. Each is compared with the first.
var growthSizes = []int{1_000, 100_000, 1_000_000}

// growthGoal is the allowed slowdown of common operations with the most users.
const growthGoal = 1.25

// population is a database with a number of users, and its own server.
type population struct {
	users     int
	database  string
	server    *process
	relations []relation
	took      [][][]float64 // µs, by operation and round
}

// relation is a table or an index.
type relation struct {
	name  string
	bytes int64
}

// operation is the work of one client, for a random user in each request.
type operation struct {
	name   string
	client func(p *population) worker
}

var operations = []operation{
	{"GET /me", func(p *population) worker {
		return visitor(func(to []byte) []byte {
			user := p.anybody()
			return append(to, meRequest(accessToken(userID(user), sessionID(user, 0)))...)
		})
	}},
	{"POST /refresh", func(p *population) worker { return &returning{p: p, newest: map[int]string{}} }},
	{"login", func(p *population) worker {
		return visitor(func(to []byte) []byte { return append(to, loginRequest(p.anybody())...) })
	}},
	{"login's statements", func(p *population) worker {
		return visitor(func(to []byte) []byte { return request(to, "POST", "/sessions/"+email(p.anybody()), "", "") })
	}},
	{"login's first statement", func(p *population) worker {
		return visitor(func(to []byte) []byte { return request(to, "GET", "/credentials/"+email(p.anybody()), "", "") })
	}},
}

func (p *population) anybody() int {
	return rand.IntN(p.users) //nolint:gosec // a sample
}

// visitor makes requests that have no state.
type visitor func(to []byte) []byte

func (v visitor) next(to []byte) []byte { return v(to) }
func (visitor) got([]byte) error        { return nil }

// returning refreshes a random user's session with its newest token.
type returning struct {
	p      *population
	newest map[int]string
	user   int
}

func (r *returning) next(to []byte) []byte {
	r.user = r.p.anybody()
	token := cmp.Or(r.newest[r.user], refreshToken(sessionID(r.user, 1)))
	return request(to, "POST", prefix+"/refresh", "", refreshBody(token))
}

func (r *returning) got(body []byte) error {
	token := member(body, "refresh_token")
	if token == "" {
		return fmt.Errorf("no refresh token in %s", body)
	}
	r.newest[r.user] = token
	return nil
}

// measureGrowth compares common operations, and the size of the stored data, between few
// users and many.
func (b *bench) measureGrowth(ctx context.Context) error {
	var list []*population
	for _, users := range growthSizes {
		began := time.Now()
		p, err := b.populate(ctx, users)
		if err != nil {
			return fmt.Errorf("%d users: %w", users, err)
		}
		b.printf("%d users loaded in %.0f s\n", users, time.Since(began).Seconds())
		list = append(list, p)
	}
	b.reportSizes(list)
	if err := b.reportPlans(ctx, list); err != nil {
		return err
	}
	for _, o := range operations {
		if err := b.measureLatency(ctx, o, list); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	b.reportLatency(list)
	return nil
}

func (b *bench) populate(ctx context.Context, users int) (*population, error) {
	database, err := load(ctx, b.cluster, fmt.Sprintf("growth_%d", users), "bcrypt", users)
	if err != nil {
		return nil, err
	}
	p := &population{users: users, database: database}
	if err := settle(ctx, database); err != nil {
		return nil, err
	}
	if p.relations, err = relations(ctx, database); err != nil {
		return nil, err
	}
	p.server, err = b.server("", "auth", database, "-hs256")
	return p, err
}

// settle brings a database to the state after a while of work: the tables are in
// Postgres's memory, and loaded data is on the disk. It uses bitmap scans, because pages
// from COPY and sequential scans are evicted soon.
func settle(ctx context.Context, database string) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, `set enable_seqscan = off; set enable_indexscan = off; set enable_indexonlyscan = off;
		select count(full_name) from auth.users where id > '00000000-0000-0000-0000-000000000000';
		select count(user_agent) from auth.sessions where id > '00000000-0000-0000-0000-000000000000'`)
	if err == nil {
		_, err = conn.Exec(ctx, "checkpoint")
	}
	return err
}

// relations are the tables of users and sessions, with their indexes.
func relations(ctx context.Context, database string) ([]relation, error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `select c.relname, pg_relation_size(c.oid) from pg_class c left join pg_index i on i.indexrelid = c.oid
		where coalesce(i.indrelid, c.oid) in ('auth.users'::regclass, 'auth.sessions'::regclass)
		order by coalesce(i.indrelid, c.oid) = 'auth.sessions'::regclass, i.indrelid is not null, c.relname`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r relation, err error) {
		err = row.Scan(&r.name, &r.bytes)
		return r, err
	})
}

// reportSizes prints a table of sizes in MB. The last column is about the most users.
func (b *bench) reportSizes(list []*population) {
	b.printf("\nsizes in MB, %d sessions for each user\n\n|", sessionsEach)
	for _, p := range list {
		b.printf(" | %d users", p.users)
	}
	b.printf(" | bytes per user |\n|%s\n", strings.Repeat("---|", len(list)+2))
	line := func(name string, size func(p *population) int64) {
		b.printf("| %s", name)
		for _, p := range list {
			b.printf(" | %.2f", float64(size(p))/1e6)
		}
		most := list[len(list)-1]
		b.printf(" | %d |\n", size(most)/int64(most.users))
	}
	for i, r := range list[0].relations {
		line(r.name, func(p *population) int64 { return p.relations[i].bytes })
	}
	line("together", func(p *population) (sum int64) {
		for _, r := range p.relations {
			sum += r.bytes
		}
		return sum
	})
}

// reportPlans prints Postgres's plans for the operations, and fails if a table is read
// completely.
func (b *bench) reportPlans(ctx context.Context, list []*population) error {
	b.printf("\nplans\n\n")
	for _, p := range list {
		if err := b.reportPlansOf(ctx, p); err != nil {
			return fmt.Errorf("plans for %d users: %w", p.users, err)
		}
	}
	return nil
}

func (b *bench) reportPlansOf(ctx context.Context, p *population) error {
	cfg, err := pgxpool.ParseConfig(p.database)
	if err != nil {
		return err
	}
	planner := &pgtest.Planner{}
	cfg.ConnConfig.Tracer = planner
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
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
	const crowd = 50 // users whose sessions arrive at once and share statements
	refresh := func(user int) error {
		_, err := a.Refresh(ctx, auth.RefreshParams{RefreshToken: refreshToken(sessionID(user, 2))})
		return err
	}
	me := func(user int) error {
		_, _, err := a.Current(ctx, &auth.Claims{UserID: userID(user).String(), SessionID: sessionID(user, 2).String()})
		return err
	}
	ofSessions := []string{"sessions_pkey", "users_pkey"}
	for _, flow := range []struct {
		name    string
		rows    int
		indexes []string
		run     func() error
	}{
		{"login", 1, []string{"users_email_key_key", "users_pkey"}, func() error {
			_, err := a.Login(ctx, auth.LoginParams{Email: email(0), Password: password})
			return err
		}},
		{"refresh", 1, ofSessions, func() error { return refresh(0) }},
		{"me", 1, ofSessions, func() error { return me(0) }},
		{"refresh, many at once", crowd, ofSessions, func() error { return atOnce(crowd, refresh) }},
		{"me, many at once", crowd, ofSessions, func() error { return atOnce(crowd, me) }},
	} {
		plans, err := planner.Explain(flow.run)
		if err == nil && (len(plans) == 0 || flow.rows > 1 && len(plans) >= flow.rows) {
			err = fmt.Errorf("%d statements were seen", len(plans))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", flow.name, err)
		}
		for _, plan := range plans {
			b.printf("%s, %d users: %v\n", flow.name, p.users, plan)
			if err := plan.Check(flow.rows, flow.indexes...); err != nil {
				return fmt.Errorf("%s: %w", flow.name, err)
			}
		}
	}
	return nil
}

// atOnce runs a function for the first users, all at the same time.
func atOnce(users int, f func(user int) error) error {
	errs := make([]error, users)
	var wg sync.WaitGroup
	for user := range users {
		wg.Go(func() { errs[user] = f(user) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// measureLatency alternates between the populations with one client each.
func (b *bench) measureLatency(ctx context.Context, o operation, list []*population) error {
	clients := all(len(list), func(i int) worker { return o.client(list[i]) })
	turns := all(len(list), func(i int) int { return i })
	for i, p := range list { // connections, statements, caches
		if _, err := latencies(ctx, p.server.addr, clients[i], b.round/3); err != nil {
			return err
		}
		p.took = append(p.took, nil)
	}
	for range b.rounds {
		for _, i := range turns {
			took, err := latencies(ctx, list[i].server.addr, clients[i], b.round)
			if err != nil {
				return err
			}
			last := len(list[i].took) - 1
			list[i].took[last] = append(list[i].took[last], took)
		}
		slices.Reverse(turns) // vary the order
	}
	return nil
}

// latencies returns the durations of one client's consecutive requests in µs.
func latencies(ctx context.Context, addr string, w worker, d time.Duration) ([]float64, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.conn.Close() }()
	var took []float64
	for end := time.Now().Add(d); len(took) == 0 || time.Now().Before(end); {
		c.req = w.next(c.req[:0])
		began := time.Now()
		body, err := c.send()
		took = append(took, float64(time.Since(began).Nanoseconds())/1000)
		if err := errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		if err := w.got(body); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// reportLatency prints a table. A ratio is the median of the ratios of the rounds.
func (b *bench) reportLatency(list []*population) {
	few := list[0]
	b.printf("\nlatency, %d rounds of %v, one request at a time\n\n| | users | requests | median, µs | p99, µs | median / median of %d users | goal |\n|---|---|---|---|---|---|---|\n", b.rounds, b.round, few.users)
	for i, o := range operations {
		for _, p := range list {
			ratio, goal := "", ""
			if p != few {
				ratios := all(b.rounds, func(r int) float64 { return median(p.took[i][r]) / median(few.took[i][r]) })
				ratio = fmt.Sprintf("%.3f (%.3f–%.3f)", median(ratios), slices.Min(ratios), slices.Max(ratios))
				goal = fmt.Sprintf("≤ %.2f", growthGoal)
			}
			sorted := slices.Sorted(slices.Values(slices.Concat(p.took[i]...)))
			b.printf("| %s | %d | %d | %.0f | %.0f | %s | %s |\n", o.name, p.users, len(sorted), median(sorted), sorted[len(sorted)*99/100], ratio, goal)
		}
	}
}
