package memstore

import (
	"context"
	"slices"
	"strings"

	"github.com/authmount/auth/store"
)

// ListSessions scans all sessions, because memory is for tests and small services.
func (s *Store) ListSessions(ctx context.Context, q store.SessionQuery) ([]store.Session, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := []store.Session{}
	for _, sess := range s.sessions {
		if sess.liveAt(q.Now) && sess.picked(&q) && (q.After == nil || byAge(sess.CreatedAt, sess.ID, q.After.Time, q.After.ID) < 0) {
			list = append(list, copySession(sess.Session))
		}
	}
	slices.SortFunc(list, func(a, b store.Session) int { return byAge(b.CreatedAt, b.ID, a.CreatedAt, a.ID) })
	return slices.Clip(list[:min(len(list), q.Limit)]), nil
}

// picked reports whether a session matches all of a query except its place in the list.
func (s *session) picked(q *store.SessionQuery) bool {
	return (q.UserID == "" || s.UserID == q.UserID) && (q.IP == "" || s.IP == q.IP) && (q.AAL == "" || s.AAL == q.AAL) &&
		strings.Contains(strings.ToLower(s.UserAgent), strings.ToLower(q.Client)) &&
		!s.CreatedAt.Before(q.Since) && (q.Before.IsZero() || s.CreatedAt.Before(q.Before))
}

// SessionOrder returns the order of the newest session.
func (s *Store) SessionOrder(ctx context.Context) (int64, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return s.order, nil
}

// EndEverySession ends sessions of all users.
func (s *Store) EndEverySession(ctx context.Context, c store.EndEverySession) (ended int, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		return &effect{apply: func() error {
			for _, sess := range s.sessions {
				if ended < c.Limit && sess.liveAt(c.Now) && sess.ID != c.Except && sess.order <= c.Until {
					sess.revoked = true
					ended++
				}
			}
			for _, i := range s.impersonations {
				i.ended = true
			}
			return nil
		}}, nil
	})
	return ended, err
}
