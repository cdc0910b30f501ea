package auth

import (
	"strings"
	"sync"
	"time"
)

// defaultRemember is how many verified tokens are kept.
const defaultRemember = 10_000

// claimsCache remembers verified access tokens by their whole text, so that a
// hit means that this very token was verified under the present keys. It is
// bounded: entries live in two generations, and when the younger is full the
// older is dropped.
type claimsCache struct {
	limit int // of one generation

	mu           sync.RWMutex
	young, older map[string]*Claims
}

// newClaimsCache makes a cache for about n tokens; 0 is the default and a
// negative n none.
func newClaimsCache(n int) *claimsCache {
	if n == 0 {
		n = defaultRemember
	}
	if n < 0 {
		return &claimsCache{}
	}
	return &claimsCache{limit: (n + 1) / 2, young: map[string]*Claims{}}
}

func (c *claimsCache) get(token string, now time.Time) *Claims {
	c.mu.RLock()
	claims, young := c.young[token]
	if !young {
		claims = c.older[token]
	}
	c.mu.RUnlock()
	if claims == nil || !now.Before(claims.ExpiresAt.Add(leeway)) {
		return nil
	}
	if !young {
		c.put(token, claims, now)
	}
	return claims
}

func (c *claimsCache) put(token string, claims *Claims, now time.Time) {
	if c.limit == 0 || !now.Before(claims.ExpiresAt.Add(leeway)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= c.limit {
		c.older, c.young = c.young, make(map[string]*Claims, c.limit)
	}
	c.young[strings.Clone(token)] = claims // not a piece of a larger header
}
