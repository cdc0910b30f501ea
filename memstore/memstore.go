// Package memstore keeps users, sessions and tokens in memory, for tests and for data that may
// end with the process. Package sqlitestore keeps them in a file. It implements every optional
// interface of package store.
//
//	store := memstore.New()
package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// Store is a store.Store in memory. It is safe for concurrent use: one mutex makes every
// method a single step. NewUser.Creating is called with the mutex held and must not call
// the store.
type Store struct {
	mu        sync.Mutex
	users     map[string]*user
	byEmail   map[string]string // EmailKey → user id
	byPhone   map[string]string
	byHandle  map[string]string
	byIdent   map[ident]string
	byIdentID map[string]string        // by Identity.ID
	factors   map[string]*store.Factor // of all users, by id
	withCred  map[string]*store.Factor // by Factor.Credential
	sessions  map[string]*session
	tokens    map[tokenID]*store.Token
	live      map[subject]tokenID // the token that a newer one supersedes
	buckets   map[string]store.Bucket
	done      map[changeKey]*store.Idempotency
	events    []store.Event // in the order of (At, ID)
	messages  map[string]*message
	log       map[string]*loggedMessage // by the message's id
	keys      map[string]*store.APIKey
	byHash    map[string]string // of a key → the key's id
	roles     map[string]store.RolePermissions

	privileged    map[string]bool // names of roles, also of deleted ones
	deleted       map[string]bool // ids of deleted users
	rolesRevision int64
	settings      store.StoredSettings
	owned         bool  // there has been an owner at some time
	order         int64 // of the newest session

	counts map[countKey]int64
	active map[activeKey]bool

	impersonations map[string]*impersonation
	jobs           map[string]*job
}

type (
	user struct {
		store.User
		hash           string
		notes          string
		factors        map[string]*store.Factor
		recovery       [][]byte
		recoveryOrigin store.Origin
		sessions       map[string]bool
		tokens         map[tokenID]bool
		devices        map[string]device
	}
	device struct { // that the user has signed in on
		First time.Time `json:"first"`
		Last  time.Time `json:"last"`
		store.Origin

		TrustedUntil time.Time `json:"trusted_until,omitzero"`
		TrustedAt    int64     `json:"trusted_at,omitempty"` // the user's CredentialRevision then: trust ends when that rises
	}
	session struct {
		store.Session
		revoked  bool
		rotation store.Rotation
		order    int64 // see SessionOrder
	}
	ident   struct{ provider, subject string }
	tokenID struct {
		purpose store.Purpose
		hash    string
	}
	subject struct {
		purpose store.Purpose
		subject string
	}
	changeKey struct{ actor, route, key string } // of an idempotency record
)

var (
	_ store.Store        = (*Store)(nil)
	_ store.FactorStore  = (*Store)(nil)
	_ store.Journal      = (*Store)(nil)
	_ store.ProjectStore = (*Store)(nil)
	_ store.AdminStore   = (*Store)(nil)
)

// New creates an empty store.
func New() *Store {
	return &Store{
		users: map[string]*user{}, byEmail: map[string]string{}, byPhone: map[string]string{}, byHandle: map[string]string{}, byIdent: map[ident]string{}, byIdentID: map[string]string{}, factors: map[string]*store.Factor{}, withCred: map[string]*store.Factor{},
		sessions: map[string]*session{}, tokens: map[tokenID]*store.Token{}, live: map[subject]tokenID{}, buckets: map[string]store.Bucket{},
		done: map[changeKey]*store.Idempotency{}, messages: map[string]*message{}, log: map[string]*loggedMessage{},
		keys: map[string]*store.APIKey{}, byHash: map[string]string{}, roles: map[string]store.RolePermissions{}, privileged: map[string]bool{}, deleted: map[string]bool{},
		counts: map[countKey]int64{}, active: map[activeKey]bool{},
		impersonations: map[string]*impersonation{},
		jobs:           map[string]*job{},
	}
}

// Contract returns the version of the store contract that this store was written for.
func (s *Store) Contract() int { return 16 }

// lock takes the mutex unless the context is cancelled.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	s.mu.Lock()
	if err := ctx.Err(); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	return s.mu.Unlock, nil
}

// Ping fails only if the context is cancelled.
func (s *Store) Ping(ctx context.Context) error { return ctx.Err() }

// Sweep deletes expired rows. It scans all rows until limit of them are deleted, and holds
// the lock meanwhile.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	n := 0
	// Messages come before the tokens that some of them depend on. The order only matters
	// to a small limit.
	n += sweep(s.messages, limit-n, func(m *message) bool { return !s.sendable(m, now) }, func(id string) { s.dropMessage(id, now) })
	n += sweep(s.log, limit-n, func(l *loggedMessage) bool { return !now.Before(l.CreatedAt.Add(store.MessageLogLife)) }, func(id string) { delete(s.log, id) })
	n += sweep(s.tokens, limit-n, func(t *store.Token) bool { return !now.Before(t.ExpiresAt) }, s.dropToken)
	n += sweep(s.sessions, limit-n, func(sess *session) bool { return !now.Before(sess.End()) }, s.dropSession)
	n += sweep(s.buckets, limit-n, func(b store.Bucket) bool { return !b.Full.After(now) }, func(key string) { delete(s.buckets, key) })
	n += sweep(s.done, limit-n, func(i *store.Idempotency) bool { return !now.Before(i.ExpiresAt) }, func(k changeKey) { delete(s.done, k) })
	n += s.sweepStats(now, limit-n)
	n += sweep(s.impersonations, limit-n, func(i *impersonation) bool { return !now.Before(i.ExpiresAt) }, func(id string) { delete(s.impersonations, id) })
	n += sweep(s.jobs, limit-n, func(j *job) bool { return j.State != store.JobRunning && !now.Before(j.ExpiresAt) }, func(id string) { delete(s.jobs, id) })
	for _, u := range s.users {
		n += sweep(u.devices, limit-n, func(d device) bool { return !now.Before(d.Last.Add(store.DeviceLife)) }, func(hash string) { delete(u.devices, hash) })
	}
	return n, nil
}

// sweep deletes up to limit rows of m that are over, and returns the count.
func sweep[K comparable, V any](m map[K]V, limit int, over func(V) bool, drop func(K)) (n int) {
	for k, v := range m {
		if n >= limit {
			break
		}
		if over(v) {
			drop(k)
			n++
		}
	}
	return n
}
