package token

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// Revocations stores revocations and outdated revisions for as long as access tokens that
// they affect can be valid. It is safe for concurrent use.
type Revocations struct {
	now  func() time.Time
	life time.Duration // of access tokens, leeway included; see ShortenLife

	nonEmpty  atomic.Bool  // at least one revocation was added
	roles     atomic.Int64 // the newest known revision of the table of roles
	mu        sync.RWMutex
	until     map[string]entry // by session id, or by user id for all sessions of a user
	stale     map[staleKey]entry
	lastSweep time.Time

	limit int       // of the entries; 0: none
	floor time.Time // tokens that were issued until then are stale, see dropOldest

	log *Log // nil: none
}

type entry struct {
	at, until time.Time
	revision  int64  // tokens with an older one are stale
	spared    string // the session that a revocation of all sessions keeps
}

// staleKey selects the tokens that a change made stale: those of a user, or of all users
// with a role.
type staleKey struct{ userID, role string }

// allUsers is the key of a revocation of all sessions. It is not a valid id.
const allUsers = "*"

// NewRevocations returns an empty list for tokens with the lifetime of the options.
func NewRevocations(o Options, now func() time.Time) *Revocations {
	return &Revocations{now: now, life: o.Lifetime() + leeway, until: map[string]entry{}}
}

// RaiseRoles stores the revision of the table of roles if it is newer than the stored
// one.
func (d *Revocations) RaiseRoles(revision int64) { raise(&d.roles, revision) }

// RolesRevision returns the newest known revision of the table of roles.
func (d *Revocations) RolesRevision() int64 { return d.roles.Load() }

// Add stores a revocation. It is idempotent.
func (d *Revocations) Add(r store.Revocation) {
	if r.CaughtUp {
		d.log.caughtUp()
		return
	}
	id := cmp.Or(r.SessionID, r.UserID)
	if r.All {
		id = allUsers
	}
	if id == "" && r.Role == "" {
		return // the revocation selects no tokens
	}
	if r.Role != "" {
		d.RaiseRoles(r.Stale)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	e := entry{r.At, r.At.Add(d.life), r.Stale, r.Spared}
	if !now.Before(e.until) || !r.At.After(d.floor) {
		return // all affected tokens have expired, or are stale
	}
	added := false
	if r.Stale != 0 {
		k := staleKey{userID: r.UserID}
		if r.Role != "" {
			k = staleKey{role: r.Role}
		}
		if d.stale == nil {
			d.stale = map[staleKey]entry{}
		}
		if old := d.stale[k]; old.revision < e.revision {
			d.stale[k], added = e, true
		}
	} else if old := d.until[id]; old.at.Before(e.at) {
		d.until[id], added = e, true
	}
	d.nonEmpty.Store(true)
	if added {
		d.log.add(r, e.until, now)
	}
	full := d.limit > 0 && len(d.until)+len(d.stale) > d.limit
	if now.Sub(d.lastSweep) < d.life && !full {
		return
	}
	d.lastSweep = now
	dropExpired(d.until, now)
	dropExpired(d.stale, now)
	if full {
		d.dropOldest()
	}
}

// Limit bounds the number of entries. It is for a process that cannot trust the source of
// its revocations to be small.
func (d *Revocations) Limit(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limit = n
}

// ShortenLife sets the lifetime of access tokens, if it is shorter than that of the options,
// so that entries are dropped earlier.
func (d *Revocations) ShortenLife(life time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if life += leeway; life > leeway && life < d.life {
		d.life = life
	}
}

// dropOldest drops the older half of the entries, if there are still more than half of the
// limit. All tokens that were issued before the newest of the dropped ones become stale, so
// that no revoked one is accepted: their clients refresh them, which the issuer refuses for
// ended sessions. The caller holds the lock.
func (d *Revocations) dropOldest() {
	var times []time.Time
	for _, e := range d.until {
		times = append(times, e.at)
	}
	for _, e := range d.stale {
		times = append(times, e.at)
	}
	if len(times) <= d.limit/2 {
		return
	}
	slices.SortFunc(times, time.Time.Compare)
	if at := times[len(times)-d.limit/2-1]; at.After(d.floor) {
		d.floor = at
	}
	maps.DeleteFunc(d.until, func(_ string, e entry) bool { return !e.at.After(d.floor) })
	maps.DeleteFunc(d.stale, func(_ staleKey, e entry) bool { return !e.at.After(d.floor) })
}

// raise sets n to v if v is larger.
func raise(n *atomic.Int64, v int64) {
	for old := n.Load(); old < v && !n.CompareAndSwap(old, v); old = n.Load() {
	}
}

// dropExpired deletes expired entries.
func dropExpired[K comparable](m map[K]entry, now time.Time) {
	for k, e := range m {
		if !now.Before(e.until) {
			delete(m, k)
		}
	}
}

// check checks whether a token is still valid. Errors: ErrSessionEnded, ErrStale.
func (d *Revocations) check(c *Claims, r Revisions) error {
	switch {
	case d.revoked(c):
		return errRevoked
	case d.Stale(c, r) && c.Impersonator != nil: // a refresh cannot renew it
		return errImpersonation
	case d.Stale(c, r):
		return ErrStale
	}
	return nil
}

// revoked reports whether the token's session was revoked, or all sessions of its user were
// revoked after the token was issued. Times in tokens have a precision of one second.
func (d *Revocations) revoked(c *Claims) bool {
	if !d.nonEmpty.Load() {
		return false
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	by := c.Impersonator
	return d.sessionRevoked(c.SessionID, c.UserID, c.IssuedAt) || by != nil && d.sessionRevoked(by.ID, by.UserID, c.IssuedAt)
}

// sessionRevoked reports whether one session was revoked. The caller holds the lock.
func (d *Revocations) sessionRevoked(sessionID, userID string, issued time.Time) bool {
	if _, ok := d.until[sessionID]; ok {
		return true
	}
	e, ok := d.until[userID]
	if ok && !issued.After(e.at) {
		return true
	}
	all, ok := d.until[allUsers]
	return ok && sessionID != all.spared && !startedAt(sessionID, issued).After(all.at)
}

// startedAt returns the time in a session's id (UUID version 7). For other ids it returns
// the time at which the token was issued, which is not before the session's start.
func startedAt(sessionID string, issued time.Time) time.Time {
	id, err := uuid.Parse(sessionID)
	if err != nil || id.Version() != 7 {
		return issued
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16))
}

// Stale reports whether a token's roles or permissions were read before a change to them.
// The token of an impersonation is also stale if the actor's roles or any role changed.
func (d *Revocations) Stale(c *Claims, r Revisions) bool {
	if !d.nonEmpty.Load() {
		return false
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if e, ok := d.stale[staleKey{userID: c.UserID}]; ok && r.user < e.revision {
		return true
	}
	if by := c.Impersonator; by != nil {
		e, ok := d.stale[staleKey{userID: by.UserID}]
		return ok && r.actor < e.revision || r.roles < d.roles.Load() || !c.IssuedAt.After(d.floor)
	}
	for _, role := range c.Roles {
		if e, ok := d.stale[staleKey{role: role}]; ok && r.roles < e.revision {
			return true
		}
	}
	return !c.IssuedAt.After(d.floor)
}

// Len returns the number of entries.
func (d *Revocations) Len() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.until) + len(d.stale)
}
