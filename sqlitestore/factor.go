package sqlitestore

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

const selectFactors = `select f.id, f.user_id, f.kind, f.several, f.required, f.label, f.credential, f.secret, f.state, f.enabled, f.created_at, f.last_used_at, f.sequence, f.added_by from auth_factors f`

func scanFactor(scan row) (f store.Factor) {
	scan(&f.ID, &f.UserID, &f.Kind, &f.Several, &f.Required, &f.Label, &f.Credential, &f.Secret, &f.State, &f.Enabled, at{&f.CreatedAt}, at{&f.LastUsedAt}, &f.Sequence, &f.AddedBy)
	return f
}

// Factors reads a user's factors.
func (s *Store) Factors(ctx context.Context, userID string) (all store.Factors, err error) {
	err = s.snapshot(ctx, func(t *tx) error {
		all.List = list(t, scanFactor, selectFactors+` where f.user_id = ? order by f.created_at, f.id`, userID)
		all.RecoveryLeft = t.recoveryLeft(userID)
		if origin := first(t, scanOrigin, `select recovery_sequence, recovery_added_by from auth_users where id = ?`, userID); origin != nil {
			all.Recovery = *origin
		}
		return nil
	})
	if err != nil {
		return store.Factors{}, err
	}
	return all, nil
}

func scanOrigin(scan row) (o store.Origin) {
	scan(&o.Sequence, &o.AddedBy)
	return o
}

// enabled returns an enabled factor of the user; nil if there is none.
func (t *tx) enabled(userID, id string) *store.Factor {
	return first(t, scanFactor, selectFactors+` where f.user_id = ? and f.id = ? and f.enabled = 1`, userID, id)
}

// excluded reports whether an enabled factor of the user excludes f.
func (t *tx) excluded(f *store.Factor) bool {
	return !f.Several && t.exists(`select 1 from auth_factors where user_id = ? and kind = ? and enabled = 1`, f.UserID, f.Kind)
}

// factorsClash reports whether new factors exclude each other.
func factorsClash(all []store.Factor) bool {
	for n, f := range all {
		if slices.ContainsFunc(all[:n], func(o store.Factor) bool {
			return o.ID == f.ID || o.Kind == f.Kind && !f.Several
		}) {
			return true
		}
	}
	return false
}

// factorsTaken reports whether the id or credential of a new factor is taken.
func (t *tx) factorsTaken(all []store.Factor) bool {
	for n, f := range all {
		if t.exists(`select 1 from auth_factors where id = ? or credential = ?`, f.ID, bytesOrNull(f.Credential)) ||
			len(f.Credential) > 0 && slices.ContainsFunc(all[:n], func(o store.Factor) bool { return bytes.Equal(o.Credential, f.Credential) }) {
			return true
		}
	}
	return false
}

