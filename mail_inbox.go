package auth

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/authmount/auth/internal/outbox"
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
	outbox.ServeInbox(w, r, func() (list []outbox.Message) {
		for _, m := range in.Messages() {
			list = append(list, outbox.Message(m))
		}
		return list
	})
}
