package memstore

import (
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
		all.RecoveryLeft = len(u.recovery)
	}
	slices.SortFunc(all.List, func(a, b store.Factor) int { return byAge(a.CreatedAt, a.ID, b.CreatedAt, b.ID) })
	return all, nil
}

// enabled returns an enabled factor of the user: the one with this id, or any if
// the id is empty. u may be nil.
func (u *user) enabled(id string) *store.Factor {
	if u == nil {
		return nil
	}
	for _, f := range u.factors {
		if f.Enabled && (id == "" || id == f.ID) {
			return f
		}
	}
	return nil
}

// hasKind tells whether a factor of this kind is enabled.
func (u *user) hasKind(kind string) bool {
	for _, f := range u.factors {
		if f.Enabled && f.Kind == kind {
			return true
		}
	}
	return false
}

// PutFactor keeps a pending factor in place of an older pending one.
func (s *Store) PutFactor(ctx context.Context, c store.PutFactor) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.Factor.UserID]
		switch {
		case u == nil:
			return nil, store.ErrNotFound
		case u.hasKind(c.Factor.Kind):
			return nil, &store.ConflictError{Field: "factor"}
		}
		return &effect{about: u.ID, apply: func() error {
			for id, f := range u.factors {
				if f.Kind == c.Factor.Kind {
					delete(u.factors, id)
				}
			}
			pending := copyFactor(c.Factor)
			pending.Enabled = false
			u.factors[pending.ID] = &pending
			return nil
		}}, nil
	})
}

// EnableFactor switches a pending factor on.
func (s *Store) EnableFactor(ctx context.Context, c store.EnableFactor) (owner store.User, err error) {
	var e *effect
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.UserID]
		if u == nil || u.factors[c.FactorID] == nil {
			return nil, store.ErrNotFound
		}
		f, kept := u.factors[c.FactorID], s.sessions[c.Session.ID]
		switch {
		case f.Enabled || u.hasKind(f.Kind):
			return nil, &store.ConflictError{Field: "factor"}
		case kept != nil && (kept.UserID != u.ID || !kept.liveAt(c.Now)):
			return nil, store.ErrSessionEnded
		case u.Banned(c.Now) || (kept == nil && u.Banned(c.Session.CreatedAt)):
			return nil, store.ErrBanned
		case kept == nil && c.Session.AAL != store.LevelAAL2:
			return nil, store.ErrMFARequired
		}
		e = &effect{about: u.ID}
		if kept == nil {
			if err := e.onDevice(u, &c.Session, &c.OnNewDevice); err != nil {
				return nil, err
			}
		}
		if c.Redeem != nil {
			if e.uses = s.liveToken(refID(*c.Redeem), c.Now); e.uses == nil {
				return nil, store.ErrNotFound
			}
		}
		e.apply = func() error {
			f.Enabled, f.LastStep = true, c.Step
			u.recovery, u.MFAEnabled = cloneAll(c.Recovery), true
			u.touchCredentials(c.Now)
			e.ended = s.revoke(u, store.SessionFilter{Except: c.Session.ID}, c.Now)
			if kept != nil {
				kept.AAL, kept.AMR = c.Session.AAL, slices.Clone(c.Session.AMR)
			} else {
				first := c.Session
				first.UserID = u.ID
				s.addSession(u, first)
			}
			if c.Redeem != nil {
				s.dropToken(refID(*c.Redeem))
			}
			owner = copyUser(u.User)
			return nil
		}
		return e, nil
	})
	if err == nil {
		e.made()
	}
	return owner, err
}

// touchCredentials marks a change of a way in or of a second factor.
func (u *user) touchCredentials(now time.Time) {
	u.UpdatedAt = now
	u.Revision++
	u.CredentialRevision++
}

// UseTOTPStep moves the newest step used forward.
func (s *Store) UseTOTPStep(ctx context.Context, c store.UseTOTPStep) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		if c.FactorID == "" {
			return nil, store.ErrNotFound
		}
		f := s.users[c.UserID].enabled(c.FactorID)
		switch {
		case f == nil:
			return nil, store.ErrNotFound
		case c.Step <= f.LastStep:
			return nil, store.ErrUsed
		}
		return &effect{about: c.UserID, apply: func() error {
			f.LastStep, f.LastUsedAt = c.Step, c.Now
			if len(c.Secret) > 0 {
				f.Secret = slices.Clone(c.Secret)
			}
			return nil
		}}, nil
	})
}

// UseRecoveryCode uses a recovery code up.
func (s *Store) UseRecoveryCode(ctx context.Context, c store.UseRecoveryCode) (left int, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.UserID]
		if u == nil {
			return nil, store.ErrNotFound
		}
		at := u.codeAt(c.Hashes)
		if at < 0 {
			return nil, store.ErrNotFound
		}
		e := &effect{about: u.ID, codes: true}
		e.apply = func() error {
			u.recovery = slices.Delete(u.recovery, at, at+1)
			left = len(u.recovery)
			e.left = left
			return nil
		}
		return e, nil
	})
	return left, err
}

// codeAt finds the recovery code that has one of the hashes; -1 if there is none.
func (u *user) codeAt(hashes [][]byte) int {
	return slices.IndexFunc(u.recovery, func(kept []byte) bool {
		return slices.ContainsFunc(hashes, func(h []byte) bool { return subtle.ConstantTimeCompare(kept, h) == 1 })
	})
}

// PutRecoveryCodes replaces the recovery codes.
func (s *Store) PutRecoveryCodes(ctx context.Context, c store.PutRecoveryCodes) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.UserID]
		if u.enabled("") == nil {
			return nil, store.ErrNotFound
		}
		return &effect{about: u.ID, apply: func() error {
			u.recovery = cloneAll(c.Hashes)
			u.trustNone()
			return nil
		}}, nil
	})
}

// RemoveFactor switches one second factor off, or all of them.
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
			if c.FactorID == "" {
				clear(u.factors)
			} else {
				delete(u.factors, c.FactorID)
			}
			if u.enabled("") == nil {
				u.MFAEnabled, u.recovery = false, nil
			}
			e.left = len(u.recovery)
			u.touchCredentials(c.Now)
			owner = copyUser(u.User)
			return nil
		}
		return e, nil
	})
	return owner, err
}

// RaiseSession lifts a session to AAL2.
func (s *Store) RaiseSession(ctx context.Context, c store.RaiseSession) (store.Session, store.User, error) {
	return s.addProof(ctx, store.AddProof(c), store.LevelAAL2)
}

func copyFactor(f store.Factor) store.Factor {
	f.Secret = slices.Clone(f.Secret)
	allUTC(&f.CreatedAt, &f.LastUsedAt)
	return f
}
