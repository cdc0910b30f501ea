package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth"
)

// CreateUser adds a user with everything that comes with it.
func (s *Store) CreateUser(ctx context.Context, nu auth.NewUser) (auth.User, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.User{}, err
	}
	defer unlock()
	return s.createUser(ctx, nu)
}

func (s *Store) createUser(ctx context.Context, nu auth.NewUser) (auth.User, error) {
	u := &user{User: copyUser(nu.User), hash: nu.PasswordHash, sessions: map[string]bool{}, tokens: map[tokenID]bool{}}
	if s.users[u.ID] != nil {
		return auth.User{}, &auth.ConflictError{Field: "id"}
	}
	if err := s.conflict(u.User, ""); err != nil {
		return auth.User{}, err
	}
	if nu.Session != nil && s.sessions[nu.Session.ID] != nil {
		return auth.User{}, &auth.ConflictError{Field: "id"}
	}
	if nu.Creating != nil {
		// Nothing is kept yet, so there is nothing to undo.
		if err := nu.Creating(ctx, copyUser(u.User)); err != nil {
			return auth.User{}, err
		}
	}
	s.users[u.ID] = u
	s.index(u)
	if nu.Session != nil {
		s.addSession(u, *nu.Session)
	}
	for _, t := range nu.Tokens {
		s.addToken(t)
	}
	return copyUser(u.User), nil
}

// conflict finds a unique value of u that a user other than self has.
func (s *Store) conflict(u auth.User, self string) error {
	taken := func(id string, ok bool) bool { return ok && id != self }
	if id, ok := s.byEmail[auth.EmailKey(u.Email)]; u.Email != "" && taken(id, ok) {
		return &auth.ConflictError{Field: "email"}
	}
	if id, ok := s.byPhone[u.Phone]; u.Phone != "" && taken(id, ok) {
		return &auth.ConflictError{Field: "phone"}
	}
	for _, i := range u.Identities {
		if id, ok := s.byIdent[ident{i.Provider, i.Subject}]; taken(id, ok) {
			return &auth.ConflictError{Field: "identity"}
		}
	}
	return nil
}

func (s *Store) index(u *user) {
	if u.Email != "" {
		s.byEmail[auth.EmailKey(u.Email)] = u.ID
	}
	if u.Phone != "" {
		s.byPhone[u.Phone] = u.ID
	}
	for _, i := range u.Identities {
		s.byIdent[ident{i.Provider, i.Subject}] = u.ID
	}
}

func (s *Store) unindex(u *user) {
	delete(s.byEmail, auth.EmailKey(u.Email))
	delete(s.byPhone, u.Phone)
	for _, i := range u.Identities {
		delete(s.byIdent, ident{i.Provider, i.Subject})
	}
}

// find answers nil if there is no such user.
func (s *Store) find(k auth.UserKey) *user {
	id, ok := k.ID, true
	switch {
	case k.ID != "":
	case k.Email != "":
		id, ok = s.byEmail[auth.EmailKey(k.Email)]
	case k.Phone != "":
		id, ok = s.byPhone[k.Phone]
	default:
		id, ok = s.byIdent[ident{k.Provider, k.Subject}]
	}
	if !ok {
		return nil
	}
	return s.users[id]
}

// User finds one user.
func (s *Store) User(ctx context.Context, k auth.UserKey) (auth.User, error) {
	c, err := s.Credentials(ctx, k)
	return c.User, err
}

// Credentials finds one user with the password hash.
func (s *Store) Credentials(ctx context.Context, k auth.UserKey) (auth.Credentials, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.Credentials{}, err
	}
	defer unlock()
	u := s.find(k)
	if u == nil {
		return auth.Credentials{}, auth.ErrNotFound
	}
	return auth.Credentials{User: copyUser(u.User), PasswordHash: u.hash}, nil
}

// UpdateUser applies a patch.
func (s *Store) UpdateUser(ctx context.Context, id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.User{}, err
	}
	defer unlock()
	return s.updateUser(id, p, now)
}

func (s *Store) updateUser(id string, p auth.UserPatch, now time.Time) (auth.User, error) {
	u := s.users[id]
	if u == nil {
		return auth.User{}, auth.ErrNotFound
	}
	if (p.IfRevision != nil && *p.IfRevision != u.Revision) || (p.IfPasswordHash != nil && *p.IfPasswordHash != u.hash) {
		return auth.User{}, auth.ErrStale
	}
	next := patched(u.User, p)
	if err := s.conflict(next, id); err != nil {
		return auth.User{}, err
	}
	next.UpdatedAt, next.Revision = now, u.Revision+1
	s.unindex(u)
	u.User = next
	s.index(u)
	if p.RemoveFactor {
		u.factor = nil
	}
	if p.PasswordHash != nil {
		u.hash = *p.PasswordHash
	}
	if p.Revoke != nil {
		s.revoke(u, *p.Revoke, now)
	}
	for tid := range u.tokens {
		if slices.Contains(p.DropTokens, tid.purpose) {
			s.dropToken(tid)
		}
	}
	return copyUser(u.User), nil
}

// patched is the user after the patch; u is left as it is.
func patched(u auth.User, p auth.UserPatch) auth.User {
	u = copyUser(u)
	set(&u.Email, p.Email)
	set(&u.EmailVerified, p.EmailVerified)
	set(&u.Phone, p.Phone)
	set(&u.PhoneVerified, p.PhoneVerified)
	set(&u.FullName, p.FullName)
	set(&u.BannedUntil, p.BannedUntil)
	if p.UserMetadata != nil {
		u.UserMetadata = copyMap(p.UserMetadata)
	}
	if p.AppMetadata != nil {
		u.AppMetadata = copyMap(p.AppMetadata)
	}
	at := func(provider, subject string) int {
		return slices.IndexFunc(u.Identities, func(i auth.Identity) bool { return i.Provider == provider && i.Subject == subject })
	}
	if p.RemoveFactor {
		u.MFAEnabled = false
	}
	if p.DropIdentities {
		u.Identities = nil
	}
	if p.Unlink != nil {
		if i := at(p.Unlink.Provider, p.Unlink.Subject); i >= 0 {
			u.Identities = slices.Delete(u.Identities, i, i+1)
		}
	}
	if p.Link != nil {
		if i := at(p.Link.Provider, p.Link.Subject); i >= 0 {
			u.Identities[i] = *p.Link
		} else {
			u.Identities = append(u.Identities, *p.Link)
		}
	}
	return u
}

func set[T any](field, to *T) {
	if to != nil {
		*field = *to
	}
}

// DeleteUser removes the user and what belongs to it.
func (s *Store) DeleteUser(ctx context.Context, id string) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	u := s.users[id]
	if u == nil {
		return auth.ErrNotFound
	}
	s.unindex(u)
	for sid := range u.sessions {
		delete(s.sessions, sid)
	}
	for tid := range u.tokens {
		s.dropToken(tid)
	}
	delete(s.users, id)
	return nil
}
