package memstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// CreateUser adds a user with everything in NewUser.
func (s *Store) CreateUser(ctx context.Context, c store.CreateUser) (u store.User, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) { return s.planCreate(ctx, c.NewUser, &u) })
	return u, err
}

// planCreate plans to add a user. apply sets created.
func (s *Store) planCreate(ctx context.Context, nu store.NewUser, created *store.User) (*effect, error) {
	u := newUser(nu.User, nu.PasswordHash)
	u.notes = nu.Notes
	u.Revision, u.CredentialRevision = 0, 0
	u.Begin(u.hash != "")
	if err := u.arm(nu.Factors); err != nil {
		return nil, err
	}
	if u.MFAEnabled && nu.Session != nil && nu.Session.AAL != store.LevelAAL2 {
		return nil, store.ErrMFARequired
	}
	if err := s.factorTaken(nu.Factors); err != nil {
		return nil, err
	}
	if s.users[u.ID] != nil || (nu.Session != nil && s.sessions[nu.Session.ID] != nil) {
		return nil, &store.ConflictError{Field: "id"}
	}
	if err := s.conflict(&u.User, ""); err != nil {
		return nil, err
	}
	for _, t := range nu.Tokens {
		if t.UserID != "" && t.UserID != u.ID && s.users[t.UserID] == nil {
			return nil, store.ErrNotFound
		}
	}
	if nu.Session != nil {
		u.LastSignInAt = nu.Session.CreatedAt
	}
	e := &effect{about: u.ID, after: &u.User}
	e.setOrigin(u.ID, store.Origin{Sequence: u.Sequence})
	e.apply = func() error {
		if nu.Creating != nil {
			// Nothing is stored yet, so there is nothing to undo.
			if err := nu.Creating(ctx, copyUser(u.User)); err != nil {
				return err
			}
		}
		s.users[u.ID] = u
		s.index(u)
		if nu.Session != nil {
			s.addSession(u, *nu.Session, e)
		}
		for _, t := range nu.Tokens {
			s.addToken(t, e)
		}
		*created = copyUser(u.User)
		return nil
	}
	return e, nil
}

func newUser(u store.User, hash string) *user {
	kept := &user{User: copyUser(u), hash: hash, factors: map[string]*store.Factor{}, sessions: map[string]bool{}, tokens: map[tokenID]bool{}, devices: map[string]device{}}
	sortIdentities(kept.Identities)
	return kept
}

// conflict finds a unique value of u that another user than self has, or an identity that u
// has twice.
func (s *Store) conflict(u *store.User, self string) error {
	taken := func(id string, ok bool) bool { return ok && id != self }
	if id, ok := s.byEmail[store.EmailKey(u.Email)]; u.Email != "" && taken(id, ok) {
		return &store.ConflictError{Field: "email"}
	}
	if id, ok := s.byPhone[u.Phone]; u.Phone != "" && taken(id, ok) {
		return &store.ConflictError{Field: "phone"}
	}
	if id, ok := s.byHandle[u.Handle]; u.Handle != "" && taken(id, ok) {
		return &store.ConflictError{Field: "handle"}
	}
	seen, ids := map[ident]bool{}, map[string]bool{}
	for _, i := range u.Identities {
		if id, ok := s.byIdentID[i.ID]; taken(id, ok) || ids[i.ID] {
			return &store.ConflictError{Field: "id"}
		}
		ids[i.ID] = true
		key := ident{i.Provider, i.Subject}
		if id, ok := s.byIdent[key]; taken(id, ok) || seen[key] {
			return &store.ConflictError{Field: "identity"}
		}
		seen[key] = true
	}
	return nil
}

func (s *Store) index(u *user) {
	s.owned = s.owned || u.AcceptedSequence > 0 && slices.Contains(u.Roles, store.RoleOwner)
	if u.Email != "" {
		s.byEmail[store.EmailKey(u.Email)] = u.ID
	}
	if u.Phone != "" {
		s.byPhone[u.Phone] = u.ID
	}
	if u.Handle != "" {
		s.byHandle[u.Handle] = u.ID
	}
	for _, f := range u.factors {
		s.indexFactor(f)
	}
	for _, i := range u.Identities {
		s.byIdent[ident{i.Provider, i.Subject}], s.byIdentID[i.ID] = u.ID, u.ID
	}
}

func (s *Store) unindex(u *user) {
	delete(s.byEmail, store.EmailKey(u.Email))
	delete(s.byPhone, u.Phone)
	delete(s.byHandle, u.Handle)
	for _, f := range u.factors {
		s.unindexFactor(f)
	}
	for _, i := range u.Identities {
		delete(s.byIdent, ident{i.Provider, i.Subject})
		delete(s.byIdentID, i.ID)
	}
}

// find returns nil if there is no such user.
func (s *Store) find(k store.UserKey) *user {
	id, ok := k.ID, true
	switch {
	case k.ID != "":
	case k.Email != "":
		id, ok = s.byEmail[store.EmailKey(k.Email)]
	case k.Phone != "":
		id, ok = s.byPhone[k.Phone]
	case k.Handle != "":
		id, ok = s.byHandle[k.Handle]
	default:
		id, ok = s.byIdent[ident{k.Provider, k.Subject}]
	}
	if !ok {
		return nil
	}
	return s.users[id]
}

