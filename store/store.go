// Package store is the contract between Authmount and a database: the interfaces that a
// store implements, the records that it keeps, and the changes that it makes. Applications
// read package auth. Authors of stores read this package: first [Store], then [Change],
// then the optional interfaces. Package storetest checks an implementation. Package
// examples/store is a small store to start from. Error texts begin with "auth:" in every
// store.
//
// There are five interfaces. Every store implements [Store]. The other four are optional;
// each enables the features that need it:
//
//   - [FactorStore]: second factors, recovery codes
//   - [Journal]: audit log, messages that outlive the process, message log, package admin
//   - [ProjectStore]: permissions of roles, stored API keys, settings changed at run time,
//     statistics, package admin
//   - [AdminStore]: package admin, impersonation, imports of many users in one step,
//     Auth.Rotation
//
// auth.New logs which of them a store lacks, and refuses options that need a missing one.
// Three single methods are optional, too: Check, InTransaction and Unwrap (see [Store]).
// [Capability] finds them.
package store

import (
	"context"
	"errors"
	"time"
)

// ContractVersion is the version of the contract that this package describes. A store's
// Contract method returns the version that the store was written for. Each version adds
// requirements:
//
//   - 16: Domain of [UserQuery], and words of names ([NameMatches]) in its Prefix
//   - 15: UpdateFactor of [FactorStore]; recovery codes, and the end of other sessions, only
//     with factors that are Required; Handle of [UserPatch]
//   - 14: [Advance].FactorFor
//   - 13: [EventQuery].Types
//   - 12: [APIKey].TextUser and TextSequence, with RevokeKeys of [UserPatch]
//   - 11: [User].AcceptedSequence and AcceptedUntil, with Accept, KeepFactors and KeepSession of
//     [UserPatch] and Waiting of [UserQuery]; [Change].KeepOwner and FirstOwner count only
//     owners who accepted; PutToken replaces a token of the same hash, also with
//     [PutToken].Supersedes
//   - 10: [Rotation]: outdated refresh tokens from another device or network;
//     UserDeleted of [AdminStore]; limits of callers whose clocks differ ([Bucket])
//   - 9: [RolePermissions].Privileged, which a deleted role leaves to its name
//   - 8: five interfaces: [Store], which gains AddAuthentication, UserRecords, Account and EverOwned,
//     [FactorStore], [Journal], [ProjectStore] and [AdminStore]; [Origin]; second factors
//     with a state ([UseFactor]), and [Completion]
//   - 7: [Change].IfKey; a code without a subject is never found ([CodeAttempt])
//   - 6: [PutToken].Yields
//   - 5: [PutToken].Supersedes
//   - 4: [UserPatch].Notes, [UserAt].Banned, [NewDevice] of CreateSession and EnableFactor,
//     and a late refresh token that is presented again within [Advance].Grace
//   - 3: late refresh tokens ([Advance].Replayed), tokens that are a link and a code at
//     once ([Token].Code), [NewUser].Factors
const ContractVersion = 16

