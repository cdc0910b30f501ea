package authclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// longestRest is how far the pauses between refreshes grow that the server did not ask
// for.
const longestRest = time.Minute

// outage is that refreshes fail, for no fault of the session's. Its zero value is none.
type outage struct {
	err      error
	failures int
	resume   time.Time // none is tried before; the store is read still
}

// note counts a failure. The next try waits for as long as the server asks, or for a
// time that doubles, and up to half of that longer, so that those who failed together do
// not come back together. A refresh that its callers gave up tells nothing of the server.
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
