// Package tokencache remembers what tokens that were verified say.
package tokencache

import (
	"strings"
	"sync"
	"time"
)

// Cache holds values by the whole text of their tokens, so that a hit means that
// this very token was put in. It is bounded: entries live in two generations,
// and when the younger is full the older is dropped. It is safe for concurrent
// use; the values are shared by all who get them.
type Cache[V any] struct {
	limit int // of one generation

	mu           sync.RWMutex
	young, older map[string]entry[V]
}

type entry[V any] struct {
	value V
	until time.Time
}

// New makes a cache for about n tokens; one for fewer than 1 keeps nothing.
func New[V any](n int) *Cache[V] {
	if n < 1 {
		return &Cache[V]{}
	}
	return &Cache[V]{limit: (n + 1) / 2, young: map[string]entry[V]{}}
}

// Get returns what was put in for a token, before it was over. What is asked for
// is kept longest.
func (c *Cache[V]) Get(token string, now time.Time) (V, bool) {
	c.mu.RLock()
	e, young := c.young[token]
	if !young {
		e = c.older[token]
	}
	c.mu.RUnlock()
	if !now.Before(e.until) { // or there is none
		var none V
		return none, false
	}
	if !young {
		c.Put(token, e.value, e.until, now)
	}
	return e.value, true
}

// Put remembers a token's value until a time.
func (c *Cache[V]) Put(token string, value V, until, now time.Time) {
	if c.limit == 0 || !now.Before(until) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= c.limit {
		c.older, c.young = c.young, make(map[string]entry[V], c.limit)
	}
	c.young[strings.Clone(token)] = entry[V]{value, until} // not a piece of a larger header
}
