package pgstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth"
)

func insertSession(st *statement, n auth.Session, from string) string {
	return `insert into auth.sessions (id, user_id, counter, rotated_at, aal, amr, created_at, last_active_at, idle_until, expires_at, ip, user_agent) select ` +
		strings.Join([]string{
			st.arg(n.ID, "uuid"), from + ".id", st.arg(int64(n.Counter), "bigint"), st.arg(n.RotatedAt, "timestamptz"), st.arg(n.AAL, "text"), st.arg(proofs(n.AMR), "jsonb"),
			st.arg(n.CreatedAt, "timestamptz"), st.arg(n.LastActiveAt, "timestamptz"), st.arg(n.IdleUntil, "timestamptz"), st.arg(orNull(n.ExpiresAt), "timestamptz"),
			st.arg(n.IP, "text"), st.arg(n.UserAgent, "text"),
		}, ", ") + " from " + from
}

// CreateSession adds a session.
func (s *Store) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	st := &statement{}
	sess := n.Session
	created := st.arg(sess.CreatedAt, "timestamptz")
	where := "u.id = " + st.arg(sess.UserID, "uuid") + " and (u.banned_until is null or u.banned_until <= " + created + ")"
	if sess.AAL != auth.LevelAAL2 {
		where += " and not u.mfa_enabled"
	}
	if n.IfRevision != nil {
		where += " and u.revision = " + st.arg(*n.IfRevision, "bigint")
	}
	if n.IfPasswordHash != nil {
		where += " and u.password_hash = " + st.arg(*n.IfPasswordHash, "text")
	}
	st.with("u", "update auth.users u set last_sign_in_at = "+created+" where "+where+" returning u.*")
	st.with("ses", insertSession(st, sess, "u"))
	text := s.sql(st.text("select " + userColumns + " from u"))
	var u auth.User
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		var r userRow
		err := q.QueryRow(ctx, text, st.args...).Scan(r.into()...)
		if errors.Is(err, pgx.ErrNoRows) {
			return s.whyNoSession(ctx, q, sess)
		}
		if err == nil {
			u, err = r.user()
		}
		return err
	})
	return u, err
}

// whyNoSession tells why a user got no session.
func (s *Store) whyNoSession(ctx context.Context, q querier, sess auth.Session) error {
	var banned, mfa bool
	err := q.QueryRow(ctx, s.sql("select coalesce(banned_until > $2::timestamptz, false), mfa_enabled from auth.users where id = $1::uuid"), sess.UserID, sess.CreatedAt).Scan(&banned, &mfa)
	switch {
	case err != nil:
		return err
	case banned:
		return auth.ErrBanned
	case mfa && sess.AAL != auth.LevelAAL2:
		return auth.ErrMFARequired
	}
	return auth.ErrStale
}

// sessionUser receives a session and its user.
type sessionUser struct {
	sess sessionRow
	user userRow
}

func (r *sessionUser) into(withClaims bool) []any {
	if withClaims {
		return r.sess.andUser(&r.user, &r.user.claims)
	}
	return r.sess.andUser(&r.user)
}

func (r *sessionUser) both() (auth.Session, auth.User, error) { return r.sess.both(&r.user) }

// Session reads a session with its user. Calls at the same time share statements.
func (s *Store) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	r, err := gathered(ctx, s, &s.reads, id, id)
	if err != nil {
		return auth.Session{}, auth.User{}, err
	}
	if r == nil {
		return auth.Session{}, auth.User{}, auth.ErrNotFound
	}
	sess, u, err := r.both()
	switch {
	case err != nil:
	case u.Banned(now):
		err = auth.ErrBanned
	case r.sess.ended.Valid || !now.Before(sess.End()):
		err = auth.ErrSessionEnded
	}
	if err != nil {
		return auth.Session{}, auth.User{}, err
	}
	return sess, u, nil
}

// Arrays behind a select of their own do not tempt Postgres to plan anew for
// each length.
const (
	oneRead  = "select " + sessionColumns + ", " + userFacts + " from auth.sessions s join auth.users u on u.id = s.user_id where s.id = $1::uuid"
	manyRead = "select r.n, " + sessionColumns + ", " + userFacts + ` from unnest((select $1::uuid[])) with ordinality r (id, n)
		join auth.sessions s on s.id = r.id join auth.users u on u.id = s.user_id`
)

