package auth

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"
)

// Mailer delivers e-mail. Send returns once the message is handed over for
// delivery. It must respect the context, and be safe for concurrent use. An
// error marked by Permanent is not retried.
type Mailer interface {
	Send(ctx context.Context, m Message) error
}

// SMSSender delivers text messages, which have To, Text and Code. The rules are
// Mailer's.
type SMSSender interface {
	Send(ctx context.Context, m Message) error
}

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

// IsPermanent tells whether an error was marked by Permanent.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

// MailOptions are names, templates and the send queue.
type MailOptions struct {
	AppName   string        // shown in messages and pages; default: the base URL's host
	Templates fs.FS         // files of the same name replace the built-in ones of templates/, or add a language
	Locale    string        // BCP 47; used when the reader's language is not there; default "en"
	Queue     int           // messages in this process, waiting or being retried; default 1024
	Workers   int           // messages sent at once; default 4
	Attempts  int           // tries of a message, with growing pauses from a second on; default 20 (about four hours) with a store that keeps messages (OutboxStore), else 5
	Timeout   time.Duration // of one attempt; default 30 s

	// Sync makes a request wait until the first attempt to hand its message over,
	// instead of queueing it. Answers then take as long as the mail server does, and longer
	// for accounts that exist: use it only where nobody can tell, such as scripts.
	Sync bool

	host string // of the base URL
}

// channel is how the message travels.
func (o outgoing) channel() Channel {
	if o.Channel == "" {
		return ChannelEmail
	}
	return o.Channel
}

func (o *MailOptions) defaults() {
	set := func(n *int, def int) {
		if *n <= 0 {
			*n = def
		}
	}
	set(&o.Queue, 1024)
	set(&o.Workers, 4)
	set(&o.Attempts, 5)
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Locale == "" {
		o.Locale = builtinLocale
	}
}

// outgoing is a message to render and send, and what is sealed until then.
// Without To it is a decoy, which is recorded and queued like any other and goes
// nowhere, so that a request about an unknown account costs the same.
type outgoing struct {
	Kind       Kind
	Channel    Channel // empty: e-mail
	To         string
	Name       string // of the reader, as they gave it; see nameFor
	Link       string
	Code       string
	ExpiresIn  time.Duration
	NewAddress string // or number
	Provider   string
	Locale     string
	IP         string // of whoever asked for it
	Device     string // likewise, as people call it
	At         time.Time

	permit sendPermit // to send it, if somebody asked for it
	Proved bool       // notices: the reader has proved the address
}

// LogValue keeps link, code and text out of the log.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", m.ID), slog.String("kind", string(m.Kind)), slog.String("to", maskAddress(m.To)), slog.String("text", redacted))
}
