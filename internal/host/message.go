package host

import (
	"context"

	"github.com/authmount/auth/store"
)

// Messages sends messages by the rules that hold at every endpoint.
type Messages interface {
	// Enclose adds a message to a user to a change; Committed sends it.
	Enclose(ctx context.Context, c *store.Change, m Mail)
	// PermitVerification draws for the message that verifies an email address. Errors:
	// rate_limited.
	PermitVerification(ctx context.Context, address string) (Permit, error)
	// SendVerification adds the message that verifies the address of a new account.
	SendVerification(ctx context.Context, c *store.Change, nu *store.NewUser, p Permit)
	// InviteNew adds the mail by which the user of a new account without a password
	// chooses one. Errors: method_disabled, rate_limited.
	InviteNew(ctx context.Context, c *store.Change, send *Send, nu *store.NewUser) error
	// RetryMessage sends a failed message again, under its id, in a change that the store
	// is given here; it draws from the limits of operators' messages. SendWaiting, after
	// that, sends it at once. ErrNotFound if it cannot be sent again, ErrStale if another
	// caller was faster; rate_limited, and the store's errors.
	RetryMessage(ctx context.Context, c *store.Change, send *Send, id string) error
	// SendWaiting makes this process look at once for messages that are due.
	SendWaiting()
	// MessagesSent waits until this process holds no message that is to be sent, at most
	// until ctx ends.
	MessagesSent(ctx context.Context)
	// DrawTest draws for a test message to an operator. Errors: validation_failed unless
	// the operator's address or phone number is verified, method_disabled without a
	// sender, rate_limited.
	DrawTest(ctx context.Context, u store.User, by store.Channel) (TestMessage, error)
	// Short is the part of a text that a list has room for.
	Short(s string) string
}

// TestMessage is a message to an operator's own address or phone number, which has drawn
// from its limits.
type TestMessage interface {
	// Enclose adds the message to a change, in place of a change that did not take effect.
	Enclose(ctx context.Context, c *store.Change)
	// Wait waits for the first attempt to send the message, once its change has taken
	// effect. done reports whether there was an attempt; err is the sender's error.
	Wait(ctx context.Context) (done bool, err error)
	// Forget ends the wait. The message itself is not affected.
	Forget()
}

// Mail is a message of a kind that has a template.
type Mail struct {
	Kind       store.Kind
	To         store.User // the address is the user's
	NewAddress string
	Provider   string
}

// Send draws once from the limits of operators' messages, however often a change is
// decided again. The zero value has drawn nothing.
type Send struct{ Private any }

// Permit is the result of PermitVerification, for one message.
type Permit struct{ Private any }
