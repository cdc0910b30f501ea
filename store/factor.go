package store

import (
	"context"
	"time"
)

// FactorStore keeps second factors and recovery codes. The rules of Store apply:
// every method is one complete transition, and every one that changes something
// takes a Change.
type FactorStore interface {
	// Factors reads a user's factors, pending and enabled, in the order of
	// (CreatedAt, ID), and how many recovery codes are left. None, or no such
	// user, is an empty list.
	Factors(ctx context.Context, userID string) (Factors, error)
	// PutFactor keeps a pending factor in place of an older pending one of the
	// same kind. A *ConflictError of "factor" if one of that kind is enabled,
	// ErrNotFound without the user.
	PutFactor(ctx context.Context, c PutFactor) error
	// EnableFactor switches a pending factor on: it keeps step and recovery
	// codes, sets MFAEnabled, ends all other sessions, and raises the session
	// named (its AAL and AMR) or, if there is none of that id, creates it as
	// CreateSession does. It raises both revisions, and uses Redeem up.
	// ErrNotFound if the factor is not the user's or not there, a *ConflictError
	// of "factor" if it, or another of its kind, is enabled, ErrMFARequired if a
	// session that it creates showed no second factor, ErrSessionEnded if
	// the session named has ended or is another user's, ErrBanned, ErrNotFound if
	// Redeem is not live.
	EnableFactor(ctx context.Context, c EnableFactor) (User, error)
	// UseTOTPStep records a time step as used, and LastUsedAt. ErrNotFound if the
	// factor is not there or not enabled, ErrUsed unless the step is newer than
	// every one used before.
	UseTOTPStep(ctx context.Context, c UseTOTPStep) error
	// UseRecoveryCode uses up the code that has one of the hashes and returns how
	// many are left. ErrNotFound if none is the user's.
	UseRecoveryCode(ctx context.Context, c UseRecoveryCode) (left int, err error)
	// PutRecoveryCodes replaces all codes; no device is trusted any more (see
	// Store.CreateSession). ErrNotFound without an enabled factor.
	PutRecoveryCodes(ctx context.Context, c PutRecoveryCodes) error
	// RemoveFactor removes an enabled factor or, without FactorID, every factor.
	// With the last enabled one MFAEnabled becomes false and the recovery codes
	// go. It raises both revisions. With Recovery it also uses that code up, and
	// changes nothing without it. ErrNotFound if nothing enabled was there, or no
	// such code is the user's.
	RemoveFactor(ctx context.Context, c RemoveFactor) (User, error)
	// RaiseSession lifts a live session to AAL2 and adds the proof, in place of
	// one of the same method. Errors as for Session.
	RaiseSession(ctx context.Context, c RaiseSession) (Session, User, error)
}

// FactorTOTP is the kind of time-based one-time passwords (RFC 6238).
const FactorTOTP = "totp"

// Factor is one of a user's second factors.
type Factor struct {
	ID         string // a UUID
	UserID     string
	Kind       string // FactorTOTP
	Label      string // the user's own name for it
	Secret     []byte // sealed by the caller
	Enabled    bool   // false: pending
	CreatedAt  time.Time
	LastUsedAt time.Time // zero: never
	LastStep   int64     // totp: the newest time step used
}

// Factors is everything a user has of second factors.
type Factors struct {
	List         []Factor
	RecoveryLeft int
}

// The parameters of FactorStore's mutating methods.
type (
	// PutFactor is the parameter of FactorStore.PutFactor.
	PutFactor struct {
		Change
		Factor Factor // pending
	}
	// EnableFactor is the parameter of FactorStore.EnableFactor.
	EnableFactor struct {
		Change
		UserID   string
		FactorID string
		Step     int64     // of the code that was shown
		Recovery [][]byte  // hashes; replaces those there are
		Session  Session   // at AAL2, to raise or to create
		Redeem   *TokenRef // used up with it

		OnNewDevice NewDevice // of a session that is created
	}
	// UseTOTPStep is the parameter of FactorStore.UseTOTPStep.
	UseTOTPStep struct {
		Change
		UserID   string
		FactorID string
		Step     int64
		Secret   []byte // if set: the same secret, sealed anew
	}
	// UseRecoveryCode is the parameter of FactorStore.UseRecoveryCode.
	UseRecoveryCode struct {
		Change
		UserID string
		Hashes [][]byte // of one code, under present and previous keys
	}
	// PutRecoveryCodes is the parameter of FactorStore.PutRecoveryCodes.
	PutRecoveryCodes struct {
		Change
		UserID string
		Hashes [][]byte
	}
	// RemoveFactor is the parameter of FactorStore.RemoveFactor.
	RemoveFactor struct {
		Change
		UserID   string
		FactorID string   // empty: all
		Recovery [][]byte // hashes of the recovery code that it is shown, under present and previous keys; nil: none is asked for
	}
	// RaiseSession is the parameter of FactorStore.RaiseSession.
	RaiseSession struct {
		Change
		SessionID string
		Proof     AMR
	}
)
