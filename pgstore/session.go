package pgstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

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

// Session reads a session with its user.
func (s *Store) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	var sess auth.Session
	var u auth.User
	err := s.do(ctx, func(ctx context.Context, q querier) (err error) {
		var sr sessionRow
		var ur userRow
		row := q.QueryRow(ctx, s.sql("select "+sessionColumns+", "+userFacts+" from auth.sessions s join auth.users u on u.id = s.user_id where s.id = $1::uuid"), id)
		if err = row.Scan(sr.andUser(&ur)...); err != nil {
			return err
		}
		if sess, u, err = sr.both(&ur); err != nil {
			return err
		}
		switch {
		case u.Banned(now):
			return auth.ErrBanned
		case sr.ended.Valid || !now.Before(sess.End()):
			return auth.ErrSessionEnded
		}
		return nil
	})
	if err != nil {
		return auth.Session{}, auth.User{}, err
	}
	return sess, u, nil
}

// AdvanceSession moves the counter of a session on. The update judges the
// counter as it is once the row is locked, so that of parallel calls one moves
// it and the others see it moved.
func (s *Store) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	text := s.sql(`
		update auth.sessions s set
			counter = case when s.counter = $2::bigint then s.counter + 1 else s.counter end,
			rotated_at = case when s.counter = $2::bigint then $3::timestamptz else s.rotated_at end,
			last_active_at = case when s.counter = $2::bigint then $3::timestamptz else s.last_active_at end,
			idle_until = case when s.counter = $2::bigint then $5::timestamptz else s.idle_until end,
			ip = case when s.counter = $2::bigint and $6::text <> '' then $6::text else s.ip end,
			user_agent = case when s.counter = $2::bigint and $7::text <> '' then $7::text else s.user_agent end,
			revoked_at = case when s.counter > $2::bigint and not (s.counter = $2::bigint + 1 and $3::timestamptz < s.rotated_at + $4::interval) then $3::timestamptz end
		from auth.users u
		where s.id = $1::uuid and u.id = s.user_id and s.revoked_at is null and least(s.idle_until, s.expires_at) > $3::timestamptz
			and (u.banned_until is null or u.banned_until <= $3::timestamptz)
		returning ` + sessionColumns + ", " + userFacts + ", " + claimsColumn)
	var sess auth.Session
	var u auth.User
	err := s.do(ctx, func(ctx context.Context, q querier) (err error) {
		var sr sessionRow
		var ur userRow
		err = q.QueryRow(ctx, text, a.SessionID, int64(a.Counter), a.Now, a.Grace, a.IdleUntil, a.IP, a.UserAgent).Scan(sr.andUser(&ur, &ur.claims)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return errNotLive
		}
		if err != nil {
			return err
		}
		if sess, u, err = sr.both(&ur); err != nil {
			return err
		}
		switch {
		case sr.ended.Valid:
			return errReused
		case sess.Counter <= a.Counter: // from the future
			return auth.ErrSessionEnded
		}
		return nil
	})
	switch {
	case errors.Is(err, errNotLive):
		return auth.Session{}, auth.User{}, s.whyNotLive(ctx, a.SessionID, a.Now)
	case errors.Is(err, errReused):
		err = auth.ErrReused
	}
	return sess, u, err
}

var (
	errNotLive = errors.New("pgstore: no live session")
	errReused  = &counted{"refresh token reused"}
)

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
