// Package outbox sends the messages of a service: it renders and queues them, claims
// them from a store that keeps them, and reports their outcomes to it. The root package
// decides which messages to send.
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

// Message is a message ready to be sent, with the fields of the root's Message.
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

// LogValue keeps link, code and text out of the log.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", m.ID), slog.String("kind", string(m.Kind)))
}

// Sender delivers a message, by the rules of the root's Mailer.
type Sender func(ctx context.Context, m Message) error

// Permanent marks an error that a retry cannot mend.
func Permanent(err error) error { return &permanentError{err} }

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// IsPermanent tells whether an error was marked by Permanent.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

// Outgoing is a message to render and send, and what is sealed until then.
// Without To it is a decoy, which is recorded and queued like any other and goes
// nowhere, so that a request about an unknown account costs the same.
type Outgoing struct {
	Kind       store.Kind
	Channel    store.Channel // empty: e-mail
	To         string
	Name       string // of the reader, as they gave it
	Link       string
	Code       string
	ExpiresIn  time.Duration
	NewAddress string // or number
	Provider   string
	Locale     string
	IP         string // of whoever asked for it
	Device     string // likewise, as people call it
	At         time.Time

	Permit any  `json:"-"` // the root's permit to send it, opaque here
	Proved bool // notices: the reader has proved the address
}

// Via is how the message travels.
func (o Outgoing) Via() store.Channel {
	if o.Channel == "" {
		return store.ChannelEmail
	}
	return o.Channel
}

// sealedSize is what the body of a message is filled up to, or to a multiple of
// it, so that its length does not tell a decoy.
const sealedSize = 1024

// Seal writes a message into the body of m, sealed by seal and bound to m.
func Seal(m *store.SealedMessage, o Outgoing, seal func(body, bound []byte) []byte) {
	body, err := json.Marshal(o)
	if err != nil {
		panic(err) // strings and numbers only
	}
	size := (len(body) + sealedSize - 1) / sealedSize * sealedSize
	body = append(body, bytes.Repeat([]byte(" "), size-len(body))...)
	m.Body = seal(body, boundTo(*m))
}

// Open returns the message in the body of m. open reverses the seal of Seal, also under a
// former secret.
func Open(m store.SealedMessage, open func(sealed, bound []byte) ([]byte, error)) (Outgoing, error) {
	var o Outgoing
	body, err := open(m.Body, boundTo(m))
	if err == nil {
		err = json.Unmarshal(body, &o)
	}
	return o, err
}

// boundTo is what a sealed message belongs to: put into another row, it does not
// open. To whom it goes is in what is sealed.
func boundTo(m store.SealedMessage) []byte {
	return fmt.Appendf(nil, "%s %s %s %x", m.ID, m.UserID, m.Token.Purpose, m.Token.Hash)
}
