package store

import (
	"context"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// EventStore keeps the events that come with changes, and those that come without.
type EventStore interface {
	// Events lists events, newest first, in the order of (At, ID). None is an
	// empty list. The query has passed its Check. However many events there are, it
	// reads those that a filter picks, and not all of them.
	Events(ctx context.Context, q EventQuery) ([]Event, error)
	// AddEvents records events that came without a change, all or none. Those whose
	// id is there already stay as they are, so that it may be repeated.
	AddEvents(ctx context.Context, list []Event) error
	// SweepEvents deletes up to limit events that happened before an instant, the
	// oldest or any others of them, and counts them. Of several instances on one
	// store, it may have one do so, and answer the others with 0.
	SweepEvents(ctx context.Context, before, now time.Time, limit int) (int, error)
}

// DefaultEventLimit is how many events a page has if EventQuery.Limit is 0.
const DefaultEventLimit = 50

// EventQuery picks events. Fields at zero pick all; those set have to hold together.
type EventQuery struct {
	ID        string // this one
	UserID    string // about this user
	Involving string // about this user or by it
	ActorID   string // by this user or key, or by code of this name (Actor.ID)
	Target    string // a UUID: about this user; else about what Record.Target calls so
	Type      string // an EventType, or the begin of some, such as "user.*"
	IP        netip.Addr
	RequestID string
	Outcome   EventOutcome

	From, To time.Time // from, inclusive; to, exclusive

	Before *Event // after this one in the list (by At and ID), for the next page
	Limit  int    // at most so many; 0: DefaultEventLimit
}

// EventOutcome is how what an event tells of ended.
type EventOutcome string

// The outcomes.
const (
	EventDone   EventOutcome = "done"
	EventDenied EventOutcome = "denied" // an operation of the admin side that somebody may not do
	EventFailed EventOutcome = "failed" // a sign-in, or a message
)

// Outcome is how what e tells of ended.
func (e *Event) Outcome() EventOutcome {
	switch {
	case e.Record != nil && e.Record.Denied:
		return EventDenied
	case e.Type == EventSignInFailed || e.Type == EventMessageFailed:
		return EventFailed
	}
	return EventDone
}

var eventPattern = regexp.MustCompile(`^[a-z_]+(\.[a-z_]+)*(\.\*)?$`)

// Check tells what is wrong with a query: an *InvalidError.
func (q *EventQuery) Check() error {
	for field, value := range map[string]string{"actor": q.ActorID, "target": q.Target, "request_id": q.RequestID} {
		if len(value) > 320 {
			return &InvalidError{field, "is too long"}
		}
	}
	for field, id := range map[string]string{"id": q.ID, "user": q.UserID, "involving": q.Involving} {
		if id != "" && uuid.Validate(id) != nil {
			return &InvalidError{field, "has to be a UUID"}
		}
	}
	switch {
	case q.Type != "" && (len(q.Type) > 64 || !eventPattern.MatchString(q.Type)):
		return &InvalidError{"action", `has to be a type of events, or the begin of some, such as user.*`}
	case !slices.Contains([]EventOutcome{"", EventDone, EventDenied, EventFailed}, q.Outcome):
		return &InvalidError{"outcome", "has to be done, denied or failed"}
	case q.Before != nil && (q.Before.At.IsZero() || uuid.Validate(q.Before.ID) != nil):
		return &InvalidError{"cursor", "is none of this list"}
	}
	return nil
}
