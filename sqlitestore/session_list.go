package sqlitestore

import (
	"context"
	"slices"
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
	page := func(t *tx, after *store.SessionCursor, limit int) []store.Session {
		p := &query{b.sql, slices.Clone(b.args)}
		if after != nil {
			p.where(`(s.created_at, s.id) < (?, ?)`, micros(after.Time), after.ID)
		}
		p.end(` order by s.created_at desc, s.id desc limit ?`, limit)
		return list(t, scanPlainSession, p.sql, p.args...)
	}
	found := []store.Session{}
	err := s.patiently(ctx, func(t *tx) error {
		if q.Client == "" {
			found = page(t, q.After, q.Limit)
			return nil
		}
		// SQLite knows only the lower case of ASCII letters, so Go compares user agents.
		for after := q.After; ; {
			all := page(t, after, clientPage)
			for _, sess := range all {
				if strings.Contains(strings.ToLower(sess.UserAgent), strings.ToLower(q.Client)) {
					found = append(found, sess)
				}
				if len(found) == q.Limit {
					return nil
				}
			}
			if len(all) < clientPage {
				return nil
			}
			end := all[clientPage-1]
			after = &store.SessionCursor{Time: end.CreatedAt, ID: end.ID}
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// clientPage is the number of sessions that are read at once to compare their user agents.
const clientPage = 500

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
			last := value[int64](t, `select coalesce(max(n), 0) from auth_revocations`)
			ended = int(t.exec(`update auth_sessions set revoked = 1 where ordinal in (
				select ordinal from auth_sessions where revoked = 0 and ends_at > ? and id <> ? and ordinal <= ? limit ?)`, micros(c.Now), c.Except, c.Until, c.Limit))
			// One row tells other processes about all sessions.
			t.exec(`delete from auth_revocations where n > ?`, last)
			t.exec(`insert into auth_revocations (everybody_until, spared) values (?, ?)`, micros(c.At), c.Except)
			t.exec(`update auth_impersonations set ended = 1 where ended = 0`)
			return nil
		}}, nil
	})
	if err != nil {
		return 0, err
	}
	return ended, nil
}