// Store keeps users, sessions, single-use tokens and rate limits.
//
// Every method is one complete state transition: the caller passes hashes and the current
// time, and the store decides and returns an outcome. No method reads a single-use token
// for another one to mark as used afterwards, so callers cannot create that race. A method
// that changes an account takes a parameter that embeds [Change]: the authority for the
// change, its conditions, and the events and messages to record with it. The store checks
// the conditions under its locks, together with the effect. "Live" and "now" refer to
// [Change].Now, or to the parameter now.
//
// Implementations are safe for concurrent use. They apply each method wholly or not at all.
// They keep no references to arguments and return no references to stored values. They
// return the outcome errors of this file, wrapped or not; callers use errors.Is. Any other
// error means that the store could not answer, and becomes HTTP status 503. A context
// cancelled before a method takes effect stops it with the context's error. A method whose
// context is cancelled later may finish with its outcome. With an outcome error, the other
// results are zero, unless the method says otherwise. Times are UTC, and stores truncate
// them to microseconds. An instant equal to an expiry counts as expired. IDs are UUIDs of
// any version. Lists are in the order of (CreatedAt, ID). An empty list that a method
// returns, or Factors.List, is not nil.
//
// A store with transactions of the application passes its own transaction to
// NewUser.Creating by the context. Methods that are called with that context join it. If
// changes may wait for the end of such a transaction, the store has a method
// InTransaction(context.Context) bool, found by [Capability].
//
// Package storetest is the conformance suite; examples/store is a small implementation.
// [Capability] finds the optional interfaces. A wrapper exposes the store that it wraps by
// a method Unwrap() Store. If a store has a method Check(context.Context) error, auth.New
// calls it and fails with its error.
type Store interface {
	// Contract returns, as a literal number, the ContractVersion that the store was written for.
	// auth.New refuses any other version, because a store silently ignores conditions that
	// it does not know.
	Contract() int

	// CreateUser adds a user with everything in NewUser, or nothing. Errors: a
	// *ConflictError if an id, email address, phone number, handle, identity or factor is
	// taken; ErrMFARequired as NewUser.Factors says; ErrNotFound if a token names another
	// user who does not exist; and the error of NewUser.Creating, unchanged.
	CreateUser(ctx context.Context, c CreateUser) (User, error)
	// User finds one user, banned or not. ErrNotFound if there is none.
	User(ctx context.Context, key UserKey) (User, error)
	// Credentials returns the user and the password hash in one read. It also returns
	// whether a session was created for the user on key.Device before, and until when the
	// user trusts that device. ErrNotFound if there is no such user.
	Credentials(ctx context.Context, key UserKey) (Credentials, error)
	// UserRecords lists the devices, live tokens and pending messages of a user that have not
	// expired at now, each list oldest first. Rows with the same times are in the order of
	// their expiry or last use, then devices of their name, and tokens of purpose and
	// subject, byte by byte. An unknown user has empty lists.
	UserRecords(ctx context.Context, userID string, now time.Time) (UserRecords, error)
	// Account returns the results of Credentials and UserRecords in one call. Errors: as for
	// Credentials.
	Account(ctx context.Context, key UserKey, now time.Time) (Credentials, UserRecords, error)
	// UpdateUser applies a patch. Errors: ErrNotFound if there is no such user; a
	// *ConflictError if a new email address, phone number, handle, identity or id of an
	// identity is taken. On an error nothing is changed.
	UpdateUser(ctx context.Context, c UpdateUser) (User, error)
	// DeleteUser deletes the user with its identities, sessions, tokens, factors and
	// devices. The id stays known as that of a deleted user (AdminStore.UserDeleted), for
	// ever. ErrNotFound if there is no such user.
	DeleteUser(ctx context.Context, c DeleteUser) error

	// CreateSession adds a session and sets the user's LastSignInAt to the session's
	// CreatedAt, without raising a revision. If KeepSessions is set, the KeepSessions - 1
	// most recently active of the user's other live sessions are kept and the rest end,
	// also under concurrent calls.
	//
	// The store remembers the session's Device as seen at CreatedAt. It does so wherever a
	// session is created (CreateUser, EnableFactor, Effect.Create). It keeps the MaxDevices
	// most recently seen devices of each user. The new session and its device are always
	// among those kept, even if CreatedAt is earlier than the times of all others, because
	// the clocks of different machines differ. A device stays known until Sweep deletes it.
	//
	// Errors, in this order: ErrNotFound if there is no such user; ErrBanned if the user is
	// banned at CreatedAt; ErrMFARequired if the user has a second factor and the session is
	// neither AAL2 nor allowed by OnTrustedDevice; a *ConflictError if the id is taken, or
	// ErrNewDevice as OnNewDevice says.
	//
	// A session with TrustUntil makes its device trusted by the user up to that instant.
	// Trust ends early when the user's CredentialRevision rises, when the device is
	// forgotten, with PutRecoveryCodes, and with RevokeSessions.DropDevices without
	// Filter.ID, also for a device that is kept. It is never restored by itself.
	CreateSession(ctx context.Context, c CreateSession) (User, error)
	// Session reads a session with its user. Errors: ErrNotFound if the session or its user
	// does not exist; ErrBanned, together with the session and user, if the user is banned
	// at now, even if the session has ended; ErrSessionEnded if the session was revoked or
	// has expired.
	Session(ctx context.Context, id string, now time.Time) (Session, User, error)
	// AdvanceSession refreshes a session as one compare-and-swap. The presented counter
	// decides:
	//
	//   - The current counter: the counter goes up by one and the session is marked active
	//     (OutcomeDone).
	//   - The previous counter, less than Grace after the counter moved, from the device
	//     that moved it: the session is returned unchanged, so that the caller issues the
	//     same successor. From another network this is so for MaxStrays successive
	//     counters, because a phone changes networks now and then.
	//   - The previous counter later, from another device, or from another network at more
	//     successive counters, if Grace is above zero: the session is returned unchanged,
	//     as OutcomeReplayed. A replay is refused within ReplayGap of the last one, or
	//     if there was one at the counter before. For Grace after a replay, while the counter has
	//     not moved, the previous counter is accepted as often as it is presented, because
	//     a browser that wakes up sends several requests at once.
	//   - An older counter, or a refused one: the session is revoked although the method
	//     fails. ErrReused, with the session and user (OutcomeReused). IfUsers and the
	//     conditions after it are not checked.
	//   - A higher counter: ErrSessionEnded. Nothing is changed.
	//   - The current counter of a session that [Advance.NeedsFactor] names: ErrMFARequired.
	//     Nothing is changed.
	//
	// [Rotation] has the state and the decisions about outdated counters. A call without
	// IP, UserAgent and Device is from the device and network that moved the counter.
	//
	// Other errors: as for Session. If Draw has a Rate, the store takes it, as Take does,
	// before it looks at the authority and the session: in the same step or in one before
	// ([Advance.DrawFirst]). The draw is kept if the method then fails, also if there is no
	// such session. If the bucket refuses, the error is a *LimitedError, and nothing is
	// changed.
	AdvanceSession(ctx context.Context, c Advance) (Session, User, error)
	// Sessions lists the live sessions of a user, newest first. The list is empty if there
	// are none or no such user.
	Sessions(ctx context.Context, userID string, now time.Time) ([]Session, error)
	// RevokeSessions ends the user's live sessions that match, deletes the user's tokens of
	// the named purposes and, with DropDevices, devices. It returns the sorted ids of the
	// sessions that it ended. The list is empty, without an error, if there are none or no
	// such user. An ended session never becomes live again.
	RevokeSessions(ctx context.Context, c RevokeSessions) ([]string, error)

	// AddAuthentication adds an authentication method to a live session and replaces an
	// entry of the same method, in its place or at the end. It changes nothing else of the
	// session, in particular not its AAL.
	// Errors: as for Session.
	AddAuthentication(ctx context.Context, c AddAuthentication) (Session, User, error)

	// PutToken stores a token and deletes any older one of the same purpose and subject, also
	// one of the same hash: a link can get another code. A token with an empty subject
	// replaces none. Errors, in this order: ErrNotFound if UserID names a user who does not
	// exist; ErrStale as Supersedes says; a *ConflictError of "token" if the purpose has the
	// hash under another subject, or if Subject is empty and the purpose has the hash.
	PutToken(ctx context.Context, c PutToken) error
	// PeekToken reads a live token without using it up. ErrNotFound if the token is
	// unknown, used, superseded or expired.
	PeekToken(ctx context.Context, p Purpose, hash []byte, now time.Time) (Token, error)
	// RedeemToken uses a token up and applies its effect, both or neither. Of concurrent
	// calls one succeeds and the others return ErrNotFound. If the effect is refused
	// (ErrStale, *ConflictError, ErrNotFound), the token stays valid. A token that is not
	// live is ErrNotFound before IfUsers, IfRoles, IfKey and KeepOwner are checked.
	RedeemToken(ctx context.Context, c Redemption) (Token, User, error)
	// RedeemCode checks an attempt at the live code of a purpose and subject (see Token.Code)
	// and counts it in the same step, in this order:
	//
	//   - ErrNotFound if there is no live code, or the subject is empty.
	//   - ErrTooManyAttempts if MaxAttempts wrong attempts were counted before, even if the code
	//     is right.
	//   - ErrWrongCode if the code is wrong. The attempt is counted (OutcomeWrongCode),
	//     even if a condition other than the authority does not hold.
	//   - Otherwise the code is used up and its effect applied, both or neither, as by
	//     RedeemToken.
	//
	// Hashes are compared in constant time where timing could reveal something.
	RedeemCode(ctx context.Context, c CodeAttempt) (Token, User, error)

	// Take draws from every named bucket, or from none if one refuses. The callers' clocks may
	// differ, as [Bucket] says. Draws with the same
	// key are applied one after the other. It takes no Change, because limits belong to no
	// account.
	Take(ctx context.Context, draws []Draw, now time.Time) (Decision, error)
	// Sweep deletes up to limit rows that are over at now: expired sessions, revoked
	// sessions once they would have expired, expired tokens, full buckets, idempotency
	// records, expired rows of the optional interfaces, and devices not seen for
	// DeviceLife. It returns the count. Other methods answer as before, except that a deleted
	// session is ErrNotFound instead of ErrSessionEnded and a deleted device is unknown.
	Sweep(ctx context.Context, now time.Time, limit int) (int, error)
	// EverOwned reports whether any user ever had RoleOwner and accepted it, even if that user
	// has lost the role or was deleted.
	EverOwned(ctx context.Context) (bool, error)

	// Ping reports whether the store can answer and accept changes.
	Ping(ctx context.Context) error
}

