package storetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

func sessionMutants() map[string]mutant {
	return map[string]mutant{
		"refresh is get, then put":        caught("refresh/parallel refreshes advance once", func(b base) store.Store { return getThenAdvance{b} }),
		"reuse does not revoke":           caught("refresh/reuse ends the session for good", func(b base) store.Store { return forgiving{b} }),
		"grace is a moment too long":      caught("refresh/the counter before returns the current session, within grace", func(b base) store.Store { return longGrace{b} }),
		"sessions end too late":           caught("sessions/expiry is exact", func(b base) store.Store { return late{b} }),
		"revocation is rolled back":       caught("sessions/revoking ends what matches and names it", func(b base) store.Store { return noRevoke{b} }),
		"revocation leaves the tokens":    caught("sessions/revoking removes the tokens that it names", func(b base) store.Store { return keepsTokens{b} }),
		"revocation names all":            caught("sessions/revoking ends what matches and names it", func(b base) store.Store { return namesAll{b} }),
		"ended sessions are listed":       caught("sessions/sessions are listed, newest first", func(b base) store.Store { return &listsAll{base: b} }),
		"bans are ignored at sign-in":     caught("sessions/a banned user gets no session", func(b base) store.Store { return noBan{b} }),
		"MFA is ignored at sign-in":       caught("factors/a second factor is not skipped", func(b base) store.Store { return noMFA{b} }),
		"sessions slip past a revocation": caught("sessions/no session outlives the patch that ends them all", func(b base) store.Store { return slipping{b} }),
		"sign-ins forget conditions": {
			edits(func(_ store.Store, c *store.Change) { c.IfUsers = nil }),
			[]string{"sessions/a session holds its revision", "sessions/a session holds its condition", "sessions/a login never outlives a password change"},
		},
		"sign-ins raise the revision":     caught("sessions/a session's life leaves its user alone", func(b base) store.Store { return signInRaises{b} }),
		"refreshes raise the revision":    caught("sessions/a session's life leaves its user alone", func(b base) store.Store { return refreshRaises{b} }),
		"sign-outs raise the revision":    caught("sessions/a session's life leaves its user alone", func(b base) store.Store { return signOutRaises{b} }),
		"refreshes forget second factors": caught("refresh/a session that lacks a required second factor does not advance", func(b base) store.Store { return factorless{b} }),
		"refreshes lower the level":       caught("refresh/refreshing moves the counter and the end", func(b base) store.Store { return lowers{b} }),
		"session ids are given again":     caught("sessions/a session id is given once", func(b base) store.Store { return anyID{b} }),
	}
}

type getThenAdvance struct{ base }

func (s getThenAdvance) AdvanceSession(ctx context.Context, a store.Advance) (store.Session, store.User, error) {
	sess, _, err := s.Session(ctx, a.SessionID, a.Now)
	if err != nil || a.Counter != sess.Counter {
		return s.Store.AdvanceSession(ctx, a)
	}
	pause()
	sess, u, err := s.Store.AdvanceSession(ctx, a)
	if err == nil && sess.Counter == a.Counter+1 { // another goroutine's step may be among these: take the next one
		a.Counter++
		sess, u, err = s.Store.AdvanceSession(ctx, a)
	}
	return sess, u, err
}

type factorless struct{ base }

func (s factorless) AdvanceSession(ctx context.Context, a store.Advance) (store.Session, store.User, error) {
	a.FactorFor = nil
	return s.Store.AdvanceSession(ctx, a)
}

type forgiving struct{ base }

func (s forgiving) AdvanceSession(ctx context.Context, a store.Advance) (store.Session, store.User, error) {
	if sess, u, err := s.Session(ctx, a.SessionID, a.Now); err == nil && a.Counter+1 < sess.Counter {
		return sess, u, store.ErrReused
	}
	return s.Store.AdvanceSession(ctx, a)
}

type longGrace struct{ base }

func (s longGrace) AdvanceSession(ctx context.Context, a store.Advance) (store.Session, store.User, error) {
	if a.Grace > 0 {
		a.Grace += time.Microsecond
	}
	return s.Store.AdvanceSession(ctx, a)
}

type late struct{ base }

