package auth

import (
	"context"
	"embed"
	"errors"
	"fmt"
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

// Mailer delivers e-mail. Send returns once the message is handed over for delivery. It
// must respect the context, and be safe for concurrent use. An error marked by
// Permanent is not retried.
type Mailer interface {
	Send(ctx context.Context, m Message) error
}

// SMSSender delivers text messages, which have To, Text and Code. The rules of Mailer
// apply.
type SMSSender interface {
	Send(ctx context.Context, m Message) error
}

// Message is a message ready to be sent: rendered, and free of control characters in To
// and Subject. Link and Code are also in the text. They are for senders with their own
// templates and for tests, and are secrets.
type Message struct {
	ID      string // UUIDv7; the same in every retry
	Kind    Kind
	Channel Channel
	To      string // bare email address, or E.164 phone number
	Subject string
	Text    string
	HTML    string
	Link    string
	Code    string
	Locale  string // BCP 47, of the template that was used
	At      time.Time
}

// Permanent marks an error that a retry cannot fix, such as a refused recipient.
func Permanent(err error) error { return outbox.Permanent(err) }

// IsPermanent reports whether an error was marked by Permanent.
func IsPermanent(err error) bool { return outbox.IsPermanent(err) }

// MailOptions configure the mail templates and the send queue.
type MailOptions struct {
	AppName   string        // shown in messages and pages; default: the base URL's host
	Templates fs.FS         // replaces files of templates/, and texts in, or adds, languages/; docs/languages.md
	Locale    string        // BCP 47; used for languages without texts; default "en"
	Queue     int           // messages in this process, waiting or being retried; default 1024
	Workers   int           // messages sent at once; default 4
	Attempts  int           // attempts to send a message, with growing pauses from a second on; default 20 (about four hours) with a store that keeps messages (store.Journal), else 5
	Timeout   time.Duration // of one attempt; default 30 s

	// Sync makes a request wait for the first attempt to hand its message over, instead
	// of queueing it. Response times then include the mail server's, and are longer for
	// existing accounts: use it only if nobody can measure them, such as in scripts.
	Sync bool

	host string // of the base URL
}

// storedMailAttempts is the default of MailOptions.Attempts for stored messages. It
// covers an outage of about four hours.
const storedMailAttempts = 20

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

// layered returns the application's own templates, before the built-in ones.
func layered(own fs.FS) webpage.Layers {
	in, err := fs.Sub(builtin, "templates")
	if err != nil {
		panic(err) // a constant
	}
	return webpage.Layers{Own: own, Builtin: in}
}

// builtinLocale is the default language.
const builtinLocale = webpage.English

// templates are the parsed templates and texts of messages and pages. They are immutable.
type templates struct {
	mails  *outbox.Templates
	pages  *pages
	layers webpage.Layers
	gaps   []webpage.Gap
}

// builtinTemplates parses the built-in templates once for all instances.
var builtinTemplates = sync.OnceValues(func() (*templates, error) { return parseAll(MailOptions{Locale: builtinLocale}) })

// parseTemplates parses the templates and texts. o has its defaults.
func parseTemplates(o MailOptions) (*templates, error) {
	if o.Templates == nil && o.Locale == builtinLocale {
		return builtinTemplates()
	}
	t, err := parseAll(o)
	if err != nil {
		return nil, fmt.Errorf("WithMail: %w", err)
	}
	return t, nil
}

func parseAll(o MailOptions) (*templates, error) {
	l := layered(o.Templates)
	if err := webpage.CheckFiles(o.Templates, templateFiles()...); err != nil {
		return nil, err
	}
	mails, err1 := webpage.LoadLanguages(l, "mails", o.Locale, nil)
	pages, err2 := webpage.LoadLanguages(l, "pages", o.Locale, nil)
	_, err3 := dashboardTexts(l)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	t := &templates{layers: l, gaps: slices.Concat(mails.Gaps, pages.Gaps)}
	var err error
	if t.pages, err = parsePages(l, pages); err != nil {
		return nil, err
	}
	app := visible.Line(o.AppName)
	t.mails, err = outbox.ParseTemplates(l, mails, outbox.Service{App: func() string { return app }, Host: o.host, CodeLife: mailCodeLife})
	return t, err
}

// templateFiles lists the files that MailOptions.Templates can have.
func templateFiles() []string {
	names := []string{"languages/*/mails.json", "languages/*/pages.json", "languages/*/dashboard.json", "languages/README.md", "page/style.css", "page/layout.html", "mail/layout.txt", "mail/layout.html", "mail/sms.txt"}
	for _, n := range pageNames {
		names = append(names, "page/"+n+".html")
	}
	for _, k := range store.Kinds() {
		names = append(names, "mail/"+string(k)+".txt", "mail/"+string(k)+".html")
	}
	return names
}

// dashboardTexts loads the texts of the dashboard. Those of the settings are declared with
// the settings.
func dashboardTexts(l webpage.Layers) (*webpage.Languages, error) {
	labels := webpage.Texts{}
	for _, d := range declaredSettings {
		labels[d.name] = d.label
	}
	return webpage.LoadLanguages(l, "dashboard", builtinLocale, labels)
}

// logGaps logs the texts that languages of the application lack.
func logGaps(log *slog.Logger, gaps []webpage.Gap, fallback string) {
	for _, g := range gaps {
		if len(g.Keys) == 0 {
			log.Warn("a language lacks a file of texts, so it is not used there", "file", g.File)
			continue
		}
		const shown = 5 // a language with few texts lacks hundreds
		log.Warn("texts are missing", "file", g.File, "missing", len(g.Keys), "keys", g.Keys[:min(shown, len(g.Keys))], "instead_in", fallback)
	}
}

// newOutbox starts the queue of messages.
func (a *Auth) newOutbox() *outbox.Outbox {
	c := &a.cfg
	if a.journal != nil && c.mail.Attempts <= 0 {
		c.mail.Attempts = storedMailAttempts
	}
	m := c.mail
	m.defaults()
	o := outbox.Options{
		Queue: m.Queue, Workers: m.Workers, Attempts: m.Attempts, Timeout: m.Timeout, Sync: m.Sync,
		Mail:      func(ctx context.Context, m outbox.Message) error { return c.mailer.Send(ctx, Message(m)) },
		SMS:       func(ctx context.Context, m outbox.Message) error { return c.sms.Send(ctx, Message(m)) },
		Templates: a.templates.mails,
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
	return outbox.New(o)
}

// mailLook returns the part of the pages' theme that mails use.
func (a *Auth) mailLook() outbox.Look {
	look := a.look()
	return outbox.Look{Palette: look.Palette(), Logo: look.MailLogo(a.cfg.baseURL)}
}

// NormalizeEmail checks one bare email address strictly and returns its stored form:
// NFC, the domain lower-cased and IDNA-mapped to ASCII (RFC 5891), the local part's
// case as given. It refuses display names, comments, quoted local parts, address
// literals, lists, encoded words, and control, bidirectional and invisible characters. It
// also refuses a local part that a reader could confuse with another (UTS #39): letters
// outside NFKC or of more than one script, digits outside ASCII, and other letters that
// look like ASCII letters.
func NormalizeEmail(email string) (string, error) { return address.NormalizeEmail(email) }

// maskEmail hides most of an email address, for screens and logs.
func maskEmail(email string) string { return address.MaskEmail(email) }

// maskAddress is maskEmail for phone numbers, too.
func maskAddress(to string) string { return address.Mask(to) }

// requiredEmail is NormalizeEmail for a required field.
func requiredEmail(s string) (string, error) {
	if s == "" {
		return "", errors.New("is required")
	}
	return NormalizeEmail(s)
}

// inboxSize is the maximum number of messages in an inbox.
const inboxSize = 200

// Inbox is a Mailer that stores messages instead of sending them, for development and
// tests. It serves a page at any path that ends in /inbox and JSON at any that ends in
// /messages.
//
// A reader of the inbox can sign in as any user. [New] therefore accepts it as mailer
// or SMS sender only if the base URL is http on a loopback host. The inbox serves only
// direct requests from this machine to a loopback host, which also stops DNS rebinding.
// The zero value is not usable; see NewInbox.
type Inbox struct {
	mu      sync.Mutex
	list    []Message
	changed chan struct{} // closed at the next message
}

// NewInbox returns an empty inbox. It is safe for concurrent use.
func NewInbox() *Inbox { return &Inbox{changed: make(chan struct{})} }

// Send stores a message. When there are too many, it deletes the oldest.
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

// Messages returns the stored messages, newest last.
func (in *Inbox) Messages() []Message {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]Message{}, in.list...)
}

// Clear deletes all messages.
func (in *Inbox) Clear() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.list = nil
}

// Wait waits for a message that matches, and returns the newest one or the context's
// error.
func (in *Inbox) Wait(ctx context.Context, match func(Message) bool) (Message, error) {
	for {
		in.mu.Lock()
		list, changed := slices.Clone(in.list), in.changed
		in.mu.Unlock()
		for _, m := range slices.Backward(list) {
			if match(m) { // without the lock, because match may read the inbox
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

// ServeHTTP shows the messages. A nil Inbox responds with 404, so that a route to
// [Auth.Inbox] may exist without dev mode.
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
