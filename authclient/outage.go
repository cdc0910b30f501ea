package authclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// longestRest limits the pauses between refreshes, unless the server requests longer
// ones.
const longestRest = time.Minute

// outage records failing refreshes that do not end the session. Its zero value is no
// outage.
type outage struct {
	err      error
	failures int
	resume   time.Time // no refresh before; the store is read all the same
}

// note counts a failure. The pause before the next refresh is that of the server's
// Retry-After, or doubles with each failure. Up to half of it is added at random, so
// that clients do not return at the same time. A refresh that its callers cancelled
// says nothing about the server, so it causes no pause.
func (o *outage) note(err error, now time.Time) {
	o.err = err
	if errors.Is(err, context.Canceled) {
		return
	}
	rest := min(longestRest, time.Second/2<<min(o.failures, 10))
	o.failures++
	var e *Error
	if errors.As(err, &e) {
		rest = max(rest, e.RetryAfter)
	}
	o.resume = now.Add(rest + rand.N(rest/2)) //nolint:gosec // no secret
}
