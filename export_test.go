package auth

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// HashWorks counts the password hashes that were computed, for tests that
// compare the work done for known and unknown accounts.
func HashWorks(a *Auth) uint64 { return a.passwords.works() }

// Routes lists the route table as "METHOD /path".
func Routes(a *Auth) []string {
	var list []string
	for _, r := range a.routes() {
		list = append(list, r.pattern)
	}
	return list
}

// Document is the OpenAPI document, without a service.
func Document() []byte {
	doc, err := (&Auth{cfg: config{prefix: "/auth/v1"}}).document()
	if err != nil {
		panic(err)
	}
	return doc
}

// ErrorStatuses is the error table without its messages.
func ErrorStatuses() map[Code]int {
	m := map[Code]int{}
	for c, row := range errorTable {
		m[c] = row.Status
	}
	return m
}

// CheapPasswords makes hashing cost next to nothing, for tests about anything but
// that. It is to be called before the first password.
func CheapPasswords(a *Auth) error {
	a.passwords.usual = true
	_, err := kit{a}.CheapPasswords()
	return err
}

// RouteLimits maps the routes that rate limits may refuse to the names of those.
func RouteLimits(a *Auth) map[string][]string {
	m := map[string][]string{}
	for _, r := range a.routes() {
		if len(r.limits) > 0 {
			m[r.pattern] = r.limits
		}
	}
	return m
}

// ForgetRoles makes what is known of the roles older than it may be, unless they
// cannot be read.
func ForgetRoles(a *Auth) {
	k := *a.roleTable.known.Load()
	k.at = k.at.Add(-rolesFor)
	a.roleTable.known.Store(&k)
}

// RolesAreRead tells whether somebody is reading the roles.
func RolesAreRead(a *Auth) bool { return len(a.roleTable.reading) > 0 }

// RoutesWith are the routes that list a code among their errors.
func RoutesWith(a *Auth, c Code) []string {
	var list []string
	for _, r := range a.routes() {
		if slices.Contains(r.errors, c) {
			list = append(list, r.pattern)
		}
	}
	return list
}

// SessionRoutes are the routes that act within a live session, or may.
func SessionRoutes(a *Auth) []string {
	var list []string
	for _, r := range a.routes() {
		within := slices.Contains(r.errors, CodeMissingToken) && slices.Contains(r.errors, CodeSessionEnded)
		if r.access == signedIn || r.access == enrolling || within {
			list = append(list, r.pattern)
		}
	}
	return list
}

// FormRoutes are the routes that take a page's form.
func FormRoutes(a *Auth) []string {
	var list []string
	for _, r := range a.routes() {
		if r.form != nil || r.done != "" {
			list = append(list, r.pattern)
		}
	}
	return list
}

// Open tells whether a route is for navigations, which anybody may make.
func Open(a *Auth, pattern string) bool {
	return slices.ContainsFunc(a.routes(), func(r route) bool { return r.pattern == pattern && r.access == open })
}

// WithBodyWait sets how long a client may take to send a body.
func WithBodyWait(d time.Duration) Option { return func(c *config) { c.bodyWait = d } }

// GiveBack gives back to the store at once what right guesses drew.
func GiveBack(a *Auth) error { return a.refunds.flush(context.Background()) }

// FillQueue has clients wait for hashes for an account until its share of the queue
// is full.
func FillQueue(a *Auth, account string) (release func()) {
	hold, full := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	for i := range 64 {
		ctx := ContextWithClient(context.Background(), Client{IP: netip.AddrFrom4([4]byte{203, 0, 113, byte(i)})})
		wg.Go(func() {
			if err := a.passwords.run(ctx, account, nil, func() error { <-hold; return nil }); err != nil {
				once.Do(func() { close(full) })
			}
		})
	}
	<-full
	return func() { close(hold); wg.Wait() }
}

// HoldReturns leaves giving back to GiveBack and to the next guesses.
func HoldReturns(a *Auth) { a.refunds.after = func(time.Duration, func()) {} }

// Poll takes on the messages that are overdue, as happens every few seconds.
func Poll(ctx context.Context, a *Auth) { a.outbox.Claim(ctx) }

// OpenMessage tells what a message is, and to whom it goes.
func OpenMessage(a *Auth, m store.SealedMessage) (Kind, string, error) {
	o, err := a.openMessage(m)
	return o.Kind, o.To, err
}

// Lease is for how long a message is left to the process that recorded it.
func Lease(a *Auth) time.Duration { return a.outbox.Lease() }

// Retries makes the pauses between attempts all the same.
func Retries(a *Auth, pause time.Duration) {
	a.outbox.Backoff = func(int) time.Duration { return pause }
}

// NoticeOf is which message tells of an event.
func NoticeOf(e EventType) (Kind, bool) { return noticeOf(e) }

// NewChange begins a change of an account with an event, for the application.
func NewChange(a *Auth, of User, e EventType) store.Change {
	return a.newChangeOf(context.Background(), ByApplication(of.ID).authority(), account{User: of}, done(Event{Type: e, UserID: of.ID}))
}

// NewID makes an id as the flows do.
func NewID(a *Auth) string { return a.newID() }

// EndlessEvents makes the first page of an export's events a full one.
func EndlessEvents(e *Export) {
	for len(e.first) < exportPage {
		e.first = append(e.first, e.first...)
	}
	e.first = e.first[:exportPage]
}

// SignInRoutes are the routes at which a session may begin: those that a second
// factor may hold up, and those that go on from there.
func SignInRoutes(a *Auth) []string {
	var list []string
	for _, r := range a.routes() {
		if slices.Contains(r.errors, CodeMFAEnrollmentRequired) || strings.HasPrefix(r.pattern, "POST /2fa/verify") {
			list = append(list, r.pattern)
		}
	}
	return list
}

// SweepEvents deletes what the audit log has kept long enough.
func SweepEvents(ctx context.Context, a *Auth, n int) (int, error) { return a.sweepEvents(ctx, n) }

// AwaitedMessages is how many messages somebody waits for the first attempt at.
func AwaitedMessages(a *Auth) int { return a.outbox.Awaited() }
