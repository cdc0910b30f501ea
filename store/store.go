// Package store is the contract between Authmount and a database: the interfaces that
// a store implements, the records it keeps, and the changes it makes. Applications
// read package auth; authors of stores read this package: first Store, then Change, then
// the optional interfaces, and check their work with package storetest. Package
// examples/store is a small store to begin with. Texts of errors begin with "auth:",
// whichever store returns them.
//
// There are five interfaces. Every store implements [Store]; the other four are optional,
// each with the features that need it:
//
//   - [FactorStore]: second factors, recovery codes
//   - [Journal]: audit log, messages that outlive the process, message log, package admin
//   - [ProjectStore]: permissions of roles, stored API keys, settings changed at run time,
//     figures, package admin
//   - [AdminStore]: package admin, impersonation, imports of many users in one step,
//     Auth.Rotation
//
// auth.New logs which of them a store lacks, and refuses options that need one. Some
// single methods are optional, too, found by [Capability]: Check, Close,
// InTransaction, WatchRevocations and Unwrap.
package store

import (
	"context"
	"errors"
	"time"
)

// ContractVersion is the version of the contract that this package describes. A Store's
// Contract returns the version it was written for. What each asks of stores that the one before did not:
//
//   - 8: five interfaces: [Store], which has AddProof, Held, Account and EverOwned too,
//     [FactorStore], [Journal], [ProjectStore] and [AdminStore]; [Origin]; second factors
//     with a state ([UseFactor]), and [Completion]
//   - 7: [Change].IfKey; codes without a subject are nobody's ([TryCode])
//   - 6: [PutToken].Yields
//   - 5: [PutToken].Supersedes
//   - 4: [UserPatch].Notes, [UserAt].Banned, [NewDevice] of CreateSession and EnableFactor, and a late
//     refresh token that comes again within [Advance].Grace
//   - 3: late refresh tokens ([Advance].Replayed), tokens that are a link and a code
//     at once ([Token].Code), [NewUser].Factors
const ContractVersion = 8