// The outcome errors of a Store.
var (
	// ErrNotFound: there is no such row, or it is not live any more.
	ErrNotFound = errors.New("auth: not found")
	// ErrConflict: a unique value is taken. Stores return a *ConflictError, which matches
	// it.
	ErrConflict = errors.New("auth: already taken")
	// ErrStale: a condition of the change (IfUsers, IfRoles, IfKey, Supersedes of PutToken)
	// no longer holds.
	ErrStale = errors.New("auth: changed meanwhile")
	// ErrBanned: the user is banned.
	ErrBanned = errors.New("auth: user is banned")
	// ErrMFARequired: the session lacks a second factor that the user has or needs.
	ErrMFARequired = errors.New("auth: second factor required")
	// ErrNewDevice: the session's device is new to the user, and the caller set
	// NewDevice.Refuse.
	ErrNewDevice = errors.New("auth: device not seen before")
	// ErrSessionEnded: the session was revoked or has expired.
	ErrSessionEnded = errors.New("auth: session has ended")
	// ErrKeyEnded: the API key that is the authority of the change is revoked, expired or
	// changed.
	ErrKeyEnded = errors.New("auth: API key has ended")
	// ErrReused: an outdated refresh token was presented; the session is revoked.
	ErrReused = errors.New("auth: refresh token reused")
	// ErrWrongCode: the code was wrong, and the attempt has been counted.
	ErrWrongCode = errors.New("auth: wrong code")
	// ErrTooManyAttempts: no attempts are left for the code.
	ErrTooManyAttempts = errors.New("auth: too many attempts")
	// ErrUsed: a single-use code was used before.
	ErrUsed = errors.New("auth: used before")
	// ErrLastOwner: no unbanned owner who accepted would be left.
	ErrLastOwner = errors.New("auth: the last owner has to stay")
	// ErrOwned: an owner has accepted before (see Change.FirstOwner).
	ErrOwned = errors.New("auth: there has been an owner")
	// ErrLimited: the rate limit of the call refused. Stores return a *LimitedError, which
	// matches it.
	ErrLimited = errors.New("auth: limit used up")
	// ErrRepeated: a change with the same idempotency key was made before. Stores return a
	// *RepeatedError, which matches it.
	ErrRepeated = errors.New("auth: done before")
	// ErrInvalidChange: the change has no time, or not exactly one authority. It is a
	// mistake in the program.
	ErrInvalidChange = errors.New("auth: a change without time (Change.Now), or without exactly one authority (Change.By)")
)

