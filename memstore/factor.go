package memstore

import (
	"bytes"
	"context"
	"crypto/subtle"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// Factors reads a user's factors.
func (s *Store) Factors(ctx context.Context, userID string) (store.Factors, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.Factors{}, err
	}
	defer unlock()
	all := store.Factors{List: []store.Factor{}}
	if u := s.users[userID]; u != nil {
		for _, f := range u.factors {
			all.List = append(all.List, copyFactor(*f))
		}
		all.RecoveryLeft, all.Recovery = len(u.recovery), u.recoveryOrigin
	}
	slices.SortFunc(all.List, func(a, b store.Factor) int { return byAge(a.CreatedAt, a.ID, b.CreatedAt, b.ID) })
	return all, nil
}

// enabled returns an enabled factor of the user: the one with this id, or any Required one
// if the id is empty. u may be nil.
func (u *user) enabled(id string) *store.Factor {
	if u == nil {
		return nil
	}
	for _, f := range u.factors {
		if f.Enabled && (id == "" && f.Required || id == f.ID) {
			return f
		}
	}
	return nil
}

// hasKind reports whether another factor of f's kind is enabled and excludes f.
func (u *user) hasKind(f *store.Factor) bool {
	for _, other := range u.factors {
		if other.Enabled && other.Kind == f.Kind && !f.Several {
			return true
		}
	}
	return false
}

// factorTaken checks the ids and credentials of new factors.
func (s *Store) factorTaken(list []store.Factor) error {
	creds := map[string]bool{}
	for _, f := range list {
		cred := string(f.Credential)
		if s.factors[f.ID] != nil || s.withCred[cred] != nil || creds[cred] {
			return &store.ConflictError{Field: "factor"}
		}
		creds[cred] = cred != ""
	}
	return nil
}

func (s *Store) indexFactor(f *store.Factor) {
	s.factors[f.ID] = f
	if len(f.Credential) > 0 {
		s.withCred[string(f.Credential)] = f
	}
}

func (s *Store) unindexFactor(f *store.Factor) {
	delete(s.factors, f.ID)
	delete(s.withCred, string(f.Credential))
}

// PutFactor stores a pending factor and removes an older pending one.
func (s *Store) PutFactor(ctx context.Context, c store.PutFactor) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.Factor.UserID]
		if u == nil {
			return nil, store.ErrNotFound
		}
		var older *store.Factor
		for _, f := range u.factors {
			if !f.Enabled && f.Kind == c.Factor.Kind {
				older = f
			}
		}
		holder := s.withCred[string(c.Factor.Credential)]
		if same := s.factors[c.Factor.ID]; u.hasKind(&c.Factor) || holder != nil && holder != older || same != nil && same != older {
			return nil, &store.ConflictError{Field: "factor"}
		}
		return &effect{about: u.ID, apply: func() error {
			if older != nil {
				s.dropFactor(u, older)
			}
			pending := copyFactor(c.Factor)
			pending.Enabled, pending.Origin = false, store.Origin{}
			u.factors[pending.ID] = &pending
			s.indexFactor(&pending)
			return nil
		}}, nil
	})
}

func (s *Store) dropFactor(u *user, f *store.Factor) {
	delete(u.factors, f.ID)
	s.unindexFactor(f)
}

