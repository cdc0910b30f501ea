package pgstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/internal/gather"
	"github.com/authmount/auth/store"
)

// The statement of a refresh handles the common cases: the counter advances, or nothing
// changes within the grace period and the client is the one that advanced it. It locks
// the session's row first, so that only one of several parallel calls advances the
// counter. It skips a row that another transaction has locked, so it never waits. It then
// updates the row only if the locked one equals the one that the rest of the statement
// reads, so that session and user are those of one instant. A transaction handles the
// remaining cases: reuse, a session that is not live, and a row that is locked or has just
// changed.
//
// The statement also counts the call against its rate limit, after the lock and only
// for rows that it will update, so that no call counts twice. If the limit refuses, the
// statement updates nothing. Calls share a statement if their limits differ only in
// bucket and time and their rules for second factors do not differ; other calls have a
// statement of their own.
const (
	advanceOne = `with free as materialized (
		select ` + asked + `
		from (select 1 as n, $1::uuid as id, $2::bigint as counter, $3::timestamptz as now, $4::timestamptz as graced, $5::timestamptz as idle_until,
			$6::text as ip, $7::text as user_agent, $12::text as device, $8::text as key, $9::bigint as at) a ` + advanced

	advanceMany = `with free as materialized (
		select ` + asked + `
		from unnest((select $1::uuid[]), (select $2::bigint[]), (select $3::timestamptz[]), (select $4::timestamptz[]), (select $5::timestamptz[]),
			(select $6::text[]), (select $7::text[]), (select $12::text[]), (select $8::text[]), (select $9::bigint[])) with ordinality a (id, counter, now, graced, idle_until, ip, user_agent, device, key, at, n) ` + advanced

	asked = `a.n, a.now, a.idle_until, a.ip, a.user_agent, a.device, a.key, a.at, s as was, s.user_id, s.counter = a.counter as moves,
		$13::bool is not null and s.counter = a.counter and s.aal <> 'aal2' as below`

	// The users whose sessions the statement updates (see store.FactorRule).
	admits = `(u.banned_until is null or u.banned_until <= f.now)
		and not (f.below and ($13::bool or u.roles && $14::text[] or u.app_metadata @> '{"mfa_required": true}'))`

	advanced = `join auth.sessions s on s.id = a.id
		where s.revoked_at is null and least(s.idle_until, s.expires_at) > a.now
			and (s.counter = a.counter or s.counter = a.counter + 1 and s.rotated_at > a.graced
				and ((a.ip, a.user_agent, a.device) = (s.ip, s.user_agent, s.rotated_device) or (a.ip, a.user_agent, a.device) = ('', '', '')))
		for no key update of s skip locked
	), drawn as (
		insert into auth.limits as l (key, tat, seen) select distinct on (f.key) f.key, f.at + $10::bigint, f.at from free f
			where f.key <> '' and exists (select from auth.sessions v where v.id = (f.was).id and v = f.was offset 0)
				and exists (select from auth.users u where u.id = f.user_id and ` + admits + ` offset 0)
			order by f.key
		on conflict (key) do update set tat = greatest(l.tat, excluded.seen) + $10::bigint, seen = greatest(l.seen, excluded.seen)
			where greatest(l.tat, excluded.seen) + $10::bigint - greatest(l.seen, excluded.seen) <= $11::bigint
		returning key
	)
	update auth.sessions s set
		counter = case when f.moves then s.counter + 1 else s.counter end,
		rotated_at = case when f.moves then f.now else s.rotated_at end,
		last_active_at = case when f.moves then f.now else s.last_active_at end,
		idle_until = case when f.moves then f.idle_until else s.idle_until end,
		ip = case when f.moves and f.ip <> '' then f.ip else s.ip end,
		user_agent = case when f.moves and f.user_agent <> '' then f.user_agent else s.user_agent end,
		rotated_device = case when f.moves and (f.ip, f.user_agent, f.device) <> ('', '', '') then f.device else s.rotated_device end
	from free f join auth.users u on u.id = f.user_id
	where s.id = (f.was).id and s = f.was and ` + admits + `
		and (f.key = '' or exists (select from drawn d where d.key = f.key))
	returning f.n, ` + sessionColumns + `, ` + userFacts + `, ` + claimsColumn
)

// advance holds the parameters of one call of the statement.
type advance struct {
	id        string
	counter   uint32
	now       time.Time
	graced    time.Time // the previous counter is accepted if the counter advanced after this
	idleUntil time.Time
	ip, agent string
	device    string
	draw      draw // without a key there is no rate limit
	factorFor *store.FactorRule
}

