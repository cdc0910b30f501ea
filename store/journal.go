package store

import (
	"context"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Journal keeps the events and the messages that come with changes ([Change]). The
// rules of [Store] apply.
//
// Messages are kept until they are sent. Sweep deletes those that have expired and, once
// they are due, those whose token is not live any more. A store whose changes may wait
// for the end of a caller's transaction has a method InTransaction(context.Context)
// bool, found by [Capability].
//
// A record of a message begins as MessageQueued in the step that keeps the message, and
// FinishMessage brings it up to date in the step that erases the message or puts it
// off. A message that Sweep deletes unsent is MessageDropped from then on. Sweep deletes
// records MessageLogLife after their messages were made; they go with their user, too,
// and by AnonymizeUser also those to its Recipients.
type Journal interface {
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

	// ClaimMessages returns up to Limit messages whose NextAt has come, oldest
	// first, counts the attempt, and moves their NextAt to Until, so that no
	// other caller gets them before. Expired ones, and those whose token is not
	// live any more, are left out.
	ClaimMessages(ctx context.Context, c ClaimMessages) ([]SealedMessage, error)
	// FinishMessage erases a message, or lets it be claimed again at RetryAt. It
	// also keeps a failed message, unclaimed, until KeepUntil or its ExpiresAt,
	// whichever comes first, and notes the message's state in the same step; of a
	// message that is MessageSent nothing else is noted afterwards.
	// One that is gone is no error.
	FinishMessage(ctx context.Context, f FinishMessage) error

	// ListMessages returns the records that match all of a query, newest first by
	// (CreatedAt, ID), at most Limit of them, after the one that After names. None is an
	// empty list. Decoys (MessageLog without a Kind) are in no list. The query has passed
	// its Check. No plan of it reads the table whole.
	ListMessages(ctx context.Context, q MessageQuery) ([]MessageRecord, error)
	// FailedMessage returns a message that FinishMessage kept as failed. ErrNotFound if
	// there is none, if it is erased or has expired, and if its token is not live any
	// more.
	FailedMessage(ctx context.Context, id string, now time.Time) (SealedMessage, error)
	// RetryMessage lets a failed message be claimed again from Change.Now on: it is
	// MessageQueued then, with no attempts. ErrStale if FailedMessage would not
	// find it, so that of calls at once one succeeds.
	RetryMessage(ctx context.Context, c RetryMessage) error
}

// ClaimMessages is the parameter of Journal.ClaimMessages.
type ClaimMessages struct {
	Now, Until time.Time
	Limit      int
}

// FinishMessage is the parameter of Journal.FinishMessage.
type FinishMessage struct {
	ID      string
	RetryAt time.Time // zero: it is over

	// What is noted of it (MessageRecord).
	State     MessageState // with RetryAt: MessageQueued; empty: nothing was sent, and its record goes
	At        time.Time
	Attempts  int
	Error     string
	KeepUntil time.Time // of a MessageFailed one; zero: it is erased
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

// MessageState is what became of a message.
type MessageState string

// The states.
const (
	MessageQueued  MessageState = "queued"  // waits for its first attempt, or another one
	MessageSent    MessageState = "sent"    // handed over for delivery
	MessageFailed  MessageState = "failed"  // refused for good, or too often
	MessageDropped MessageState = "dropped" // expired, or of no use any more, before it was sent
)

// MessageLogLife is for how long it is kept what became of a message.
const MessageLogLife = 7 * 24 * time.Hour

// MessageLog is what may be told of a sealed message. Without a Kind it is a decoy: it
// is kept like any other, so that keeping it takes as long, and is in no list, since
// nothing goes out.
type MessageLog struct {
	Kind    Kind
	Channel Channel
	To      string // masked
	UserID  string // whom it is for, if they have an account; its record goes with them
}

// MessageRecord tells of a message, without what is in it.
type MessageRecord struct {
	ID string // the message's
	MessageLog

	State     MessageState
	Attempts  int // that are over, since it was last queued
	CreatedAt time.Time
	UpdatedAt time.Time
	Error     string // of the last attempt that failed, without address, link and code
}

// MessageQuery picks records of messages. Fields at zero pick all; those set have to
// hold together.
type MessageQuery struct {
	ID     string
	State  MessageState
	Kind   Kind
	UserID string

	From, To time.Time // made from, inclusive; to, exclusive

	After *MessageCursor // for the next page
	Limit int            // required, from 1
}

// MessageCursor is a place in a list of messages.
type MessageCursor struct {
	Time time.Time `json:"time"` // MessageRecord.CreatedAt
	ID   string    `json:"id"`
}

// RetryMessage is the parameter of Journal.RetryMessage.
type RetryMessage struct {
	Change
	ID string
}

// messageStates are all there are.
func messageStates() []MessageState {
	return []MessageState{MessageQueued, MessageSent, MessageFailed, MessageDropped}
}

// Check tells what is wrong with a query: an *InvalidError.
func (q *MessageQuery) Check() error {
	switch {
	case q.Limit < 1:
		return &InvalidError{"limit", "has to be at least 1"}
	case q.ID != "" && uuid.Validate(q.ID) != nil:
		return &InvalidError{"id", "has to be an id"}
	case q.State != "" && !slices.Contains(messageStates(), q.State):
		return &InvalidError{"state", "has to be queued, sent, failed or dropped"}
	case q.Kind != "" && !slices.Contains(Kinds(), q.Kind):
		return &InvalidError{"kind", "is none of the kinds of messages"}
	case q.UserID != "" && uuid.Validate(q.UserID) != nil:
		return &InvalidError{"user", "has to be an id"}
	case q.After != nil && (q.After.Time.Before(time.Unix(0, 0)) || uuid.Validate(q.After.ID) != nil):
		return &InvalidError{"cursor", "is none of this list"}
	}
	return nil
}