// planCompletion checks c and adds it to e. e.apply must call the function that it returns.
func (s *Store) planCompletion(e *effect, u *user, c *store.Completion, now time.Time, to *store.FactorResult) (func(), error) {
	if c.Redeem != nil {
		if e.uses = s.liveToken(refID(*c.Redeem), now); e.uses == nil || e.uses.UserID != u.ID {
			return nil, store.ErrNotFound
		}
	}
	var raised *session
	switch {
	case c.Raise != nil:
		raised = s.sessions[c.Raise.SessionID]
		if raised == nil || raised.UserID != u.ID || !raised.liveAt(now) {
			return nil, store.ErrSessionEnded
		}
	case c.Create != nil:
		n := *c.Create
		n.Session.UserID = u.ID
		switch {
		case n.Session.AAL != store.LevelAAL2:
			return nil, store.ErrMFARequired
		case u.Banned(n.Session.CreatedAt):
			return nil, store.ErrBanned
		}
		if err := s.mayCreate(e, u, &n, now); err != nil {
			return nil, err
		}
	}
	if u.Banned(now) && (c.Redeem != nil || c.Raise != nil || c.Create != nil) {
		return nil, store.ErrBanned
	}
	return func() {
		switch {
		case raised != nil:
			raised.AAL, raised.AMR = store.LevelAAL2, withMethod(raised.AMR, c.Raise.Method)
			to.Session = copySession(raised.Session)
		case c.Create != nil:
			s.addSession(u, c.Create.Session, e)
			created := c.Create
			u.trust(created)
			e.ended = append(e.ended, s.keepSessions(u, created.Session.ID, created.KeepSessions, now)...)
			slices.Sort(e.ended)
			to.Session = copySession(s.sessions[created.Session.ID].Session)
		}
		if c.Redeem != nil {
			s.dropToken(refID(*c.Redeem))
		}
		to.User = copyUser(u.User)
	}, nil
}

// completed calls the callbacks of a completion after the change.
func (e *effect) completed(c *store.Completion) {
	if c.Create != nil && c.Create.Ended != nil && len(e.ended) > 0 {
		c.Create.Ended(slices.Clone(e.ended))
	}
	e.made()
}

// EnableFactor enables a pending factor.
func (s *Store) EnableFactor(ctx context.Context, c store.EnableFactor) (done store.FactorResult, err error) {
	var e *effect
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.UserID]
		if u == nil || u.factors[c.FactorID] == nil {
			return nil, store.ErrNotFound
		}
		f := u.factors[c.FactorID]
		if f.Enabled || u.hasKind(f) {
			return nil, &store.ConflictError{Field: "factor"}
		}
		e = &effect{about: u.ID}
		complete, err := s.planCompletion(e, u, &c.Completion, c.Now, &done)
		if err != nil {
			return nil, err
		}
		e.apply = func() error {
			f.Enabled, f.State, f.Origin = true, slices.Clone(c.State), e.origin(u)
			u.touchCredentials(c.Now)
			if f.Required {
				kept := ""
				if c.Raise != nil {
					kept = c.Raise.SessionID
				}
				s.requireFactor(e, u, c.Recovery, kept, c.Now)
			}
			complete()
			return nil
		}
		return e, nil
	})
	if err == nil {
		e.completed(&c.Completion)
	}
	return done, err
}

// requireFactor applies the effects of a factor that becomes Required to its user.
func (s *Store) requireFactor(e *effect, u *user, recovery [][]byte, keepSession string, now time.Time) {
	u.MFAEnabled = true
	if recovery != nil {
		u.recovery, u.recoveryOrigin = cloneAll(recovery), e.origin(u)
	}
	e.ended = s.revoke(u, store.SessionFilter{Except: keepSession}, now)
}

// releaseFactor applies the effects of a Required factor that is gone to its user.
func (u *user) releaseFactor() {
	u.MFAEnabled = false
	for _, f := range u.factors {
		u.MFAEnabled = u.MFAEnabled || f.Enabled && f.Required
	}
	if !u.MFAEnabled {
		u.recovery, u.recoveryOrigin = nil, store.Origin{}
	}
}

// UpdateFactor changes an enabled factor.
func (s *Store) UpdateFactor(ctx context.Context, c store.UpdateFactor) (done store.Factor, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.UserID]
		f := u.enabled(c.FactorID)
		if f == nil || c.FactorID == "" {
			return nil, store.ErrNotFound
		}
		e := &effect{about: u.ID}
		e.apply = func() error {
			if c.Label != nil {
				f.Label = *c.Label
			}
			if c.Required != nil && *c.Required != f.Required {
				f.Required = *c.Required
				u.touchCredentials(c.Now)
				if f.Required {
					s.requireFactor(e, u, c.Recovery, c.KeepSession, c.Now)
				} else {
					u.releaseFactor()
				}
			}
			done = copyFactor(*f)
			return nil
		}
		return e, nil
	})
	return done, err
}

