package store

import (
	"context"
	"strings"
	"time"

	"github.com/authmount/auth/internal/keys"
)

// FirstOwnerStore remembers whether there has ever been an owner, and judges
// Change.FirstOwner: of several changes at once, through whichever door, one is first.
type FirstOwnerStore interface {
	// EverOwned tells whether anybody has ever had RoleOwner, whatever became of them.
	EverOwned(ctx context.Context) (bool, error)
}

// LimitStore forgets what was drawn from limits (Store.Take), for operators.
type LimitStore interface {
	// ClearLimits fills the buckets that Keys names, as if nothing was ever drawn
	// from them; one that is not there is no error. The change is about UserID:
	// ErrNotFound if there is no such user.
	ClearLimits(ctx context.Context, c ClearLimits) error
}

// ClearLimits is the parameter of LimitStore.ClearLimits.
type ClearLimits struct {
	Change
	UserID string
	Keys   []string // as in Draw
}

// ImportStore creates many users at once, for imports. The rules of Store apply.
type ImportStore interface {
	// CreateUsers creates each of the users, or tells why not: the list it
	// returns has an entry for each, in their order, which is nil if the user was
	// created, and otherwise what CreateUser would have returned (a
	// *ConflictError). One that is refused keeps nothing and hinders no other; of
	// two in one call that want the same value the first is created. An error of
	// the call itself means that nobody was created and nothing recorded.
	CreateUsers(ctx context.Context, c CreateUsers) ([]error, error)
}

// CreateUsers is the parameter of ImportStore.CreateUsers. The change is about no
// one user; what it records is recorded if anybody was created.
type CreateUsers struct {
	Change
	Users []ImportedRow
}

// ImportedRow is a user to create among others, with what is created in the same
// step.
type ImportedRow struct {
	User         User // as in NewUser
	PasswordHash string
	Factors      []Factor // as in NewUser
	Events       []Event  // recorded if the user is created
}

// KeyIDSize is how many bytes name the key that something was made under. What
// stores keep sealed (Factor.Secret, SealedMessage.Body) and the hashes of
// recovery codes begin with them.
const KeyIDSize = keys.IDSize

// RotationStore tells what is kept under which key, for rotations of the secret.
type RotationStore interface {
	// KeyUses counts what is kept, without changing anything. It may read whole
	// tables.
	KeyUses(ctx context.Context, now time.Time) (KeyUses, error)
}

// KeyUses are how many there are of what is made under a key, by the first
// KeyIDSize bytes of it, or all if there are fewer.
type KeyUses struct {
	Factors       map[string]int // by Factor.Secret, enabled and pending
	RecoveryCodes map[string]int // by their hashes
	Messages      map[string]int // by SealedMessage.Body, of those that are not over at now (ExpiresAt)
	// OldestRefresh is the earliest RotatedAt of the sessions that are live at
	// now; zero: there are none.
	OldestRefresh time.Time
}

// InvitationStore lists the tokens of PurposeInvitation, which operators look after.
type InvitationStore interface {
	// ListInvitations returns those that are live and have a subject, newest first in
	// the order of (CreatedAt, Subject), at most Limit of them, after the one that
	// After names. None is an empty list.
	ListInvitations(ctx context.Context, q InvitationQuery) ([]Token, error)
}

// InvitationQuery picks invitations.
type InvitationQuery struct {
	Subject string            // only the one about this; empty: all that have one
	Now     time.Time         // required
	After   *InvitationCursor // for the next page
	Limit   int               // required, from 1
}

// InvitationCursor is a place in a list of invitations.
type InvitationCursor struct {
	CreatedAt time.Time `json:"created_at"`
	Subject   string    `json:"subject"`
}

// Cursor is the place behind t.
func (t *Token) Cursor() InvitationCursor { return InvitationCursor{t.CreatedAt, t.Subject} }

// Compare is the order of lists of invitations, for stores that sort in Go.
func (c InvitationCursor) Compare(o InvitationCursor) int {
	if at := o.CreatedAt.Compare(c.CreatedAt); at != 0 {
		return at
	}
	return strings.Compare(o.Subject, c.Subject)
}
