package store

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
)

// SessionListStore lists and ends sessions across users, for the admin side.
type SessionListStore interface {
	// ListSessions returns the live sessions that match all of a query, newest first by
	// (CreatedAt, ID), at most Limit of them, after the one that After names. None is
	// an empty list. The query has passed its Check. No plan of it reads the table
	// whole.
	ListSessions(ctx context.Context, q SessionQuery) ([]Session, error)
	// EndEverySession ends up to Limit live sessions of everybody that were made at or
	// before Until, but for Except, and impersonations likewise, and returns how many
	// it ended; callers repeat it until that is less than Limit. A feed is told that all
	// of them are over (Revocation.All), and not of each.
	EndEverySession(ctx context.Context, c EndEverySession) (int, error)
}

// SessionQuery picks live sessions. Fields at zero pick all; those set have to hold
// together.
type SessionQuery struct {
	UserID string
	IP     string // as Session.IP has it
	AAL    string
	Client string    // part of the user agent, whatever its case
	Since  time.Time // made then or later
	Before time.Time // made before

	After *SessionCursor // for the next page
	Limit int            // required, from 1
	Now   time.Time      // required
}

// SessionCursor is a place in a list of sessions.
type SessionCursor struct {
	Time time.Time `json:"time"` // Session.CreatedAt
	ID   string    `json:"id"`
}

// Check tells what is wrong with a query: an *InvalidError.
func (q *SessionQuery) Check() error {
	switch {
	case q.Limit < 1:
		return &InvalidError{"limit", "has to be at least 1"}
	case q.AAL != "" && q.AAL != LevelAAL1 && q.AAL != LevelAAL2:
		return &InvalidError{"aal", "has to be aal1 or aal2"}
	case q.UserID != "" && uuid.Validate(q.UserID) != nil:
		return &InvalidError{"user", "has to be an id"}
	case q.Client != "" && q.UserID == "" && q.IP == "" && q.Since.IsZero():
		return &InvalidError{"client", "needs user, ip or since beside it, which say where to look"}
	case len(q.Client) > 256 || strings.ContainsRune(q.Client, 0) || len(q.IP) > 64 || strings.ContainsRune(q.IP, 0):
		return &InvalidError{"client", "is too long, or no text"}
	case q.After != nil && uuid.Validate(q.After.ID) != nil:
		return &InvalidError{"cursor", "is none of this list"}
	}
	return nil
}

// EndEverySession is the parameter of SessionListStore.EndEverySession.
type EndEverySession struct {
	Change
	Until  time.Time // required
	Except string    // the id of a session that goes on; empty: none
	Limit  int       // required, from 1
}