// touchCredentials marks a change of a credential or a second factor.
func (u *user) touchCredentials(now time.Time) {
	u.UpdatedAt = now
	u.Revision++
	u.CredentialRevision++
}

// UseFactor replaces an enabled factor's state.
func (s *Store) UseFactor(ctx context.Context, c store.UseFactor) (done store.FactorResult, err error) {
	var e *effect
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.UserID]
		f := u.enabled(c.FactorID)
		switch {
		case f == nil || c.FactorID == "":
			return nil, store.ErrNotFound
		case !bytes.Equal(f.State, c.State):
			return nil, store.ErrUsed
		}
		e = &effect{about: u.ID}
		complete, err := s.planCompletion(e, u, &c.Completion, c.Now, &done)
		if err != nil {
			return nil, err
		}
		e.apply = func() error {
			f.State, f.LastUsedAt = slices.Clone(c.NewState), c.Now
			if len(c.Secret) > 0 {
				f.Secret = slices.Clone(c.Secret)
			}
			complete()
			return nil
		}
		return e, nil
	})
	if err == nil {
		e.completed(&c.Completion)
	}
	return done, err
}

// UseRecoveryCode deletes a recovery code.
func (s *Store) UseRecoveryCode(ctx context.Context, c store.UseRecoveryCode) (done store.FactorResult, err error) {
	var e *effect
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.UserID]
		if u == nil {
			return nil, store.ErrNotFound
		}
		at := u.codeAt(c.Hashes)
		if at < 0 {
			return nil, store.ErrNotFound
		}
		e = &effect{about: u.ID, codes: true}
		complete, err := s.planCompletion(e, u, &c.Completion, c.Now, &done)
		if err != nil {
			return nil, err
		}
		e.apply = func() error {
			u.recovery = slices.Delete(u.recovery, at, at+1)
			e.left = len(u.recovery)
			complete()
			done.RecoveryLeft = e.left
			return nil
		}
		return e, nil
	})
	if err == nil {
		e.completed(&c.Completion)
	}
	return done, err
}

// codeAt returns the index of the recovery code with one of the hashes; -1 if there is
// none.
func (u *user) codeAt(hashes [][]byte) int {
	return slices.IndexFunc(u.recovery, func(kept []byte) bool {
		return slices.ContainsFunc(hashes, func(h []byte) bool { return subtle.ConstantTimeCompare(kept, h) == 1 })
	})
}

// PutRecoveryCodes replaces the recovery codes.
func (s *Store) PutRecoveryCodes(ctx context.Context, c store.PutRecoveryCodes) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.UserID]
		if u == nil || !u.MFAEnabled {
			return nil, store.ErrNotFound
		}
		e := &effect{about: u.ID}
		e.apply = func() error {
			u.recovery, u.recoveryOrigin = cloneAll(c.Hashes), e.origin(u)
			u.trustNone()
			return nil
		}
		return e, nil
	})
}

// RemoveFactor removes one factor, or all second factors.
func (s *Store) RemoveFactor(ctx context.Context, c store.RemoveFactor) (owner store.User, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.UserID]
		if u.enabled(c.FactorID) == nil {
			return nil, store.ErrNotFound
		}
		at := -1
		if c.Recovery != nil {
			if at = u.codeAt(c.Recovery); at < 0 {
				return nil, store.ErrNotFound
			}
		}
		e := &effect{about: u.ID, codes: c.Recovery != nil}
		e.apply = func() error {
			if at >= 0 {
				u.recovery = slices.Delete(u.recovery, at, at+1)
			}
			for id, f := range u.factors {
				if c.FactorID == id || c.FactorID == "" && (f.Required || !f.Enabled) {
					s.dropFactor(u, f)
				}
			}
			u.releaseFactor()
			e.left = len(u.recovery)
			u.touchCredentials(c.Now)
			owner = copyUser(u.User)
			return nil
		}
		return e, nil
	})
	return owner, err
}

func copyFactor(f store.Factor) store.Factor {
	f.Credential, f.Secret, f.State = slices.Clone(f.Credential), slices.Clone(f.Secret), slices.Clone(f.State)
	allUTC(&f.CreatedAt, &f.LastUsedAt)
	return f
}
