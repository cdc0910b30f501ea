package auth

import (
	"context"
	"encoding/json"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

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
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if !fromThisMachine(r) {
		http.Error(w, "The inbox is for this machine only.", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "Method not allowed.", http.StatusMethodNotAllowed)
		return
	}
	switch path.Base(r.URL.Path) {
	case "messages":
		in.serveJSON(w)
	case "inbox":
		in.servePage(w)
	default:
		http.NotFound(w, r)
	}
}

// fromThisMachine tells a request that was made on this machine, for this machine,
// from one that came from elsewhere by way of a proxy on it.
func fromThisMachine(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") || slices.Contains([]string{"Forwarded", "Via", "X-Real-Ip"}, name) {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() && isLoopbackHost(strings.Trim(host, "[]"))
}

func (in *Inbox) serveJSON(w http.ResponseWriter) {
	type entry struct {
		ID      string    `json:"id"`
		Kind    Kind      `json:"kind"`
		Channel Channel   `json:"channel"`
		To      string    `json:"to"`
		Subject string    `json:"subject"`
		Text    string    `json:"text"`
		HTML    string    `json:"html"`
		Link    any       `json:"link"`
		Code    any       `json:"code"`
		At      time.Time `json:"at"`
	}
	list := []entry{}
	for _, m := range in.Messages() {
		list = append(list, entry{m.ID, m.Kind, m.Channel, m.To, m.Subject, m.Text, m.HTML, nullable(m.Link), nullable(m.Code), m.At})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(list) // a client that has gone needs no answer
}

var inboxPage = template.Must(template.New("inbox.html").Funcs(template.FuncMap{"inTop": inTop}).ParseFS(builtin, "templates/inbox.html"))

func (in *Inbox) servePage(w http.ResponseWriter) {
	list := in.Messages()
	slices.Reverse(list)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	_ = inboxPage.Execute(w, list) // a client that has gone needs no answer
}

// inTop is an HTML message as its frame in an inbox shows it: links leave the frame.
func inTop(html string) string {
	const base = `<base target="_top">`
	if before, after, ok := strings.Cut(html, "<head>"); ok {
		return before + "<head>" + base + after
	}
	return base + html
}
