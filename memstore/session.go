package memstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth"
)

// CreateSession adds a session.
func (s *Store) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.User{}, err
	}
	defer unlock()
	u := s.users[n.Session.UserID]
	switch {
	case u == nil:
		return auth.User{}, auth.ErrNotFound
	case u.Banned(n.Session.CreatedAt):
		return auth.User{}, auth.ErrBanned
	case u.MFAEnabled && n.Session.AAL != auth.LevelAAL2:
		return auth.User{}, auth.ErrMFARequired
	case n.IfPasswordHash != nil && *n.IfPasswordHash != u.hash, n.IfRevision != nil && *n.IfRevision != u.Revision:
		return auth.User{}, auth.ErrStale
	case s.sessions[n.Session.ID] != nil:
		return auth.User{}, &auth.ConflictError{Field: "id"}
	}
	s.addSession(u, n.Session)
	return copyUser(u.User), nil
}

func (s *Store) addSession(u *user, sess auth.Session) {
	s.sessions[sess.ID] = &session{Session: copySession(sess)}
	u.sessions[sess.ID] = true
	u.LastSignInAt = sess.CreatedAt
}

// get finds a live session whose user is not banned.
func (s *Store) get(id string, now time.Time) (*session, *user, error) {
	sess := s.sessions[id]
	if sess == nil {
		return nil, nil, auth.ErrNotFound
	}
	u := s.users[sess.UserID]
	switch {
	case u.Banned(now):
		return sess, u, auth.ErrBanned
	case !sess.liveAt(now):
		return sess, u, auth.ErrSessionEnded
	}
	return sess, u, nil
}

func (s *session) liveAt(now time.Time) bool { return !s.revoked && now.Before(s.End()) }

// Session reads a session with its user.
func (s *Store) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.Session{}, auth.User{}, err
	}
	defer unlock()
	sess, u, err := s.get(id, now)
	if err != nil {
		return auth.Session{}, auth.User{}, err
	}
	return copySession(sess.Session), copyUser(u.User), nil
}

// AdvanceSession moves the counter of a session on.
func (s *Store) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.Session{}, auth.User{}, err
	}
	defer unlock()
	sess, u, err := s.get(a.SessionID, a.Now)
	if err != nil {
		return auth.Session{}, auth.User{}, err
	}
	switch {
	case a.Counter == sess.Counter:
		sess.Counter++
		sess.RotatedAt, sess.LastActiveAt, sess.IdleUntil = a.Now, a.Now, a.IdleUntil
		if a.IP != "" {
			sess.IP = a.IP
		}
		if a.UserAgent != "" {
			sess.UserAgent = a.UserAgent
		}
	case a.Counter > sess.Counter:
		err = auth.ErrSessionEnded
	case a.Counter+1 == sess.Counter && a.Now.Before(sess.RotatedAt.Add(a.Grace)):
	default:
		sess.revoked, err = true, auth.ErrReused
	}
	return copySession(sess.Session), copyUser(u.User), err
}

// Sessions lists a user's live sessions, newest first.
func (s *Store) Sessions(ctx context.Context, userID string, now time.Time) ([]auth.Session, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := []auth.Session{}
	if u := s.users[userID]; u != nil {
		for id := range u.sessions {
			if sess := s.sessions[id]; sess.liveAt(now) {
				list = append(list, copySession(sess.Session))
			}
		}
	}
	slices.SortFunc(list, func(a, b auth.Session) int {
		if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(b.ID, a.ID)
	})
	return list, nil
}

// RevokeSessions ends a user's live sessions that match.
func (s *Store) RevokeSessions(ctx context.Context, userID string, f auth.SessionFilter, now time.Time) (int, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	u := s.users[userID]
	if u == nil {
		return 0, nil
	}
	return s.revoke(u, f, now), nil
}

func (s *Store) revoke(u *user, f auth.SessionFilter, now time.Time) int {
	n := 0
	for id := range u.sessions {
		sess := s.sessions[id]
		if sess.liveAt(now) && (f.ID == "" || f.ID == id) && f.Except != id {
			sess.revoked = true
			n++
		}
	}
	return n
}
