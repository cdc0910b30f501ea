package host

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// Testing is for package authtest, and for the black-box tests of the root through
// package harness. Nothing else calls it.
type Testing interface {
	// CheapPasswords makes hashing nearly free, and reports whether it could; costs set
	// by an option are kept. Call it before the first password.
	CheapPasswords() (cheap bool, err error)
	// BeginTOTP is Auth.SetupTOTP without the QR code, which costs more than the rest of
	// a sign-in with a second factor.
	BeginTOTP(ctx context.Context, by store.SessionRef, mfaToken string) (secret string, err error)

	// Flush writes the events and counts that wait in this process.
	Flush(ctx context.Context) error
	// SettingsState returns the revision of the settings in force in this process, and the
	// time of the last read; zero: never.
	SettingsState() (revision int64, at time.Time)
	// Hashes returns how many password hashes were computed so far.
	Hashes() uint64
	// Refund writes all refunds of attempts to the store now.
	Refund(ctx context.Context) error
	// DelayRefunds delays refunds until Refund or the next attempt.
	DelayRefunds()
	// Lease returns how long a message belongs to the process that recorded it.
	Lease() time.Duration
	// OpenMessage returns the kind and the recipient of a sealed message.
	OpenMessage(m store.SealedMessage) (kind store.Kind, to string, err error)
	// RouteTable returns the table of routes.
	RouteTable() []RouteInfo
	// NoticeOf returns the kind of message that reports an event.
	NoticeOf(e store.EventType) (k store.Kind, has bool)
	// Statuses returns the HTTP status of each error code.
	Statuses() map[string]int
	// WithBodyWait returns an auth.Option that sets how long a client may take to send a
	// body.
	WithBodyWait(d time.Duration) any
}

// RouteInfo is one row of the table of routes.
type RouteInfo struct {
	Pattern string   // "METHOD /path"
	Limits  []string // fields of RateLimits that apply
	Errors  []string // codes in addition to those of every route of its kind
	Session bool     // acts, or may act, within a live session
	Form    bool     // accepts a page's form
	Open    bool     // for navigations, which need no key
}
