package memstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

type impersonation struct {
	store.Impersonation
	ended bool
}

// liveImpersonation reports whether an impersonation is live (see store.AdminStore).
func (s *Store) liveImpersonation(i *impersonation, now time.Time) bool {
	sess, actor, u := s.sessions[i.ActorSessionID], s.users[i.ActorID], s.users[i.UserID]
	return !i.ended && now.Before(i.ExpiresAt) &&
		sess != nil && sess.UserID == i.ActorID && sess.liveAt(now) &&
		actor != nil && !actor.Banned(now) && actor.CredentialRevision == i.ActorRevision &&
		u != nil && !u.Banned(now) && u.CredentialRevision == i.UserRevision && s.rolesRevision == i.RolesRevision
}

// BeginImpersonation stores an impersonation.
func (s *Store) BeginImpersonation(ctx context.Context, c store.BeginImpersonation) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		i := c.Impersonation
		u, actor, sess := s.users[i.UserID], s.users[i.ActorID], s.sessions[i.ActorSessionID]
		switch {
		case u == nil:
			return nil, store.ErrNotFound
		case actor == nil || sess == nil || sess.UserID != actor.ID || !sess.liveAt(c.Now):
			return nil, store.ErrSessionEnded
		case u.Banned(c.Now) || actor.Banned(c.Now):
			return nil, store.ErrBanned
		case s.impersonations[i.ID] != nil:
			return nil, &store.ConflictError{Field: "id"}
		}
		i.Sequence = u.Sequence
		i.UserRevision, i.ActorRevision, i.RolesRevision = u.CredentialRevision, actor.CredentialRevision, s.rolesRevision
		allUTC(&i.CreatedAt, &i.ExpiresAt)
		return &effect{about: u.ID, apply: func() error {
			s.impersonations[i.ID] = &impersonation{Impersonation: i}
			return nil
		}}, nil
	})
}

// Impersonation reads a live impersonation with its user.
func (s *Store) Impersonation(ctx context.Context, id string, now time.Time) (store.Impersonation, store.User, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.Impersonation{}, store.User{}, err
	}
	defer unlock()
	i := s.impersonations[id]
	switch {
	case i == nil:
		return store.Impersonation{}, store.User{}, store.ErrNotFound
	case !s.liveImpersonation(i, now):
		return store.Impersonation{}, store.User{}, store.ErrSessionEnded
	}
	return i.Impersonation, copyUser(s.users[i.UserID].User), nil
}

// mostImpersonations is the highest number of impersonations in a list.
const mostImpersonations = 1000

// Impersonations lists live impersonations, newest first.
func (s *Store) Impersonations(ctx context.Context, userID string, now time.Time) ([]store.Impersonation, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := []store.Impersonation{}
	for _, i := range s.impersonations {
		if (userID == "" || i.UserID == userID) && s.liveImpersonation(i, now) {
			list = append(list, i.Impersonation)
		}
	}
	slices.SortFunc(list, func(a, b store.Impersonation) int { return byAge(b.CreatedAt, b.ID, a.CreatedAt, a.ID) })
	return slices.Clip(list[:min(len(list), mostImpersonations)]), nil
}

// EndImpersonation ends an impersonation.
func (s *Store) EndImpersonation(ctx context.Context, c store.EndImpersonation) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		i := s.impersonations[c.ID]
		switch {
		case i == nil:
			return nil, store.ErrNotFound
		case !s.liveImpersonation(i, c.Now):
			return nil, store.ErrSessionEnded
		}
		return &effect{about: i.UserID, apply: func() error {
			i.ended = true
			return nil
		}}, nil
	})
}

// revokeImpersonations ends a user's impersonations that match, and returns their ids.
func (s *Store) revokeImpersonations(u *user, f store.SessionFilter, now time.Time) (ended []string) {
	for id, i := range s.impersonations {
		if i.UserID == u.ID && s.liveImpersonation(i, now) && (f.ID == "" || f.ID == id) && f.Except != id && i.Sequence >= f.FromSequence &&
			(f.Before.IsZero() || i.CreatedAt.Before(f.Before)) && (f.IP == "" || f.IP == i.IP) {
			i.ended = true
			ended = append(ended, id)
		}
	}
	return ended
}

// dropImpersonations deletes the impersonations of or by a deleted user.
func (s *Store) dropImpersonations(userID string) {
	maps.DeleteFunc(s.impersonations, func(_ string, i *impersonation) bool { return i.UserID == userID || i.ActorID == userID })
}
