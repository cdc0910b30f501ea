package host

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// Testing is for package authtest, and for the black-box tests of the root through
// package harness. Nothing else calls it.
type Testing interface {
	// CheapPasswords makes hashing cost next to nothing, and reports whether it does;
	// costs that an option names are kept. Call it before the first password.
	CheapPasswords() (cheap bool, err error)
	// BeginTOTP is Auth.SetupTOTP without the QR code, which costs more than the rest of a
	// sign-in with a second factor.
	BeginTOTP(ctx context.Context, by store.SessionRef) (secret string, err error)

	// Written writes the events and counts that this process still holds.
	Written(ctx context.Context) error
	// SettingsRead is the revision of the settings in force here, and the time at which
	// the store was read last; zero: never.
	SettingsRead() (revision int64, at time.Time)
	// Hashes is how many password hashes were computed so far.
	Hashes() uint64
	// Refund writes all refunds of attempts to the store now.
	Refund(ctx context.Context) error
	// HoldRefunds makes refunds wait for Refund or for the next attempt.
	HoldRefunds()
	// Lease is how long a message belongs to the process that recorded it.
	Lease() time.Duration
	// OpenMessage reads the kind and the recipient of a sealed message.
	OpenMessage(m store.SealedMessage) (kind store.Kind, to string, err error)
	// RouteTable is the table of routes.
	RouteTable() []RouteInfo
	// NoticeOf is the message that reports an event.
	NoticeOf(e store.EventType) (k store.Kind, has bool)
	// Statuses is the HTTP status of each error code.
	Statuses() map[string]int
	// WithBodyWait is an auth.Option: how long a client may take to send a body.
	WithBodyWait(d time.Duration) any
}

// RouteInfo is one row of the table of routes.
type RouteInfo struct {
	Pattern string   // "METHOD /path"
	Limits  []string // fields of RateLimits that may refuse it
	Errors  []string // codes beyond those of every route of its kind
	Session bool     // acts within a live session, or may
	Form    bool     // takes a page's form
	Open    bool     // for navigations, which anybody may make
}
