package store

import "time"

// Change is what every mutating method of a store is told besides its own
// parameters: when and in whose name it happens, what must still be so, and what
// is recorded with the effect.
//
// A change happens at one instant. The rows that a condition rests on are locked
// in one fixed order (the owners, if KeepOwner; the table of roles; users by id;
// sessions; API keys), and every condition is judged after the locks are held:
// on Postgres at READ COMMITTED, an UPDATE … WHERE EXISTS (live session) that
// waited for a lock succeeds after the session has ended, and two owners who
// demote each other leave none.
//
// Conditions are judged in this order: ErrInvalidChange; the authority
// (ErrSessionEnded, ErrBanned, ErrKeyEnded, ErrNotFound for a token that is not
// live); the idempotency key (*RepeatedError); what the method says of its
// target; IfUsers, IfRoles and IfKey (ErrStale); KeepOwner (ErrLastOwner);
// FirstOwner (ErrOwned). A change that
// is refused changes and records nothing, but for the outcomes that its method
// names (a wrong code, reuse).
type Change struct {
	Now time.Time // required
	By  Authority // in whose name; the zero value is ErrInvalidChange

	IfUsers   []UserAt // all of it is still so, else ErrStale; a user who is gone is ErrStale, too
	IfRoles   *int64   // the revision of the table of roles (ProjectStore; 0 without one) is this, else ErrStale
	IfKey     *KeyRef  // this API key (ProjectStore) is live and unchanged, else ErrStale
	KeepOwner bool     // afterwards at least one unbanned user has RoleOwner, else ErrLastOwner

	// FirstOwner: before this change nobody has ever had RoleOwner, whatever became of
	// them, else ErrOwned.
	FirstOwner bool

	// Recorded in the same step by a store that is a Journal, and left out by
	// others.
	Events   []OutcomeEvent
	Messages []SealedMessage // if the outcome is OutcomeDone

	// Unrecorded receives the events of a change that came about although they could
	// not be recorded; the caller sees to them (Journal.AddEvents). Without it, such
	// a change fails. It is called at most once, after the change, and must not call
	// the store.
	Unrecorded func([]Event)

	Idempotency *Idempotency // the change is made once under this key, else *RepeatedError
}

// RoleOwner is the role of those who may do everything; see Change.KeepOwner.
const RoleOwner = "owner"

// Authority is in whose name a change happens. Exactly one member is set.
type Authority struct {
	// Session: this session of this user is live, else ErrSessionEnded, and its
	// user not banned, else ErrBanned.
	Session *SessionRef
	// Token: this token is live, else ErrNotFound, and its user not banned, else
	// ErrBanned. It is not used up.
	Token *TokenRef
	// Key: this API key is live and unchanged, else ErrKeyEnded.
	Key *KeyRef
	// Proof: the token or code that this very call uses up, or one that was
	// judged just before; what the latter rests on is in IfUsers.
	Proof bool
	// System: code of the application or of Authmount, by a name for the log.
	System string
	// External: somebody of whom the application alone knows what they may, by the id
	// that it has for them.
	External string
}

// SessionRef names a session of a user.
type SessionRef struct{ ID, UserID string }

// TokenRef names a token.
type TokenRef struct {
	Purpose Purpose
	Hash    []byte
}

// KeyRef names an API key as it was read.
type KeyRef struct {
	ID       string
	Revision int64
}

// UserAt says what must still be so about a user. Nil members are not asked.
type UserAt struct {
	ID                 string // empty: the user that the token or code of this very call names; none is ErrStale
	Revision           *int64
	CredentialRevision *int64
	PasswordHash       *string // "": none
	Email              *string // compared by EmailKey; "": none
	EmailVerified      *bool
	Phone              *string // "": none
	PhoneVerified      *bool
	Banned             *bool // at Change.Now
}

// Outcome is how a change ended, for what is recorded with it.
type Outcome int

// The outcomes.
const (
	OutcomeDone          Outcome = iota
	OutcomeWrongCode             // TryCode: ErrWrongCode
	OutcomeReused                // AdvanceSession: ErrReused
	OutcomeSessionsEnded         // besides OutcomeDone: at least one live session ended
	OutcomeReplayed              // AdvanceSession, in place of OutcomeDone: an outdated refresh token was let pass
	OutcomeNewDevice             // besides OutcomeDone: a session was made on a device that is new (see NewDevice)
)

// OutcomeEvent is an event that is recorded if a change ends so. The store fills
// in what only it knows: Event.UserID if it is empty and the change is about one
// user; Event.SessionIDs, sorted, for OutcomeSessionsEnded, and for an event with a
// Record, if the change ended some; Event.Other, the
// session's Client, for OutcomeReplayed; Event.Left of UseRecoveryCode,
// and of RemoveFactor with Recovery.
type OutcomeEvent struct {
	On    Outcome
	Event Event
}

// SealedMessage is a message to send, sealed by the caller.
type SealedMessage struct {
	ID        string   // a UUID
	UserID    string   // deleted with the user; may be empty
	Recipient string   // opaque: by which messages to the same are found
	Token     TokenRef // with a Purpose: dropped once that token is not live any more
	Body      []byte
	CreatedAt time.Time
	NextAt    time.Time // not before
	ExpiresAt time.Time // not after
	Attempts  int       // how often it was claimed

	Log MessageLog // for stores that tell what became of messages (Journal); not sealed
}

// Idempotency makes a change happen once. A record lives until ExpiresAt; while
// it does, another change with the same Actor, Route and Key is refused with a
// *RepeatedError.
type Idempotency struct {
	Actor, Route, Key string
	RequestHash       []byte
	Result            []byte // the caller's, for those who repeat
	ExpiresAt         time.Time
}

// Check tells whether the caller said when and in whose name. Stores call it
// first and return its error.
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
