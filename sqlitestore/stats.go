package sqlitestore

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// AddCounts adds to counts.
func (s *Store) AddCounts(ctx context.Context, c store.AddCounts) error {
	return s.write(ctx, func(t *tx) error {
		add := func(m store.Metric, label string, hour time.Time, n int64) {
			t.exec(`insert into auth_counts (at, metric, label, n) values (?, ?, ?, ?) on conflict (at, metric, label) do update set n = n + excluded.n`, micros(hour), m, label, n)
		}
		for _, n := range c.Counts {
			add(n.Metric, n.Label, n.At.UTC().Truncate(time.Hour), n.N)
		}
		for _, a := range c.Active {
			for period, since := range store.Periods(a.At) {
				if t.exec(`insert into auth_active (since, period, user_id) values (?, ?, ?) on conflict do nothing`, micros(since), period, a.UserID) == 1 {
					add(store.MetricActiveUsers, period, since, 1)
				}
			}
		}
		return nil
	})
}

// Counts lists sums by interval.
func (s *Store) Counts(ctx context.Context, q store.CountQuery) ([]store.Count, error) {
	var day int64 = 1
	if q.By == store.Daily {
		day = (24 * time.Hour).Microseconds()
	}
	// Before 1970, integer division would round up; there were no counts.
	start, args := `at / ?1 * ?1`, []any{day, jsonOf(q.Metrics), upward(q.From), upward(q.To)}
	if q.By == store.Whole {
		start = `?1`
		args[0] = micros(q.From)
	}
	return listed(ctx, s, &query{`select metric, label, ` + start + ` as start, sum(n) from auth_counts where metric in (select value from json_each(?2)) and at >= ?3 and at < ?4
		group by metric, label, start having sum(n) <> 0 order by metric, label, start`, args}, func(scan row) (c store.Count) {
		scan(&c.Metric, &c.Label, at{&c.At}, &c.N)
		return c
	})
}

// Totals counts the current accounts.
func (s *Store) Totals(ctx context.Context, now time.Time) (totals store.Totals, err error) {
	err = s.snapshot(ctx, func(t *tx) error {
		count := func(where string, args ...any) store.Total {
			return store.Total{N: value[int64](t, `select count(*) from auth_users`+where, args...), Exact: true}
		}
		totals.Users = count(``)
		totals.WithFactor = count(` where mfa_enabled = 1`)
		totals.Banned = count(` where banned_until > ?`, micros(now))
		return nil
	})
	if err != nil {
		return store.Totals{}, err
	}
	return totals, nil
}
