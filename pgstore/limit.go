package pgstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/gather"
)

// take is a call of Take.
type take struct {
	draws []auth.Draw
	now   time.Time
}

// Statements that calls share, or that others wait for, wait no longer than this
// for a bucket. A draw waits for the end of another one, which is quick, unless an
// application's transaction (InTx) has drawn: that is waited for alone.
const briefly = `select set_config('lock_timeout', '50ms', true)`

const lockNotAvailable = "55P03" // SQLSTATE

// Take draws from every bucket or from none. The database decides, in a
// function; what is left in the buckets is worked out here by the same
// arithmetic. Calls at the same time share statements, in which they are judged
// one after the other.
func (s *Store) Take(ctx context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	b, done, err := s.bound(ctx)
	if err != nil {
		return auth.Decision{}, err
	}
	defer done()
	t := take{draws, now}
	var before []int64
	if Tx(ctx) != nil || t.asks() {
		before, err = s.takeAlone(b, t)
	} else {
		before, err = s.takes.Do(b, t)
		if e := (*pgconn.PgError)(nil); errors.As(err, &e) && e.Code == lockNotAvailable {
			before, err = s.takeAlone(b, t)
		}
	}
	if err != nil {
		return auth.Decision{}, err
	}
	return decide(draws, before, now), nil
}

// asks tells whether a call only asks, which neither locks nor writes anything.
func (t take) asks() bool {
	return !slices.ContainsFunc(t.draws, func(d auth.Draw) bool { return d.Cost != 0 })
}

// takeAlone waits for as long as it takes.
func (s *Store) takeAlone(ctx context.Context, t take) ([]int64, error) {
	if t.single() {
		return s.takeSingle(ctx, t, drawSingle)
	}
	return s.takeTogether(ctx, []take{t}, false)
}

// takeBriefly is a call by itself that others may wait for.
func (s *Store) takeBriefly(ctx context.Context, t take) ([]int64, error) {
	if t.single() {
		return s.takeSingle(ctx, t, drawSingleBriefly)
	}
	return s.takeTogether(ctx, []take{t}, true)
}

// takeMany are calls in one statement.
func (s *Store) takeMany(ctx context.Context, calls []*gather.Call[take, []int64]) error {
	list := make([]take, len(calls))
	for i, c := range calls {
		list[i] = c.Arg
	}
	before, err := s.takeTogether(ctx, list, true)
	if err != nil {
		return err
	}
	for _, c := range calls {
		n := len(c.Arg.draws)
		c.Return(before[:n:n])
		before = before[n:]
	}
	return nil
}

const (
	takeTogether        = `select auth.take($1::text[], $2::bigint[], $3::bigint[], $4::integer[], $5::integer[], $6::bigint[])`
	takeTogetherBriefly = `with waits as materialized (` + briefly + `) ` + takeTogether + ` from waits`
)

// takeTogether makes calls one after the other, in one statement, and returns what
// the bucket of each draw was before its call.
func (s *Store) takeTogether(ctx context.Context, list []take, waitBriefly bool) (before []int64, err error) {
	var keys []string
	var steps, fulls, nows []int64
	var costs, calls []int32
	for i, t := range list {
		for _, d := range t.draws {
			var step, full int64
			if d.Rate.Burst > 0 && d.Rate.Per > 0 {
				step, full = bucket(d.Rate)
			}
			keys, steps, fulls, nows = append(keys, d.Key), append(steps, step), append(fulls, full), append(nows, t.now.UnixNano())
			costs, calls = append(costs, int32(d.Cost)), append(calls, int32(i)) //nolint:gosec // a handful
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	sql := takeTogether
	if waitBriefly {
		sql = takeTogetherBriefly
	}
	err = s.do(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, s.sql(sql), keys, steps, fulls, costs, calls, nows).Scan(&before)
	})
	return before, err
}

// bucket is how long one token of a rate takes to come back, and all of them, in
// nanoseconds.
func bucket(r auth.Rate) (step, full int64) {
	step = int64(r.Per / time.Duration(r.Burst))
	return step, step * int64(r.Burst)
}

// single tells whether a call draws from one bucket, such as a refresh does.
func (t take) single() bool {
	return len(t.draws) == 1 && t.draws[0].Cost > 0 && t.draws[0].Rate.Burst > 0 && t.draws[0].Rate.Per > 0
}

const (
	drawSingle        = `insert into auth.limits as l (key, tat) values ($1::text, $2::bigint + $3::bigint)` + drawnSingle
	drawSingleBriefly = `with waits as materialized (` + briefly + `)
		insert into auth.limits as l (key, tat) select $1::text, $2::bigint + $3::bigint from waits` + drawnSingle

	drawnSingle = `
		on conflict (key) do update set tat = greatest(l.tat, $2::bigint) + $3::bigint where greatest(l.tat, $2::bigint) + $3::bigint - $2::bigint <= $4::bigint
		returning tat - $3::bigint`
)

// takeSingle does without the function's loops. What the bucket was follows from
// what it has become.
func (s *Store) takeSingle(ctx context.Context, t take, draw string) ([]int64, error) {
	d := t.draws[0]
	step, full := bucket(d.Rate)
	drawn, before := step*int64(d.Cost), int64(0)
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		if drawn <= full {
			err := q.QueryRow(ctx, s.sql(draw), d.Key, t.now.UnixNano(), drawn, full).Scan(&before)
			if !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
		}
		// Refused. A bucket that has become fuller since is refused all the same.
		return q.QueryRow(ctx, s.sql("select greatest(max(tat), $2::bigint + $3::bigint) from auth.limits where key = $1::text"),
			d.Key, t.now.UnixNano(), full-drawn+1).Scan(&before)
	})
	return []int64{before}, err
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
