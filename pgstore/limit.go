package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
)

// Take draws from every bucket or from none. The database decides, in a
// function; what is left in the buckets is worked out here by the same
// arithmetic.
func (s *Store) Take(ctx context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	if len(draws) == 1 && draws[0].Cost > 0 && draws[0].Rate.Burst > 0 && draws[0].Rate.Per > 0 {
		return s.takeOne(ctx, draws, now)
	}
	keys, steps, fulls, costs := make([]string, len(draws)), make([]int64, len(draws)), make([]int64, len(draws)), make([]int32, len(draws))
	for i, d := range draws {
		keys[i], costs[i] = d.Key, int32(d.Cost) //nolint:gosec // a handful
		if d.Rate.Burst > 0 && d.Rate.Per > 0 {
			steps[i], fulls[i] = bucket(d.Rate)
		}
	}
	var before []int64
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, s.sql("select auth.take($1::text[], $2::bigint[], $3::bigint[], $4::integer[], $5::bigint)"),
			keys, steps, fulls, costs, now.UnixNano()).Scan(&before)
	})
	if err != nil {
		return auth.Decision{}, err
	}
	return decide(draws, before, now), nil
}

// clearLimits locks in the order in which take does.
const clearLimits = `delete from auth.limits where key in (select l.key from auth.limits l where l.key = any ($1::text[]) order by l.key for update)`

// ClearLimits fills buckets again.
func (s *Store) ClearLimits(ctx context.Context, c auth.ClearLimits) error {
	return s.change(ctx, &c.Change, target{users: []string{c.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		u := h.user(c.UserID)
		if u == nil {
			return nil, auth.ErrNotFound
		}
		_, err := tx.Exec(ctx, s.sql(clearLimits), orEmpty(c.Keys))
		return &result{about: u.id}, err
	})
}

// bucket is how long one token of a rate takes to come back, and all of them, in
// nanoseconds.
func bucket(r auth.Rate) (step, full int64) {
	step = int64(r.Per / time.Duration(r.Burst))
	return step, step * int64(r.Burst)
}

// takeOne is Take for one bucket, such as a refresh draws from, without the
// function's loops. What the bucket was follows from what it has become.
func (s *Store) takeOne(ctx context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	step, full := bucket(draws[0].Rate)
	drawn, before := step*int64(draws[0].Cost), int64(0)
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		if drawn <= full {
			err := q.QueryRow(ctx, s.sql(`insert into auth.limits as l (key, tat) values ($1::text, $2::bigint + $3::bigint)
				on conflict (key) do update set tat = greatest(l.tat, $2::bigint) + $3::bigint where greatest(l.tat, $2::bigint) + $3::bigint - $2::bigint <= $4::bigint
				returning tat - $3::bigint`), draws[0].Key, now.UnixNano(), drawn, full).Scan(&before)
			if !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
		}
		// Refused. A bucket that has become fuller since is refused all the same.
		return q.QueryRow(ctx, s.sql("select greatest(max(tat), $2::bigint + $3::bigint) from auth.limits where key = $1::text"),
			draws[0].Key, now.UnixNano(), full-drawn+1).Scan(&before)
	})
	if err != nil {
		return auth.Decision{}, err
	}
	return decide(draws, []int64{before}, now), nil
}

// decide answers what the database decided, from what the buckets were before.
func decide(draws []auth.Draw, before []int64, now time.Time) auth.Decision {
	d := auth.Decision{Allowed: true}
	tats := make(map[string]time.Time, len(draws))
	for i, draw := range draws {
		tat, ok := tats[draw.Key]
		if !ok {
			tat = time.Unix(0, before[i]) //nolint:gosec // one for each draw
		}
		next, allowed, wait, remaining := draw.Rate.Apply(tat, now, draw.Cost)
		if !allowed {
			d.Allowed, d.RetryAfter = false, max(d.RetryAfter, wait)
		}
		tats[draw.Key] = next
		d.Remaining = append(d.Remaining, remaining)
	}
	if !d.Allowed { // nothing was drawn
		for i, draw := range draws {
			_, _, _, d.Remaining[i] = draw.Rate.Apply(time.Unix(0, before[i]), now, 0) //nolint:gosec // one for each draw
		}
	}
	return d
}
