package sqlitestore

import (
	"context"
	"crypto/subtle"
	"slices"

	"github.com/authmount/auth/store"
)

func (t *tx) recoveryLeft(userID string) int {
	return value[int](t, `select count(*) from auth_recovery_codes where user_id = ?`, userID)
}

// recoveryCode returns the hash of the user's recovery code with one of the hashes; nil if
// there is none.
func (t *tx) recoveryCode(userID string, hashes [][]byte) []byte {
	if len(hashes) == 0 {
		return nil
	}
	for _, kept := range values[[]byte](t, `select hash from auth_recovery_codes where user_id = ?`, userID) {
		if slices.ContainsFunc(hashes, func(h []byte) bool { return subtle.ConstantTimeCompare(kept, h) == 1 }) {
			return kept
		}
	}
	return nil
}

// putRecovery replaces a user's recovery codes.
func (t *tx) putRecovery(userID string, hashes [][]byte, origin store.Origin) {
	t.exec(`delete from auth_recovery_codes where user_id = ?`, userID)
	for _, h := range hashes {
		t.exec(`insert into auth_recovery_codes (user_id, hash) values (?, ?) on conflict do nothing`, userID, blob(h))
	}
	t.exec(`update auth_users set recovery_sequence = ?, recovery_added_by = ? where id = ?`, origin.Sequence, origin.AddedBy, userID)
}

// UseRecoveryCode deletes a recovery code.
func (s *Store) UseRecoveryCode(ctx context.Context, c store.UseRecoveryCode) (store.FactorResult, error) {
	return s.complete(ctx, &c.Change, c.UserID, &c.Completion, func(t *tx, e *effect, u *user) (func(*store.FactorResult), error) {
		code := t.recoveryCode(u.ID, c.Hashes)
		if code == nil {
			return nil, store.ErrNotFound
		}
		e.codes = true
		return func(done *store.FactorResult) {
			t.exec(`delete from auth_recovery_codes where user_id = ? and hash = ?`, u.ID, code)
			e.left = t.recoveryLeft(u.ID)
			done.RecoveryLeft = e.left
		}, nil
	})
}

// PutRecoveryCodes replaces the recovery codes.
func (s *Store) PutRecoveryCodes(ctx context.Context, c store.PutRecoveryCodes) error {
	return s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		u := t.user(c.UserID)
		if u == nil || !u.MFAEnabled {
			return nil, store.ErrNotFound
		}
		e := &effect{about: u.ID}
		e.apply = func() error {
			t.putRecovery(u.ID, c.Hashes, t.origin(e, u))
			t.trustNone(u.ID)
			return nil
		}
		return e, nil
	})
}
