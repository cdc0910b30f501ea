package auth

import (
	"context"
	"errors"
	"time"
)

// Store keeps users, sessions, single-use tokens and rate limits.
//
// Every method is one complete state transition: the caller passes hashes and
// the clock, the store decides and answers with an outcome. There is no way to
// read a single-use thing and mark it used afterwards, so that race cannot be
// written.
//
// Implementations must be safe for concurrent use, must apply each method
// wholly or not at all, and must not keep references to arguments or hand out
// references to what they keep. They return the outcome errors of this file
// (wrapped or not; callers use errors.Is); any other error means that the store
// could not answer, and becomes 503. A cancelled context stops a method before
// it takes effect, with the context's error. Times are UTC with microseconds.
//
// Package storetest holds the conformance suite for implementations. Optional
// powers are separate small interfaces; a wrapper exposes the store it wraps by
// a method Unwrap() Store. New calls a method Check(context.Context) error, if
// there is one, and fails with its error.
type Store interface {
	// CreateUser adds a user together with everything that comes with it.
	// An address, phone or identity that is taken: a *ConflictError, and
	// nothing is kept.
	CreateUser(ctx context.Context, u NewUser) (User, error)
	// User finds one user, banned or not. ErrNotFound if there is none.
	User(ctx context.Context, key UserKey) (User, error)
	// Credentials is User together with the password hash, in one read.
	Credentials(ctx context.Context, key UserKey) (Credentials, error)
	// UpdateUser applies a patch. ErrNotFound if there is no such user,
	// ErrStale if a condition of the patch does not hold, a *ConflictError if a
	// new address, phone or identity is taken; in each case nothing changed.
	UpdateUser(ctx context.Context, id string, p UserPatch, now time.Time) (User, error)
	// DeleteUser removes the user with its identities, sessions and tokens.
	// ErrNotFound if there is no such user.
	DeleteUser(ctx context.Context, id string) error

	// CreateSession adds a session and sets the user's LastSignInAt to the
	// session's CreatedAt, without raising Revision. ErrNotFound if the user is
	// gone, ErrBanned if banned at that time, ErrMFARequired if the user has a
	// second factor and the session is not AAL2, ErrStale if the condition does
	// not hold.
	CreateSession(ctx context.Context, s NewSession) (User, error)
	// Session reads a session with its user. ErrNotFound if there never was one
	// or its user is gone, ErrBanned if the user is banned at now (also when the
	// session has ended), ErrSessionEnded if it was revoked or has expired.
	// An instant equal to an expiry counts as expired, here and everywhere.
	Session(ctx context.Context, id string, now time.Time) (Session, User, error)
	// AdvanceSession is refresh, as one compare-and-swap. If the presented
	// counter is the current one, the counter goes up by one and the session is
	// marked active. If it is the one before and less than Grace has passed
	// since the counter moved, the session is answered unchanged, so that the
	// caller hands out the same successor. If it is older, or Grace is over,
	// the session is revoked, and that stays so: ErrReused, with the session
	// and user. A counter from the future: ErrSessionEnded, nothing changed.
	// Otherwise errors as for Session.
	AdvanceSession(ctx context.Context, a Advance) (Session, User, error)
	// Sessions lists the live sessions of a user, newest first; none is an
	// empty list, also when there is no such user.
	Sessions(ctx context.Context, userID string, now time.Time) ([]Session, error)
	// RevokeSessions ends the user's live sessions that match and tells how
	// many it ended. An ended session never comes back.
	RevokeSessions(ctx context.Context, userID string, f SessionFilter, now time.Time) (int, error)

	// PutToken keeps a token and removes any older one of the same purpose and
	// subject. An empty subject supersedes nothing. ErrNotFound if UserID names
	// a user who is gone.
	PutToken(ctx context.Context, t Token) error
	// PeekToken reads a live token and leaves it as it is. ErrNotFound if it is
	// unknown, used, superseded or expired.
	PeekToken(ctx context.Context, p Purpose, hash []byte, now time.Time) (Token, error)
	// RedeemToken uses a token up and applies its effect, both or neither: of
	// parallel calls one succeeds and the others get ErrNotFound, and an effect
	// that fails (ErrStale, *ConflictError, ErrNotFound) leaves the token good.
	RedeemToken(ctx context.Context, r Redemption) (Token, User, error)
	// TryCode judges a guess at the live code of a purpose and subject and
	// counts it in the same step. The right code is used up and its token
	// returned, with the user it names (the zero User if it names none).
	// ErrWrongCode if it was wrong, ErrTooManyTries if MaxTries wrong
	// guesses had been counted before this one (the right code loses too),
	// ErrNotFound if there is no live code. Hashes are compared in constant
	// time.
	TryCode(ctx context.Context, p Purpose, subject string, hash []byte, now time.Time) (Token, User, error)

	// Take draws from every bucket named, or from none of them if one refuses.
	// Draws with a key that comes twice are applied one after the other.
	Take(ctx context.Context, draws []Draw, now time.Time) (Decision, error)
	// Sweep deletes up to limit things that are over at now: expired sessions
	// (revoked ones once they would have expired), expired tokens and full
	// buckets. It tells how many it deleted and changes no other answer.
	Sweep(ctx context.Context, now time.Time, limit int) (int, error)
	// Ping tells whether the store can answer.
	Ping(ctx context.Context) error
}