func (s *Store) readOne(ctx context.Context, id string) (*sessionUser, error) {
	return s.find(ctx, false, s.sql(oneRead), id)
}

func (s *Store) readMany(ctx context.Context, calls []*call[string, sessionUser]) error {
	ids := make([]pgtype.UUID, len(calls))
	for i, c := range calls {
		ids[i] = idOf(c.arg)
	}
	return findAll(ctx, s, calls, false, manyRead, ids)
}

// AdvanceSession moves the counter of a session on. The update judges the
// counter as it is once the row is locked, so that of parallel calls one moves
// it and the others see it moved. Calls at the same time share statements.
func (s *Store) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	r, err := gathered(ctx, s, &s.advances, a, a.SessionID)
	if err != nil {
		return auth.Session{}, auth.User{}, err
	}
	if r == nil {
		return auth.Session{}, auth.User{}, s.whyNotLive(ctx, a.SessionID, a.Now)
	}
	sess, u, err := r.both()
	switch {
	case err != nil:
	case r.sess.ended.Valid:
		err = auth.ErrReused
	case sess.Counter <= a.Counter: // from the future
		err = auth.ErrSessionEnded
	}
	return sess, u, err
}

// advance moves a session on for each row of r. What ends a session needs no
// claims, which could fail and undo it.
func advance(r, returning string) string {
	return `update auth.sessions s set
			counter = case when s.counter = r.counter then s.counter + 1 else s.counter end,
			rotated_at = case when s.counter = r.counter then r.now else s.rotated_at end,
			last_active_at = case when s.counter = r.counter then r.now else s.last_active_at end,
			idle_until = case when s.counter = r.counter then r.idle_until else s.idle_until end,
			ip = case when s.counter = r.counter and r.ip <> '' then r.ip else s.ip end,
			user_agent = case when s.counter = r.counter and r.user_agent <> '' then r.user_agent else s.user_agent end,
			revoked_at = case when s.counter > r.counter and not (s.counter = r.counter + 1 and r.graced < s.rotated_at) then r.now end
		from ` + r + ` r, auth.users u
		where s.id = r.id and u.id = s.user_id and s.revoked_at is null and least(s.idle_until, s.expires_at) > r.now
			and (u.banned_until is null or u.banned_until <= r.now)
		returning ` + returning + sessionColumns + ", " + userFacts + ", case when s.revoked_at is null then " + claimsColumn + " end"
}

var (
	oneAdvance = advance(`(select $1::uuid as id, $2::bigint as counter, $3::timestamptz as now, $4::timestamptz as graced,
		$5::timestamptz as idle_until, $6::text as ip, $7::text as user_agent)`, "")
	// A session whose row somebody else has locked keeps nobody waiting.
	manyAdvance = `with free as materialized (
			select r.* from unnest((select $1::uuid[]), (select $2::bigint[]), (select $3::timestamptz[]), (select $4::timestamptz[]),
				(select $5::timestamptz[]), (select $6::text[]), (select $7::text[])) with ordinality r (id, counter, now, graced, idle_until, ip, user_agent, n)
			join auth.sessions s on s.id = r.id for no key update of s skip locked
		) ` + advance("free", "r.n, ")
)

func (s *Store) advanceOne(ctx context.Context, a auth.Advance) (*sessionUser, error) {
	return s.find(ctx, true, s.sql(oneAdvance), a.SessionID, int64(a.Counter), a.Now, a.Now.Add(-a.Grace), a.IdleUntil, a.IP, a.UserAgent)
}

// advanceMany finds no row for a session that is not live, and for one whose row
// is locked. Each of them is then done alone, which tells which it is.
func (s *Store) advanceMany(ctx context.Context, calls []*call[auth.Advance, sessionUser]) error {
	n := len(calls)
	ids, counters, ips, agents := make([]pgtype.UUID, n), make([]int64, n), make([]string, n), make([]string, n)
	nows, graced, idle := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n)
	for i, c := range calls {
		a := &c.arg
		ids[i], counters[i], ips[i], agents[i] = idOf(a.SessionID), int64(a.Counter), a.IP, a.UserAgent
		nows[i], graced[i], idle[i] = a.Now, a.Now.Add(-a.Grace), a.IdleUntil
	}
	return findAll(ctx, s, calls, true, manyAdvance, ids, counters, nows, graced, idle, ips, agents)
}

