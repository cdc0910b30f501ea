package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

var (
	opMessages     = operation{pattern: "GET /messages", permission: PermMessagesRead}
	opRetryMessage = operation{spends: true, created: http.StatusAccepted, pattern: "POST /messages/{id}/retry", permission: PermMessagesSend, against: managing, self: true, fails: []auth.Code{auth.CodeNotFound, auth.CodeUserBanned, auth.CodeRateLimited}}

	messageEndpoints = []endpoint{
		op(opMessages, (*Admin).Messages),
		op(opRetryMessage, func(m *Admin, ctx context.Context, who Actor, p idOnly) (map[string]string, error) {
			return map[string]string{"message_id": p.ID}, m.RetryMessage(ctx, who, p.ID)
		}),
	}
)

// MessagesParams pick messages. A message has to match all fields that are set.
type MessagesParams struct {
	State  store.MessageState `query:"state"`
	Kind   auth.Kind          `query:"kind"`
	UserID string             `query:"user"`   // for this account
	From   time.Time          `query:"from"`   // created from, inclusive
	To     time.Time          `query:"to"`     // created before
	Limit  int                `query:"limit"`  // up to 200; 0: 50
	Cursor string             `query:"cursor"` // MessagePage.NextCursor of the page before
}

// MessagePage is a page of messages.
type MessagePage struct {
	Messages   []store.MessageRecord
	NextCursor *string // of the page after; nil: this was the last
}

func (p MessagePage) reply(*Admin) reply {
	out := struct {
		Messages   []messageView `json:"messages"`
		NextCursor *string       `json:"next_cursor"`
	}{[]messageView{}, p.NextCursor}
	for _, r := range p.Messages {
		out.Messages = append(out.Messages, viewMessage(r))
	}
	return reply{body: out}
}

// messageView is the state of a message, on the wire.
type messageView struct {
	ID        string             `json:"id"`
	Kind      auth.Kind          `json:"kind"`
	Channel   string             `json:"channel"` // "mail", "sms"
	To        string             `json:"to"`
	UserID    *string            `json:"user_id"`
	State     store.MessageState `json:"state"`
	Attempts  int                `json:"attempts"`
	CreatedAt time.Time          `json:"created_at"`
	UpdatedAt time.Time          `json:"updated_at"`
	Error     *string            `json:"error"`
}

func viewMessage(r store.MessageRecord) messageView {
	channel := string(r.Channel)
	if r.Channel == auth.ChannelEmail {
		channel = "mail"
	}
	return messageView{
		ID: r.ID, Kind: r.Kind, Channel: channel, To: r.To, UserID: optional(r.UserID), State: r.State, Attempts: r.Attempts,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Error: optional(r.Error),
	}
}

// Messages lists the messages of the last seven days (store.MessageLogLife) that were
// sent, wait, failed or were dropped, newest first. Recipients are masked, and contents
// are never included. Decoys of requests about unknown accounts are omitted. Errors:
// CodeValidationFailed.
func (m *Admin) Messages(ctx context.Context, who Actor, p MessagesParams) (MessagePage, error) {
	after, err := readCursor[store.MessageCursor](m, p.Cursor)
	if err != nil {
		return MessagePage{}, err
	}
	if _, err := m.reader(ctx, who, opMessages); err != nil {
		return MessagePage{}, err
	}
	q := store.MessageQuery{State: p.State, Kind: p.Kind, UserID: p.UserID, From: p.From, To: p.To, After: after, Limit: pageSize(p.Limit)}
	if err := q.Check(); err != nil {
		return MessagePage{}, m.kit.StoreError(err)
	}
	list, err := m.journal.ListMessages(ctx, q)
	if err != nil {
		return MessagePage{}, m.kit.StoreError(err)
	}
	page := MessagePage{Messages: list}
	if len(list) == q.Limit {
		last := list[len(list)-1]
		page.NextCursor = cursorOf(&store.MessageCursor{Time: last.CreatedAt, ID: last.ID})
	}
	return page, nil
}

// RetryMessage sends a failed message again, unchanged and under the same id, within 24
// hours and while its content is valid. It counts against the limits on operators'
// messages to the recipient. If the message is for an account, the actor has to be as
// strong as for Send. Errors: CodeNotFound (no such message, or older than seven days),
// CodeValidationFailed (it did not fail, or cannot be sent any more), CodeTargetStronger,
// CodeUserNotFound, CodeRateLimited.
func (m *Admin) RetryMessage(ctx context.Context, who Actor, id string) error {
	if _, err := m.reader(ctx, who, opRetryMessage); err != nil { // the recipient is confidential
		return err
	}
	before, err := m.message(ctx, id)
	if err != nil {
		return err
	}
	var send host.Send
	_, err = carryOut(ctx, m, who, opRetryMessage, before.UserID, auth.EventMessageAsked, func(t *attempt) (none struct{}, err error) {
		now, err := m.message(ctx, id)
		if err != nil {
			return none, err
		}
		if now.UserID == "" {
			t.record.Target = now.To
		}
		if t.target.Banned(m.kit.Now()) {
			return none, m.fail(auth.CodeUserBanned, nil)
		}
		t.change.Events[0].Event.Message = now.Kind
		t.changed("message_id", nil, id)
		if now.State != store.MessageFailed {
			return none, m.kit.Invalid("id", "belongs to a message that is "+string(now.State)+": only failed messages can be sent again")
		}
		err = m.kit.RetryMessage(ctx, &t.change, &send, id)
		if errors.Is(err, store.ErrNotFound) {
			err = m.kit.Invalid("id", "belongs to a message that has expired and cannot be sent again")
		}
		return none, err
	})
	if err == nil {
		m.kit.SendDue()
	}
	return err
}

// message returns the state of a message. Errors: CodeNotFound.
func (m *Admin) message(ctx context.Context, id string) (store.MessageRecord, error) {
	q := store.MessageQuery{ID: id, Limit: 1}
	if id == "" || q.Check() != nil {
		return store.MessageRecord{}, m.fail(auth.CodeNotFound, nil)
	}
	list, err := m.journal.ListMessages(ctx, q)
	switch {
	case err != nil:
		return store.MessageRecord{}, m.kit.StoreError(err)
	case len(list) == 0:
		return store.MessageRecord{}, m.fail(auth.CodeNotFound, nil)
	}
	return list[0], nil
}