// Store keeps users, sessions, single-use tokens and rate limits.
//
// Every method is one complete state transition: the caller passes hashes and
// the clock, the store decides and returns an outcome. There is no way to read a
// single-use thing and mark it used afterwards, so that race cannot be written.
// What changes an account takes a parameter that embeds [Change]: in whose name
// it happens, what must still be so, and what is recorded with it. The store
// judges those conditions after it holds its locks, at the same instant as the
// effect.
//
// Implementations must be safe for concurrent use, must apply each method
// wholly or not at all, and must not keep references to arguments or hand out
// references to what they keep. They return the outcome errors of this file
// (wrapped or not; callers use errors.Is); any other error means that the store
// could not answer, and becomes 503. A cancelled context stops a method before
// it takes effect, with the context's error; one that is cancelled meanwhile may
// let it finish, with its outcome. Times are UTC with microseconds. An instant
// equal to an expiry counts as expired, everywhere. Ids are UUIDs of any version;
// lists are in the order of (CreatedAt, ID).
//
// Package storetest holds the conformance suite for implementations;
// examples/store is a small one to begin with. [Capability] finds the optional
// interfaces; a wrapper exposes the store it wraps by a method Unwrap() Store. New
// calls a method Check(context.Context) error, if there is one, and fails with its
// error.
type Store interface {
	// Contract returns, as a literal, the ContractVersion that the store was
	// written for. New refuses another one, so that a condition that the store
	// does not know is never ignored in silence.
	Contract() int

	// CreateUser adds a user together with everything that comes with it. An
	// id, address, phone, identity or factor that is taken: a *ConflictError, and
	// nothing is kept. An error of NewUser.Creating is returned as it is.
	CreateUser(ctx context.Context, c CreateUser) (User, error)
	// User finds one user, banned or not. ErrNotFound if there is none.
	User(ctx context.Context, key UserKey) (User, error)
	// Credentials is User together with the password hash, in one read, whether a
	// session was made for the user on key.Device before, and until when that is
	// trusted.
	Credentials(ctx context.Context, key UserKey) (Credentials, error)
	// Held lists what is kept about a user and not over at now, each in the order
	// of its first time; what is kept of no user, or of none, is empty lists.
	Held(ctx context.Context, userID string, now time.Time) (Held, error)
	// Account returns what Credentials and Held do, and the errors of Credentials.
	Account(ctx context.Context, key UserKey, now time.Time) (Credentials, Held, error)
	// UpdateUser applies a patch. ErrNotFound if there is no such user, a
	// *ConflictError if a new address, phone or identity is taken; nothing
	// changed then.
	UpdateUser(ctx context.Context, c UpdateUser) (User, error)
	// DeleteUser removes the user with its identities, sessions, tokens, factors
	// and devices. ErrNotFound if there is no such user.
	DeleteUser(ctx context.Context, c DeleteUser) error

	// CreateSession adds a session and sets the user's LastSignInAt to the
	// session's CreatedAt, without raising a revision. Of the user's other live
	// sessions those stay that were active last, KeepSessions - 1 of them, however
	// many calls there are at once; the rest end. The session's Device is
	// remembered as seen at CreatedAt, as it is wherever a session is made
	// (CreateUser, EnableFactor, Effect.Create); of each user at most MaxDevices
	// are, those seen last. ErrNotFound if the user is gone, ErrBanned if banned at
	// that time, ErrMFARequired if the user has a second factor and the session is
	// neither AAL2 nor allowed by OnTrustedDevice, a *ConflictError if the id is
	// taken, ErrNewDevice as OnNewDevice says.
	//
	// A user's device is trusted from a session with TrustUntil on, up to that
	// instant. That ends early with any rise of the user's CredentialRevision, with
	// PutRecoveryCodes, with RevokeSessions.DropDevices, also of the device that
	// stays, and with the device. It never comes back by itself.
	CreateSession(ctx context.Context, c CreateSession) (User, error)
	// Session reads a session with its user. ErrNotFound if there never was one
	// or its user is gone, ErrBanned, beside the session and user, if the user is
	// banned at now (also when the session has ended), ErrSessionEnded if it was revoked or has expired.
	Session(ctx context.Context, id string, now time.Time) (Session, User, error)
	// AdvanceSession is refresh, as one compare-and-swap. If the presented
	// counter is the current one, the counter goes up by one and the session is
	// marked active (OutcomeDone). If it is the one before and less than Grace
	// has passed since the counter moved, the session is returned unchanged, so
	// that the caller hands out the same successor. Once Grace is over (of more
	// than zero) that is granted still, as OutcomeReplayed, unless it was within
	// ReplayGap before, or when the counter was one less than it is; the store
	// remembers of each session when and at which counter it last was. For Grace
	// after that, and while the counter has not moved, it is returned unchanged
	// once more, as often as it is asked for: a browser that wakes up sends several
	// requests at once. If the counter is older, or was not granted, the session is revoked, and that stays
	// so: ErrReused, with the session and user (OutcomeReused). A counter from the
	// future: ErrSessionEnded, nothing changed. Otherwise errors as for Session.
	//
	// If Draw has a Rate, it is drawn in the same step, as by Take, also where there
	// is no session to move on. What the bucket refuses is a *LimitedError before
	// anything else, and changes nothing.
	AdvanceSession(ctx context.Context, c Advance) (Session, User, error)
	// Sessions lists the live sessions of a user, newest first; none is an
	// empty list, also when there is no such user.
	Sessions(ctx context.Context, userID string, now time.Time) ([]Session, error)
	// RevokeSessions ends the user's live sessions that match, removes the user's
	// tokens of the purposes named and, for DropDevices, devices, and returns the ids of the sessions that it
	// ended, sorted. None, or no such user, is an empty list and no error. An
	// ended session never comes back.
	RevokeSessions(ctx context.Context, c RevokeSessions) ([]string, error)

	// AddProof adds a proof to a live session, in place of one of the same method,
	// and leaves its AAL and everything else of it as it is. Errors as for Session.
	AddProof(ctx context.Context, c AddProof) (Session, User, error)

	// PutToken keeps a token and removes any older one of the same purpose and
	// subject. An empty subject supersedes nothing. ErrNotFound if its UserID
	// names a user who is gone; ErrStale if it is to supersede another one.
	PutToken(ctx context.Context, c PutToken) error
	// PeekToken reads a live token and leaves it as it is. ErrNotFound if it is
	// unknown, used, superseded or expired.
	PeekToken(ctx context.Context, p Purpose, hash []byte, now time.Time) (Token, error)
	// RedeemToken uses a token up and applies its effect, both or neither: of
	// parallel calls one succeeds and the others get ErrNotFound, and an effect
	// that is refused (ErrStale, *ConflictError, ErrNotFound) leaves the token
	// good. A token that is not live is ErrNotFound before IfUsers, IfRoles, IfKey and
	// KeepOwner are judged.
	RedeemToken(ctx context.Context, c Redemption) (Token, User, error)
	// TryCode judges a guess at the live code of a purpose and subject (see
	// Token.Code) and counts it in the same step, in this order. ErrNotFound if
	// there is no live code, or no subject. ErrTooManyTries if MaxTries wrong guesses had been counted before
	// this one (the right code loses too). ErrWrongCode if it was wrong: counted,
	// whatever the conditions but the authority say (OutcomeWrongCode). The right
	// code is used up together with its effect, or neither, as by RedeemToken.
	// Hashes are compared in constant time where the comparison's duration could
	// tell something.
	TryCode(ctx context.Context, c TryCode) (Token, User, error)

	// Take draws from every bucket named, or from none of them if one refuses.
	// Draws with a key that comes twice are applied one after the other. Limits
	// belong to no account, so there is nothing to be conditional on.
	Take(ctx context.Context, draws []Draw, now time.Time) (Decision, error)
	// Sweep deletes up to limit things that are over at now (expired sessions,
	// revoked ones once they would have expired, expired tokens, full buckets,
	// idempotency records, and what the optional interfaces keep for a time), and devices
	// that were not seen for DeviceLife. It returns how many it deleted and changes
	// no other answer.
	Sweep(ctx context.Context, now time.Time, limit int) (int, error)
	// EverOwned tells whether anybody has ever had RoleOwner, whatever became of them.
	EverOwned(ctx context.Context) (bool, error)

	// Ping tells whether the store can answer.
	Ping(ctx context.Context) error
}