// gathered makes a call about a session, with others unless the context carries
// a transaction.
func gathered[A any](ctx context.Context, s *Store, g *gather[A, sessionUser], arg A, id string) (*sessionUser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := uuid.Validate(id); err != nil {
		return nil, auth.ErrNotFound // no id of ours
	}
	if Tx(ctx) != nil {
		return g.one(ctx, arg)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return g.do(ctx, arg)
}

// find answers a session and its user, or nil.
func (s *Store) find(ctx context.Context, withClaims bool, sql string, args ...any) (*sessionUser, error) {
	r := &sessionUser{}
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		err := q.QueryRow(ctx, sql, args...).Scan(r.into(withClaims)...)
		if errors.Is(err, pgx.ErrNoRows) {
			r, err = nil, nil
		}
		return err
	})
	return r, err
}

// findAll gives each call its session and user, if there are any. The first
// column is the call's number.
func findAll[A any](ctx context.Context, s *Store, calls []*call[A, sessionUser], withClaims bool, sql string, args ...any) error {
	found := make([]*sessionUser, len(calls))
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		clear(found)
		rows, err := q.Query(ctx, s.sql(sql), args...)
		if err != nil {
			return err
		}
		var n int
		var r sessionUser
		_, err = pgx.ForEachRow(rows, append([]any{&n}, r.into(withClaims)...), func() error {
			row := r
			found[n-1] = &row
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	for i, c := range calls {
		c.result = found[i]
	}
	return nil
}

func idOf(s string) pgtype.UUID {
	id, err := uuid.Parse(s)
	return pgtype.UUID{Bytes: id, Valid: err == nil}
}

// whyNotLive tells why a session was not live.
func (s *Store) whyNotLive(ctx context.Context, id string, now time.Time) error {
	if _, _, err := s.Session(ctx, id, now); err != nil {
		return err
	}
	return auth.ErrSessionEnded // it was not live a moment ago
}

// Sessions lists a user's live sessions, newest first.
func (s *Store) Sessions(ctx context.Context, userID string, now time.Time) ([]auth.Session, error) {
	var list []auth.Session
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		list = []auth.Session{}
		rows, err := q.Query(ctx, s.sql("select "+sessionColumns+" from auth.sessions s where s.user_id = $1::uuid and s.revoked_at is null and least(s.idle_until, s.expires_at) > $2::timestamptz order by s.created_at desc, s.id desc"), userID, now)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r sessionRow
			if err := rows.Scan(r.into()...); err != nil {
				return err
			}
			sess, err := r.session()
			if err != nil {
				return err
			}
			list = append(list, sess)
		}
		return rows.Err()
	})
	if errors.Is(err, auth.ErrNotFound) { // no id of ours
		return []auth.Session{}, nil
	}
	return list, err
}

// revoke is the part that ends sessions of a user; from, if not empty, names the
// part that the user comes from.
func revoke(st *statement, f auth.SessionFilter, now time.Time, user, from string) string {
	at := st.arg(now, "timestamptz")
	text := "update auth.sessions s set revoked_at = " + at
	if from != "" {
		text += " from " + from
	}
	text += " where s.user_id = " + user + " and s.revoked_at is null and least(s.idle_until, s.expires_at) > " + at
	if f.ID != "" {
		text += " and s.id = " + st.arg(f.ID, "uuid")
	}
	if f.Except != "" {
		text += " and s.id <> " + st.arg(f.Except, "uuid")
	}
	return text
}

// RevokeSessions ends a user's live sessions that match.
func (s *Store) RevokeSessions(ctx context.Context, userID string, f auth.SessionFilter, now time.Time) (int, error) {
	st := &statement{}
	st.with("who", lockUser(st.arg(userID, "uuid"))) // so that no two end a user's sessions in different orders
	text := st.text(revoke(st, f, now, "(select id from who)", ""))
	n := 0
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		tag, err := q.Exec(ctx, s.sql(text), st.args...)
		n = int(tag.RowsAffected())
		return err
	})
	if errors.Is(err, auth.ErrNotFound) { // no id of ours
		return 0, nil
	}
	return n, err
}
