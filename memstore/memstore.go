// Package memstore keeps users, sessions and tokens in memory, for tests, demos
// and servers of one process that can bear to lose what came after the last
// snapshot.
//
//	store := memstore.New()                // gone with the process
//	store, err := memstore.Open("auth.db") // read now, written by Save
package memstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/authmount/auth"
)

// Store is an auth.Store in memory. It is safe for concurrent use; one mutex
// makes every method one step.
type Store struct {
	mu       sync.Mutex
	path     string // of the snapshot; empty: none
	users    map[string]*user
	byEmail  map[string]string // EmailKey → user id
	byPhone  map[string]string
	byIdent  map[ident]string
	sessions map[string]*session
	tokens   map[tokenID]*auth.Token
	live     map[subject]tokenID // what a newer token supersedes
	buckets  map[string]bucket
}

type (
	user struct {
		auth.User
		hash     string
		factor   *factor
		sessions map[string]bool
		tokens   map[tokenID]bool
	}
	session struct {
		auth.Session
		revoked bool
	}
	ident   struct{ provider, subject string }
	tokenID struct {
		purpose auth.Purpose
		hash    string
	}
	subject struct {
		purpose auth.Purpose
		subject string
	}
	bucket struct{ full time.Time } // the instant at which it is full again
)

var _ auth.Store = (*Store)(nil)

// New makes an empty store.
func New() *Store {
	return &Store{
		users: map[string]*user{}, byEmail: map[string]string{}, byPhone: map[string]string{}, byIdent: map[ident]string{},
		sessions: map[string]*session{}, tokens: map[tokenID]*auth.Token{}, live: map[subject]tokenID{}, buckets: map[string]bucket{},
	}
}

// lock takes the mutex unless the caller has given up.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	s.mu.Lock()
	if err := ctx.Err(); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	return s.mu.Unlock, nil
}

// Ping answers as long as the context is alive.
func (s *Store) Ping(ctx context.Context) error { return ctx.Err() }

// Take draws from every bucket or from none.
func (s *Store) Take(ctx context.Context, draws []auth.Draw, now time.Time) (auth.Decision, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.Decision{}, err
	}
	defer unlock()
	d := auth.Decision{Allowed: true}
	next := map[string]bucket{}
	for _, draw := range draws {
		b, ok := next[draw.Key]
		if !ok {
			b = s.buckets[draw.Key]
		}
		full, allowed, wait, remaining := draw.Rate.Apply(b.full, now, draw.Cost)
		if !allowed {
			d.Allowed, d.RetryAfter = false, max(d.RetryAfter, wait)
		}
		next[draw.Key] = bucket{full}
		d.Remaining = append(d.Remaining, remaining)
	}
	if !d.Allowed {
		// What was drawn above is not kept, so the counts are as they were.
		for i, draw := range draws {
			_, _, _, d.Remaining[i] = draw.Rate.Apply(s.buckets[draw.Key].full, now, 0)
		}
		return d, nil
	}
	for key, b := range next {
		if b.full.After(now) {
			s.buckets[key] = b
		} else {
			delete(s.buckets, key) // full: the same as none
		}
	}
	return d, nil
}

// Sweep deletes what is over. It looks at everything that is kept until limit
// things were deleted, and holds the lock meanwhile.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	n := 0
	for id, t := range s.tokens {
		if n >= limit {
			return n, nil
		}
		if !now.Before(t.ExpiresAt) {
			s.dropToken(id)
			n++
		}
	}
	for id, sess := range s.sessions {
		if n >= limit {
			return n, nil
		}
		if !now.Before(sess.End()) {
			delete(s.sessions, id)
			delete(s.users[sess.UserID].sessions, id)
			n++
		}
	}
	for key, b := range s.buckets {
		if n >= limit {
			return n, nil
		}
		if !b.full.After(now) {
			delete(s.buckets, key)
			n++
		}
	}
	return n, nil
}

// Copies keep the store's values and the caller's apart.

func copyUser(u auth.User) auth.User {
	u.UserMetadata, u.AppMetadata = copyMap(u.UserMetadata), copyMap(u.AppMetadata)
	u.Roles, u.Identities = slices.Clone(u.Roles), slices.Clone(u.Identities)
	return u
}

func copySession(s auth.Session) auth.Session {
	s.AMR = slices.Clone(s.AMR)
	return s
}

func copyToken(t auth.Token) auth.Token {
	t.Hash, t.Data = slices.Clone(t.Hash), slices.Clone(t.Data)
	return t
}

func copyMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = copyValue(v)
	}
	return out
}

func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return copyMap(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = copyValue(e)
		}
		return out
	}
	return v
}
