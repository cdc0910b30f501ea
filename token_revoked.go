package auth

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"
)

// Revocation says that one session has ended, or that all sessions of a user
// have, at a time.
type Revocation struct {
	SessionID string // only this session; empty: all of the user's that began until At
	UserID    string // whose; may be empty beside a SessionID
	At        time.Time
}

// Revoke makes Verify and Require refuse the access tokens of what has ended,
// for as long as they would live. A feed such as pgstore's WatchRevocations calls
// it in every instance; a repetition does no harm. It is safe for concurrent use.
func (a *Auth) Revoke(r Revocation) { a.revoked.add(r) }

// denylist remembers what has ended while access tokens of it may be about.
type denylist struct {
	now  func() time.Time
	life time.Duration // of access tokens, leeway included

	some  atomic.Bool // there is something to look for
	mu    sync.RWMutex
	until map[string]entry // by the session's id, or the user's for all sessions
	swept time.Time
}

type entry struct{ at, until time.Time }

func (d *denylist) add(r Revocation) {
	if r.SessionID == "" && r.UserID == "" {
		return // about nobody
	}
	now := d.now()
	e := entry{r.At, r.At.Add(d.life)}
	if !now.Before(e.until) {
		return // its tokens are over
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := cmp.Or(r.SessionID, r.UserID)
	if old := d.until[id]; old.at.Before(e.at) {
		d.until[id] = e
	}
	d.some.Store(true)
	if now.Sub(d.swept) < d.life {
		return
	}
	d.swept = now
	for id, e := range d.until {
		if !now.Before(e.until) {
			delete(d.until, id)
		}
	}
}

// ended tells whether a token's session was revoked, or its user's sessions were
// after it was made. Tokens tell time in seconds.
func (d *denylist) ended(c *Claims) bool {
	if !d.some.Load() {
		return false
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if _, ok := d.until[c.SessionID]; ok {
		return true
	}
	e, ok := d.until[c.UserID]
	return ok && !c.IssuedAt.After(e.at)
}
