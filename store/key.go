package store

import (
	"strings"
	"time"
)

// APIKey is an API key, of which only a hash is kept.
type APIKey struct {
	ID          string // a UUID
	Name        string
	Public      bool   // it names an application and opens nothing by itself
	Environment string // as the key's text has it
	Hash        []byte // unique
	Scopes      []string
	Networks    []string // CIDR, from which alone it may be used; none: from anywhere
	CreatedBy   string   // a user's id, or empty: code of the application
	Adopted     bool     // it is the service's own, whatever becomes of who made it
	Revision    int64    // the first is 0
	CreatedAt   time.Time
	ExpiresAt   time.Time // zero: never
	RevokedAt   time.Time // zero: not revoked
	LastUsedAt  time.Time // to the minute; zero: never
	RotatedAt   time.Time // since when its text is the present one; zero: since CreatedAt

	// The hash before a rotation, and until when it is good.
	PreviousHash  []byte
	PreviousUntil time.Time
}

// Live tells whether the key may be used at now.
func (k *APIKey) Live(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// Since is since when its text is the present one.
func (k *APIKey) Since() time.Time {
	if k.RotatedAt.IsZero() {
		return k.CreatedAt
	}
	return k.RotatedAt
}

// OfService tells whether the key's scopes count alone. Those of any other are bounded
// by what the one who made it may do.
func (k *APIKey) OfService() bool { return k.Adopted || k.CreatedBy == "" }

// KeyQuery picks API keys. Fields at zero pick all; those set have to hold together.
type KeyQuery struct {
	Public *bool
	LiveAt time.Time  // not revoked, and not expired by then
	After  *KeyCursor // for the next page
	Limit  int        // required, from 1
}

// KeyCursor is a place in the list of API keys, which is in the order of (CreatedAt,
// ID), the newest first.
type KeyCursor struct {
	CreatedAt time.Time `json:"created_at"`
	ID        string    `json:"id"`
}

// Cursor is the place behind a key.
func (k *APIKey) Cursor() *KeyCursor { return &KeyCursor{CreatedAt: k.CreatedAt, ID: k.ID} }

// Compare is the order of the list, for stores that sort in Go.
func (c *KeyCursor) Compare(d *KeyCursor) int {
	if n := d.CreatedAt.Compare(c.CreatedAt); n != 0 {
		return n
	}
	return strings.Compare(d.ID, c.ID)
}
