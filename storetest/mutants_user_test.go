package storetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/authmount/auth"
)

type stalePatches struct{ auth.Store }

func (s stalePatches) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	p.IfRevision, p.IfPasswordHash = nil, nil
	return s.Store.UpdateUser(ctx, id, p, now)
}

type noCascade struct {
	auth.Store
	mu   sync.Mutex
	left map[string]auth.Session
}

func (s *noCascade) DeleteUser(ctx context.Context, id string) error {
	list, err := s.Sessions(ctx, id, time.Time{})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.left = map[string]auth.Session{}
	for _, sess := range list {
		s.left[sess.ID] = sess
	}
	s.mu.Unlock()
	return s.Store.DeleteUser(ctx, id)
}

func (s *noCascade) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	s.mu.Lock()
	sess, ok := s.left[id]
	s.mu.Unlock()
	if ok {
		return sess, auth.User{ID: sess.UserID}, nil
	}
	return s.Store.Session(ctx, id, now)
}

type halfSignUp struct{ auth.Store }

func (s halfSignUp) CreateUser(ctx context.Context, n auth.NewUser) (auth.User, error) {
	u, err := s.Store.CreateUser(ctx, n)
	if errors.Is(err, auth.ErrConflict) && n.Session != nil {
		n.User.Email, n.User.Identities = "", nil
		_, _ = s.Store.CreateUser(ctx, n)
	}
	return u, err
}

type caseSensitive struct{ auth.Store }

func (s caseSensitive) User(ctx context.Context, k auth.UserKey) (auth.User, error) {
	u, err := s.Store.User(ctx, k)
	if err == nil && k.Email != "" && k.Email != u.Email {
		return auth.User{}, auth.ErrNotFound
	}
	return u, err
}

type aliasing struct {
	auth.Store
	mu   sync.Mutex
	kept map[string]map[string]any
}

func (s *aliasing) CreateUser(ctx context.Context, n auth.NewUser) (auth.User, error) {
	s.mu.Lock()
	s.kept = map[string]map[string]any{n.User.ID: n.User.UserMetadata}
	s.mu.Unlock()
	return s.Store.CreateUser(ctx, n)
}

func (s *aliasing) User(ctx context.Context, k auth.UserKey) (auth.User, error) {
	u, err := s.Store.User(ctx, k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.kept[u.ID]; m != nil {
		u.UserMetadata = m
	}
	return u, err
}

type deaf struct{ auth.Store }

func (s deaf) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	return s.Store.UpdateUser(context.WithoutCancel(ctx), id, p, now)
}

type oneIdentity struct{ auth.Store }

func (s oneIdentity) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	u, err := s.Store.UpdateUser(ctx, id, p, now)
	if err != nil || p.Link == nil {
		return u, err
	}
	for _, i := range u.Identities {
		if i.Provider == p.Link.Provider && i.Subject != p.Link.Subject {
			u, err = s.Store.UpdateUser(ctx, id, auth.UserPatch{Unlink: &auth.UserKey{Provider: i.Provider, Subject: i.Subject}}, now)
		}
	}
	return u, err
}

type dropsPassword struct{ auth.Store }

func (s dropsPassword) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	if p.PasswordHash == nil {
		p.PasswordHash = new(string)
	}
	return s.Store.UpdateUser(ctx, id, p, now)
}

type endsSessions struct{ auth.Store }

func (s endsSessions) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	if p.Revoke == nil {
		p.Revoke = &auth.SessionFilter{}
	}
	return s.Store.UpdateUser(ctx, id, p, now)
}

type refusedRevokes struct{ auth.Store }

func (s refusedRevokes) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	u, err := s.Store.UpdateUser(ctx, id, p, now)
	if err != nil && p.Revoke != nil {
		_, _ = s.RevokeSessions(ctx, id, *p.Revoke, now)
	}
	return u, err
}

type keepsIdentities struct{ auth.Store }

func (s keepsIdentities) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	p.DropIdentities = false
	return s.Store.UpdateUser(ctx, id, p, now)
}
