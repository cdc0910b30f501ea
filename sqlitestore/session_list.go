package sqlitestore

import (
	"context"
	"strings"

	"github.com/authmount/auth/store"
)

// ListSessions lists live sessions of all users, newest first.
func (s *Store) ListSessions(ctx context.Context, q store.SessionQuery) ([]store.Session, error) {
	b := &query{sql: selectSessions + ` where s.revoked = 0`}
	b.where(`s.ends_at > ?`, micros(q.Now))
	b.same(`s.user_id`, q.UserID)
	b.same(`s.ip`, q.IP)
	b.same(`s.aal`, q.AAL)
	b.within(`s.created_at`, q.Since, q.Before)
	if q.After != nil {
		b.where(`(s.created_at, s.id) < (?, ?)`, micros(q.After.Time), q.After.ID)
	}
	const order = ` order by s.created_at desc, s.id desc`
	if q.Client == "" {
		b.end(order+` limit ?`, q.Limit)
		return listed(ctx, s, b, scanPlainSession)
	}
	// SQLite knows only the lower case of ASCII letters, so Go compares user agents.
	b.end(order)
	found := []store.Session{}
	err := s.patiently(ctx, func(t *tx) error {
		for _, sess := range list(t, scanPlainSession, b.sql, b.args...) {
			if len(found) < q.Limit && strings.Contains(strings.ToLower(sess.UserAgent), strings.ToLower(q.Client)) {
				found = append(found, sess)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// SessionOrder returns the order of the newest session.
func (s *Store) SessionOrder(ctx context.Context) (order int64, err error) {
	err = s.read(ctx, func(t *tx) error {
		order = value[int64](t, `select seq from sqlite_sequence where name = 'auth_sessions'`)
		return nil
	})
	return order, err
}

// EndEverySession ends sessions of all users.
func (s *Store) EndEverySession(ctx context.Context, c store.EndEverySession) (ended int, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		return &effect{apply: func() error {
			ended = int(t.exec(`update auth_sessions set revoked = 1 where ordinal in (
				select ordinal from auth_sessions where revoked = 0 and ends_at > ? and id <> ? and ordinal <= ? limit ?)`, micros(c.Now), c.Except, c.Until, c.Limit))
			t.exec(`update auth_impersonations set ended = 1 where ended = 0`)
			return nil
		}}, nil
	})
	if err != nil {
		return 0, err
	}
	return ended, nil
}
