package auth

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/authmount/auth/internal/address"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/internal/visible"
	"github.com/authmount/auth/internal/webpage"
	"github.com/authmount/auth/store"
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
func Permanent(err error) error { return outbox.Permanent(err) }

// IsPermanent tells whether an error was marked by Permanent.
func IsPermanent(err error) bool { return outbox.IsPermanent(err) }

// MailOptions are names, templates and the send queue.
type MailOptions struct {
	AppName   string        // shown in messages and pages; default: the base URL's host
	Templates fs.FS         // files of the same name replace the built-in ones of templates/, or add a language
	Locale    string        // BCP 47; used when the reader's language is not there; default "en"
	Queue     int           // messages in this process, waiting or being retried; default 1024
	Workers   int           // messages sent at once; default 4
	Attempts  int           // tries of a message, with growing pauses from a second on; default 20 (about four hours) with a store that keeps messages (store.Journal), else 5
	Timeout   time.Duration // of one attempt; default 30 s

	// Sync makes a request wait until the first attempt to hand its message over,
	// instead of queueing it. Answers then take as long as the mail server does, and longer
	// for accounts that exist: use it only where nobody can tell, such as scripts.
	Sync bool

	host string // of the base URL
}

// keptAttempts is the default of MailOptions.Attempts for messages that outlive a
// process: they bridge an outage of about four hours.
const keptAttempts = 20

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

// LogValue keeps link, code and text out of the log.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", m.ID), slog.String("kind", string(m.Kind)), slog.String("to", maskAddress(m.To)), slog.String("text", redacted))
}

//go:embed templates
var builtin embed.FS

// layered looks a template up among the application's own, then the built-in.
func layered(own fs.FS) webpage.Layers {
	in, err := fs.Sub(builtin, "templates")
	if err != nil {
		panic(err) // a constant
	}
	return webpage.Layers{Own: own, Builtin: in}
}

// builtinLocale is the default language of those who name none.
const builtinLocale = "en"

// builtinMails parses the built-in templates once for all, which takes a tenth of a
// second.
var builtinMails = sync.OnceValues(func() (*outbox.Templates, error) {
	return outbox.ParseTemplates(layered(nil), builtinLocale, outbox.Service{App: func() string { return "" }, CodeLife: mailCodeLife})
})

// parseMails parses the templates of mails, whose options have their defaults.
func parseMails(o MailOptions) (*outbox.Templates, error) {
	if o.Templates == nil && o.Locale == builtinLocale {
		return builtinMails()
	}
	app := visible.Line(o.AppName)
	return outbox.ParseTemplates(layered(o.Templates), o.Locale, outbox.Service{App: func() string { return app }, Host: o.host, CodeLife: mailCodeLife})
}

// newOutbox starts the queue of messages.
func (a *Auth) newOutbox() (*outbox.Outbox, error) {
	c := &a.cfg
	if a.journal != nil && c.mail.Attempts <= 0 {
		c.mail.Attempts = keptAttempts
	}
	m := c.mail
	m.defaults()
	mails, err := parseMails(m)
	if err != nil {
		return nil, err
	}
	o := outbox.Options{
		Queue: m.Queue, Workers: m.Workers, Attempts: m.Attempts, Timeout: m.Timeout, Sync: m.Sync,
		Mail:      func(ctx context.Context, m outbox.Message) error { return c.mailer.Send(ctx, Message(m)) },
		SMS:       func(ctx context.Context, m outbox.Message) error { return c.sms.Send(ctx, Message(m)) },
		Templates: mails,
		Service:   outbox.Service{App: a.appName, Host: m.host, Texts: a.mailTexts, Look: a.mailLook, CodeLife: mailCodeLife},
		Open:      a.openMessage,
		Sent:      func(k Kind) { a.counter.Count(store.MetricMessages, string(k)) },
		Failed: func(ctx context.Context, m outbox.Message, err error) {
			a.emit(ctx, Event{Type: EventMessageFailed, Message: m.Kind, Err: err})
		},
		Log: c.log, Now: a.now, Store: a.journal, Idle: c.idle,
	}
	if j, ok := store.Capability[interface{ InTransaction(context.Context) bool }](a.store); a.journal != nil && ok {
		o.InTx = j.InTransaction
	}
	return outbox.New(o), nil
}

