package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/authmount/auth"
)

var (
	opAudit    = operation{pattern: "GET /audit-logs", permission: PermAuditRead}
	opTimeline = operation{pattern: "GET /users/{id}/events", permission: PermAuditRead}

	auditEndpoints = []endpoint{{opAudit, (*Admin).handleAudit}, {opTimeline, (*Admin).handleTimeline}}
)

// EventPage is a page of the audit log, newest first.
type EventPage struct {
	Events []auth.Event
	Next   *auth.Event // what comes before the next page; nil: this was the last
}

// AuditLog lists what has happened, newest first: operations of the admin side, and
// sign-ins and changes that people made themselves. after, which may be nil, is the
// last event of the page before.
func (m *Admin) AuditLog(ctx context.Context, who Actor, after *auth.Event, limit int) (EventPage, error) {
	return m.eventPage(ctx, who, opAudit, auth.EventQuery{Before: after, Limit: limit})
}

// Timeline is AuditLog of what happened to one account.
func (m *Admin) Timeline(ctx context.Context, who Actor, userID string, after *auth.Event, limit int) (EventPage, error) {
	return m.eventPage(ctx, who, opTimeline, auth.EventQuery{UserID: userID, Before: after, Limit: limit})
}

func (m *Admin) eventPage(ctx context.Context, who Actor, op operation, q auth.EventQuery) (EventPage, error) {
	if _, err := m.reader(ctx, who, op); err != nil {
		return EventPage{}, err
	}
	q.Limit = pageSize(q.Limit)
	list, err := m.events.Events(ctx, q)
	if err != nil {
		return EventPage{}, m.kit.StoreError(err)
	}
	p := EventPage{Events: list}
	if len(list) == q.Limit {
		p.Next = &list[len(list)-1]
	}
	return p, nil
}

// eventView is an event on the wire.
type eventView struct {
	ID         string                      `json:"id"`
	Type       auth.EventType              `json:"type"`
	At         time.Time                   `json:"at"`
	Outcome    string                      `json:"outcome"` // "done", "denied", "failed"
	Actor      actorView                   `json:"actor"`
	UserID     *string                     `json:"user_id"`
	Target     *string                     `json:"target"`
	SessionID  *string                     `json:"session_id"`
	SessionIDs []string                    `json:"session_ids"`
	Method     *string                     `json:"method"`
	Provider   *string                     `json:"provider"`
	Reason     *string                     `json:"reason"`
	IP         *string                     `json:"ip"`
	UserAgent  *string                     `json:"user_agent"`
	RequestID  *string                     `json:"request_id"`
	Changes    map[string]auth.FieldChange `json:"changes"`
}

type actorView struct {
	Kind      *string `json:"kind"`
	ID        *string `json:"id"`
	SessionID *string `json:"session_id"`
	Label     *string `json:"label"`
}

func viewEvent(e auth.Event) eventView {
	r := e.Record
	if r == nil {
		r = &auth.Record{}
	}
	v := eventView{
		ID: e.ID, Type: e.Type, At: e.At, Outcome: "done",
		Actor:  actorView{optional(string(e.Actor.Kind)), optional(e.Actor.ID), optional(e.Actor.SessionID), optional(r.Actor)},
		UserID: optional(e.UserID), Target: optional(r.Target), SessionID: optional(e.SessionID), SessionIDs: orNone(e.SessionIDs),
		Method: optional(e.Method), Provider: optional(e.Provider), Reason: optional(e.Reason),
		UserAgent: optional(e.Client.UserAgent), RequestID: optional(r.RequestID), Changes: r.Changes,
	}
	if e.Client.IP.IsValid() {
		v.IP = ptr(e.Client.IP.String())
	}
	if v.Changes == nil {
		v.Changes = map[string]auth.FieldChange{}
	}
	switch {
	case r.Denied:
		v.Outcome = "denied"
	case e.Type == auth.EventSignInFailed || e.Type == auth.EventMessageFailed:
		v.Outcome = "failed"
	}
	return v
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// eventCursor is a place in the audit log.
type eventCursor struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
}

func (m *Admin) handleAudit(who Actor, w http.ResponseWriter, r *http.Request) error {
	return m.writeEvents(w, r, func(after *auth.Event, limit int) (EventPage, error) {
		return m.AuditLog(r.Context(), who, after, limit)
	})
}

func (m *Admin) handleTimeline(who Actor, w http.ResponseWriter, r *http.Request) error {
	return m.writeEvents(w, r, func(after *auth.Event, limit int) (EventPage, error) {
		return m.Timeline(r.Context(), who, r.PathValue("id"), after, limit)
	})
}

func (m *Admin) writeEvents(w http.ResponseWriter, r *http.Request, read func(*auth.Event, int) (EventPage, error)) error {
	v := m.values(r)
	limit, cursor := v.number("limit"), v.text("cursor")
	if err := v.done(); err != nil {
		return err
	}
	var after *auth.Event
	if cursor != "" {
		var c eventCursor
		if err := m.readCursor(cursor, &c); err != nil {
			return err
		}
		after = &auth.Event{At: c.At, ID: c.ID}
	}
	page, err := read(after, limit)
	if err != nil {
		return err
	}
	out := struct {
		Events     []eventView `json:"events"`
		NextCursor *string     `json:"next_cursor"`
	}{Events: []eventView{}}
	for _, e := range page.Events {
		out.Events = append(out.Events, viewEvent(e))
	}
	if page.Next != nil {
		out.NextCursor = ptr(cursorOf(eventCursor{page.Next.At, page.Next.ID}))
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}
