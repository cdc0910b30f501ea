package authclient

import (
	"context"
	"iter"
	"time"
)

// Messages that went out, from the admin side.

// MessageQuery picks what Admin.Messages returns; what is empty picks nothing out.
type MessageQuery struct {
	Cursor string    `query:"cursor"` // next_cursor of the page before.
	From   time.Time `query:"from"`   // Made then or later.
	Kind   string    `query:"kind"`   // As in the answer.
	Limit  int       `query:"limit"`  // How many.
	State  string    `query:"state"`  // One of "queued", "sent", "failed", "dropped".
	To     time.Time `query:"to"`     // Made before.
	User   string    `query:"user"`   // For this account.
}

// SentMessage is what became of a message, without what is in it.
type SentMessage struct {
	ID        string    `json:"id"`       // The same in every attempt, and in the Message-ID.
	Attempts  int       `json:"attempts"` // That are over, since it was last queued.
	Channel   string    `json:"channel"`
	CreatedAt time.Time `json:"created_at"`
	Error     *string   `json:"error"` // Of the last attempt that failed, without address, link and code.
	Kind      string    `json:"kind"`  // Which template: verify_email, magic_link, reset_password, …
	State     string    `json:"state"` // sent: handed over for delivery. failed: refused for good, or too often. dropped: expired, or of no use any more, before it was sent.
	To        string    `json:"to"`    // The address or number, masked.
	UpdatedAt time.Time `json:"updated_at"`
	UserID    *string   `json:"user_id"` // The account that it is for; null: none, or not known.
}

// MessagePage is one page of Admin.Messages.
type MessagePage struct {
	Messages   []SentMessage `json:"messages"`
	NextCursor *string       `json:"next_cursor"` // what to ask for next; nil: that was all
}

// Messages is GET /messages: which messages went out. Of the last seven days, newest first:
// sent, waiting, failed and dropped. Filters have to hold together. Permission:
// auth.messages.read. It follows cursors to the end; MessagePage reads one page.
func (a *Admin) Messages(ctx context.Context, q MessageQuery, opts ...CallOption) iter.Seq2[SentMessage, error] {
	return all(ctx, q, func(q *MessageQuery) *string { return &q.Cursor }, func(ctx context.Context, q MessageQuery) ([]SentMessage, *string, error) {
		p, err := a.MessagePage(ctx, q, opts...)
		if err != nil {
			return nil, nil, err
		}
		return p.Messages, p.NextCursor, nil
	})
}

// MessagePage is one page of Messages.
func (a *Admin) MessagePage(ctx context.Context, q MessageQuery, opts ...CallOption) (*MessagePage, error) {
	k := a.prepared("GET", "/messages", nil, opts)
	k.query = queryOf(q)
	return run[MessagePage](ctx, a, k)
}

// SendParams are of Admin.Send.
type SendParams struct {
	RedirectTo string `json:"redirect_to,omitempty"`
	Type       string `json:"type"`
}

// MessageID is what Admin.Send returns.
type MessageID struct {
	MessageID string `json:"message_id"`
}

// Send is POST /users/{id}/send: have a link or code sent to somebody. To the account's own
// address, or its number (code). Draws the limits of what is sent, by whom it goes to.
// Permission: auth.messages.send.
func (a *Admin) Send(ctx context.Context, userID string, p SendParams, opts ...CallOption) (*MessageID, error) {
	return run[MessageID](ctx, a, a.prepared("POST", "/users/"+segment(userID)+"/send", p, opts))
}

// RetryMessage is POST /messages/{id}/retry: send a message again that failed. The same
// message under the same id, within 24 hours and while what it carries is good. Draws the
// limits of what operators send, by whom it goes to. One that was sent, waits, was dropped
// or has expired: 422 validation_failed. Permission: auth.messages.send.
func (a *Admin) RetryMessage(ctx context.Context, id string, opts ...CallOption) (*MessageID, error) {
	return run[MessageID](ctx, a, a.prepared("POST", "/messages/"+segment(id)+"/retry", nil, opts))
}
