package storetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/authmount/auth"
)

type getThenAdvance struct{ auth.Store }

func (s getThenAdvance) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	sess, _, err := s.Session(ctx, a.SessionID, a.Now)
	if err != nil || a.Counter != sess.Counter {
		return s.Store.AdvanceSession(ctx, a)
	}
	yield()
	sess, u, err := s.Store.AdvanceSession(ctx, a)
	if err == nil && sess.Counter == a.Counter+1 { // somebody else's step may be among these: take another
		a.Counter++
		sess, u, err = s.Store.AdvanceSession(ctx, a)
	}
	return sess, u, err
}

type forgiving struct{ auth.Store }

func (s forgiving) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	if sess, u, err := s.Session(ctx, a.SessionID, a.Now); err == nil && a.Counter+1 < sess.Counter {
		return sess, u, auth.ErrReused
	}
	return s.Store.AdvanceSession(ctx, a)
}

type longGrace struct{ auth.Store }

func (s longGrace) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	if a.Grace > 0 {
		a.Grace += time.Microsecond
	}
	return s.Store.AdvanceSession(ctx, a)
}

type late struct{ auth.Store }

func (s late) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	return s.Store.Session(ctx, id, now.Add(-time.Microsecond))
}

type noRevoke struct{ auth.Store }

func (s noRevoke) RevokeSessions(ctx context.Context, userID string, f auth.SessionFilter, now time.Time) (int, error) {
	list, err := s.Sessions(ctx, userID, now)
	n := 0
	for _, sess := range list {
		if (f.ID == "" || f.ID == sess.ID) && f.Except != sess.ID {
			n++
		}
	}
	return n, err
}

type listsAll struct {
	auth.Store
	mu  sync.Mutex
	all []auth.Session
}

func (s *listsAll) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	s.mu.Lock()
	s.all = append([]auth.Session{n.Session}, s.all...)
	s.mu.Unlock()
	return s.Store.CreateSession(ctx, n)
}

func (s *listsAll) Sessions(context.Context, string, time.Time) ([]auth.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]auth.Session{}, s.all...), nil
}

type noBan struct{ auth.Store }

func (s noBan) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	u, err := s.Store.CreateSession(ctx, n)
	if errors.Is(err, auth.ErrBanned) {
		if _, err := s.UpdateUser(ctx, n.Session.UserID, auth.UserPatch{BannedUntil: &time.Time{}}, n.Session.CreatedAt); err != nil {
			return u, err
		}
		return s.Store.CreateSession(ctx, n)
	}
	return u, err
}

type noMFA struct{ auth.Store }

func (s noMFA) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	n.Session.AAL = auth.LevelAAL2
	return s.Store.CreateSession(ctx, n)
}

type noCondition struct{ auth.Store }

func (s noCondition) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	n.IfPasswordHash = nil
	return s.Store.CreateSession(ctx, n)
}

type signInRaises struct{ auth.Store }

func (s signInRaises) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	u, err := s.Store.CreateSession(ctx, n)
	if err == nil {
		_, err = s.UpdateUser(ctx, u.ID, auth.UserPatch{}, u.UpdatedAt)
	}
	return u, err
}

type refreshRaises struct{ auth.Store }

func (s refreshRaises) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	sess, u, err := s.Store.AdvanceSession(ctx, a)
	if err == nil {
		_, err = s.UpdateUser(ctx, u.ID, auth.UserPatch{}, u.UpdatedAt)
	}
	return sess, u, err
}

type signOutRaises struct{ auth.Store }

func (s signOutRaises) RevokeSessions(ctx context.Context, userID string, f auth.SessionFilter, now time.Time) (int, error) {
	n, err := s.Store.RevokeSessions(ctx, userID, f, now)
	if n > 0 {
		_, err = s.UpdateUser(ctx, userID, auth.UserPatch{}, now)
	}
	return n, err
}

type lowers struct{ auth.Store }

func (s lowers) AdvanceSession(ctx context.Context, a auth.Advance) (auth.Session, auth.User, error) {
	sess, u, err := s.Store.AdvanceSession(ctx, a)
	sess.AAL = auth.LevelAAL1
	return sess, u, err
}

type anyID struct{ auth.Store }

func (s anyID) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	u, err := s.Store.CreateSession(ctx, n)
	if errors.Is(err, auth.ErrConflict) {
		return s.User(ctx, auth.ByID(n.Session.UserID))
	}
	return u, err
}

type noRevision struct{ auth.Store }

func (s noRevision) CreateSession(ctx context.Context, n auth.NewSession) (auth.User, error) {
	n.IfRevision = nil
	return s.Store.CreateSession(ctx, n)
}

// slipping ends the sessions that were there when the patch began.
type slipping struct{ auth.Store }

func (s slipping) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	if p.Revoke == nil {
		return s.Store.UpdateUser(ctx, id, p, now)
	}
	if _, err := s.RevokeSessions(ctx, id, *p.Revoke, now); err != nil {
		return auth.User{}, err
	}
	yield()
	p.Revoke = nil
	return s.Store.UpdateUser(ctx, id, p, now)
}
