package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// listLive is the beginning of lists of sessions; each query adds only its own
// conditions.
const listLive = `select ` + sessionColumns + ` from auth.sessions s where s.revoked_at is null`

func sessionsQuery(q store.SessionQuery) *query {
	b := &query{}
	b.sql.WriteString(listLive)
	b.where(`least(s.idle_until, s.expires_at) > ?::timestamptz`, q.Now)
	for _, eq := range []struct{ condition, value string }{
		{`s.user_id = ?::uuid`, q.UserID}, {`s.ip = ?::text`, q.IP}, {`s.aal = ?::text`, q.AAL}, {`position(lower(?::text) in lower(s.user_agent)) > 0`, q.Client},
	} {
		if eq.value != "" {
			b.where(eq.condition, eq.value)
		}
	}
	if !q.Since.IsZero() {
		b.where(`s.created_at >= ?::timestamptz`, q.Since)
	}
	if !q.Before.IsZero() {
		b.where(`s.created_at < ?::timestamptz`, q.Before)
	}
	if c := q.After; c != nil {
		b.where(`(s.created_at, s.id) < (?::text::timestamptz, ?::uuid)`, c.Time.UTC().Format(time.RFC3339Nano), c.ID)
	}
	b.add(` order by s.created_at desc, s.id desc limit ?::integer`, q.Limit)
	return b
}

// ListSessions lists live sessions of all users.
func (s *Store) ListSessions(ctx context.Context, q store.SessionQuery) ([]store.Session, error) {
	b := sessionsQuery(q)
	var list []store.Session
	err := s.do(ctx, func(ctx context.Context, on querier) error {
		list = []store.Session{}
		rows, err := on.Query(ctx, s.sql(b.sql.String()), b.args...)
		if err != nil {
			return err
		}
		list, err = pgx.AppendRows(list, rows, func(row pgx.CollectableRow) (store.Session, error) {
			var r sessionRow
			if err := row.Scan(r.into()...); err != nil {
				return store.Session{}, err
			}
			return r.session()
		})
		return err
	})
	return list, err
}

const (
	// quietly keeps the trigger of sessions from notifying for each row, because
	// endEverySession notifies once for all.
	quietly = `select set_config('authmount.quietly', 'on', true)`

	tellEverybody = `with told as (insert into auth.revocations (everybody_until, spared) values ($1::timestamptz, $2::uuid))
		select auth.notify()`

	endEverySession = `with over as (
			select s.id from auth.sessions s
			where s.revoked_at is null and s.ordinal <= $2::bigint and least(s.idle_until, s.expires_at) > $1::timestamptz and s.id is distinct from $3::uuid
			order by s.created_at, s.id limit $4::integer for update
		)
		update auth.sessions s set revoked_at = $1::timestamptz from over where s.id = over.id`

	endEveryImpersonation = `update auth.impersonations i set ended_at = $1::timestamptz where i.ended_at is null`

	sessionOrder = `select case when o.is_called then o.last_value else 0 end from auth.sessions_ordinal_seq o`
)

// SessionOrder returns the number of the newest session.
func (s *Store) SessionOrder(ctx context.Context) (n int64, err error) {
	err = s.do(ctx, func(ctx context.Context, q querier) error { return q.QueryRow(ctx, s.sql(sessionOrder)).Scan(&n) })
	return n, err
}

// EndEverySession revokes sessions of all users. It disables the trigger only for its
// own statements, also in the application's transaction (InTx).
func (s *Store) EndEverySession(ctx context.Context, c store.EndEverySession) (int, error) {
	var ended int64
	spared, _ := canonical(c.Except)
	err := s.change(ctx, &c.Change, target{}, func(ctx context.Context, tx pgx.Tx, _ *held) (*result, error) {
		b := &pgx.Batch{}
		b.Queue(s.sql(tellEverybody), micro(c.At), orNull(spared))
		b.Queue(quietly)
		b.Queue(s.sql(endEverySession), c.Now, c.Until, orNull(spared), c.Limit).Exec(func(tag commandTag) error {
			ended = tag.RowsAffected()
			return nil
		})
		b.Queue(s.sql(endEveryImpersonation), c.Now)
		b.Queue(`select set_config('authmount.quietly', '', true)`)
		return &result{}, send(ctx, tx, b)
	})
	if err != nil {
		return 0, err
	}
	return int(ended), nil
}
