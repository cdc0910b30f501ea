package auth

import (
	"context"
	"errors"
	"time"
)

// Mailer delivers e-mail. Send returns once the message is handed over for
// delivery. It must respect the context, and be safe for concurrent use. An
// error marked by Permanent is not retried.
type Mailer interface {
	Send(ctx context.Context, m Message) error
}

// Kind names a message and its template.
type Kind string

// The messages that are sent.
const (
	KindVerifyEmail     Kind = "verify_email"     // confirm the address of a new account
	KindChangeEmail     Kind = "change_email"     // confirm a new address, sent to it
	KindMagicLink       Kind = "magic_link"       // sign in
	KindResetPassword   Kind = "reset_password"   // choose a new password
	KindAccountExists   Kind = "account_exists"   // somebody signed up with an address that has an account
	KindPasswordChanged Kind = "password_changed" // notice
	KindEmailChanged    Kind = "email_changed"    // notice, sent to the old address
)

// Channel is the way a message travels.
type Channel string

// The channels.
const (
	ChannelEmail Channel = "email"
	ChannelSMS   Channel = "sms"
)

// Message is a message ready to be sent: rendered, and free of control
// characters in To and Subject. Link and Code repeat what the text carries, for
// senders with templates of their own and for tests; they are secrets.
type Message struct {
	ID      string // UUIDv7; the same in every retry
	Kind    Kind
	Channel Channel
	To      string // bare address, or E.164 number
	Subject string
	Text    string
	HTML    string
	Link    string
	Code    string
	Locale  string // BCP 47, of the template that was used
	At      time.Time
}

// Permanent marks an error that a retry cannot mend, such as a refused address.
func Permanent(err error) error { return &permanentError{err} }

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

func isPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}
