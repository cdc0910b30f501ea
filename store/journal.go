package store

import (
	"context"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Journal keeps the events and the messages of changes ([Change]). The rules of [Store]
// apply.
//
// Messages are kept until they are sent. Sweep deletes messages that have expired and, once
// they are due, messages with a token that is not live any more.
//
// A message's record starts as MessageQueued in the step that stores the message.
// FinishMessage updates it in the step that deletes or postpones the message. A message
// that Sweep deletes unsent becomes MessageDropped, with Sweep's now as UpdatedAt. Sweep
// deletes records MessageLogLife after their messages were created. They are also deleted
// with their user, and by AnonymizeUser if they are about one of its Recipients.
type Journal interface {
	// Events lists events, newest first by (At, ID). The list is empty if there are none.
	// Callers check the query first (EventQuery.Check). The cost depends on the events that
	// a filter picks, not on the number of all events.
	Events(ctx context.Context, q EventQuery) ([]Event, error)
	// AddEvents records events that belong to no change, all or none. Events with a known
	// id are not changed, so the call may be repeated.
	AddEvents(ctx context.Context, list []Event) error
	// SweepEvents deletes up to limit events older than before, in any order, and returns
	// the count. If several instances share a store, it may let one of them do so and
	// return 0 to the others.
	SweepEvents(ctx context.Context, before, now time.Time, limit int) (int, error)

	// ClaimMessages returns up to Limit messages with a NextAt that has passed, oldest
	// first. It moves NextAt to Until, so that no other caller gets them before, and sets
	// Attempts to the number of this attempt: one more than MessageRecord.Attempts, because a
	// claim that ended without an outcome was no attempt. It leaves out expired messages and
	// those with a token that is not live any more. The messages have no Log.
	ClaimMessages(ctx context.Context, c ClaimMessages) ([]SealedMessage, error)
	// FinishMessage deletes a message or, with RetryAt, lets it be claimed again from then
	// on. With KeepUntil it keeps a failed message, which is not claimed. It sets ExpiresAt
	// to KeepUntil if that is earlier, and a retry does not restore it. It updates the
	// message's record in the same step; a record in state MessageSent is not changed any
	// more. A missing message is no error.
	FinishMessage(ctx context.Context, f FinishMessage) error

	// ListMessages returns the records that match all of a query, newest first by
	// (CreatedAt, ID), at most Limit, after the place After. The list is empty if there are
	// none. It never contains decoys (MessageLog without a Kind). Callers check the query
	// first (MessageQuery.Check). No query may scan the whole table.
	ListMessages(ctx context.Context, q MessageQuery) ([]MessageRecord, error)
	// FailedMessage returns a message that FinishMessage kept as failed. ErrNotFound if
	// there is none, if it was deleted or has expired, or if its token is not live any
	// more. The message has no Log.
	FailedMessage(ctx context.Context, id string, now time.Time) (SealedMessage, error)
	// RetryMessage lets a failed message be claimed again from Change.Now on, as
	// MessageQueued and without attempts. ErrStale if FailedMessage would not find it. Of
	// concurrent calls one succeeds.
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
	RetryAt time.Time // zero: no retry

	// The new state of the record (MessageRecord).
	State     MessageState // with RetryAt: MessageQueued; empty: nothing was sent, and the record is deleted
	At        time.Time
	Attempts  int
	Error     string
	KeepUntil time.Time // with MessageFailed; zero: the message is deleted
}

// DefaultEventLimit is the number of events in a page if EventQuery.Limit is 0.
const DefaultEventLimit = 50

// EventQuery picks events that match all of its fields. A zero field matches all. UUIDs
// match in any case.
type EventQuery struct {
	ID        string      // this one
	UserID    string      // about this user
	Involving string      // about this user or with it as actor
	ActorID   string      // Actor.ID: a user or key, or the name of code
	Target    string      // a UUID: about this user; otherwise Record.Target is this
	Type      string      // an EventType, or a prefix such as "user.*"
	Types     []EventType // one of these; empty: any
	IP        netip.Addr
	RequestID string
	Outcome   EventOutcome

	From, To time.Time // from, inclusive; to, exclusive

	Before *Event // start after this one in the list (by At and ID), for the next page
	Limit  int    // at most this many; 0: DefaultEventLimit
}

// EventOutcome is the result of the action that an event reports.
type EventOutcome string

// The outcomes.
const (
	EventDone   EventOutcome = "done"
	EventDenied EventOutcome = "denied" // an operation of the admin side without permission
	EventFailed EventOutcome = "failed" // a sign-in, or a message
)

// Outcome returns the result of the action that e reports.
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

// Check returns an *InvalidError if the query is invalid.
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
		return &InvalidError{"cursor", "does not belong to this list"}
	}
	return nil
}

// MessageState is the state of a message.
type MessageState string

// The states.
const (
	MessageQueued  MessageState = "queued"  // waits for its first attempt, or another one
	MessageSent    MessageState = "sent"    // handed over for delivery
	MessageFailed  MessageState = "failed"  // refused for good, or too often
	MessageDropped MessageState = "dropped" // expired, or its token was not live any more, before it was sent
)

// MessageLogLife is the time for which the record of a message is kept.
const MessageLogLife = 7 * 24 * time.Hour

// MessageLog is the part of a sealed message that may be shown. A message without a Kind is
// a decoy: it is stored like any other, so that it takes as long, but it is in no list,
// because nothing is sent.
type MessageLog struct {
	Kind    Kind
	Channel Channel
	To      string // masked
	UserID  string // the recipient's, if they have an account; the record is deleted with it
}

// MessageRecord describes a message without its content.
type MessageRecord struct {
	ID string // the message's
	MessageLog

	State     MessageState
	Attempts  int // finished attempts, since it was last queued
	CreatedAt time.Time
	UpdatedAt time.Time
	Error     string // of the last failed attempt, without recipient, link and code
}

// MessageQuery picks records of messages that match all of its fields. A zero field matches
// all.
type MessageQuery struct {
	ID     string
	State  MessageState
	Kind   Kind
	UserID string

	From, To time.Time // of CreatedAt: from, inclusive; to, exclusive

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

// messageStates returns all states.
func messageStates() []MessageState {
	return []MessageState{MessageQueued, MessageSent, MessageFailed, MessageDropped}
}

// Check returns an *InvalidError if the query is invalid.
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
		return &InvalidError{"cursor", "does not belong to this list"}
	}
	return nil
}
