package store

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/jsonvalue"
)

// UserRow is an account with its metadata as the JSON that is kept.
type UserRow struct {
	User // whose UserMetadata and AppMetadata are nil

	// Each is the text of one JSON object, "{}" for none: valid, and spaced and ordered
	// as the store likes.
	UserMetadataJSON, AppMetadataJSON json.RawMessage
}

// ErrTooBroad: a query would read too much.
var ErrTooBroad = errors.New("auth: query reads too much")

// UserQuery picks accounts. Fields at zero pick all; those set have to hold together.
type UserQuery struct {
	ID       string
	IDs      []string // one of these; at most MaxQueryIDs; none: any
	Email    string   // the whole address, by EmailKey
	Phone    string   // E.164
	Provider string   // there is an identity of it
	Subject  string   // and it is this one
	Prefix   string   // of the address (by EmailKey) or of the name (by NameKey)
	Role     string

	// Metadata are members of AppMetadata, by name: each has this text as its value,
	// or the number, true, false or null that the text spells (see MetadataValues).
	Metadata map[string]string

	Banned    *bool // at Now
	Confirmed *bool // an address, number or identity was proved: not User.Unproved
	MFA       *bool // there is an enabled factor
	Password  *bool // there is one

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

// MaxQueryIDs is how many ids a query names at most.
const MaxQueryIDs = 200

// maxMetadataFilters bounds how many members of the metadata a query names.
const maxMetadataFilters = 10

// Check tells what is wrong with a query: an *InvalidError.
func (q *UserQuery) Check() error {
	for _, f := range []struct{ name, text string }{
		{"email", q.Email}, {"phone", q.Phone}, {"provider", q.Provider}, {"subject", q.Subject}, {"q", q.Prefix}, {"role", q.Role},
	} {
		if len(f.text) > maxFilter || !isText(f.text) {
			return &InvalidError{f.name, "is too long, or no text"}
		}
	}
	if len(q.Metadata) > maxMetadataFilters {
		return &InvalidError{"metadata", "has more than 10 members"}
	}
	for name, value := range q.Metadata {
		if name == "" || len(name)+len(value) > maxFilter || !isText(name+value) {
			return &InvalidError{"metadata", "has a member without a name, or one that is too long or no text"}
		}
	}
	switch {
	case q.ID != "" && !isUUID(q.ID):
		return &InvalidError{"id", "is no UUID"}
	case len(q.IDs) > MaxQueryIDs:
		return &InvalidError{"ids", "are more than 200"}
	case slices.ContainsFunc(q.IDs, func(id string) bool { return !isUUID(id) }):
		return &InvalidError{"ids", "are not all UUIDs"}
	case q.Subject != "" && q.Provider == "":
		return &InvalidError{"provider", "is required with a subject"}
	case !slices.Contains([]UserSort{"", SortCreated, SortSignedIn, SortEmail}, q.Sort):
		return &InvalidError{"sort", "has to be created_at, last_sign_in_at or email"}
	case q.Limit < 1:
		return &InvalidError{"limit", "has to be at least 1"}
	case q.After != nil && uuid.Validate(q.After.ID) != nil:
		return &InvalidError{"cursor", "is none of this list"}
	}
	return nil
}

// maxFilter is how long what is searched for may be, in bytes.
const maxFilter = 512

// isUUID reports whether s is a UUID in its usual form, in either case.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// isText tells whether any store can look for a text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// MetadataValues are the values of a member of the metadata that a text of
// UserQuery.Metadata stands for: itself, and the number, true, false or null that it
// spells.
func MetadataValues(text string) []any {
	list := []any{text}
	var spelled any
	if json.Unmarshal([]byte(text), &spelled) == nil {
		switch spelled.(type) {
		case float64, bool, nil:
			list = append(list, spelled)
		}
	}
	return list
}

// HasMetadata tells whether metadata have all members that the query names, for
// stores that search in Go.
func (q *UserQuery) HasMetadata(metadata map[string]any) bool {
	for name, text := range q.Metadata {
		have, ok := metadata[name]
		if !ok || !slices.ContainsFunc(MetadataValues(text), func(v any) bool { return jsonvalue.Same(have, v) }) {
			return false
		}
	}
	return true
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
