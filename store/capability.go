package store

import (
	"context"
	"time"
)

// Capability finds an optional power of a store, in the store itself or in what
// it wraps (Unwrap() Store):
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

// ProofStore adds proofs to sessions.
type ProofStore interface {
	// AddProof adds a proof to a live session, in place of one of the same method,
	// and leaves its AAL and everything else of it as it is. Errors as for Session.
	AddProof(ctx context.Context, c AddProof) (Session, User, error)
}

// AddProof is the parameter of ProofStore.AddProof.
type AddProof struct {
	Change
	SessionID string
	Proof     AMR
}

// ExportStore tells what is kept about a user besides what the other interfaces
// list.
type ExportStore interface {
	// Held lists what is kept about a user and not over at now, each in the order
	// of its first time; what is kept of no user, or of none, is empty lists.
	Held(ctx context.Context, userID string, now time.Time) (Held, error)
}

// AccountStore reads an account and what is held about it (ExportStore) at once, for
// stores to which each question is a journey. A store that wraps one and answers
// Credentials or Held differently answers this, too.
type AccountStore interface {
	// Account returns what Credentials and Held do, and the errors of Credentials.
	Account(ctx context.Context, key UserKey, now time.Time) (Credentials, Held, error)
}

// Held is what a store keeps about a user, without anything secret.
type Held struct {
	Devices  []HeldDevice
	Pending  []HeldToken   // tokens and codes that are live
	Messages []HeldMessage // that wait to be sent
}

// HeldDevice is a device that the user signed in on.
type HeldDevice struct {
	Device                  string // as Session.Device has it
	FirstSeenAt, LastSeenAt time.Time
	Origin
}

// HeldToken is a token or code.
type HeldToken struct {
	Purpose   Purpose
	Subject   string
	Data      []byte
	CreatedAt time.Time
	ExpiresAt time.Time
}

// HeldMessage is a message.
type HeldMessage struct{ CreatedAt, ExpiresAt time.Time }

// OutboxStore keeps the messages that come with changes until they are sent.
// Sweep deletes those that have expired, and, once they are due, those whose token is
// not live any more. A
// store whose changes may wait for the end of a caller's transaction says so by a
// method InTransaction(context.Context) bool, found by Capability.
type OutboxStore interface {
	// ClaimMessages returns up to Limit messages whose NextAt has come, oldest
	// first, counts the attempt, and moves their NextAt to Until, so that no
	// other caller gets them before. Expired ones, and those whose token is not
	// live any more, are left out.
	ClaimMessages(ctx context.Context, c ClaimMessages) ([]SealedMessage, error)
	// FinishMessage erases a message, or lets it be claimed again at RetryAt. Where the
	// store is a MessageLogStore, too, it also keeps a failed message, unclaimed, until
	// KeepUntil or its ExpiresAt, whichever comes first, and notes what became of it in
	// the same step; of a message that is MessageSent nothing else is noted afterwards.
	// One that is gone is no error.
	FinishMessage(ctx context.Context, f FinishMessage) error
}

// ClaimMessages is the parameter of OutboxStore.ClaimMessages.
type ClaimMessages struct {
	Now, Until time.Time
	Limit      int
}

// FinishMessage is the parameter of OutboxStore.FinishMessage.
type FinishMessage struct {
	ID      string
	RetryAt time.Time // zero: it is over

	// What is noted of it (MessageRecord).
	State     MessageState // with RetryAt: MessageQueued; empty: nothing was sent, and its record goes
	At        time.Time
	Attempts  int
	Error     string
	KeepUntil time.Time // of a MessageFailed one; zero: it is erased
}

// RoleStore keeps what roles permit.
type RoleStore interface {
	// Roles reads the whole table, sorted by name, and its revision. An empty
	// one that never changed has revision 0.
	Roles(ctx context.Context) (RoleTable, error)
	// PutRole adds or replaces a role and raises the table's revision.
	PutRole(ctx context.Context, c PutRole) (RoleTable, error)
	// DeleteRole removes a role and raises the table's revision. ErrNotFound if
	// there is none; a *ConflictError of "role" while a user has it.
	DeleteRole(ctx context.Context, c DeleteRole) (RoleTable, error)
}

// RoleTable is every role, at one revision.
type RoleTable struct {
	Revision int64 // rises with every change of any role
	Roles    []RolePermissions
}

// RolePermissions is what one role permits.
type RolePermissions struct {
	Name        string
	Description string
	Permissions []string
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// PutRole is the parameter of RoleStore.PutRole. CreatedAt of a role that is
// there stays; both times are Change.Now otherwise.
type PutRole struct {
	Change
	Role RolePermissions
}

// DeleteRole is the parameter of RoleStore.DeleteRole.
type DeleteRole struct {
	Change
	Name string
}

// KeyStore keeps API keys.
type KeyStore interface {
	// Key reads a key, revoked and expired ones too. ErrNotFound if there is none.
	Key(ctx context.Context, id string) (APIKey, error)
	// Keys lists keys, newest first. None is an empty list.
	Keys(ctx context.Context, q KeyQuery) ([]APIKey, error)
	// PutKey adds a key, or replaces the one with its id and raises its revision;
	// CreatedAt, Revision and LastUsedAt of the parameter are the store's to set.
	// Another key with the same hash: a *ConflictError of "key". A revision that is
	// not IfRevision, or no key that has one: ErrStale.
	PutKey(ctx context.Context, c PutKey) (APIKey, error)
	// UseKey notes that a key is used at an instant, unless a use within the minute
	// before, or later, is noted. It changes nothing else of the key, its revision
	// among it. No such key is no error.
	UseKey(ctx context.Context, id string, at time.Time) error
}

// PutKey is the parameter of KeyStore.PutKey.
type PutKey struct {
	Change
	Key        APIKey
	IfRevision *int64 // of the key that is replaced; nil: whatever there is
}
