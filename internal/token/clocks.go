package token

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// clocksEvery is the time between two log lines, and for how long a difference is reported.
const clocksEvery = time.Hour

// Clocks finds access tokens that are refused only because the clocks of their issuer and of
// this process differ, and logs that, at most once an hour. It is safe for concurrent use. A
// nil Clocks does nothing.
type Clocks struct {
	log     *slog.Logger
	message string // of the log

	mu          sync.Mutex
	ahead       time.Duration // of the other clock, when it was read at heard
	heard       time.Time
	here, there time.Time // the clocks at the last refusal; zero: none
	logged      time.Time
}

// NewClocks returns a Clocks that logs a message.
func NewClocks(log *slog.Logger, message string) *Clocks { return &Clocks{log: log, message: message} }

// Heard reports by how much another clock, of the store or of the server, is ahead of this
// process's, which is at now. For an hour, that explains why a valid token seems to have
// expired; the token alone does not.
func (c *Clocks) Heard(ahead time.Duration, now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead, c.heard = ahead, now
}

// Refused returns this clock and the issuer's at the last such refusal. ok is false if there
// was none within an hour of now.
func (c *Clocks) Refused(now time.Time) (here, there time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.here, c.there, !c.here.IsZero() && now.Sub(c.here).Abs() < clocksEvery
}

// refused checks a token that the parser refused after it had checked the signature.
func (c *Clocks) refused(t *verified, notBefore, now time.Time, err error) {
	early := errors.Is(err, jwt.ErrTokenUsedBeforeIssued) || errors.Is(err, jwt.ErrTokenNotValidYet)
	late := errors.Is(err, jwt.ErrTokenExpired)
	otherwise := errors.Is(err, jwt.ErrTokenInvalidIssuer) || errors.Is(err, jwt.ErrTokenInvalidAudience) || errors.Is(err, jwt.ErrTokenRequiredClaimMissing)
	if c == nil || early == late || otherwise || t.claims.UserID == "" || t.claims.SessionID == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	issued, there := t.claims.IssuedAt, t.claims.IssuedAt // the issuer's clock showed this time or a later one
	switch {
	case late && (c.ahead > -leeway || now.Sub(c.heard).Abs() > clocksEvery || !now.Add(c.ahead).Before(t.claims.ExpiresAt)):
		return // it has expired by the other clock, too
	case late:
		there = now.Add(c.ahead)
	case notBefore.After(there):
		there = notBefore
	}
	c.here, c.there = now, there
	if !c.logged.IsZero() && now.Sub(c.logged).Abs() < clocksEvery {
		return
	}
	c.logged = now
	c.log.Warn(c.message, "here", now.UTC(), "issuer", there.UTC(), "issued_at", issued.UTC(), "expires_at", t.claims.ExpiresAt.UTC(), "difference", there.Sub(now).Round(time.Second).String())
}
