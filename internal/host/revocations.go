package host

import (
	"context"
	"net/http"
	"time"

	"github.com/authmount/auth/internal/token"
)

// Revocations gives other services the revocations that this process knows.
type Revocations interface {
	// RevocationLog returns the revocations, and how long ago they were known to be
	// complete. Errors: revocations_unavailable while no feed
	// reports those of other instances to this process.
	RevocationLog() (log *token.Log, age time.Duration, err error)
	// BeginStream counts a stream, which ends with ctx: before the server's Shutdown waits
	// for requests, and by Auth's Close. Errors: unavailable, if there are too many.
	BeginStream(r *http.Request) (ctx context.Context, end func(), err error)
}