// ConflictError names the unique value that is taken: "id", "email", "phone", "handle",
// "identity", "factor", "token", "role", "key" or
// "job". It matches ErrConflict.
type ConflictError struct{ Field string }

func (e *ConflictError) Error() string { return "auth: " + e.Field + " already taken" }

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// RepeatedError says that a change with the same idempotency key was made before. The call
// changed nothing. It matches ErrRepeated.
type RepeatedError struct {
	Same   bool   // the request had the same RequestHash
	Result []byte // Idempotency.Result of the first change
}

func (e *RepeatedError) Error() string { return ErrRepeated.Error() }

// Is makes errors.Is(err, ErrRepeated) true.
func (e *RepeatedError) Is(target error) bool { return target == ErrRepeated }

// LimitedError says that a rate limit is used up. Nothing changed. It matches ErrLimited.
type LimitedError struct {
	RetryAfter time.Duration // as Decision.RetryAfter
}

func (e *LimitedError) Error() string { return ErrLimited.Error() }

// Is makes errors.Is(err, ErrLimited) true.
func (e *LimitedError) Is(target error) bool { return target == ErrLimited }

// InvalidError names a parameter of a query and its problem.
type InvalidError struct{ Field, Problem string }

func (e *InvalidError) Error() string { return "auth: " + e.Field + " " + e.Problem }

