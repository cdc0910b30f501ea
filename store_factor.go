package auth

import (
	"context"
	"time"
)

// FactorStore is what a Store also has to be for second factors. The rules of
// Store apply: every method is one complete transition.
type FactorStore interface {
	// PutFactor keeps a pending secret in place of an older pending one.
	// ErrConflict if a factor is enabled, ErrNotFound without the user.
	PutFactor(ctx context.Context, userID string, sealed []byte, now time.Time) error
	// Factor reads the pending or enabled factor. ErrNotFound if there is none.
	Factor(ctx context.Context, userID string) (Factor, error)
	// EnableFactor switches a pending factor on: it keeps step and recovery
	// codes, sets MFAEnabled, ends all other sessions, and raises the session
	// named (its AAL and AMR) or, if there is none of that id, creates it as
	// CreateSession does. It raises Revision. ErrNotFound without a pending
	// factor, ErrConflict if it is enabled, ErrStale if the secret is another by
	// now or the session has ended or is another user's, ErrBanned.
	EnableFactor(ctx context.Context, e EnableFactor) (User, error)
	// UseTOTPStep records a time step as used. ErrStale unless it is newer than
	// every one used before.
	UseTOTPStep(ctx context.Context, userID string, step int64) error
	// UseRecoveryCode uses a code up and tells how many are left. ErrNotFound
	// if it is none of the user's.
	UseRecoveryCode(ctx context.Context, userID string, hash []byte) (left int, err error)
	// PutRecoveryCodes replaces all codes. ErrNotFound without enabled factor.
	PutRecoveryCodes(ctx context.Context, userID string, hashes [][]byte) error
	// RemoveFactor switches the factor off, forgets the codes and raises
	// Revision. ErrNotFound without enabled factor.
	RemoveFactor(ctx context.Context, userID string, now time.Time) (User, error)
	// RaiseSession lifts a live session to AAL2 and adds the proof. Errors as
	// for Session.
	RaiseSession(ctx context.Context, sessionID string, proof AMR, now time.Time) (Session, User, error)
}

// Factor is a user's TOTP secret, sealed by the caller.
type Factor struct {
	UserID       string
	Secret       []byte
	Enabled      bool
	LastStep     int64 // the newest time step used
	RecoveryLeft int
}

// EnableFactor is the end of an enrolment.
type EnableFactor struct {
	UserID   string
	Secret   []byte // as read; the pending one has to be the same still
	Step     int64  // of the code that was shown
	Recovery [][]byte
	Session  Session // at AAL2, to raise or to create
	Now      time.Time
}

// factorStore finds the capability in a store or in what it wraps.
func factorStore(s Store) FactorStore {
	for s != nil {
		if f, ok := s.(FactorStore); ok {
			return f
		}
		w, ok := s.(interface{ Unwrap() Store })
		if !ok {
			return nil
		}
		s = w.Unwrap()
	}
	return nil
}
