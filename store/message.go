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

// Kind names a message and its template.
type Kind string

// The messages that are sent.
const (
	KindVerifyEmail     Kind = "verify_email"     // confirm the address of a new account
	KindChangeEmail     Kind = "change_email"     // confirm a new address, sent to it
	KindMagicLink       Kind = "magic_link"       // sign in
	KindResetPassword   Kind = "reset_password"   // choose a new password
	KindWelcome         Kind = "welcome"          // choose a first password
	KindAccountExists   Kind = "account_exists"   // somebody signed up with an address that has an account
	KindPasswordChanged Kind = "password_changed" // notice
	KindEmailChanged    Kind = "email_changed"    // notice, sent to the old address
	KindMFAEnabled      Kind = "mfa_enabled"      // notice

	KindEmailChangeRequested Kind = "email_change_requested" // notice, sent to the present address when another one is asked for

	KindMFADisabled Kind = "mfa_disabled" // notice
	KindPhoneCode   Kind = "phone_code"   // text message

	KindTakenOver         Kind = "account_taken_over"   // notice: an unproved account went to its owner
	KindManyFailedSignIns Kind = "many_failed_sign_ins" // notice: many wrong guesses in a row

	KindIdentityLinked   Kind = "identity_linked"   // notice
	KindIdentityUnlinked Kind = "identity_unlinked" // notice
	KindPhoneChanged     Kind = "phone_changed"     // notice: a number was added or replaced

	KindRecoveryCodeUsed      Kind = "recovery_code_used"      // notice
	KindRecoveryCodesReplaced Kind = "recovery_codes_replaced" // notice

	KindNewDevice Kind = "new_device" // notice: a sign-in on a device that the account was not seen on

	KindTestMail     Kind = "test_mail"    // an operator tries out the Mailer
	KindTestSMS      Kind = "test_sms"     // text message: an operator tries out the SMSSender
	KindImpersonated Kind = "impersonated" // notice: somebody of the service acts as the user
	KindInvitation   Kind = "invitation"   // make an account, or take roles; sent for an operator

	KindAccountDeleted Kind = "account_deleted" // notice, sent to the address that the account had proved
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{
		KindVerifyEmail, KindChangeEmail, KindMagicLink, KindResetPassword, KindWelcome, KindInvitation, KindAccountExists, KindPasswordChanged, KindEmailChanged, KindEmailChangeRequested, KindMFAEnabled, KindMFADisabled, KindTakenOver, KindIdentityLinked, KindIdentityUnlinked, KindPhoneChanged, KindNewDevice, KindAccountDeleted, KindImpersonated,
		KindRecoveryCodeUsed, KindRecoveryCodesReplaced, KindManyFailedSignIns, KindPhoneCode, KindTestMail, KindTestSMS,
	}
}

// Channel is the way a message travels.
type Channel string

// The channels.
const (
	ChannelEmail Channel = "email"
	ChannelSMS   Channel = "sms"
)