// mailLook is the look of the pages, as far as mails can have it.
func (a *Auth) mailLook() outbox.Look {
	look := a.look()
	return outbox.Look{Palette: look.Palette(), Logo: look.MailLogo(a.cfg.baseURL)}
}

// NormalizeEmail checks one bare address strictly and returns the form that is
// kept: NFC, the domain lower-cased and IDNA-mapped to ASCII (RFC 5891), the
// local part's case as given. Display names, comments, quoted local parts,
// address literals, lists, encoded words, control, bidirectional and invisible
// characters are refused, and so is a local part that another one could be taken
// for: its letters are in NFKC and of one script (UTS #39, section 3.3), its
// digits ASCII, and neither one letter nor the whole looks like ASCII.
func NormalizeEmail(email string) (string, error) { return address.NormalizeEmail(email) }

// maskEmail hides most of an address from whoever looks at the screen.
func maskEmail(email string) string { return address.MaskEmail(email) }

// maskAddress is maskEmail for phone numbers, too.
func maskAddress(to string) string { return address.Mask(to) }

// requiredEmail is NormalizeEmail for a field that must be there.
func requiredEmail(s string) (string, error) {
	if s == "" {
		return "", errors.New("is required")
	}
	return NormalizeEmail(s)
}

// inboxSize is how many messages an inbox keeps.
const inboxSize = 200

// Inbox is a Mailer that keeps messages instead of sending them, for development
// and tests. It serves a page at any path that ends in /inbox and JSON at any
// that ends in /messages.
//
// Whoever can read it can sign in as anybody, so [New] takes it as mailer or SMS
// sender only where the base URL is http on a loopback host, and it answers only
// requests that come from this machine, for a loopback host, and past no proxy;
// that also keeps out web pages that rebind a name of theirs to this machine. The
// zero value is not usable; see NewInbox.
type Inbox struct {
	mu      sync.Mutex
	list    []Message
	changed chan struct{} // closed at the next message
}

// NewInbox makes an empty inbox. It is safe for concurrent use.
func NewInbox() *Inbox { return &Inbox{changed: make(chan struct{})} }

// Send keeps a message; when there are too many, the oldest goes.
func (in *Inbox) Send(_ context.Context, m Message) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.list = append(in.list, m)
	if len(in.list) > inboxSize {
		in.list = slices.Delete(in.list, 0, len(in.list)-inboxSize)
	}
	close(in.changed)
	in.changed = make(chan struct{})
	return nil
}

// Messages lists what is there, newest last.
func (in *Inbox) Messages() []Message {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]Message{}, in.list...)
}

// Clear forgets all messages.
func (in *Inbox) Clear() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.list = nil
}

// Wait returns the newest message that matches, as soon as there is one, or the
// context's error.
func (in *Inbox) Wait(ctx context.Context, match func(Message) bool) (Message, error) {
	for {
		in.mu.Lock()
		list, changed := slices.Clone(in.list), in.changed
		in.mu.Unlock()
		for _, m := range slices.Backward(list) {
			if match(m) { // without the lock: it may look into the inbox itself
				return m, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Message{}, ctx.Err()
		}
	}
}

// ServeHTTP shows the messages. A nil Inbox has no page: a route to [Auth.Inbox] may
// stay where there is none.
func (in *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if in == nil {
		http.NotFound(w, r)
		return
	}
	outbox.ServeInbox(w, r, func() (list []outbox.Message) {
		for _, m := range in.Messages() {
			list = append(list, outbox.Message(m))
		}
		return list
	})
}
