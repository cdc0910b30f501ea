// Package probe shows a service's internals to the black-box tests below internal/tests,
// through package harness: counts of work, the table of routes, and switches for work that
// would otherwise happen at a time of its own. The root registers the functions; nothing
// but package harness may call them.
package probe

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// Service is the view of one service.
type Service struct {
	Hashes      func() uint64                   // password hashes computed so far
	Refund      func(ctx context.Context) error // writes all refunds of attempts to the store now
	HoldRefunds func()                          // from now on refunds wait for Refund or for the next attempt
	Lease       func() time.Duration            // how long a message belongs to the process that recorded it
	OpenMessage func(m store.SealedMessage) (kind store.Kind, to string, err error)
	Routes      func() []Route
}

// Route is one row of the table of routes.
type Route struct {
	Pattern string   // "METHOD /path"
	Limits  []string // fields of RateLimits that may refuse it
	Errors  []string // codes beyond those of every route of its kind
	Session bool     // acts within a live session, or may
	Form    bool     // takes a page's form
	Open    bool     // for navigations, which anybody may make
}

// The functions that the root registers.
var (
	Of       func(service any) Service                        // of an *auth.Auth
	Notice   func(e store.EventType) (k store.Kind, has bool) // the message that reports an event
	Statuses func() map[string]int                            // HTTP status of each error code
	BodyWait func(d time.Duration) any                        // an auth.Option: how long a client may take to send a body
)