func (t *tx) insertFactor(f *store.Factor) {
	t.exec(`insert into auth_factors (id, user_id, kind, several, required, label, credential, secret, state, enabled, created_at, last_used_at, sequence, added_by)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		f.ID, f.UserID, f.Kind, f.Several, f.Required, f.Label, bytesOrNull(f.Credential), blob(f.Secret), blob(f.State), f.Enabled, micros(f.CreatedAt), maybe(f.LastUsedAt), f.Sequence, f.AddedBy)
}

// PutFactor stores a pending factor and removes an older pending one.
func (s *Store) PutFactor(ctx context.Context, c store.PutFactor) error {
	return s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		f := c.Factor
		if !t.exists(`select 1 from auth_users where id = ?`, f.UserID) {
			return nil, store.ErrNotFound
		}
		// The older pending factor does not count, because the new one replaces it.
		if t.excluded(&f) || t.exists(`select 1 from auth_factors where (id = ? or credential = ?) and not (user_id = ? and kind = ? and enabled = 0)`,
			f.ID, bytesOrNull(f.Credential), f.UserID, f.Kind) {
			return nil, &store.ConflictError{Field: "factor"}
		}
		return &effect{about: f.UserID, apply: func() error {
			t.exec(`delete from auth_factors where user_id = ? and kind = ? and enabled = 0`, f.UserID, f.Kind)
			f.Enabled, f.Origin = false, store.Origin{}
			t.insertFactor(&f)
			return nil
		}}, nil
	})
}

// EnableFactor enables a pending factor.
func (s *Store) EnableFactor(ctx context.Context, c store.EnableFactor) (store.FactorResult, error) {
	return s.complete(ctx, &c.Change, c.UserID, &c.Completion, func(t *tx, e *effect, u *user) (func(*store.FactorResult), error) {
		f := first(t, scanFactor, selectFactors+` where f.user_id = ? and f.id = ?`, u.ID, c.FactorID)
		switch {
		case f == nil:
			return nil, store.ErrNotFound
		case f.Enabled || t.excluded(f):
			return nil, &store.ConflictError{Field: "factor"}
		}
		return func(*store.FactorResult) {
			origin := t.origin(e, u)
			t.exec(`update auth_factors set enabled = 1, state = ?, sequence = ?, added_by = ? where id = ?`, blob(c.State), origin.Sequence, origin.AddedBy, f.ID)
			t.touchCredentials(u, c.Now)
			if f.Required {
				kept := ""
				if c.Raise != nil {
					kept = c.Raise.SessionID
				}
				t.requireFactor(e, u, c.Recovery, kept, c.Now)
			}
		}, nil
	})
}

// requireFactor applies the effects of a factor that becomes Required to its user.
func (t *tx) requireFactor(e *effect, u *user, recovery [][]byte, keepSession string, now time.Time) {
	u.MFAEnabled = true
	t.exec(`update auth_users set mfa_enabled = 1 where id = ?`, u.ID)
	if recovery != nil {
		t.putRecovery(u.ID, recovery, t.origin(e, u))
	}
	e.ended = t.revoke(u.ID, store.SessionFilter{Except: keepSession}, now)
}

// releaseFactor applies the effects of a Required factor that is gone to its user.
func (t *tx) releaseFactor(u *user) {
	u.MFAEnabled = t.exists(`select 1 from auth_factors where user_id = ? and enabled = 1 and required = 1`, u.ID)
	t.exec(`update auth_users set mfa_enabled = ? where id = ?`, u.MFAEnabled, u.ID)
	if !u.MFAEnabled {
		t.putRecovery(u.ID, nil, store.Origin{})
	}
}

// touchCredentials marks a change of a credential or a second factor.
func (t *tx) touchCredentials(u *user, now time.Time) {
	u.UpdatedAt, u.Revision, u.CredentialRevision = now, u.Revision+1, u.CredentialRevision+1
	t.exec(`update auth_users set updated_at = ?, revision = ?, credential_revision = ? where id = ?`, micros(now), u.Revision, u.CredentialRevision, u.ID)
}

// UpdateFactor changes an enabled factor.
func (s *Store) UpdateFactor(ctx context.Context, c store.UpdateFactor) (done store.Factor, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		u, f := t.user(c.UserID), t.enabled(c.UserID, c.FactorID)
		if u == nil || f == nil {
			return nil, store.ErrNotFound
		}
		e := &effect{about: u.ID}
		e.apply = func() error {
			if c.Label != nil {
				f.Label = *c.Label
			}
			turned := c.Required != nil && *c.Required != f.Required
			f.Required = f.Required != turned
			t.exec(`update auth_factors set label = ?, required = ? where id = ?`, f.Label, f.Required, f.ID)
			if turned {
				t.touchCredentials(u, c.Now)
				if f.Required {
					t.requireFactor(e, u, c.Recovery, c.KeepSession, c.Now)
				} else {
					t.releaseFactor(u)
				}
			}
			done = *f
			return nil
		}
		return e, nil
	})
	if err != nil {
		return store.Factor{}, err
	}
	return done, nil
}

// UseFactor replaces an enabled factor's state.
func (s *Store) UseFactor(ctx context.Context, c store.UseFactor) (store.FactorResult, error) {
	return s.complete(ctx, &c.Change, c.UserID, &c.Completion, func(t *tx, _ *effect, u *user) (func(*store.FactorResult), error) {
		f := t.enabled(u.ID, c.FactorID)
		switch {
		case f == nil:
			return nil, store.ErrNotFound
		case !bytes.Equal(f.State, c.State):
			return nil, store.ErrUsed
		}
		return func(*store.FactorResult) {
			if len(c.Secret) > 0 {
				f.Secret = c.Secret
			}
			t.exec(`update auth_factors set state = ?, secret = ?, last_used_at = ? where id = ?`, blob(c.NewState), f.Secret, micros(c.Now), f.ID)
		}, nil
	})
}

// RemoveFactor removes one second factor, or all of them.
func (s *Store) RemoveFactor(ctx context.Context, c store.RemoveFactor) (owner store.User, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		u := t.user(c.UserID)
		if u == nil || !t.exists(`select 1 from auth_factors where user_id = ?1 and enabled = 1 and (?2 = '' and required = 1 or id = ?2)`, u.ID, c.FactorID) {
			return nil, store.ErrNotFound
		}
		code := t.recoveryCode(u.ID, c.Recovery)
		if c.Recovery != nil && code == nil {
			return nil, store.ErrNotFound
		}
		e := &effect{about: u.ID, codes: c.Recovery != nil}
		e.apply = func() error {
			if code != nil {
				t.exec(`delete from auth_recovery_codes where user_id = ? and hash = ?`, u.ID, code)
			}
			t.exec(`delete from auth_factors where user_id = ?1 and (?2 = '' and (required = 1 or enabled = 0) or id = ?2)`, u.ID, c.FactorID)
			t.releaseFactor(u)
			e.left = t.recoveryLeft(u.ID)
			t.touchCredentials(u, c.Now)
			owner = u.User
			return nil
		}
		return e, nil
	})
	if err != nil {
		return store.User{}, err
	}
	return owner, nil
}
