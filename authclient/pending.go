package authclient

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/authmount/auth"
)

// Pending is what a sign-in or sign-up waits for. It holds no secrets.
type Pending struct {
	Factors   []string  // mfa: what is accepted, such as "totp"
	ExpiresAt time.Time // mfa and enroll: until then it can be completed
	Email     string    // confirm: the address, or
	Phone     string    // the number
}

// pending is a sign-in that a second factor has to complete.
type pending struct {
	token   string
	enroll  bool
	factors []string
	life    time.Duration
	until   time.Time
}

// LogValue keeps the token out of the log.
func (pending) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// shown is what everybody may know of it.
func (p pending) shown() *Pending {
	return &Pending{Factors: slices.Clone(p.factors), ExpiresAt: p.until}
}

// waitFor has a sign-in wait for its factor, and the listeners told when that time ends.
// The zero pending ends the wait. The caller holds the lock.
func (c *Client) waitFor(p pending) {
	if c.endWait != nil {
		c.endWait()
		c.endWait = nil
	}
	c.mfa = p
	if p.token != "" {
		c.endWait = c.wire.after(p.until.Sub(c.wire.now()), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.changed()
		})
	}
}

// await notes that a sign-in waits for a second factor.
func (c *Client) await(err error, generation uint64) {
	var e *Error
	if !errors.As(err, &e) || e.mfa.token == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation == generation {
		p := e.mfa
		p.factors, p.until = e.Factors, c.wire.now().Add(max(p.life, time.Minute))
		c.unconfirmed = nil
		c.waitFor(p)
		c.changed()
	}
}

// waiting is the token of a sign-in that waits for a second factor, if there is one.
func (c *Client) waiting() (pending, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mfa, c.mfa.token != "" && c.wire.now().Before(c.mfa.until)
}

// givenUp ends the wait if an answer says that the server waits no longer.
func (c *Client) givenUp(err error, p pending) {
	if !errors.Is(err, auth.CodeInvalidToken) && (!p.enroll || !isUnauthorized(err)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.token != "" && c.mfa.token == p.token {
		c.waitFor(pending{})
		c.changed()
	}
}

// confirmed ends the wait for a confirmation: signing in is next.
func (c *Client) confirmed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unconfirmed = nil
	c.changed()
}
