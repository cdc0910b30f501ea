package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/gather"
)

// Refresh. The statement has three parts: what is asked (of one session or of
// many), the rows as they are once they are locked, and what is written. A
// session that somebody else has locked is left out, so that the statement waits
// for nobody and sees the session and its user as they are at one instant; a
// transaction does that one. What ends a session needs no claims, which could
// fail and undo it.
const (
	advanceOne = `with asked as materialized (
		select 1 as n, $1::uuid as id, $2::bigint as counter, $3::timestamptz as now, $4::timestamptz as graced, $5::timestamptz as idle_until,
			$6::text as ip, $7::text as user_agent, $8::jsonb as events
	), ` + advanced

	advanceMany = `with asked as materialized (
		select r.n, r.id, r.counter, r.now, r.graced, r.idle_until, r.ip, r.user_agent, r.events
		from unnest((select $1::uuid[]), (select $2::bigint[]), (select $3::timestamptz[]), (select $4::timestamptz[]), (select $5::timestamptz[]),
			(select $6::text[]), (select $7::text[]), (select $8::jsonb[])) with ordinality r (id, counter, now, graced, idle_until, ip, user_agent, events, n)
	), ` + advanced

	advanced = `free as materialized (
		select a.*, s.user_id, case
			when s.counter = a.counter then 0
			when s.counter < a.counter then -2
			when s.counter = a.counter + 1 and a.graced < s.rotated_at then -1
			else 2 end as outcome
		from asked a join auth.sessions s on s.id = a.id
		where s.revoked_at is null and least(s.idle_until, s.expires_at) > a.now
		for no key update of s skip locked
	), moved as (
		update auth.sessions s set
			counter = case when f.outcome = 0 then s.counter + 1 else s.counter end,
			rotated_at = case when f.outcome = 0 then f.now else s.rotated_at end,
			last_active_at = case when f.outcome = 0 then f.now else s.last_active_at end,
			idle_until = case when f.outcome = 0 then f.idle_until else s.idle_until end,
			ip = case when f.outcome = 0 and f.ip <> '' then f.ip else s.ip end,
			user_agent = case when f.outcome = 0 and f.user_agent <> '' then f.user_agent else s.user_agent end,
			revoked_at = case when f.outcome = 2 then f.now end
		from free f, auth.users u
		where s.id = f.id and u.id = f.user_id and (u.banned_until is null or u.banned_until <= f.now)
		returning f.n, f.outcome, ` + sessionColumns + `, ` + userFacts + `, case when f.outcome <> 2 then ` + claimsColumn + ` end
	), events as (
		insert into auth.events (id, type, at, user_id, session_id, data)
		select e.id, e.type, e.at, coalesce(e.user_id, f.user_id), e.session_id, e.data
		from moved m join free f on f.n = m.n, jsonb_to_recordset(f.events) as ` + eventRecord + ` where e."on" = f.outcome
		on conflict (id) do nothing
	)
	select * from moved`
)

// Outcomes of the statement that are none of a change's.
const (
	withinGrace = -1 // nothing changed
	fromFuture  = -2 // nothing changed, and nothing will
)

// advance is one call.
type advance struct {
	id        string
	counter   uint32
	now       time.Time
	graced    time.Time // a counter that moved after this may come again
	idleUntil time.Time
	ip, agent string
	events    string
}

func (r *sessionUser) advanced() []any {
	return append([]any{&r.outcome}, r.sess.andUser(&r.user, &r.user.claims)...)
}

// AdvanceSession moves the counter of a session on. Calls at the same time share
// statements.
func (s *Store) AdvanceSession(ctx context.Context, c auth.Advance) (auth.Session, auth.User, error) {
	if err := c.Check(); err != nil {
		return auth.Session{}, auth.User{}, err
	}
	a := advance{id: c.SessionID, counter: c.Counter, now: c.Now, graced: c.Now.Add(-c.Grace), idleUntil: c.IdleUntil, ip: c.IP, agent: c.UserAgent, events: none}
	if plain(&c.Change) && len(c.IfUsers) == 0 && len(c.Messages) == 0 {
		alone := a
		alone.events = eventsInput(c.Events)
		r, err := gathered(ctx, s, s.advances, s.advanceOne, alone, a.id)
		if err != nil {
			return auth.Session{}, auth.User{}, err
		}
		if r != nil && r.outcome != fromFuture {
			sess, u, err := r.both()
			if err == nil && r.outcome == int(auth.OutcomeReused) {
				err = auth.ErrReused
			}
			return sess, u, err
		}
	}
	var sess auth.Session
	var u auth.User
	err := s.change(ctx, &c.Change, target{sessions: []string{c.SessionID}}, func(ctx context.Context, _ pgx.Tx, h *held) (*result, error) {
		found, of, err := h.liveSession(c.SessionID, c.Now)
		if err != nil {
			return nil, err
		}
		if int64(c.Counter) > found.counter {
			return nil, auth.ErrSessionEnded
		}
		one, err := s.advanceOne(ctx, a) // in this transaction, which holds the locks
		if err == nil && one == nil {
			err = errMoved
		}
		if err != nil {
			return nil, err
		}
		r := &result{about: of.id, noChange: one.outcome == withinGrace}
		if one.outcome == int(auth.OutcomeReused) {
			r.outcome, r.refusal = auth.OutcomeReused, auth.ErrReused
		}
		sess, u, err = one.both()
		return r, err
	})
	if err != nil && !errors.Is(err, auth.ErrReused) {
		return auth.Session{}, auth.User{}, err
	}
	return sess, u, err
}

func (s *Store) advanceOne(ctx context.Context, a advance) (*sessionUser, error) {
	var n int
	return s.find(ctx, advanceOne, []any{a.id, int64(a.counter), a.now, a.graced, a.idleUntil, a.ip, a.agent, a.events},
		func(r *sessionUser) []any { return append([]any{&n}, r.advanced()...) })
}

// advanceMany finds no row for a session that is not live, and for one whose row
// is locked. Each of them is then done alone, which tells which it is.
func (s *Store) advanceMany(ctx context.Context, calls []*gather.Call[advance, *sessionUser]) error {
	n := len(calls)
	ids, counters, ips, agents, events := make([]pgtype.UUID, n), make([]int64, n), make([]string, n), make([]string, n), make([]string, n)
	nows, graced, idle := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n)
	for i, c := range calls {
		a := &c.Arg
		ids[i], counters[i], ips[i], agents[i], events[i] = idOf(a.id), int64(a.counter), a.ip, a.agent, a.events
		nows[i], graced[i], idle[i] = a.now, a.graced, a.idleUntil
	}
	found, err := s.findAll(ctx, n, advanceMany, []any{ids, counters, nows, graced, idle, ips, agents, events}, (*sessionUser).advanced)
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
