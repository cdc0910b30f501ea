package store

import "time"

// Change is embedded in the parameter of every mutating method of a store: the time and
// authority of the change, its conditions, and the events and messages recorded with it.
//
// A change happens at one instant. The store locks the rows of its conditions in one fixed
// order: the owners, if KeepOwner; the table of roles; users by id; sessions; API keys. It
// checks every condition after it holds the locks. Otherwise, on Postgres at READ
// COMMITTED, an UPDATE … WHERE EXISTS (live session) that waited for a lock succeeds after
// the session has ended, and two owners who demote each other leave none.
//
// Conditions are checked in this order:
//
//   - ErrInvalidChange
//   - the authority: ErrSessionEnded, ErrBanned, ErrKeyEnded, or ErrNotFound for a token
//     that is not live
//   - the idempotency key: *RepeatedError
//   - the method's own errors about its target, also a *ConflictError
//   - IfUsers, IfRoles and IfKey: ErrStale
//   - KeepOwner: ErrLastOwner
//   - FirstOwner: ErrOwned
//
// A refused change changes and records nothing, except the outcomes that its method names
// (a wrong code, reuse).
type Change struct {
	Now time.Time // required
	By  Authority // the zero value is ErrInvalidChange

	IfUsers   []UserAt // all of these must match, else ErrStale, also for a deleted user
	IfRoles   *int64   // the table of roles (ProjectStore; 0 without one) is at this revision, else ErrStale
	IfKey     *KeyRef  // this API key (ProjectStore) is live and unchanged, else ErrStale
	KeepOwner bool     // at least one unbanned user has RoleOwner, accepted (User.Accepted), afterwards, else ErrLastOwner

	// FirstOwner requires that no user ever had RoleOwner and accepted it before this
	// change, not even a user deleted since, else ErrOwned.
	FirstOwner bool

	// Recorded in the same step by a store that is a Journal; ignored by other stores.
	Events   []OutcomeEvent
	Messages []SealedMessage // if the outcome is OutcomeDone

	// Unrecorded receives the events of a change that succeeded although they could not be
	// recorded; the caller records them later (Journal.AddEvents). Without it, such a
	// change fails. It is called at most once, after the change, and must not call the
	// store.
	Unrecorded func([]Event)

	Idempotency *Idempotency // the change happens once under this key, else *RepeatedError; recorded if the outcome is OutcomeDone
}

// RoleOwner is the role that has every permission (see Change.KeepOwner).
const RoleOwner = "owner"

// Authority is the session, token, API key, code or person that makes a change. Exactly one
// field is set.
type Authority struct {
	// Session requires that this session of this user is live, else ErrSessionEnded, and
	// its user not banned, else ErrBanned.
	Session *SessionRef
	// Token requires that this token is live, else ErrNotFound, and its user not banned,
	// else ErrBanned. The token is not used up.
	Token *TokenRef
	// Key requires that this API key is live and unchanged, else ErrKeyEnded.
	Key *KeyRef
	// Proof is the token or code that this call uses up, or one that was checked just
	// before, with its conditions in IfUsers.
	Proof bool
	// System is code of the application or of Authmount, with a name for the log.
	System string
	// External is a person by the application's own id. Only the application knows this
	// person's permissions.
	External string
}

// SessionRef names a session of a user.
type SessionRef struct{ ID, UserID string }

// TokenRef names a token.
type TokenRef struct {
	Purpose Purpose
	Hash    []byte
}

// KeyRef names an API key at the revision that was read.
type KeyRef struct {
	ID       string
	Revision int64
}

// UserAt lists values that a user must still have. Nil fields are not checked.
type UserAt struct {
	ID                 string // empty: the user of the token or code that this call uses up; ErrStale if it has none
	Revision           *int64
	CredentialRevision *int64
	PasswordHash       *string // "": none
	Email              *string // compared by EmailKey; "": none
	EmailVerified      *bool
	Phone              *string // "": none
	PhoneVerified      *bool
	Banned             *bool // at Change.Now
}

// Outcome is the result of a change, which selects the events recorded with it.
type Outcome int

// The outcomes.
const (
	OutcomeDone          Outcome = iota
	OutcomeWrongCode             // RedeemCode: ErrWrongCode
	OutcomeReused                // AdvanceSession: ErrReused
	OutcomeSessionsEnded         // in addition to OutcomeDone: at least one live session ended; never an outcome of EndEverySession
	OutcomeReplayed              // AdvanceSession, instead of OutcomeDone: an outdated refresh token was accepted
	OutcomeNewDevice             // in addition to OutcomeDone: a session was created on a new device (see NewDevice)
)

// OutcomeEvent is an event that is recorded if a change has the outcome On. The store fills
// in the fields that only it knows:
//
//   - Event.UserID, if it is empty and the change is about one user
//   - Event.SessionIDs, sorted: for OutcomeSessionsEnded, and for an event with a Record if
//     the change ended sessions
//   - Event.Other: the session's Client, for OutcomeReplayed
//   - Event.Left: for UseRecoveryCode, and for RemoveFactor with Recovery
type OutcomeEvent struct {
	On    Outcome
	Event Event
}

// SealedMessage is a message to send, sealed by the caller.
type SealedMessage struct {
	ID        string   // a UUID
	UserID    string   // deleted with the user; may be empty; a failed message is also deleted with the user Log.UserID
	Recipient string   // opaque; the same for all messages to one recipient
	Token     TokenRef // if it has a Purpose: the message is dropped once the token is not live any more
	Body      []byte
	CreatedAt time.Time
	NextAt    time.Time // not before
	ExpiresAt time.Time // not after
	Attempts  int       // number of the last claim's attempt; 0: not claimed

	Log MessageLog // for stores that keep a message log (Journal); not sealed
}

// Idempotency makes a change happen once. A record is kept until ExpiresAt. Until then
// another change with the same Actor, Route and Key is refused with a *RepeatedError.
type Idempotency struct {
	Actor, Route, Key string
	RequestHash       []byte
	Result            []byte // the caller's own, returned by *RepeatedError
	ExpiresAt         time.Time
}

// Check returns ErrInvalidChange unless the change has a time and exactly one authority.
// Stores call it first and return its error.
func (c *Change) Check() error {
	n := 0
	for _, set := range []bool{c.By.Session != nil, c.By.Token != nil, c.By.Key != nil, c.By.Proof, c.By.System != "", c.By.External != ""} {
		if set {
			n++
		}
	}
	if c.Now.IsZero() || n != 1 {
		return ErrInvalidChange
	}
	return nil
}
