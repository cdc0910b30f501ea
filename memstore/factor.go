package memstore

import (
	"context"
	"crypto/subtle"
	"slices"
	"time"

	"github.com/authmount/auth"
)

var _ auth.FactorStore = (*Store)(nil)

// factor is a user's second factor.
type factor struct {
	auth.Factor
	recovery [][]byte
}

// withFactor runs f on a user and its factor, which may be nil.
func (s *Store) withFactor(ctx context.Context, userID string, f func(*user) error) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	u := s.users[userID]
	if u == nil {
		return auth.ErrNotFound
	}
	return f(u)
}

// PutFactor keeps a pending secret in place of an older pending one.
func (s *Store) PutFactor(ctx context.Context, userID string, sealed []byte, _ time.Time) error {
	return s.withFactor(ctx, userID, func(u *user) error {
		if u.factor != nil && u.factor.Enabled {
			return &auth.ConflictError{Field: "factor"}
		}
		u.factor = &factor{Factor: auth.Factor{UserID: userID, Secret: slices.Clone(sealed)}}
		return nil
	})
}

// Factor reads a user's factor.
func (s *Store) Factor(ctx context.Context, userID string) (f auth.Factor, err error) {
	err = s.withFactor(ctx, userID, func(u *user) error {
		if u.factor == nil {
			return auth.ErrNotFound
		}
		f = u.factor.Factor
		f.Secret, f.RecoveryLeft = slices.Clone(f.Secret), len(u.factor.recovery)
		return nil
	})
	return f, err
}

// EnableFactor switches a pending factor on.
func (s *Store) EnableFactor(ctx context.Context, e auth.EnableFactor) (enabled auth.User, err error) {
	err = s.withFactor(ctx, e.UserID, func(u *user) error {
		kept := s.sessions[e.Session.ID]
		switch {
		case u.factor == nil:
			return auth.ErrNotFound
		case u.factor.Enabled:
			return &auth.ConflictError{Field: "factor"}
		case !slices.Equal(u.factor.Secret, e.Secret):
			return auth.ErrStale
		case u.Banned(e.Now):
			return auth.ErrBanned
		case kept != nil && (kept.UserID != e.UserID || !kept.liveAt(e.Now)):
			return auth.ErrStale
		}
		u.factor.Enabled, u.factor.LastStep = true, e.Step
		u.factor.recovery = cloneAll(e.Recovery)
		u.MFAEnabled, u.UpdatedAt = true, e.Now
		u.Revision++
		s.revoke(u, auth.SessionFilter{Except: e.Session.ID}, e.Now)
		if kept != nil {
			kept.AAL, kept.AMR = e.Session.AAL, slices.Clone(e.Session.AMR)
		} else {
			s.addSession(u, e.Session)
		}
		enabled = copyUser(u.User)
		return nil
	})
	return enabled, err
}

// UseTOTPStep moves the newest step used forward.
func (s *Store) UseTOTPStep(ctx context.Context, userID string, step int64) error {
	return s.withFactor(ctx, userID, func(u *user) error {
		if u.factor == nil || !u.factor.Enabled || step <= u.factor.LastStep {
			return auth.ErrStale
		}
		u.factor.LastStep = step
		return nil
	})
}

// UseRecoveryCode uses a recovery code up.
func (s *Store) UseRecoveryCode(ctx context.Context, userID string, hash []byte) (left int, err error) {
	err = s.withFactor(ctx, userID, func(u *user) error {
		if u.factor == nil || !u.factor.Enabled {
			return auth.ErrNotFound
		}
		for i, h := range u.factor.recovery {
			if subtle.ConstantTimeCompare(h, hash) == 1 {
				u.factor.recovery = slices.Delete(u.factor.recovery, i, i+1)
				left = len(u.factor.recovery)
				return nil
			}
		}
		return auth.ErrNotFound
	})
	return left, err
}

// PutRecoveryCodes replaces the recovery codes.
func (s *Store) PutRecoveryCodes(ctx context.Context, userID string, hashes [][]byte) error {
	return s.withFactor(ctx, userID, func(u *user) error {
		if u.factor == nil || !u.factor.Enabled {
			return auth.ErrNotFound
		}
		u.factor.recovery = cloneAll(hashes)
		return nil
	})
}

// RemoveFactor switches the second factor off.
func (s *Store) RemoveFactor(ctx context.Context, userID string, now time.Time) (removed auth.User, err error) {
	err = s.withFactor(ctx, userID, func(u *user) error {
		if u.factor == nil || !u.factor.Enabled {
			return auth.ErrNotFound
		}
		u.factor, u.MFAEnabled, u.UpdatedAt = nil, false, now
		u.Revision++
		removed = copyUser(u.User)
		return nil
	})
	return removed, err
}

// RaiseSession lifts a session to AAL2.
func (s *Store) RaiseSession(ctx context.Context, id string, proof auth.AMR, now time.Time) (auth.Session, auth.User, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.Session{}, auth.User{}, err
	}
	defer unlock()
	sess, u, err := s.get(id, now)
	if err != nil {
		return auth.Session{}, auth.User{}, err
	}
	sess.AAL = auth.LevelAAL2
	sess.AMR = append(slices.Clip(sess.AMR), proof)
	return copySession(sess.Session), copyUser(u.User), nil
}

func cloneAll(list [][]byte) [][]byte {
	out := make([][]byte, len(list))
	for i, b := range list {
		out[i] = slices.Clone(b)
	}
	return out
}
