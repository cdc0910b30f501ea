package pgstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/gather"
	"github.com/authmount/auth/store"
)

// Take counts draws against all their limits, or against none if one refuses. A
// function of the database decides. Take computes the remaining amounts here by the
// same arithmetic.
func (s *Store) Take(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
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
		return store.Decision{}, err
	}
	return decide(draws, before, now), nil
}

// clearLimits locks rows in the same order as take.
const clearLimits = `delete from auth.limits where key in (select l.key from auth.limits l where l.key = any ($1::text[]) order by l.key for update)`

// ClearLimits resets rate limits.
func (s *Store) ClearLimits(ctx context.Context, c store.ClearLimits) error {
	return s.change(ctx, &c.Change, target{users: []string{c.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		u := h.user(c.UserID)
		if u == nil {
			return nil, store.ErrNotFound
		}
		_, err := tx.Exec(ctx, s.sql(clearLimits), orEmpty(c.Keys))
		return &result{about: u.id}, err
	})
}

// bucket returns the time in which a rate refunds one call, and all of them, in
// nanoseconds.
func bucket(r store.Rate) (step, full int64) {
	step = int64(r.Per / time.Duration(r.Burst))
	return step, step * int64(r.Burst)
}

// draw counts a call against one limit, such as a refresh. It does without the loops of
// the database's function.
type draw struct {
	key              string
	now, drawn, full int64 // nanoseconds
}

func drawOf(d store.Draw, now time.Time) draw {
	step, full := bucket(d.Rate)
	return draw{d.Key, now.UnixNano(), step * int64(d.Cost), full}
}

// takeOne is Take for one limit. It shares a statement with other calls, unless the
// context carries a transaction.
func (s *Store) takeOne(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
	d := drawOf(draws[0], now)
	b, done, err := s.bound(ctx)
	if err != nil {
		return store.Decision{}, err
	}
	defer done()
	take := s.draws.Do
	if Tx(ctx) != nil {
		take = s.drawOne
	}
	before, err := take(b, d)
	if err != nil {
		return store.Decision{}, err
	}
	return decide(draws, []int64{before}, now), nil
}

// drawOne counts a call against a limit, and computes the earlier state from the new
// one.
const drawOne = `insert into auth.limits as l (key, tat) values ($1::text, $2::bigint + $3::bigint)
	on conflict (key) do update set tat = greatest(l.tat, $2::bigint) + $3::bigint where greatest(l.tat, $2::bigint) + $3::bigint - $2::bigint <= $4::bigint
	returning tat - $3::bigint`

// drawnOut reads the state of a limit that refuses. A limit that has refunded calls
// since then refuses all the same.
const drawnOut = `select greatest(max(tat), $2::bigint + $3::bigint) from auth.limits where key = $1::text`

// drawOne returns the state of the limit before the call.
func (s *Store) drawOne(ctx context.Context, d draw) (before int64, err error) {
	err = s.do(ctx, func(ctx context.Context, q querier) error {
		if d.drawn <= d.full {
			err := q.QueryRow(ctx, s.sql(drawOne), d.key, d.now, d.drawn, d.full).Scan(&before)
			if !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
		}
		return q.QueryRow(ctx, s.sql(drawnOut), d.key, d.now, d.full-d.drawn+1).Scan(&before)
	})
	return before, err
}

// drawMany counts calls against several limits. It leaves out limits that refuse, and
// rows that another transaction has locked or changed meanwhile, so that no call waits
// for others. Postgres plans it once, usually while the table is almost empty and
// reading it whole looks cheap. So the statement is written such that each row can only
// be found by its key, and only be written where it was found.
const drawMany = `with d as (
		select * from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) with ordinality as d (key, now, drawn, whole, n) where d.drawn <= d.whole
	), held as materialized (
		select d.n, d.now, d.drawn, d.whole, l.place
		from d cross join lateral (select l.ctid as place from auth.limits l where l.key = d.key for no key update of l skip locked) l
	), again as (
		update auth.limits l set tat = greatest(l.tat, h.now) + h.drawn from held h
		where l.ctid = h.place and greatest(l.tat, h.now) + h.drawn - h.now <= h.whole
		returning h.n, l.tat - h.drawn as before
	), first as (
		insert into auth.limits (key, tat) select d.key, d.now + d.drawn from d
		where not exists (select from auth.limits l where l.key = d.key offset 0) order by d.key
		on conflict (key) do nothing returning key
	)
	select n, before from again union all select d.n, d.now from first join d on d.key = first.key`

// drawMany also leaves out all but one of several calls for one limit. Each call that
// is left out runs alone.
func (s *Store) drawMany(ctx context.Context, calls []*gather.Call[draw, int64]) error {
	var keys []string
	var nows, drawn, fulls []int64
	var sent []*gather.Call[draw, int64]
	for _, c := range calls {
		if d := &c.Arg; !slices.Contains(keys, d.key) {
			keys, nows, drawn, fulls, sent = append(keys, d.key), append(nows, d.now), append(drawn, d.drawn), append(fulls, d.full), append(sent, c)
		}
	}
	before := map[int]int64{} // by the call's number, from one
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		clear(before)
		rows, err := q.Query(ctx, s.sql(drawMany), keys, nows, drawn, fulls)
		if err != nil {
			return err
		}
		var n int
		var was int64
		_, err = pgx.ForEachRow(rows, []any{&n, &was}, func() error {
			before[n] = was
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	for n, was := range before {
		sent[n-1].Return(was)
	}
	return nil
}

// decide computes the database's decision from the earlier states of the limits.
func decide(draws []store.Draw, before []int64, now time.Time) store.Decision {
	d := store.Decision{Allowed: true}
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
	if !d.Allowed { // nothing was counted
		for i, draw := range draws {
			_, _, _, d.Remaining[i] = draw.Rate.Apply(time.Unix(0, before[i]), now, 0) //nolint:gosec // one for each draw
		}
	}
	return d
}
