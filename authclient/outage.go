package authclient

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/authmount/auth"
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

const (
	questionRest = time.Second // between questions while the server does not answer
	outageLogged = time.Minute // between two log lines about it
)

// questions are calls of the server for which requests wait. After one without an answer,
// requests are refused at once for a moment, and then one of them asks again: otherwise each
// would wait for the time limit while the server hangs.
type questions struct {
	mu     sync.Mutex
	down   bool // the last question had no answer
	asking bool // while down, one request asks
	resume time.Time
	logged time.Time
}

// may reports whether a request may ask now. It has to call answered afterwards.
func (q *questions) may(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait := q.resume.Sub(now)
	if q.down && (q.asking || wait > 0 && wait <= questionRest) { // the clock may have been set back
		return false
	}
	q.asking = q.down
	return true
}

// answered stores whether the server answered, unless the caller of the request left before:
// otherwise anyone could cause an outage.
func (q *questions) answered(ok, left bool, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asking = false
	switch {
	case ok:
		q.down = false
	case !left:
		q.down, q.resume = true, now.Add(questionRest)
	}
}

// warn logs that the server does not answer, at most once a minute, because anyone can cause
// questions.
func (q *questions) warn(log *slog.Logger, now time.Time, text string, err error) {
	q.mu.Lock()
	due := q.logged.IsZero() || now.Sub(q.logged).Abs() >= outageLogged
	if due {
		q.logged = now
	}
	q.mu.Unlock()
	if due {
		log.Warn(text, "error", err)
	}
}

// loggedError is an error that the log has already reported, or will not report again so soon.
type loggedError struct{ error }

func (e loggedError) Unwrap() error { return e.error }

func unavailable() error {
	e := auth.Reject(auth.CodeUnavailable, "")
	e.RetryAfter = time.Second
	return loggedError{e}
}
