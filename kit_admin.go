package auth

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// What the admin side builds on.

func (k kit) Fresh(u User, s Session) bool {
	if u.MFAEnabled {
		return k.a.freshAAL2(s)
	}
	return k.a.fresh(s)
}

func (k kit) Busy(cause error) error { return retryAfter(CodeUnavailable, time.Second, cause) }

func (k kit) RequestID(ctx context.Context) string { return requestID(ctx) }

func (k kit) Emit(ctx context.Context, by Authority, e Event) {
	e.Actor = actorOf(by, e)
	k.a.emit(ctx, e)
}

func (k kit) EndingAll(c store.RevokeSessions) store.RevokeSessions {
	c.DropTokens, c.DropDevices = dyingWithPassword(), true
	return c
}

func (k kit) DeleteUser(ctx context.Context, u User, c store.DeleteUser) error {
	return k.a.endUser(ctx, u, c)
}

func (k kit) Fingerprint(sum []byte) []byte {
	return []byte(k.a.keys.RateLimit("request", string(sum)))
}
