package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

// addCounts adds counts ($1), and counts users ($2) who were not yet active in a
// period. Rows are written in one order, so that instances that add at the same time
// cannot deadlock.
const addCounts = `with active as (
		insert into auth.active (since, period, user_id)
		select distinct a.since, a.period, a.user_id from jsonb_to_recordset($2::jsonb) as a (since date, period text, user_id uuid)
		order by a.since, a.period, a.user_id
		on conflict (since, period, user_id) do nothing
		returning since, period
	), counted as (
		select c.metric, c.label, c.at, c.n from jsonb_to_recordset($1::jsonb) as c (metric text, label text, at timestamptz, n bigint)
		union all
		select '` + string(store.MetricActiveUsers) + `', a.period, a.since::timestamp at time zone 'UTC', 1 from active a
	)
	insert into auth.counts as c (metric, label, at, n)
	select d.metric, d.label, d.at, sum(d.n) from counted d group by d.metric, d.label, d.at order by d.at, d.metric, d.label
	on conflict (at, metric, label) do update set n = c.n + excluded.n`

// Sums by hour, by day, and over the whole time.
const (
	wholeCounts = `select c.metric, c.label, $2::timestamptz, sum(c.n)::bigint from auth.counts c
	where c.metric = any ($1::text[]) and c.at >= $2::timestamptz and c.at < $3::timestamptz
	group by c.metric, c.label order by c.metric collate "C", c.label collate "C"`

	hourlyCounts = `select c.metric, c.label, c.at, c.n from auth.counts c
	where c.metric = any ($1::text[]) and c.at >= $2::timestamptz and c.at < $3::timestamptz
	order by c.metric collate "C", c.label collate "C", c.at`

	dailyCounts = `select d.metric, d.label, d.day at time zone 'UTC', d.n from (
		select c.metric, c.label, date_trunc('day', c.at at time zone 'UTC') as day, sum(c.n)::bigint as n from auth.counts c
		where c.metric = any ($1::text[]) and c.at >= $2::timestamptz and c.at < $3::timestamptz
		group by 1, 2, 3
	) d
	order by d.metric collate "C", d.label collate "C", d.day`
)

// totals counts rows by an index, up to one more than are counted exactly ($2), and
// returns Postgres's estimates.
const totals = `select
		(select count(*) from (select u.id from auth.users u order by u.id limit $2::integer) counted),
		(select greatest(r.reltuples, 0)::bigint from pg_class r where r.oid = to_regclass('auth.users')),
		(select count(*) from (select u.id from auth.users u where u.mfa_enabled order by u.id limit $2::integer) counted),
		(select greatest(r.reltuples, 0)::bigint from pg_class r where r.relname = 'users_mfa_idx' and r.relnamespace = (select t.relnamespace from pg_class t where t.oid = to_regclass('auth.users'))),
		(select count(*) from (select u.banned_until from auth.users u where u.banned_until > $1::timestamptz order by u.banned_until limit $2::integer) counted),
		(select greatest(r.reltuples, 0)::bigint from pg_class r where r.relname = 'users_banned_idx' and r.relnamespace = (select t.relnamespace from pg_class t where t.oid = to_regclass('auth.users')))`

type countInput struct {
	Metric store.Metric `json:"metric"`
	Label  string       `json:"label"`
	At     time.Time    `json:"at"`
	N      int64        `json:"n"`
}

type activeInput struct {
	Since  string `json:"since"`
	Period string `json:"period"`
	UserID string `json:"user_id"`
}

// AddCounts adds to counts, in one statement.
func (s *Store) AddCounts(ctx context.Context, c store.AddCounts) error {
	var active []activeInput
	for _, a := range c.Active {
		id, ok := canonical(a.UserID)
		for period, since := range store.Periods(a.At) {
			if ok {
				active = append(active, activeInput{since.Format(time.DateOnly), period, id})
			}
		}
	}
	counts := listOf(c.Counts, func(n store.Count) countInput {
		return countInput{n.Metric, clean(n.Label), n.At.UTC().Truncate(time.Hour), n.N}
	})
	return s.do(ctx, func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, s.sql(addCounts), counts, listOf(active, func(a activeInput) activeInput { return a }))
		return err
	})
}

// Counts lists sums by interval.
func (s *Store) Counts(ctx context.Context, c store.CountQuery) ([]store.Count, error) {
	sql := hourlyCounts
	switch c.By {
	case store.Daily:
		sql = dailyCounts
	case store.Whole:
		sql = wholeCounts
	}
	metrics := make([]string, len(c.Metrics))
	for i, m := range c.Metrics {
		metrics[i] = string(m)
	}
	var list []store.Count
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		list = []store.Count{}
		rows, err := q.Query(ctx, s.sql(sql), metrics, c.From, c.To)
		if err == nil {
			list, err = pgx.AppendRows(list, rows, func(row pgx.CollectableRow) (n store.Count, err error) {
				var since pgtype.Timestamptz
				err = row.Scan((*string)(&n.Metric), &n.Label, &since, &n.N)
				n.At = at(since)
				return n, err
			})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Totals counts the present accounts.
func (s *Store) Totals(ctx context.Context, now time.Time) (t store.Totals, err error) {
	var counted, about [3]int64
	err = s.do(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, s.sql(totals), now, store.CountedExactly+1).Scan(&counted[0], &about[0], &counted[1], &about[1], &counted[2], &about[2])
	})
	if err != nil {
		return t, err
	}
	for i, of := range []*store.Total{&t.Users, &t.WithFactor, &t.Banned} {
		if of.N, of.Exact = counted[i], counted[i] <= store.CountedExactly; !of.Exact {
			of.N = max(counted[i], about[i])
		}
	}
	return t, nil
}
