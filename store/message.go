package store

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
)

// MessageLogStore tells what became of the messages that come with changes. It goes with
// OutboxStore: a record begins as MessageQueued in the step that keeps the message, and
// FinishMessage brings it up to date in the step that erases the message or puts it
// off. A message that Sweep deletes unsent is MessageDropped from then on. Sweep deletes
// records MessageLogLife after their messages were made; they go with their user, too,
// and by AnonymizeUser also those to its Recipients.
type MessageLogStore interface {
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

// RetryMessage is the parameter of MessageLogStore.RetryMessage.
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