// What a Store answers besides success.
var (
	// ErrNotFound: there is no such thing, or it is not live any more.
	ErrNotFound = errors.New("auth: not found")
	// ErrConflict: a unique value is taken. Stores return a *ConflictError,
	// which matches it.
	ErrConflict = errors.New("auth: already taken")
	// ErrStale: a condition of the call (If…) does not hold any more.
	ErrStale = errors.New("auth: changed meanwhile")
	// ErrBanned: the user is banned.
	ErrBanned = errors.New("auth: user is banned")
	// ErrMFARequired: the user has a second factor and the session lacks it.
	ErrMFARequired = errors.New("auth: second factor required")
	// ErrSessionEnded: the session was revoked or has expired.
	ErrSessionEnded = errors.New("auth: session has ended")
	// ErrReused: an outdated refresh token came back; the session is revoked.
	ErrReused = errors.New("auth: refresh token reused")
	// ErrWrongCode: the guess was wrong and has been counted.
	ErrWrongCode = errors.New("auth: wrong code")
	// ErrTooManyTries: no guesses are left for the code.
	ErrTooManyTries = errors.New("auth: too many tries")
)

// ConflictError says which unique value is taken: "id", "email", "phone" or
// "identity". It matches ErrConflict.
type ConflictError struct{ Field string }

func (e *ConflictError) Error() string { return "auth: " + e.Field + " already taken" }

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// User is a person as the store keeps it. Its JSON form is the wire's User
// object: absent strings and times are null.
type User struct {
	ID            string // UUIDv7
	Email         string // as given, normalised; compare by EmailKey
	EmailVerified bool
	Phone         string // E.164
	PhoneVerified bool
	FullName      string
	UserMetadata  map[string]any // the user's own; never trusted
	AppMetadata   map[string]any // the server's
	Roles         []string
	MFAEnabled    bool
	Identities    []Identity
	CreatedAt     time.Time
	UpdatedAt     time.Time
	LastSignInAt  time.Time // zero: never
	BannedUntil   time.Time // zero: not banned
	Revision      int64     // rises with every UpdateUser; for IfRevision

	// Claims go into the user's access tokens, as those of WithClaims do. They
	// are worked out by stores that can, in the read before a sign-in or refresh,
	// and are kept nowhere.
	Claims map[string]any
}

// Banned tells whether the user is banned at now.
func (u *User) Banned(now time.Time) bool { return now.Before(u.BannedUntil) }

// Identity is a user's account at an outside provider; (Provider, Subject) is
// unique over all users.
type Identity struct {
	ID           string    `json:"id"`
	Provider     string    `json:"provider"`
	Subject      string    `json:"subject"`
	Email        string    `json:"email"`
	CreatedAt    time.Time `json:"created_at"`
	LastSignInAt time.Time `json:"last_sign_in_at"`
}

// Credentials is what a password login needs to know, from one read.
type Credentials struct {
	User         User
	PasswordHash string // PHC or another supported format; empty: no password
}

// UserKey names one user by exactly one of its unique values.
type UserKey struct {
	ID       string
	Email    string // compared by EmailKey
	Phone    string
	Provider string // with Subject
	Subject  string
}

// ByID names a user by id.
func ByID(id string) UserKey { return UserKey{ID: id} }

// ByEmail names a user by e-mail address, whatever its case.
func ByEmail(email string) UserKey { return UserKey{Email: email} }

// ByPhone names a user by E.164 number.
func ByPhone(phone string) UserKey { return UserKey{Phone: phone} }

// ByIdentity names a user by its account at a provider.
func ByIdentity(provider, subject string) UserKey {
	return UserKey{Provider: provider, Subject: subject}
}

