package auth

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// DirectoryStore lists accounts, for the admin side.
type DirectoryStore interface {
	// ListUsers returns the accounts that match all of a query, in its order, at most
	// Limit of them, after the one that After names. None is an empty list. The query
	// has passed its Check. No plan of it reads the table whole.
	ListUsers(ctx context.Context, q UserQuery) ([]User, error)
}

// UserQuery picks accounts. Fields at zero pick all; those set have to hold together.
type UserQuery struct {
	Prefix string // of the address (by EmailKey) or of the name (by NameKey)
	Role   string

	Banned    *bool // at Now
	Confirmed *bool // an address or number was proved
	MFA       *bool // there is an enabled factor

	CreatedFrom, CreatedTo   time.Time // from, inclusive; to, exclusive
	SignedInFrom, SignedInTo time.Time

	Sort  UserSort // SortCreated if empty
	Desc  bool
	After *UserCursor // for the next page
	Limit int         // required, from 1
	Now   time.Time   // required for Banned
}

// NameKey is the form of a full name by which lists are searched: in lower case, as
// Unicode has it without a locale. Stores that have a rule of their own for that keep
// it beside the name.
func NameKey(name string) string { return strings.ToLower(name) }

// UserSort is what a list of accounts is sorted by; those who are alike in it are in
// the order of their ids.
type UserSort string

// The orders.
const (
	SortCreated  UserSort = "created_at"
	SortSignedIn UserSort = "last_sign_in_at" // those who never did are the oldest
	SortEmail    UserSort = "email"           // by EmailKey; those without come first
)

// UserCursor is a place in a list of accounts.
type UserCursor struct {
	Time  time.Time `json:"time,omitzero"`   // by the time that the list is sorted by
	Email string    `json:"email,omitempty"` // SortEmail: EmailKey
	ID    string    `json:"id"`
}

// Cursor is the place behind u in the query's order.
func (q *UserQuery) Cursor(u User) *UserCursor {
	switch q.Sort {
	case SortSignedIn:
		return &UserCursor{Time: u.LastSignInAt, ID: u.ID}
	case SortEmail:
		return &UserCursor{Email: EmailKey(u.Email), ID: u.ID}
	}
	return &UserCursor{Time: u.CreatedAt, ID: u.ID}
}

// Check tells what is wrong with a query. Errors: CodeValidationFailed.
func (q *UserQuery) Check() error {
	switch {
	case !slices.Contains([]UserSort{"", SortCreated, SortSignedIn, SortEmail}, q.Sort):
		return invalid("sort", "has to be created_at, last_sign_in_at or email")
	case q.Limit < 1:
		return invalid("limit", "has to be at least 1")
	case len(q.Prefix) > 256 || strings.ContainsRune(q.Prefix, 0):
		return invalid("q", "is too long, or no text")
	case q.After != nil && uuid.Validate(q.After.ID) != nil:
		return invalid("cursor", "is none of this list")
	}
	return nil
}

// Compare is the query's order, for stores that sort in Go.
func (q *UserQuery) Compare(a, b *UserCursor) int {
	c := a.Time.Compare(b.Time)
	if c == 0 {
		c = strings.Compare(a.Email, b.Email)
	}
	if c == 0 {
		c = strings.Compare(a.ID, b.ID)
	}
	if q.Desc {
		return -c
	}
	return c
}