// User finds one user.
func (s *Store) User(ctx context.Context, k store.UserKey) (store.User, error) {
	c, err := s.Credentials(ctx, k)
	return c.User, err
}

// Credentials returns a user with the password hash.
func (s *Store) Credentials(ctx context.Context, k store.UserKey) (store.Credentials, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.Credentials{}, err
	}
	defer unlock()
	u := s.find(k)
	if u == nil {
		return store.Credentials{}, store.ErrNotFound
	}
	return u.credentials(k.Device), nil
}

func (u *user) credentials(device string) store.Credentials {
	_, known := u.devices[device]
	return store.Credentials{User: copyUser(u.User), PasswordHash: u.hash, KnownDevice: known && device != forgotten, TrustedUntil: u.trustedUntil(device), Notes: u.notes}
}

// UpdateUser applies a patch.
func (s *Store) UpdateUser(ctx context.Context, c store.UpdateUser) (u store.User, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) { return s.planUpdate(&c.Change, c.UserID, &c.Patch, nil, &u) })
	return u, err
}

// planUpdate plans to apply a patch, which may be nil. apply sets updated. redeems, if set,
// is the token that the change redeems.
func (s *Store) planUpdate(c *store.Change, id string, p *store.UserPatch, redeems *store.Token, updated *store.User) (*effect, error) {
	u := s.users[id]
	if u == nil {
		return nil, store.ErrNotFound
	}
	e := &effect{about: id}
	if p == nil || p.Empty() {
		e.apply = func() error {
			*updated = copyUser(u.User)
			return nil
		}
		return e, nil
	}
	after := p.Apply(store.Credentials{User: u.User, PasswordHash: u.hash, Notes: u.notes}, c.Now, s.addedBy(c.By, id, redeems))
	next := copyUser(after.User)
	if err := s.conflict(&next, id); err != nil {
		return nil, err
	}
	if p.DropFactors || p.DropCredentials {
		next.MFAEnabled = slices.ContainsFunc(p.KeepFactors, func(id string) bool { f := u.factors[id]; return f != nil && f.Enabled && f.Required })
	}
	e.replaces, e.after = id, &next
	e.apply = func() error {
		s.unindex(u)
		if p.DropFactors || p.DropCredentials {
			maps.DeleteFunc(u.factors, func(id string, _ *store.Factor) bool {
				return !slices.Contains(p.KeepFactors, id)
			})
			if p.DropCredentials || !next.MFAEnabled {
				u.recovery, u.recoveryOrigin = nil, store.Origin{}
			}
		}
		u.User = next
		s.index(u)
		u.hash, u.notes = after.PasswordHash, after.Notes
		switch {
		case p.DropCredentials:
			clear(u.devices) // the previous owner's
		case p.DropDevices && p.Revoke != nil:
			s.dropDevices(u, *p.Revoke)
		case p.DropDevices:
			s.dropDevices(u, store.SessionFilter{})
		}
		e.ended = s.dropProofs(u, p, c.Now)
		s.revokeKeysOf(id, p, c.Now)
		*updated = copyUser(u.User)
		return nil
	}
	return e, nil
}

// dropProofs ends the sessions and deletes the tokens that a patch names. It returns the
// sorted ids of the ended sessions.
func (s *Store) dropProofs(u *user, p *store.UserPatch, now time.Time) (ended []string) {
	switch {
	case p.DropCredentials:
		ended = s.revoke(u, store.SessionFilter{Except: p.KeepSession}, now)
	case p.Revoke != nil:
		ended = s.revoke(u, *p.Revoke, now)
	}
	s.dropTokens(u, p.DropTokens)
	if p.DropCredentials {
		for id := range u.tokens {
			s.dropToken(id)
		}
	}
	return ended
}

// dropTokens deletes a user's tokens of some purposes.
func (s *Store) dropTokens(u *user, purposes []store.Purpose) {
	for id := range u.tokens {
		if slices.Contains(purposes, id.purpose) {
			s.dropToken(id)
		}
	}
}

// DeleteUser deletes the user and everything that belongs to it, except its events.
func (s *Store) DeleteUser(ctx context.Context, c store.DeleteUser) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.UserID]
		if u == nil {
			return nil, store.ErrNotFound
		}
		e := &effect{about: u.ID, replaces: u.ID}
		e.apply = func() error {
			e.ended = s.revoke(u, store.SessionFilter{}, c.Now)
			s.removeUser(u)
			s.deleted[u.ID] = true
			return nil
		}
		return e, nil
	})
}

// UserDeleted reports whether a user was deleted.
func (s *Store) UserDeleted(ctx context.Context, id string) (bool, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	return s.deleted[id], nil
}

func (s *Store) removeUser(u *user) {
	s.unindex(u)
	for id := range u.sessions {
		delete(s.sessions, id)
	}
	for id := range u.tokens {
		s.dropToken(id)
	}
	for id, m := range s.messages {
		if m.UserID == u.ID {
			delete(s.messages, id)
		}
	}
	s.dropLog(u.ID)
	s.dropImpersonations(u.ID)
	delete(s.users, u.ID)
}
