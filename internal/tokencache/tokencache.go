// Package tokencache caches the content of verified tokens.
package tokencache

import (
	"strings"
	"sync"
	"time"
)

// Cache stores values by the whole text of their tokens, so that a hit means that exactly
// this token was stored. Its size is limited: entries are in two generations, and when
// the younger is full the older is dropped. It is safe for concurrent use. The values are
// shared by all callers.
type Cache[V any] struct {
	limit int // size of one generation

	mu             sync.RWMutex
	younger, older map[string]entry[V]
}

type entry[V any] struct {
	value V
	until time.Time
}

// New returns a cache for about n tokens. For n < 1 it stores nothing.
func New[V any](n int) *Cache[V] {
	if n < 1 {
		return &Cache[V]{}
	}
	return &Cache[V]{limit: (n + 1) / 2, younger: map[string]entry[V]{}}
}

// Get returns the value of a token that has not expired. Tokens that are requested often
// stay longest.
func (c *Cache[V]) Get(token string, now time.Time) (V, bool) {
	c.mu.RLock()
	e, young := c.younger[token]
	if !young {
		e = c.older[token]
	}
	c.mu.RUnlock()
	if !now.Before(e.until) { // or there is no entry
		var none V
		return none, false
	}
	if !young {
		c.Put(token, e.value, e.until, now)
	}
	return e.value, true
}

// Put stores a token's value until a time.
func (c *Cache[V]) Put(token string, value V, until, now time.Time) {
	if c.limit == 0 || !now.Before(until) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.younger) >= c.limit {
		c.older, c.younger = c.younger, make(map[string]entry[V], c.limit)
	}
	c.younger[strings.Clone(token)] = entry[V]{value, until} // does not keep a larger header in memory
}
