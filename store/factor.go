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
	// (CreatedAt, ID), and how many recovery codes are left. It returns an empty list
	// for an unknown user.
	Factors(ctx context.Context, userID string) (Factors, error)
	// PutFactor stores a pending factor and removes an older pending one of the same
	// kind. Errors: ErrNotFound without the user; a *ConflictError of "factor" if the
	// id or Credential is taken, or if one of the kind is enabled and the factor is not
	// Several.
	PutFactor(ctx context.Context, c PutFactor) error
	// EnableFactor enables a pending factor: it replaces its state and, if Recovery is
	// set, the recovery codes, sets User.MFAEnabled if the factor is Required, raises
	// both revisions, and ends the user's other sessions, all but the one of
	// Completion. Errors: ErrNotFound if the factor is unknown or another user's, a
	// *ConflictError of "factor" if it is enabled, or if another one of the kind is and
	// the factor is not Several, and those of Completion.
	EnableFactor(ctx context.Context, c EnableFactor) (FactorResult, error)
	// UseFactor replaces an enabled factor's state if it is still the one that was
	// read, and sets LastUsedAt. Errors: ErrNotFound if the factor is unknown, another
	// user's or pending, ErrUsed if the state is another one by now, and those of
	// Completion.
	UseFactor(ctx context.Context, c UseFactor) (FactorResult, error)
	// UseRecoveryCode deletes the recovery code that has one of the hashes. Errors:
	// ErrNotFound if the user has none of them, and those of Completion.
	UseRecoveryCode(ctx context.Context, c UseRecoveryCode) (FactorResult, error)
	// PutRecoveryCodes replaces all codes; no device is trusted afterwards (see
	// Store.CreateSession). ErrNotFound without an enabled factor.
	PutRecoveryCodes(ctx context.Context, c PutRecoveryCodes) error
	// RemoveFactor removes an enabled factor or, without FactorID, every factor.
	// User.MFAEnabled says afterwards whether an enabled factor is left that is
	// Required; with the last enabled factor the recovery codes are removed. It raises
	// both revisions. With Recovery it also deletes that code, and changes nothing if
	// the user does not have it. ErrNotFound if nothing enabled was there, or no such
	// code.
	RemoveFactor(ctx context.Context, c RemoveFactor) (User, error)
}

// FactorTOTP is the kind of time-based one-time passwords (RFC 6238).
const FactorTOTP = "totp"

// Factor is one of a user's second factors.
type Factor struct {
	ID       string // a UUID
	UserID   string
	Kind     string // FactorTOTP
	Several  bool   // a user may have several enabled factors of this kind
	Required bool   // while it is enabled, a sign-in needs a second factor (User.MFAEnabled)
	Label    string // the user's own name for it

	Credential []byte // of all factors only this one has it (a passkey's credential id); empty: none
	Secret     []byte // what does not change, sealed by the caller if it is secret
	State      []byte // what changes with every use, such as the newest time step or counter; opaque

	Enabled    bool // false: pending
	CreatedAt  time.Time
	LastUsedAt time.Time // zero: never
	Origin               // zero while pending
}

// Factors is everything a user has of second factors.
type Factors struct {
	List         []Factor
	RecoveryLeft int
	Recovery     Origin // of the present set of recovery codes
}

// FactorResult is the state after a change of FactorStore.
type FactorResult struct {
	User         User
	Session      Session // that Completion raised or created; zero without one
	RecoveryLeft int     // of UseRecoveryCode
}

// Completion is what the use of a second factor completes in the same change. Its parts
// are optional; of Raise and Create at most one is set.
type Completion struct {
	Redeem *TokenRef    // a token of the user that is used up
	Raise  *RaisedLevel // a live session of the user that rises to AAL2
	Create *NewSession  // a session at AAL2 that is created as by CreateSession

	// Errors, after those of the factor: ErrNotFound if Redeem is not live, or is of
	// another user; for Raise ErrSessionEnded if the session is unknown, ended or
	// another user's; for Create those of CreateSession; ErrBanned for each.
}

// RaisedLevel lifts a session to AAL2 by adding an authentication method, in place of
// an earlier entry of the same method.
type RaisedLevel struct {
	SessionID string
	Method    AMR
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
		State    []byte   // after the first use
		Recovery [][]byte // hashes that replace the recovery codes; nil: they are kept
		Completion
	}
	// UseFactor is the parameter of FactorStore.UseFactor.
	UseFactor struct {
		Change
		UserID   string
		FactorID string
		State    []byte // Factor.State as it was read
		NewState []byte // replaces it
		Secret   []byte // if set: the same secret, sealed anew
		Completion
	}
	// UseRecoveryCode is the parameter of FactorStore.UseRecoveryCode.
	UseRecoveryCode struct {
		Change
		UserID string
		Hashes [][]byte // of one code, under present and previous keys
		Completion
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
		Recovery [][]byte // hashes of a recovery code to delete, under present and previous keys; nil: none
	}
)
