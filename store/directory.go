package store

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/jsonvalue"
)

// UserRow is an account with its metadata as stored JSON.
type UserRow struct {
	User // UserMetadata and AppMetadata are nil

	// Each is the text of one valid JSON object, "{}" if there is none. Spacing and order
	// of members are the store's choice.
	UserMetadataJSON, AppMetadataJSON json.RawMessage
}

// ErrTooBroad: the query would read too much.
var ErrTooBroad = errors.New("auth: query reads too much")

// UserQuery picks accounts that match all of its fields. A zero field matches all.
//
// A store for many accounts has an index for each of Email, Phone, Subject, Role, Metadata,
// Prefix and Domain. If few accounts match one of them, a list costs as much as these
// matches. If many match, it costs about as much as its page, because the store reads the
// accounts in the list's order until the page is full. If that takes long, for instance
// because the matches come last in the order, a store may return ErrTooBroad.
type UserQuery struct {
	ID       string
	IDs      []string // one of these; at most MaxQueryIDs; empty: any
	Email    string   // the whole email address, compared by EmailKey
	Phone    string   // E.164
	Provider string   // has an identity of this provider
	Subject  string   // has this identity; needs Provider

	// Prefix is the start of the email address (by EmailKey, which takes any text), or of the
	// full name from any of its words on (see NameMatches).
	Prefix string
	Domain string // the whole domain of the email address, without the @ (see DomainKey)

	Role    string
	Waiting []string // has one of these roles, and no acceptance at Now (User.Accepted is false); empty: any

	// Metadata are members of AppMetadata by name. A member matches if it is this text, or
	// the number, true, false or null that the text spells (see MetadataValues).
	Metadata map[string]string

	Banned    *bool // at Now
	Confirmed *bool // has a verified email address, a verified phone number or an identity (User.Unverified is false)
	MFA       *bool // User.MFAEnabled
	Password  *bool // has a password

	CreatedFrom, CreatedTo   time.Time // from, inclusive; to, exclusive
	SignedInFrom, SignedInTo time.Time // an account that never signed in is before any time

	Sort  UserSort // SortCreated if empty
	Desc  bool
	After *UserCursor // for the next page
	Limit int         // required, from 1
	Now   time.Time   // required for Banned and Waiting
}

// NameKey returns the form of a full name that lists search by: in lower case, by Unicode's
// rules without a locale. Stores with lower-casing rules of their own store this form with
// the name.
func NameKey(name string) string { return strings.ToLower(name) }

// maxNameWords is the highest number of words of a name that lists find it by.
const maxNameWords = 16

// NameWords returns NameKey of a full name from each word after the first one on to the end:
// "neill" of "O'Neill", "luc picard" and "picard" of "Jean-Luc Picard". Words are runs of
// letters, marks and digits. Only the first 16 words count. A store with an index keeps these
// texts in it beside NameKey.
func NameWords(name string) []string {
	key := NameKey(name)
	var words []string
	inWord, n := false, 0
	for i, r := range key {
		was := inWord
		inWord = unicode.In(r, unicode.L, unicode.M, unicode.N)
		if !inWord || was {
			continue
		}
		if n++; n > maxNameWords {
			break
		}
		if i > 0 { // the whole key begins with the first word
			words = append(words, key[i:])
		}
	}
	return words
}

// NameMatches reports whether a full name matches UserQuery.Prefix: its NameKey begins with
// NameKey of the prefix, at its start or at one of NameWords. So "luc", "luc pic" and "jean-"
// find "Jean-Luc Picard".
func NameMatches(name, prefix string) bool {
	prefix = NameKey(prefix)
	return strings.HasPrefix(NameKey(name), prefix) || slices.ContainsFunc(NameWords(name), func(w string) bool { return strings.HasPrefix(w, prefix) })
}

// DomainKey returns the form in which domains of email addresses are compared: the part of
// EmailKey after the @.
func DomainKey(domain string) string { return EmailDomain("a@" + domain) }

// EmailDomain returns the DomainKey of an email address: EmailKey after its last @.
func EmailDomain(email string) string {
	key := EmailKey(email)
	return key[strings.LastIndexByte(key, '@')+1:]
}

// UserSort is the field by which a list of accounts is sorted. Accounts with equal fields
// are in the order of their ids.
type UserSort string

// The orders.
const (
	SortCreated  UserSort = "created_at"
	SortSignedIn UserSort = "last_sign_in_at" // accounts that never signed in are the oldest
	SortEmail    UserSort = "email"           // by EmailKey; accounts without an email address come first
)

// UserCursor is a place in a list of accounts.
type UserCursor struct {
	Time  time.Time `json:"time,omitzero"`   // the time that the list is sorted by
	Email string    `json:"email,omitempty"` // SortEmail: EmailKey
	ID    string    `json:"id"`
}

// Cursor returns the place after u in the query's order.
func (q *UserQuery) Cursor(u User) *UserCursor {
	switch q.Sort {
	case SortSignedIn:
		return &UserCursor{Time: u.LastSignInAt, ID: u.ID}
	case SortEmail:
		return &UserCursor{Email: EmailKey(u.Email), ID: u.ID}
	}
	return &UserCursor{Time: u.CreatedAt, ID: u.ID}
}

// MaxQueryIDs is the highest number of ids in a query.
const MaxQueryIDs = 200

// maxMetadataFilters is the highest number of metadata members in a query.
const maxMetadataFilters = 10

// Check returns an *InvalidError if the query is invalid.
func (q *UserQuery) Check() error {
	for _, f := range []struct{ name, text string }{
		{"email", q.Email}, {"phone", q.Phone}, {"provider", q.Provider}, {"subject", q.Subject}, {"q", q.Prefix}, {"domain", q.Domain}, {"role", q.Role},
	} {
		if len(f.text) > maxFilter || !isText(f.text) {
			return &InvalidError{f.name, "is too long, or no text"}
		}
	}
	if len(q.Metadata) > maxMetadataFilters {
		return &InvalidError{"metadata", "has more than 10 members"}
	}
	if slices.ContainsFunc(q.Waiting, func(r string) bool { return len(r) > maxFilter || !isText(r) }) {
		return &InvalidError{"waiting", "is too long, or no text"}
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
	case strings.Contains(q.Domain, "@"):
		return &InvalidError{"domain", "has an @"}
	case q.Subject != "" && q.Provider == "":
		return &InvalidError{"provider", "is required with a subject"}
	case !slices.Contains([]UserSort{"", SortCreated, SortSignedIn, SortEmail}, q.Sort):
		return &InvalidError{"sort", "has to be created_at, last_sign_in_at or email"}
	case q.Limit < 1:
		return &InvalidError{"limit", "has to be at least 1"}
	case q.After != nil && uuid.Validate(q.After.ID) != nil:
		return &InvalidError{"cursor", "does not belong to this list"}
	}
	return nil
}

// maxFilter is the highest length of a filter in bytes.
const maxFilter = 512

// isUUID reports whether s is a UUID in its usual form, in either case.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// isText reports whether every store can search for s.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// MetadataValues returns the values that match a text of UserQuery.Metadata: the text
// itself, and the number, true, false or null that it spells.
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

// HasMetadata reports whether metadata has all members that the query names, for stores
// that search in Go.
func (q *UserQuery) HasMetadata(metadata map[string]any) bool {
	for name, text := range q.Metadata {
		have, ok := metadata[name]
		if !ok || !slices.ContainsFunc(MetadataValues(text), func(v any) bool { return jsonvalue.Same(have, v) }) {
			return false
		}
	}
	return true
}

// Compare compares two places in the query's order, for stores that sort in Go.
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
