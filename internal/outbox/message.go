// Package outbox sends the messages of a service: it renders and queues them, claims them
// from a store, and reports their outcomes. The root package decides which messages to
// send.
package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/authmount/auth/store"
)

// Message is a rendered message, with the fields of the root's Message.
type Message struct {
	ID      string
	Kind    store.Kind
	Channel store.Channel
	To      string
	Subject string
	Text    string
	HTML    string
	Link    string
	Code    string
	Locale  string
	At      time.Time
}

// LogValue keeps the link, the code and the text out of the log.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", m.ID), slog.String("kind", string(m.Kind)))
}

// Sender delivers a message as the root's Mailer does.
type Sender func(ctx context.Context, m Message) error

// Permanent marks an error that a retry cannot fix.
func Permanent(err error) error { return &permanentError{err} }

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// IsPermanent reports whether an error was marked by Permanent.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

// Outgoing is a message to render and send. It is sealed until then. Without To it is a
// decoy: it is recorded and queued as any other message but not sent, so that a request
// for an unknown account costs the same.
type Outgoing struct {
	Kind       store.Kind
	Channel    store.Channel // default: email
	To         string
	Name       string // of the recipient, as entered by them
	Link       string
	Code       string
	ExpiresIn  time.Duration
	NewAddress string // the new email address or phone number
	Provider   string
	Roles      []string // with operator permissions, that the recipient is asked to accept
	By         string   // the email address of the operator who asks; empty: unknown
	Given      []string // roles that an invitation gives, if Roles is empty
	Factor     bool     // a role of the invitation needs a second factor
	Locale     string
	IP         string // of the request that caused the message
	Device     string // the browser and system of that request, in words
	At         time.Time

	Permit any  `json:"-"` // the root's permit to send the message, opaque here
	Proved bool // for notices: the recipient verified the address
}

// Via returns the message's channel.
func (o Outgoing) Via() store.Channel {
	if o.Channel == "" {
		return store.ChannelEmail
	}
	return o.Channel
}

// sealedSize is the unit to which the body of a message is padded, so that its length
// does not reveal a decoy.
const sealedSize = 1024

// Seal encrypts a message with seal into the body of m, and binds it to m.
func Seal(m *store.SealedMessage, o Outgoing, seal func(body, bound []byte) []byte) {
	body, err := json.Marshal(o)
	if err != nil {
		panic(err) // strings and numbers only
	}
	size := (len(body) + sealedSize - 1) / sealedSize * sealedSize
	body = append(body, bytes.Repeat([]byte(" "), size-len(body))...)
	m.Body = seal(body, boundTo(*m))
}

// Open decrypts the message in the body of m. open is the reverse of Seal's seal, also
// for previous secrets.
func Open(m store.SealedMessage, open func(sealed, bound []byte) ([]byte, error)) (Outgoing, error) {
	var o Outgoing
	body, err := open(m.Body, boundTo(m))
	if err == nil {
		err = json.Unmarshal(body, &o)
	}
	return o, err
}

// boundTo returns the associated data of a sealed message, so that it cannot be opened in
// another row. The recipient is part of the sealed body.
func boundTo(m store.SealedMessage) []byte {
	return fmt.Appendf(nil, "%s %s %s %x", m.ID, m.UserID, m.Token.Purpose, m.Token.Hash)
}