// What a Store returns besides success.
var (
	// ErrNotFound: there is no such thing, or it is not live any more.
	ErrNotFound = errors.New("auth: not found")
	// ErrConflict: a unique value is taken. Stores return a *ConflictError,
	// which matches it.
	ErrConflict = errors.New("auth: already taken")
	// ErrStale: a condition of the change (IfUsers, IfRoles, IfKey) does not hold any
	// more.
	ErrStale = errors.New("auth: changed meanwhile")
	// ErrBanned: the user is banned.
	ErrBanned = errors.New("auth: user is banned")
	// ErrMFARequired: the user has a second factor and the session lacks it.
	ErrMFARequired = errors.New("auth: second factor required")
	// ErrNewDevice: the session would be made on a device that the user was not
	// seen on, and the caller has not said what is recorded then.
	ErrNewDevice = errors.New("auth: device not seen before")
	// ErrSessionEnded: the session was revoked or has expired.
	ErrSessionEnded = errors.New("auth: session has ended")
	// ErrKeyEnded: the API key in whose name a change was to happen is revoked,
	// expired or another by now.
	ErrKeyEnded = errors.New("auth: API key has ended")
	// ErrReused: an outdated refresh token came back; the session is revoked.
	ErrReused = errors.New("auth: refresh token reused")
	// ErrWrongCode: the guess was wrong and has been counted.
	ErrWrongCode = errors.New("auth: wrong code")
	// ErrTooManyTries: no guesses are left for the code.
	ErrTooManyTries = errors.New("auth: too many tries")
	// ErrUsed: a code that is good once was used before.
	ErrUsed = errors.New("auth: used before")
	// ErrLastOwner: no unbanned owner would be left.
	ErrLastOwner = errors.New("auth: the last owner has to stay")
	// ErrOwned: there has been an owner, see Change.FirstOwner.
	ErrOwned = errors.New("auth: there has been an owner")
	// ErrLimited: the bucket that the call was to draw from refused. Stores return a
	// *LimitedError, which matches it.
	ErrLimited = errors.New("auth: limit used up")
	// ErrRepeated: the change was made before under its idempotency key. Stores
	// return a *RepeatedError, which matches it.
	ErrRepeated = errors.New("auth: done before")
	// ErrInvalidChange: the caller did not say when, in whose name, or on what a
	// change rests. It is a mistake in the program.
	ErrInvalidChange = errors.New("auth: a change without time (Change.Now), or without exactly one authority (Change.By)")
)