// NewUser is a user to create, with all that is created in the same step.
// Identities come in User.
type NewUser struct {
	User         User
	PasswordHash string
	Session      *Session // first session; sets LastSignInAt
	Tokens       []Token  // as for PutToken

	// Creating, if set, is called in the step that creates the user, and its
	// error undoes the step and is returned. A store with transactions calls it
	// inside the one and gives it a context to reach it by; it may undo that and
	// call it again.
	Creating func(ctx context.Context, u User) error
}

// UserPatch is a change to one user, applied wholly or not at all. Nil fields
// stay as they are. Every applied patch sets UpdatedAt and raises Revision.
type UserPatch struct {
	IfRevision     *int64  // apply only at this revision, else ErrStale
	IfPasswordHash *string // apply only while this hash is current ("": none), else ErrStale

	Email         *string
	EmailVerified *bool
	Phone         *string
	PhoneVerified *bool
	FullName      *string
	UserMetadata  map[string]any // replaces the whole; empty and non-nil clears
	AppMetadata   map[string]any // likewise
	PasswordHash  *string        // "" removes the password
	BannedUntil   *time.Time     // the zero time lifts a ban

	DropIdentities bool      // remove every identity, before Link
	Link           *Identity // add an identity, or update the user's own of the same provider and subject
	Unlink         *UserKey  // remove the identity with this Provider and Subject; none: no change

	Revoke     *SessionFilter // end these sessions
	DropTokens []Purpose      // remove the user's tokens of these purposes

	RemoveFactor bool // remove the second factor, if there is one
}

// Empty tells whether the patch would change nothing and asks nothing.
func (p *UserPatch) Empty() bool {
	return p.IfRevision == nil && p.IfPasswordHash == nil && p.Email == nil && p.EmailVerified == nil &&
		p.Phone == nil && p.PhoneVerified == nil && p.FullName == nil && p.UserMetadata == nil && p.AppMetadata == nil &&
		p.PasswordHash == nil && p.BannedUntil == nil && p.Link == nil && p.Unlink == nil && p.Revoke == nil && p.DropTokens == nil && !p.RemoveFactor && !p.DropIdentities
}

// Session is one signed-in device. Its tokens are derived from ID and Counter;
// the store holds no secret.
type Session struct {
	ID           string // UUIDv7
	UserID       string
	Counter      uint32 // of the current refresh token; the first is 0
	RotatedAt    time.Time
	AAL          string // "aal1" or "aal2"
	AMR          []AMR
	CreatedAt    time.Time
	LastActiveAt time.Time
	IdleUntil    time.Time // ends here unless refreshed before
	ExpiresAt    time.Time // ends here in any case; zero: never
	IP           string
	UserAgent    string
}

// End is the instant at which the session ends if nothing happens before.
func (s *Session) End() time.Time {
	if !s.ExpiresAt.IsZero() && s.ExpiresAt.Before(s.IdleUntil) {
		return s.ExpiresAt
	}
	return s.IdleUntil
}

// AMR is one proof given for a session (RFC 8176 gives some of the names).
type AMR struct {
	Method    string `json:"method"`    // "password", "magic_link", "otp", "oauth", "totp", "recovery_code"
	Timestamp int64  `json:"timestamp"` // Unix seconds
}

// NewSession is a session to create.
type NewSession struct {
	Session        Session
	IfPasswordHash *string // create only while this hash is current, else ErrStale
	IfRevision     *int64  // create only at this revision of the user, else ErrStale
}

// Advance is a refresh: the session and counter a refresh token names, and what
// to write if it is current.
type Advance struct {
	SessionID string
	Counter   uint32
	Now       time.Time
	Grace     time.Duration // 0: the counter before is never accepted
	IdleUntil time.Time
	IP        string // "": keep
	UserAgent string // "": keep
}

// SessionFilter picks sessions of one user. The zero value means all.
type SessionFilter struct {
	ID     string // only this one
	Except string // all but this one
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
}

// Redemption uses up a token and says what that does. At most one of the
// effects is set: Patch on UserID (or the token's own user if empty), or
// Create. With neither a user nor Create, the token is used up and the zero
// User returned. An empty patch changes nothing and returns the user.
type Redemption struct {
	Purpose Purpose
	Hash    []byte
	Now     time.Time
	UserID  string
	Patch   *UserPatch
	Create  *NewUser
}

// Draw is a change of one rate-limit bucket. A positive Cost draws; zero only
// asks whether one could be drawn; a negative one gives back, never beyond full
// and never refused.
type Draw struct {
	Key  string
	Rate Rate
	Cost int
}

// Decision is the answer of Take.
type Decision struct {
	Allowed    bool
	RetryAfter time.Duration // when not allowed: until all of the draws would be
	Remaining  []int         // for each draw, what is left in its bucket afterwards
}
