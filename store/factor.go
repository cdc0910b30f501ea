package store

import (
	"context"
	"time"
)

// FactorStore keeps second factors and recovery codes. The rules of [Store] apply: every
// method is one complete transition, and every method that changes something takes a
// Change.
type FactorStore interface {
	// Factors returns a user's factors, pending and enabled, in the order of (CreatedAt,
	// ID), and the number of recovery codes left. An unknown user has an empty list.
	Factors(ctx context.Context, userID string) (Factors, error)
	// PutFactor stores a pending factor and deletes an older pending one of the same kind.
	// Errors: ErrNotFound if there is no such user; a *ConflictError of "factor" if the id
	// or Credential is taken, or if a factor of the kind is enabled and the new one is not
	// Several.
	PutFactor(ctx context.Context, c PutFactor) error
	// EnableFactor enables a pending factor. It replaces the factor's state and raises both
	// revisions. If the factor is Required, it also sets User.MFAEnabled, replaces the
	// recovery codes if Recovery is set, and ends the user's other sessions, all except
	// Completion's. A factor that is not Required ends nothing, and its Recovery is ignored.
	// EnableFactor may set LastUsedAt. Errors: ErrNotFound if the factor is unknown or another
	// user's; a *ConflictError of "factor" if it is enabled already, or if another factor
	// of the kind is and this one is not Several; and the errors of Completion.
	EnableFactor(ctx context.Context, c EnableFactor) (FactorResult, error)
	// UpdateFactor changes the label of an enabled factor, and whether it is Required. A
	// factor that becomes Required has the effect of EnableFactor: UpdateFactor sets
	// User.MFAEnabled, replaces the recovery codes if Recovery is set, and ends the user's
	// sessions except KeepSession. With a factor that is no longer Required it does the same
	// as RemoveFactor to User.MFAEnabled and the recovery codes. Either raises both
	// revisions. A new label alone changes nothing of the user, and a value that the factor
	// has already is no change. The factor's state and Origin stay the same. It returns the
	// factor. ErrNotFound if the factor is unknown, another user's or pending.
	UpdateFactor(ctx context.Context, c UpdateFactor) (Factor, error)
	// UseFactor replaces an enabled factor's state if the state is still State, and sets
	// LastUsedAt. Errors: ErrNotFound if the factor is unknown, another user's or pending;
	// ErrUsed if the state has changed; and the errors of Completion.
	UseFactor(ctx context.Context, c UseFactor) (FactorResult, error)
	// UseRecoveryCode deletes the recovery code with one of the hashes. Errors: ErrNotFound
	// if the user has none of them; and the errors of Completion.
	UseRecoveryCode(ctx context.Context, c UseRecoveryCode) (FactorResult, error)
	// PutRecoveryCodes replaces all codes and ends the trust in all devices (see
	// Store.CreateSession). ErrNotFound if no enabled factor of the user is
	// Required.
	PutRecoveryCodes(ctx context.Context, c PutRecoveryCodes) error
	// RemoveFactor removes an enabled factor or, without FactorID, every Required one and
	// every pending one: factors that are not Required stay. It sets User.MFAEnabled to whether an enabled Required factor is left,
	// deletes the recovery codes if none is, and raises both revisions. With Recovery it also
	// deletes that code. ErrNotFound, and no change, if no such factor is enabled or the user
	// does not have the code.
	RemoveFactor(ctx context.Context, c RemoveFactor) (User, error)
}

// FactorTOTP is the kind of factors that use time-based one-time passwords (RFC 6238).
const FactorTOTP = "totp"

// FactorPasskey is the kind of passkeys (WebAuthn Level 3).
const FactorPasskey = "passkey"

