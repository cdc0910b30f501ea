package authclient

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/authmount/auth"
)

// Pending describes the next step of a sign-in or sign-up. It holds no secrets.
type Pending struct {
	Factors   []string  // mfa: the accepted factors, such as "totp"
	ExpiresAt time.Time // mfa and enroll: the end of the time to complete it
	Email     string    // confirm: the email address, or
	Phone     string    // confirm: the phone number
}

// pending is a sign-in that needs a second factor.
type pending struct {
	token   string
	enroll  bool
	factors []string
	life    time.Duration
	until   time.Time
}

// LogValue hides the token from logs.
func (pending) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// shown returns the public part.
func (p pending) shown() *Pending {
	return &Pending{Factors: slices.Clone(p.factors), ExpiresAt: p.until}
}

// waitFor sets the sign-in that needs a second factor, and notifies the listeners when
// it expires. The zero pending removes it. The caller holds the lock.
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

// await stores the pending sign-in of an error, if it has one. A session that waits for a
// second factor is stored, too.
func (c *Client) await(err error, generation uint64) bool {
	var e *Error
	if !errors.As(err, &e) || e.mfa == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation == generation {
		p := e.mfa()
		p.factors, p.until = e.Factors, c.wire.now().Add(max(p.life, time.Minute))
		c.unconfirmed = nil
		c.waitFor(p)
		c.changed()
	}
	return true
}

// waiting returns the pending sign-in. ok is false if there is none or it has expired.
func (c *Client) waiting() (pending, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mfa, c.mfa.token != "" && c.wire.now().Before(c.mfa.until)
}

// givenUp removes the pending sign-in if the server's error means that it has expired
// there.
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

// confirmed removes the pending confirmation: signing in is the next step.
func (c *Client) confirmed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unconfirmed = nil
	c.changed()
}