// ConflictError says which unique value is taken: "id", "email", "phone",
// "identity", "factor", "role" or "key". It matches ErrConflict.
type ConflictError struct{ Field string }

func (e *ConflictError) Error() string { return "auth: " + e.Field + " already taken" }

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// RepeatedError says that a change with the same idempotency key was made
// before. Nothing changed now. It matches ErrRepeated.
type RepeatedError struct {
	Same   bool   // the request was the same, too
	Result []byte // Idempotency.Result as it was given then
}

func (e *RepeatedError) Error() string { return ErrRepeated.Error() }

// Is makes errors.Is(err, ErrRepeated) true.
func (e *RepeatedError) Is(target error) bool { return target == ErrRepeated }

// LimitedError says that a limit was used up. Nothing changed. It matches ErrLimited.
type LimitedError struct {
	RetryAfter time.Duration // as Decision.RetryAfter
}

func (e *LimitedError) Error() string { return ErrLimited.Error() }

// Is makes errors.Is(err, ErrLimited) true.
func (e *LimitedError) Is(target error) bool { return target == ErrLimited }

// InvalidError says what is wrong with a parameter of a query.
type InvalidError struct{ Field, Problem string }

func (e *InvalidError) Error() string { return "auth: " + e.Field + " " + e.Problem }

// DrawFirst draws what the call takes from a limit, by the store's own Take: for stores
// that draw before they look at the session. Errors: a *LimitedError, and those of take.
func (c *Advance) DrawFirst(ctx context.Context, take func(context.Context, []Draw, time.Time) (Decision, error)) error {
	if c.Draw.Rate.Burst <= 0 || c.Draw.Rate.Per <= 0 {
		return nil
	}
	d, err := take(ctx, []Draw{c.Draw}, c.Now)
	if err == nil && !d.Allowed {
		return &LimitedError{RetryAfter: d.RetryAfter}
	}
	return err
}

// The parameters of the store's mutating methods.
type (
	// CreateUser is the parameter of Store.CreateUser.
	CreateUser struct {
		Change
		NewUser
	}
	// UpdateUser is the parameter of Store.UpdateUser.
	UpdateUser struct {
		Change
		UserID string
		Patch  UserPatch
	}
	// DeleteUser is the parameter of Store.DeleteUser.
	DeleteUser struct {
		Change
		UserID string
	}
	// CreateSession is the parameter of Store.CreateSession.
	CreateSession struct {
		Change
		NewSession
	}
	// NewSession is a session to create.
	NewSession struct {
		Session Session

		// KeepSessions is how many live sessions the user has at most afterwards,
		// this one among them; 0: any number.
		KeepSessions int
		// Ended, if set, is called with the ids of the sessions that ended, sorted,
		// once the change has come about; not if there are none.
		Ended func(ids []string)

		OnNewDevice NewDevice

		// OnTrustedDevice allows a session that is not AAL2 to a user with a second
		// factor if the session's Device is trusted by the user at Now.
		OnTrustedDevice bool
		// TrustUntil, if set, has the session's Device, if there is one, trusted by
		// the user until then, whatever was said of it before. It is for sessions at
		// AAL2, and without effect for others.
		TrustUntil time.Time
	}
	// Advance is the parameter of Store.AdvanceSession: the session and counter
	// a refresh token names, and what to write if it is current.
	Advance struct {
		Change
		SessionID string
		Counter   uint32
		Grace     time.Duration // 0: the counter before is never accepted
		IdleUntil time.Time
		IP        string // "": keep
		UserAgent string // "": keep
		Draw      Draw   // what the call takes from a limit; without a Rate: nothing

		// Replayed, if set, is called with the Client of the session, who has its
		// current counter, once a change has come about as OutcomeReplayed.
		Replayed func(other Client)
	}
	// RevokeSessions is the parameter of Store.RevokeSessions.
	RevokeSessions struct {
		Change
		UserID     string
		Filter     SessionFilter
		DropTokens []Purpose // of sessions in the making; whether or not one ended

		// DropDevices forgets the devices that the user signed in on, likewise: only
		// that of the user's session Filter.ID, if there is one, live or not; and in
		// any case not that of Filter.Except.
		DropDevices bool
	}
	// PutToken is the parameter of Store.PutToken.
	PutToken struct {
		Change
		Token Token

		// Supersedes: the live token of the purpose and subject has this hash (empty:
		// there is none), else ErrStale. Nil is not asked.
		Supersedes *[]byte

		// Yields leaves a live token of the purpose and subject in its place, and
		// Token is not kept; all else happens as it does without. It takes as long
		// as superseding does, since who asked is not to learn of the other.
		Yields bool
	}
	// Redemption is the parameter of Store.RedeemToken.
	Redemption struct {
		Change
		Purpose Purpose
		Hash    []byte
		Effect
	}
	// TryCode is the parameter of Store.TryCode.
	TryCode struct {
		Change
		Purpose Purpose
		Subject string
		Hash    []byte // of the guess
		Effect
	}
)

