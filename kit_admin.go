package auth

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// What the admin side builds on.

// Fresh tells whether somebody proved who they are on this session lately, with their
// second factor if they have one.
func (k kit) Fresh(u User, s Session) bool {
	if u.MFAEnabled {
		return k.a.freshAAL2(s)
	}
	return k.a.fresh(s)
}

// Busy is CodeUnavailable for what may be tried again at once.
func (k kit) Busy(cause error) error { return retryAfter(CodeUnavailable, time.Second, cause) }

// RequestID is the id of the request that a context is of, or "".
func (k kit) RequestID(ctx context.Context) string { return requestID(ctx) }

// Emit tells the hooks of something that changed nothing.
func (k kit) Emit(ctx context.Context, by Authority, e Event) {
	e.Actor = actorOf(by, e)
	k.a.emit(ctx, e)
}

// EndingAll completes the end of all sessions of a user with what dies with them, so
// that none that is about to begin is spared.
func (k kit) EndingAll(c store.RevokeSessions) store.RevokeSessions {
	c.DropTokens, c.DropDevices = dyingWithPassword(), true
	return c
}

// DeleteUser deletes an account as it was read, if Hooks.BeforeDelete agrees.
func (k kit) DeleteUser(ctx context.Context, u User, c store.DeleteUser) error {
	return k.a.endUser(ctx, u, c)
}

// Fingerprint tells contents apart, for whoever keeps what requests said: without the
// service's secret nobody can try out which password was in there.
func (k kit) Fingerprint(sum []byte) []byte {
	return []byte(k.a.keys.RateLimit("request", string(sum)))
}
