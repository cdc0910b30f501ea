package auth

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// ForgetRoles makes the cached roles too old to use, unless they cannot be read.
func ForgetRoles(a *Auth) {
	k := *a.roleTable.known.Load()
	k.at = k.at.Add(-rolesFor)
	a.roleTable.known.Store(&k)
}

// RolesAreRead reports whether a caller is reading the roles.
func RolesAreRead(a *Auth) bool { return len(a.roleTable.reading) > 0 }

// FillQueue makes one client wait for hashes for an account until the account's share of
// the queue is full, so that the same client is rejected. The zero Addr is the client
// without an IP address.
func FillQueue(a *Auth, account string, client netip.Addr) (release func()) {
	hold, full := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	ctx := ContextWithClient(context.Background(), Client{IP: client})
	for range 64 {
		wg.Go(func() {
			if err := a.passwords.run(ctx, hashOwner{account: account}, nil, func() error { <-hold; return nil }); err != nil {
				once.Do(func() { close(full) })
			}
		})
	}
	<-full
	return func() { close(hold); wg.Wait() }
}

// Poll sends the overdue messages, as the service does every few seconds.
func Poll(ctx context.Context, a *Auth) { a.outbox.Claim(ctx) }

// Retries makes the pauses between attempts equal.
func Retries(a *Auth, pause time.Duration) {
	a.outbox.Backoff = func(int) time.Duration { return pause }
}

// NewChange returns a change of an account with an event, by the application.
func NewChange(a *Auth, of User, e EventType) store.Change {
	return a.newChangeOf(context.Background(), ByApplication(of.ID).authority(), account{User: of}, done(Event{Type: e, UserID: of.ID}))
}

// SweepEvents deletes events that are older than the audit log's retention.
func SweepEvents(ctx context.Context, a *Auth, n int) (int, error) { return a.sweepEvents(ctx, n) }

// AwaitedMessages returns the number of messages with a caller who awaits the first
// attempt.
func AwaitedMessages(a *Auth) int { return a.outbox.Watched() }

// HashCount returns the number of password hashes computed so far.
func HashCount(a *Auth) uint64 { return a.passwords.hashCount() }
