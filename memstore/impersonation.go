package memstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/authmount/auth"
)

type impersonation struct {
	auth.Impersonation
	ended bool
}

// liveImpersonation tells whether what an impersonation rests on is so still.
func (s *Store) liveImpersonation(i *impersonation, now time.Time) bool {
	sess, actor, u := s.sessions[i.ActorSessionID], s.users[i.ActorID], s.users[i.UserID]
	return !i.ended && now.Before(i.ExpiresAt) &&
		sess != nil && sess.UserID == i.ActorID && sess.liveAt(now) &&
		actor != nil && !actor.Banned(now) && actor.CredentialRevision == i.ActorRevision &&
		u != nil && !u.Banned(now) && u.CredentialRevision == i.UserRevision && s.rolesRevision == i.RolesRevision
}

// BeginImpersonation keeps an impersonation.
func (s *Store) BeginImpersonation(ctx context.Context, c auth.BeginImpersonation) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		i := c.Impersonation
		u, actor, sess := s.users[i.UserID], s.users[i.ActorID], s.sessions[i.ActorSessionID]
		switch {
		case u == nil:
			return nil, auth.ErrNotFound
		case actor == nil || sess == nil || sess.UserID != actor.ID || !sess.liveAt(c.Now):
			return nil, auth.ErrSessionEnded
		case u.Banned(c.Now) || actor.Banned(c.Now):
			return nil, auth.ErrBanned
		case s.impersonations[i.ID] != nil:
			return nil, &auth.ConflictError{Field: "id"}
		}
		i.UserRevision, i.ActorRevision, i.RolesRevision = u.CredentialRevision, actor.CredentialRevision, s.rolesRevision
		allUTC(&i.CreatedAt, &i.ExpiresAt)
		return &effect{about: u.ID, apply: func() error {
			s.impersonations[i.ID] = &impersonation{Impersonation: i}
			return nil
		}}, nil
	})
}

// Impersonation reads a live impersonation with its user.
func (s *Store) Impersonation(ctx context.Context, id string, now time.Time) (auth.Impersonation, auth.User, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.Impersonation{}, auth.User{}, err
	}
	defer unlock()
	i := s.impersonations[id]
	switch {
	case i == nil:
		return auth.Impersonation{}, auth.User{}, auth.ErrNotFound
	case !s.liveImpersonation(i, now):
		return auth.Impersonation{}, auth.User{}, auth.ErrSessionEnded
	}
	return i.Impersonation, copyUser(s.users[i.UserID].User), nil
}

// mostImpersonations is how many a list has at most.
const mostImpersonations = 1000

// Impersonations lists live impersonations, newest first.
func (s *Store) Impersonations(ctx context.Context, userID string, now time.Time) ([]auth.Impersonation, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := []auth.Impersonation{}
	for _, i := range s.impersonations {
		if (userID == "" || i.UserID == userID) && s.liveImpersonation(i, now) {
			list = append(list, i.Impersonation)
		}
	}
	slices.SortFunc(list, func(a, b auth.Impersonation) int { return byAge(b.CreatedAt, b.ID, a.CreatedAt, a.ID) })
	return slices.Clip(list[:min(len(list), mostImpersonations)]), nil
}

// EndImpersonation ends an impersonation.
func (s *Store) EndImpersonation(ctx context.Context, c auth.EndImpersonation) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		i := s.impersonations[c.ID]
		switch {
		case i == nil:
			return nil, auth.ErrNotFound
		case !s.liveImpersonation(i, c.Now):
			return nil, auth.ErrSessionEnded
		}
		return &effect{about: i.UserID, apply: func() error {
			i.ended = true
			return nil
		}}, nil
	})
}

// revokeImpersonations ends those of a user that match, and returns their ids.
func (s *Store) revokeImpersonations(u *user, f auth.SessionFilter, now time.Time) (ended []string) {
	for id, i := range s.impersonations {
		if i.UserID == u.ID && s.liveImpersonation(i, now) && (f.ID == "" || f.ID == id) && f.Except != id && !i.CreatedAt.Before(f.Since) &&
			(f.Before.IsZero() || i.CreatedAt.Before(f.Before)) && (f.IP == "" || f.IP == i.IP) {
			i.ended = true
			ended = append(ended, id)
		}
	}
	return ended
}

// dropImpersonations forgets those of or by a user who goes.
func (s *Store) dropImpersonations(userID string) {
	maps.DeleteFunc(s.impersonations, func(_ string, i *impersonation) bool { return i.UserID == userID || i.ActorID == userID })
}