// Factor is one of a user's second factors, or, for example, a passkey that replaces the
// password and is not Required.
type Factor struct {
	ID       string // a UUID
	UserID   string
	Kind     string // such as FactorTOTP
	Several  bool   // a user may have several enabled factors of this kind
	Required bool   // while it is enabled, a sign-in needs a second factor (User.MFAEnabled)
	Label    string // the user's own name for the factor

	Credential []byte // such as a passkey's credential id; unique over all factors; empty: none
	Secret     []byte // the constant part, sealed by the caller if it is secret
	State      []byte // opaque; changes with every use, for example the newest time step or counter

	Enabled    bool // false: pending
	CreatedAt  time.Time
	LastUsedAt time.Time // zero: never
	Origin               // zero while pending
}

// PasskeyRecord is a passkey as exports and imports carry it, from which another service can
// check its signatures (WebAuthn Level 3, section 4, credential record). Nothing in it is
// secret. Binary values are base64url without padding. Stores keep a Factor instead.
type PasskeyRecord struct {
	CredentialID   string     `json:"credential_id"`
	RPID           string     `json:"rp_id"`           // the domain that the passkey works for
	PublicKey      string     `json:"public_key"`      // a COSE key (RFC 9052)
	Counter        uint32     `json:"counter"`         // the newest signature counter; 0 if the authenticator has none
	UserVerified   bool       `json:"user_verified"`   // WebAuthn's uvInitialized: the passkey alone counts as two factors
	BackupEligible bool       `json:"backup_eligible"` // the passkey may be on several devices
	BackedUp       bool       `json:"backed_up"`       // it was, when it was last used
	Transports     []string   `json:"transports"`
	AAGUID         string     `json:"aaguid"`    // a UUID: the model of the authenticator
	AuthData       string     `json:"auth_data"` // the authenticator data of the registration, as it came; optional for imports
	Name           string     `json:"name"`
	SecondFactor   bool       `json:"second_factor"` // Factor.Required
	CreatedAt      time.Time  `json:"created_at"`
	LastUsedAt     *time.Time `json:"last_used_at"` // nil: never
}

// Factors holds the second factors and recovery codes of a user.
type Factors struct {
	List         []Factor
	RecoveryLeft int
	Recovery     Origin // of the current set of recovery codes
}

// FactorResult is the state after a change by FactorStore.
type FactorResult struct {
	User         User
	Session      Session // raised or created by Completion; zero without one
	RecoveryLeft int     // of UseRecoveryCode
}

// Completion is completed by the use of a second factor in the same change. Its parts are
// optional; at most one of Raise and Create is set. Errors, after those of the factor:
//
//   - ErrNotFound if Redeem is not live or another user's
//   - ErrSessionEnded if the session of Raise is unknown, ended or another user's
//   - the errors of CreateSession for Create; always ErrMFARequired below AAL2
//   - ErrBanned for each part
type Completion struct {
	Redeem *TokenRef    // a token of the user, which is used up
	Raise  *RaisedLevel // a live session of the user, which is raised to AAL2
	Create *NewSession  // a session at AAL2 that is created as by CreateSession
}

// RaisedLevel raises a session to AAL2 by adding an authentication method, which replaces
// an earlier entry of the same method. The new entry is in its place or at the end.
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
		Recovery [][]byte // hashes that replace the recovery codes; nil: no change
		Completion
	}
	// UpdateFactor is the parameter of FactorStore.UpdateFactor. Nil fields are not changed.
	UpdateFactor struct {
		Change
		UserID   string
		FactorID string
		Label    *string
		Required *bool

		// These have an effect only if the factor becomes Required.
		Recovery    [][]byte // as of EnableFactor
		KeepSession string   // the id of a session that does not end; empty: none
	}
	// UseFactor is the parameter of FactorStore.UseFactor.
	UseFactor struct {
		Change
		UserID   string
		FactorID string
		State    []byte // Factor.State as it was read
		NewState []byte // replaces it
		Secret   []byte // if set: the same secret, sealed again
		Completion
	}
	// UseRecoveryCode is the parameter of FactorStore.UseRecoveryCode.
	UseRecoveryCode struct {
		Change
		UserID string
		Hashes [][]byte // of one code, under current and previous keys
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
		FactorID string   // empty: all that are Required or pending
		Recovery [][]byte // hashes of one recovery code to delete, under current and previous keys; nil: none
	}
)