// Effect is what the use of a token or code does in the same step: at most one
// of Patch, on UserID (or the token's own user if empty), and Create. With
// neither a user nor Create, the token is used up and the zero User returned. An
// empty patch, like none, changes nothing and returns the user.
type Effect struct {
	UserID string
	Patch  *UserPatch
	Create *NewUser
}

// Purpose is what a token is good for; a token never serves another one.
type Purpose string

// The purposes of tokens.
const (
	PurposeMagicLink   Purpose = "magic_link"
	PurposeVerifyEmail Purpose = "verify_email" // the account's address or a new one
	PurposeReset       Purpose = "reset_password"
	PurposeExchange    Purpose = "exchange"
	PurposePhoneCode   Purpose = "phone_code"   // sign in
	PurposeMFA         Purpose = "mfa"          // go on to the second factor
	PurposeEnroll      Purpose = "mfa_enroll"   // go on to setting one up
	PurposePhoneChange Purpose = "phone_change" // make a number one's own
	PurposeOAuth       Purpose = "oauth_state"  // come back from a provider
	PurposeEmailCode   Purpose = "email_code"   // tell whom a code to a new address was sent for
	PurposeStop        Purpose = "stop_session" // stop a session that a notice tells of
	PurposeInvitation  Purpose = "invitation"   // accept an invitation
	PurposeFirstOwner  Purpose = "first_owner"  // become the first owner
)

// Token is a single-use secret, kept as a hash only.
type Token struct {
	Purpose   Purpose
	Hash      []byte // 32 bytes; unique within a purpose
	Subject   string // what it is about; a newer token of the same purpose and subject supersedes it
	UserID    string // empty while there is no user; deleted with the user otherwise
	Data      []byte // the caller's, opaque to the store
	CreatedAt time.Time
	ExpiresAt time.Time
	MaxTries  int // codes only: wrong guesses allowed
	Tries     int // codes only: wrong guesses counted

	// Code is what TryCode compares guesses with, for a token that is a link and a
	// code at once: using either uses up both. Empty: Hash.
	Code          []byte
	CodeExpiresAt time.Time // no code any more from then on; zero: like the token

	Origin // of a token with a UserID; see there
}

// CodeHash is what TryCode compares guesses with at now; false if the token is no
// live code.
func (t *Token) CodeHash(now time.Time) ([]byte, bool) {
	if !now.Before(t.ExpiresAt) || !t.CodeExpiresAt.IsZero() && !now.Before(t.CodeExpiresAt) {
		return nil, false
	}
	if len(t.Code) > 0 {
		return t.Code, true
	}
	return t.Hash, true
}

// Capability finds an optional interface of a store, in the store itself or in the
// store that it wraps (Unwrap() Store):
//
//	factors, ok := store.Capability[store.FactorStore](store)
func Capability[T any](s Store) (T, bool) {
	for s != nil {
		if c, ok := s.(T); ok {
			return c, true
		}
		w, ok := s.(interface{ Unwrap() Store })
		if !ok {
			break
		}
		s = w.Unwrap()
	}
	var none T
	return none, false
}