func (s late) Session(ctx context.Context, id string, now time.Time) (store.Session, store.User, error) {
	return s.Store.Session(ctx, id, now.Add(-time.Microsecond))
}

type noRevoke struct{ base }

func (s noRevoke) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	list, err := s.Sessions(ctx, c.UserID, c.Now)
	var ids []string
	for _, sess := range list {
		if (c.Filter.ID == "" || c.Filter.ID == sess.ID) && c.Filter.Except != sess.ID {
			ids = append(ids, sess.ID)
		}
	}
	return ids, err
}

type keepsTokens struct{ base }

func (s keepsTokens) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	c.DropTokens = nil
	return s.Store.RevokeSessions(ctx, c)
}

// namesAll reports sessions that it did not revoke.
type namesAll struct{ base }

func (s namesAll) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	ids, err := s.Store.RevokeSessions(ctx, c)
	if c.Filter.ID != "" && len(ids) == 0 {
		ids = []string{c.Filter.ID}
	}
	return ids, err
}

type listsAll struct {
	base
	mu  sync.Mutex
	all []store.Session
}

func (s *listsAll) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	s.mu.Lock()
	s.all = append([]store.Session{c.Session}, s.all...)
	s.mu.Unlock()
	return s.Store.CreateSession(ctx, c)
}

func (s *listsAll) Sessions(context.Context, string, time.Time) ([]store.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]store.Session{}, s.all...), nil
}

type noBan struct{ base }

func (s noBan) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	u, err := s.Store.CreateSession(ctx, c)
	if errors.Is(err, store.ErrBanned) {
		lift := store.UpdateUser{Change: change(c.Now), UserID: c.Session.UserID, Patch: store.UserPatch{BannedUntil: &time.Time{}}}
		if _, err := s.UpdateUser(ctx, lift); err != nil {
			return u, err
		}
		return s.Store.CreateSession(ctx, c)
	}
	return u, err
}

type noMFA struct{ base }

func (s noMFA) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	c.Session.AAL = store.LevelAAL2
	return s.Store.CreateSession(ctx, c)
}

// raise changes a user and nothing else.
func (b base) raise(ctx context.Context, userID string, now time.Time) error {
	p := store.UserPatch{DropTokens: []store.Purpose{"none"}}
	_, err := b.UpdateUser(ctx, store.UpdateUser{Change: change(now), UserID: userID, Patch: p})
	return err
}

type signInRaises struct{ base }

func (s signInRaises) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	u, err := s.Store.CreateSession(ctx, c)
	if err == nil {
		err = s.raise(ctx, u.ID, u.UpdatedAt)
	}
	return u, err
}

type refreshRaises struct{ base }

func (s refreshRaises) AdvanceSession(ctx context.Context, a store.Advance) (store.Session, store.User, error) {
	sess, u, err := s.Store.AdvanceSession(ctx, a)
	if err == nil {
		err = s.raise(ctx, u.ID, u.UpdatedAt)
	}
	return sess, u, err
}

type signOutRaises struct{ base }

func (s signOutRaises) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	ids, err := s.Store.RevokeSessions(ctx, c)
	if len(ids) > 0 {
		err = s.raise(ctx, c.UserID, c.Now)
	}
	return ids, err
}

type lowers struct{ base }

func (s lowers) AdvanceSession(ctx context.Context, a store.Advance) (store.Session, store.User, error) {
	sess, u, err := s.Store.AdvanceSession(ctx, a)
	sess.AAL = store.LevelAAL1
	return sess, u, err
}

type anyID struct{ base }

func (s anyID) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	u, err := s.Store.CreateSession(ctx, c)
	if errors.Is(err, store.ErrConflict) {
		return s.User(ctx, store.ByID(c.Session.UserID))
	}
	return u, err
}

// slipping revokes the sessions that existed when the patch started.
type slipping struct{ base }

func (s slipping) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	if c.Patch.Revoke == nil {
		return s.Store.UpdateUser(ctx, c)
	}
	if _, err := s.RevokeSessions(ctx, store.RevokeSessions{Change: change(c.Now), UserID: c.UserID, Filter: *c.Patch.Revoke}); err != nil {
		return store.User{}, err
	}
	pause()
	c.Patch.Revoke = nil
	return s.Store.UpdateUser(ctx, c)
}
