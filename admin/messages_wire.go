package admin

import (
	"net/http"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var messageEndpoints = []endpoint{{opMessages, (*Admin).handleMessages}, {opRetryMessage, (*Admin).handleRetryMessage}}

// messageView is what became of a message, on the wire.
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

func (m *Admin) handleMessages(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	p := MessagesParams{State: store.MessageState(v.text("state")), Kind: auth.Kind(v.text("kind")), UserID: v.text("user"), From: v.time("from"), To: v.time("to"), Limit: v.limit()}
	if c := v.text("cursor"); c != "" {
		p.After = &store.MessageCursor{}
		if err := m.readCursor(c, p.After); err != nil {
			return err
		}
	}
	if err := v.done(); err != nil {
		return err
	}
	page, err := m.Messages(r.Context(), who, p)
	if err != nil {
		return err
	}
	out := struct {
		Messages   []messageView `json:"messages"`
		NextCursor *string       `json:"next_cursor"`
	}{Messages: []messageView{}}
	for _, r := range page.Messages {
		out.Messages = append(out.Messages, viewMessage(r))
	}
	if page.Next != nil {
		out.NextCursor = ptr(cursorOf(page.Next))
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

func (m *Admin) handleRetryMessage(who Actor, w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := m.RetryMessage(r.Context(), who, id); err != nil {
		return err
	}
	return m.kit.WriteJSON(w, http.StatusAccepted, map[string]string{"message_id": id})
}