// DrawFirst draws c.Draw with the store's own Take, for stores that draw before they look
// at the session. Errors: a *LimitedError if the bucket refuses, and the errors of take.
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

		// KeepSessions is the highest number of live sessions that the user has afterwards,
		// with this one; 0: any number. Of equally active sessions, those with higher ids
		// are kept.
		KeepSessions int
		// Ended, if set, is called after the change with the sorted ids of the sessions
		// that ended. It is not called if none did.
		Ended func(ids []string)

		OnNewDevice NewDevice

		// OnTrustedDevice allows a session below AAL2 to a user with a second factor, if
		// the user trusts the session's Device at Now.
		OnTrustedDevice bool
		// TrustUntil, if set, makes the session's Device trusted by the user until then,
		// and replaces an earlier instant. It has an effect only on sessions at AAL2 with a
		// Device. Callers keep to MaxTrust; stores do not check it.
		TrustUntil time.Time
	}
	// Advance is the parameter of Store.AdvanceSession: the session and counter of a
	// refresh token, and the values to write if the counter is current.
	Advance struct {
		Change
		SessionID string
		Counter   uint32
		Grace     time.Duration // 0: the previous counter is never accepted
		IdleUntil time.Time
		IP        string      // "": unchanged
		UserAgent string      // "": unchanged
		Device    string      // Client.Device, if the client sent it
		Draw      Draw        // drawn from a rate limit by the call; without a Rate: nothing
		FactorFor *FactorRule // users whose sessions below AAL2 do not advance; nil: none

		// Replayed, if set, is called after a change with OutcomeReplayed. Its argument is
		// the Client of the session, which has the current counter.
		Replayed func(other Client)
	}
	// RevokeSessions is the parameter of Store.RevokeSessions.
	RevokeSessions struct {
		Change
		UserID     string
		Filter     SessionFilter
		DropTokens []Purpose // purposes of tokens of unfinished sign-ins; deleted even if no session ends

		// DropDevices forgets the user's devices, even if no session ends. With Filter.ID
		// it forgets only the device of that session of the user, live or not. It never
		// forgets the device of Filter.Except. The other fields of Filter spare no device.
		DropDevices bool
	}
	// PutToken is the parameter of Store.PutToken.
	PutToken struct {
		Change
		Token Token

		// Supersedes is the hash of the live token of the purpose and subject; empty: there
		// is none. If it differs, the error is ErrStale. Nil is not checked.
		Supersedes *[]byte

		// Yields keeps a live token of the purpose and subject and does not store Token.
		// Everything else happens as without it. It takes as long as replacing that token,
		// because the caller must not learn that there is one.
		Yields bool
	}
	// Redemption is the parameter of Store.RedeemToken.
	Redemption struct {
		Change
		Purpose Purpose
		Hash    []byte
		Effect
	}
	// CodeAttempt is the parameter of Store.RedeemCode.
	CodeAttempt struct {
		Change
		Purpose Purpose
		Subject string
		Hash    []byte // of the presented code
		Effect
	}
)

// Effect is applied in the same step as the use of a token or code: at most one of Create
// and Patch. Patch applies to UserID, or to the token's own user if that is empty. With
// neither a user nor Create, the token is used up and the zero User returned. An empty or
// nil Patch changes nothing and returns the user.
type Effect struct {
	UserID string
	Patch  *UserPatch
	Create *NewUser
}

// Purpose is the use that a token is issued for. A token is never accepted for another one.
type Purpose string

// The purposes of tokens.
const (
	PurposeMagicLink   Purpose = "magic_link"
	PurposeVerifyEmail Purpose = "verify_email" // of the account's email address, or a new one
	PurposeReset       Purpose = "reset_password"
	PurposeExchange    Purpose = "exchange"
	PurposePhoneCode   Purpose = "phone_code"   // sign in
	PurposeMFA         Purpose = "mfa"          // continue with the second factor
	PurposeEnroll      Purpose = "mfa_enroll"   // continue with the enrolment of a second factor
	PurposePhoneChange Purpose = "phone_change" // add or change a phone number
	PurposeOAuth       Purpose = "oauth_state"  // return from a provider
	PurposeStop        Purpose = "stop_session" // account recovery
	PurposeInvitation  Purpose = "invitation"   // accept an invitation
	PurposeFirstOwner  Purpose = "first_owner"  // become the first owner
)

// Token is a single-use secret. Only its hash is stored.
type Token struct {
	Purpose     Purpose
	Hash        []byte // 32 bytes; unique within a purpose
	Subject     string // such as an email address; a newer token of the same purpose and subject supersedes it
	UserID      string // empty: no user; otherwise deleted with the user
	Data        []byte // opaque to the store
	CreatedAt   time.Time
	ExpiresAt   time.Time
	MaxAttempts int // codes only: wrong attempts allowed
	Attempts    int // codes only: wrong attempts counted

	// Code is the hash that RedeemCode compares attempts with, for a token that is a link and
	// a code at once: the use of either uses up both. Empty: Hash.
	Code          []byte
	CodeExpiresAt time.Time // the code is not accepted from then on; zero: as the token

	Origin // only of a token with a UserID
}

// CodeHash returns the hash that RedeemCode compares attempts with. It returns false if the
// token is not a live code at now.
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
//	factors, ok := store.Capability[store.FactorStore](s)
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
