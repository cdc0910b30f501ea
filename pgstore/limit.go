package pgstore

import (
	"context"
	"errors"
	"math"
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
	return decide(draws, levels(before), now), nil
}

// level is the state of a limit, in nanoseconds since 1970, as the database stores it.
type level struct{ tat, seen int64 }

func (l level) bucket() store.Bucket {
	return store.Bucket{Full: time.Unix(0, l.tat), Seen: time.Unix(0, l.seen)}
}

// levels returns the states that the database's function returned.
func levels(before []int64) []level {
	list := make([]level, len(before)/2)
	for i := range list {
		list[i] = level{before[i], before[len(list)+i]}
	}
	return list
}

// fillLimits locks rows in the same order as take. Its parameters are keys, the longest
// durations until their buckets may be full again, and the time.
const fillLimits = `
with locked as (select l.key from auth.limits l where l.key = any ($1::text[]) order by l.key for update)
update auth.limits l set tat = greatest(l.seen, $3::bigint) + f.rest
from unnest($1::text[], $2::bigint[]) as f (key, rest) join locked using (key)
where l.key = f.key and l.tat > greatest(l.seen, $3::bigint) + f.rest`

// FillLimits fills buckets up to a number of tokens.
func (s *Store) FillLimits(ctx context.Context, c store.FillLimits) error {
	keys, rests := make([]string, len(c.Fill)), make([]int64, len(c.Fill))
	for i, d := range c.Fill {
		keys[i], rests[i] = d.Key, d.Rate.Filled(store.Bucket{Full: time.Unix(0, math.MaxInt64)}, c.Now, d.Cost).Full.Sub(c.Now).Nanoseconds()
	}
	return s.change(ctx, &c.Change, target{users: []string{c.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		u := h.user(c.UserID)
		if u == nil {
			return nil, store.ErrNotFound
		}
		_, err := tx.Exec(ctx, s.sql(fillLimits), keys, rests, c.Now.UnixNano())
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
	return decide(draws, []level{before}, now), nil
}

// drawOne counts a call against a limit, and computes the earlier state from the new
// one.
const drawOne = `insert into auth.limits as l (key, tat, seen) values ($1::text, $2::bigint + $3::bigint, $2::bigint)
	on conflict (key) do update set tat = greatest(l.tat, $2::bigint) + $3::bigint, seen = greatest(l.seen, $2::bigint)
		where greatest(l.tat, $2::bigint) + $3::bigint - greatest(l.seen, $2::bigint) <= $4::bigint
	returning tat - $3::bigint, seen`

// drawnOut reads the state of a limit that refuses. A limit that has refunded calls
// since then refuses all the same.
const drawnOut = `select greatest(max(tat), greatest(max(seen), $2::bigint) + $3::bigint), greatest(max(seen), $2::bigint) from auth.limits where key = $1::text`

// drawOne returns the state of the limit before the call.
func (s *Store) drawOne(ctx context.Context, d draw) (before level, err error) {
	err = s.do(ctx, func(ctx context.Context, q querier) error {
		if d.drawn <= d.full {
			err := q.QueryRow(ctx, s.sql(drawOne), d.key, d.now, d.drawn, d.full).Scan(&before.tat, &before.seen)
			if !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
		}
		return q.QueryRow(ctx, s.sql(drawnOut), d.key, d.now, d.full-d.drawn+1).Scan(&before.tat, &before.seen)
	})
	return before, err
}

// drawMany counts calls against several limits. It leaves out limits that refuse, and
// rows that another transaction has locked or created meanwhile, so that no call waits
// for others. Postgres plans it once, usually while the table is almost empty and
// reading it whole looks cheap. So the statement is written such that each row can only
// be found by its key: an insert that conflicts finds it by the index.
const drawMany = `with d as (
		select * from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) with ordinality as d (key, now, drawn, whole, n) where d.drawn <= d.whole
	), held as materialized (
		select d.n, d.key, d.now, d.drawn, d.whole, greatest(l.tat, d.now) as before, greatest(l.seen, d.now) as seen
		from d cross join lateral (select l.tat, l.seen from auth.limits l where l.key = d.key for no key update of l skip locked) l
	), again as (
		insert into auth.limits (key, tat, seen) select key, before + drawn, seen from held where before + drawn - seen <= whole order by key
		on conflict (key) do update set tat = excluded.tat, seen = excluded.seen returning key
	), first as (
		insert into auth.limits (key, tat, seen) select d.key, d.now + d.drawn, d.now from d
		where not exists (select from auth.limits l where l.key = d.key offset 0) order by d.key
		on conflict (key) do nothing returning key
	)
	select n, before, seen from again join held using (key) union all select n, now, now from first join d using (key)`

// drawMany also leaves out all but one of several calls for one limit. Each call that
// is left out runs alone.
func (s *Store) drawMany(ctx context.Context, calls []*gather.Call[draw, level]) error {
	var keys []string
	var nows, drawn, fulls []int64
	var sent []*gather.Call[draw, level]
	for _, c := range calls {
		if d := &c.Arg; !slices.Contains(keys, d.key) {
			keys, nows, drawn, fulls, sent = append(keys, d.key), append(nows, d.now), append(drawn, d.drawn), append(fulls, d.full), append(sent, c)
		}
	}
	before := map[int]level{} // by the call's number, from one
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		clear(before)
		rows, err := q.Query(ctx, s.sql(drawMany), keys, nows, drawn, fulls)
		if err != nil {
			return err
		}
		var n int
		var was level
		_, err = pgx.ForEachRow(rows, []any{&n, &was.tat, &was.seen}, func() error {
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
func decide(draws []store.Draw, before []level, now time.Time) store.Decision {
	d := store.Decision{Allowed: true}
	buckets := make(map[string]store.Bucket, len(draws))
	for i, draw := range draws {
		b, ok := buckets[draw.Key]
		if !ok {
			b = before[i].bucket() //nolint:gosec // as long as draws
		}
		b, allowed, wait, remaining := draw.Rate.Apply(b, now, draw.Cost)
		if !allowed {
			d.Allowed, d.RetryAfter = false, max(d.RetryAfter, wait)
		}
		buckets[draw.Key] = b
		d.Remaining = append(d.Remaining, remaining)
	}
	if !d.Allowed { // nothing was counted
		for i, draw := range draws {
			_, _, _, d.Remaining[i] = draw.Rate.Apply(before[i].bucket(), now, 0) //nolint:gosec // as long as draws
		}
	}
	return d
}
