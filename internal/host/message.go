package host

import (
	"context"

	"github.com/authmount/auth/store"
)

// Messages sends messages by the rules that hold at every endpoint.
type Messages interface {
	// AddMessage adds a message for a user to a change; Committed sends it.
	AddMessage(ctx context.Context, c *store.Change, m Mail)
	// PermitVerification counts the message that verifies an email address against the
	// limits. Errors: rate_limited.
	PermitVerification(ctx context.Context, address string) (Permit, error)
	// SendVerification adds the message that verifies the email address of a new account.
	SendVerification(ctx context.Context, c *store.Change, nu *store.NewUser, p Permit)
	// InviteNew adds the mail with which the user of a new account without a password
	// sets one. Errors: method_disabled, rate_limited.
	InviteNew(ctx context.Context, c *store.Change, send *Send, nu *store.NewUser) error
	// RetryMessage sends a failed message again, under its id, in the change c; it counts
	// against the limits of operators' messages. Call SendDue after the change to
	// send it at once. Errors: ErrNotFound if it cannot be sent again, ErrStale if
	// another caller was faster, rate_limited, and the store's.
	RetryMessage(ctx context.Context, c *store.Change, send *Send, id string) error
	// SendDue makes this process look for due messages now.
	SendDue()
	// WaitForMessages waits until this process has no message to send, or ctx is done.
	WaitForMessages(ctx context.Context)
	// PermitTest counts a test message to an operator against the limits. Errors:
	// validation_failed unless the operator's email address or phone number is verified,
	// method_disabled without a sender, rate_limited.
	PermitTest(ctx context.Context, u store.User, by store.Channel) (TestMessage, error)
	// Shorten shortens a text for a list.
	Shorten(s string) string
}

// TestMessage is a permitted message to an operator's own email address or phone number.
type TestMessage interface {
	// Add adds the message to a change. It replaces an earlier change that failed.
	Add(ctx context.Context, c *store.Change)
	// Wait waits for the first attempt to send the message after its change was
	// committed. done reports whether there was an attempt; err is the sender's error.
	Wait(ctx context.Context) (done bool, err error)
	// Forget ends the wait. It does not affect the message.
	Forget()
}

// Mail is a message of a kind that has a template.
type Mail struct {
	Kind       store.Kind
	To         store.User // the recipient
	NewAddress string
	Provider   string
}

// Send counts once against the limits of operators' messages, even if a change is
// retried. The zero value has counted nothing.
type Send struct {
	Private any

	Roles []string // with operator permissions that the message asks its recipient to accept
	By    string   // the email address of the operator who asks for it; may be empty
}

// Permit is the result of PermitVerification, for one message.
type Permit struct{ Private any }
