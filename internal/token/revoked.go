package token

import (
	"cmp"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// Revocations remembers what has ended, and what has become stale, while access tokens
// of it may be about. It is safe for concurrent use.
type Revocations struct {
	now  func() time.Time
	life time.Duration // of access tokens, leeway included

	some  atomic.Bool  // there is something to look for
	roles atomic.Int64 // the newest revision of the table of roles that was told of
	mu    sync.RWMutex
	until map[string]entry // by the session's id, or the user's for all sessions
	stale map[staleKey]entry
	swept time.Time
}

type entry struct {
	at, until time.Time
	revision  int64  // of what is stale
	spared    string // of what has ended
}

// staleKey is whose tokens are stale: those of a user, or of whoever has a role.
type staleKey struct{ userID, role string }

// everybody stands for all users; it is no id.
const everybody = "*"

// NewRevocations returns an empty list, for tokens that live as the options say.
func NewRevocations(o Options, now func() time.Time) *Revocations {
	return &Revocations{now: now, life: o.Lifetime() + leeway, until: map[string]entry{}}
}

// RaiseRoles notes the revision of the table of roles, if it is the newest.
func (d *Revocations) RaiseRoles(revision int64) { raise(&d.roles, revision) }

// RolesRevision is the newest revision of the table of roles that was noted.
func (d *Revocations) RolesRevision() int64 { return d.roles.Load() }

// Add notes a revocation. Repetitions do no harm.
func (d *Revocations) Add(r store.Revocation) {
	id := cmp.Or(r.SessionID, r.UserID)
	if r.All {
		id = everybody
	}
	if id == "" && r.Role == "" {
		return // about nobody
	}
	if r.Role != "" {
		d.RaiseRoles(r.Stale)
	}
	now := d.now()
	e := entry{r.At, r.At.Add(d.life), r.Stale, r.Spared}
	if !now.Before(e.until) {
		return // its tokens are over
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Stale != 0 {
		k := staleKey{userID: r.UserID}
		if r.Role != "" {
			k = staleKey{role: r.Role}
		}
		if d.stale == nil {
			d.stale = map[staleKey]entry{}
		}
		if old := d.stale[k]; old.revision < e.revision {
			d.stale[k] = e
		}
	} else if old := d.until[id]; old.at.Before(e.at) {
		d.until[id] = e
	}
	d.some.Store(true)
	if now.Sub(d.swept) < d.life {
		return
	}
	d.swept = now
	forget(d.until, now)
	forget(d.stale, now)
}

// raise makes n at least v.
func raise(n *atomic.Int64, v int64) {
	for old := n.Load(); old < v && !n.CompareAndSwap(old, v); old = n.Load() {
	}
}

// forget drops what is over.
func forget[K comparable](m map[K]entry, now time.Time) {
	for k, e := range m {
		if !now.Before(e.until) {
			delete(m, k)
		}
	}
}

// judge tells whether a token may be used still. Errors: ErrSessionEnded, ErrStale.
func (d *Revocations) judge(c *Claims, r Revisions) error {
	switch {
	case d.ended(c):
		return errRevoked
	case d.Stale(c, r) && c.Impersonator != nil: // which no refresh mends
		return errImpersonation
	case d.Stale(c, r):
		return ErrStale
	}
	return nil
}

// ended tells whether a token's session was revoked, or its user's sessions were
// after it was made. Tokens tell time in seconds.
func (d *Revocations) ended(c *Claims) bool {
	if !d.some.Load() {
		return false
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	by := c.Impersonator
	return d.over(c.SessionID, c.UserID, c.IssuedAt) || by != nil && d.over(by.ID, by.UserID, c.IssuedAt)
}

// over is ended of one session of a user. The caller holds the lock.
func (d *Revocations) over(sessionID, userID string, issued time.Time) bool {
	if _, ok := d.until[sessionID]; ok {
		return true
	}
	e, ok := d.until[userID]
	if ok && !issued.After(e.at) {
		return true
	}
	all, ok := d.until[everybody]
	return ok && sessionID != all.spared && !beganAt(sessionID, issued).After(all.at)
}

// beganAt is when a session began, by its id; of an id that does not tell, its token
// was made then or later.
func beganAt(sessionID string, issued time.Time) time.Time {
	id, err := uuid.Parse(sessionID)
	if err != nil || id.Version() != 7 {
		return issued
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16))
}

// Stale tells whether a token rests on roles, or on what they permit, as they were
// before a change. That of an impersonation rests on those of both, and on all roles.
func (d *Revocations) Stale(c *Claims, r Revisions) bool {
	if !d.some.Load() {
		return false
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if e, ok := d.stale[staleKey{userID: c.UserID}]; ok && r.user < e.revision {
		return true
	}
	if by := c.Impersonator; by != nil {
		e, ok := d.stale[staleKey{userID: by.UserID}]
		return ok && r.actor < e.revision || r.roles < d.roles.Load()
	}
	for _, role := range c.Roles {
		if e, ok := d.stale[staleKey{role: role}]; ok && r.roles < e.revision {
			return true
		}
	}
	return false
}