func (r *sessionUser) advanced() []any { return r.sess.andUser(&r.user, &r.user.claims) }

// AdvanceSession advances the counter of a session. Simultaneous calls share
// statements.
func (s *Store) AdvanceSession(ctx context.Context, c store.Advance) (store.Session, store.User, error) {
	if err := c.Check(); err != nil {
		return store.Session{}, store.User{}, err
	}
	b, done, err := s.bound(ctx)
	if err != nil {
		return store.Session{}, store.User{}, err
	}
	defer done()
	a := advance{id: c.SessionID, counter: c.Counter, now: c.Now, graced: c.Now.Add(-c.Grace), idleUntil: c.IdleUntil, ip: c.IP, agent: c.UserAgent, device: c.Device, factorFor: c.FactorFor}
	draws := c.Draw.Rate.Burst > 0 && c.Draw.Rate.Per > 0
	if draws {
		a.draw = drawOf(c.Draw, c.Now)
	}
	if alone := draws && (c.Draw.Cost <= 0 || a.draw.drawn > a.draw.full); !alone && plain(&c.Change) && len(c.IfUsers) == 0 && len(c.Messages) == 0 && !slices.ContainsFunc(c.Events, whenDone) {
		r, err := gathered(b, s, s.advances, s.advanceOne, a, a.id)
		if err != nil {
			return store.Session{}, store.User{}, err
		}
		if r != nil {
			return r.both()
		}
	}
	if err := c.DrawFirst(b, s.Take); err != nil {
		return store.Session{}, store.User{}, err
	}
	a.draw, a.factorFor = draw{}, nil
	var sess store.Session
	var u store.User
	var other *store.Client
	err = s.change(b, &c.Change, target{sessions: []string{c.SessionID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		found, of, err := h.liveSession(c.SessionID, c.Now)
		if err != nil {
			return nil, err
		}
		if found.counter < int64(c.Counter) {
			return nil, store.ErrSessionEnded
		}
		r := &result{about: of.id}
		other = nil
		if found.counter > int64(c.Counter) {
			outcome, err := s.repeats(ctx, tx, found, &c)
			if err != nil {
				return nil, err
			}
			switch outcome {
			case store.OutcomeDone:
				r.noChange = true
			case store.OutcomeReplayed:
				who := found.s.Client()
				other = &who
				r.outcome, r.other = store.OutcomeReplayed, other
			default:
				sess, u, err = s.endReused(ctx, tx, found, c.Now)
				return &result{about: of.id, outcome: store.OutcomeReused, refusal: store.ErrReused}, err
			}
			b := &pgx.Batch{}
			s.queueSession(b, found.s.ID, &sess, &u)
			return r, send(ctx, tx, b)
		}
		if c.FactorFor != nil {
			var u store.User
			b := &pgx.Batch{}
			s.queueUser(b, selectUserAsKept, of.id, &u)
			if err := send(ctx, tx, b); err != nil {
				return nil, err
			}
			before, err := found.session()
			if err != nil {
				return nil, err
			}
			if c.NeedsFactor(before, u) {
				return nil, store.ErrMFARequired
			}
		}
		one, err := s.advance(ctx, tx, a) // its own transaction's locks do not make the statement skip the row
		if err == nil && one == nil {
			err = errMoved
		}
		if err != nil {
			return nil, err
		}
		sess, u, err = one.both()
		return r, err
	})
	if err != nil && !errors.Is(err, store.ErrReused) {
		return store.Session{}, store.User{}, err
	}
	if err == nil && other != nil && c.Replayed != nil {
		c.Replayed(*other)
	}
	return sess, u, err
}

// repeats decides on an outdated counter of a locked session, and records that.
func (s *Store) repeats(ctx context.Context, tx pgx.Tx, found *sessionRow, c *store.Advance) (store.Outcome, error) {
	sess, err := found.session()
	if err != nil {
		return 0, err
	}
	var r store.Rotation
	var replayed pgtype.Timestamptz
	err = tx.QueryRow(ctx, s.sql(`select rotated_device, replayed_at, replayed_counter, strayed_counter, strays from auth.sessions where id = $1::uuid`), sess.ID).
		Scan(&r.Device, &replayed, &r.Replayed, &r.StrayedAt, &r.Strays)
	if err != nil {
		return 0, err
	}
	r.ReplayedAt = at(replayed)
	before := r
	outcome := r.Repeats(&sess, c)
	if r != before {
		_, err = tx.Exec(ctx, s.sql(`update auth.sessions set replayed_at = $2, replayed_counter = $3, strayed_counter = $4, strays = $5 where id = $1::uuid`),
			sess.ID, pgtype.Timestamptz{Time: r.ReplayedAt, Valid: !r.ReplayedAt.IsZero()}, r.Replayed, r.StrayedAt, r.Strays)
	}
	return outcome, err
}

func whenDone(e store.OutcomeEvent) bool { return e.On == store.OutcomeDone }

// endReused revokes a session that received an outdated counter. It does not call the
// claims function, because a failure of that would undo the revocation.
func (s *Store) endReused(ctx context.Context, tx pgx.Tx, found *sessionRow, now time.Time) (sess store.Session, u store.User, err error) {
	b := &pgx.Batch{}
	var ended []string
	s.queueRevoke(b, found.s.UserID, store.SessionFilter{ID: found.s.ID}, now, &ended)
	s.queueUser(b, selectUserAsKept, found.s.UserID, &u)
	if err := send(ctx, tx, b); err != nil {
		return store.Session{}, store.User{}, err
	}
	sess, err = found.session()
	return sess, u, err
}

func (s *Store) advanceOne(ctx context.Context, a advance) (r *sessionUser, err error) {
	err = s.do(ctx, func(ctx context.Context, q querier) error {
		r, err = s.advance(ctx, q, a)
		return err
	})
	return r, err
}

// rule returns factorFor as the statement takes it.
func (a *advance) rule() (everybody pgtype.Bool, roles []string) {
	if a.factorFor == nil {
		return everybody, nil
	}
	return pgtype.Bool{Bool: a.factorFor.Everybody, Valid: true}, append([]string{}, a.factorFor.Roles...) // null would make the condition null
}

func (a *advance) sameRule(b advance) bool {
	if a.factorFor == nil || b.factorFor == nil {
		return a.factorFor == b.factorFor
	}
	return a.factorFor.Everybody == b.factorFor.Everybody && slices.Equal(a.factorFor.Roles, b.factorFor.Roles)
}

// advance returns nil if the statement does not apply (see advanceOne).
func (s *Store) advance(ctx context.Context, q querier, a advance) (*sessionUser, error) {
	var n int
	r := &sessionUser{}
	everybody, roles := a.rule()
	row := q.QueryRow(ctx, s.sql(advanceOne), a.id, int64(a.counter), a.now, a.graced, a.idleUntil, a.ip, a.agent, a.draw.key, a.draw.now, a.draw.drawn, a.draw.full, a.device, everybody, roles)
	err := row.Scan(append([]any{&n}, r.advanced()...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // left out
	}
	return r, err
}

// advanceMany runs the statement for several calls. It finds no row for calls that the
// statement does not handle, for all but one of several calls for one session, and for
// calls with a rate limit or a rule for second factors unlike the first call's. Each of
// these then runs alone.
func (s *Store) advanceMany(ctx context.Context, calls []*gather.Call[advance, *sessionUser]) error {
	n := len(calls)
	ids, counters, ips, agents, devices := make([]pgtype.UUID, n), make([]int64, n), make([]string, n), make([]string, n), make([]string, n)
	keys, ats := make([]string, n), make([]int64, n)
	nows, graced, idle := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n)
	like := calls[0].Arg
	everybody, roles := like.rule()
	for i, c := range calls {
		a := &c.Arg
		if a.draw.drawn != like.draw.drawn || a.draw.full != like.draw.full || !a.sameRule(like) {
			continue // a null id finds nothing
		}
		keys[i], ats[i] = a.draw.key, a.draw.now
		ids[i], counters[i], ips[i], agents[i], devices[i] = idOf(a.id), int64(a.counter), a.ip, a.agent, a.device
		nows[i], graced[i], idle[i] = a.now, a.graced, a.idleUntil
	}
	found, err := s.findAll(ctx, n, advanceMany, []any{ids, counters, nows, graced, idle, ips, agents, keys, ats, like.draw.drawn, like.draw.full, devices, everybody, roles}, (*sessionUser).advanced)
	if err != nil {
		return err
	}
	for i, c := range calls {
		if found[i] != nil {
			c.Return(found[i])
		}
	}
	return nil
}
