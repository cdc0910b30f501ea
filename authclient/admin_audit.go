package authclient

import (
	"context"
	"io"
	"iter"
	"time"
)

// The audit log, from the admin side.

// AuditQuery picks what Admin.AuditEvents returns; what is empty picks nothing out.
type AuditQuery struct {
	Action    string    `query:"action"` // A type of events, or the begin of some: user.*
	Actor     string    `query:"actor"`  // Who did it: the id of a user or key, or the name of code of the application.
	Cursor    string    `query:"cursor"`
	From      time.Time `query:"from"`
	IP        string    `query:"ip"`
	Limit     int       `query:"limit"`
	Outcome   string    `query:"outcome"` // One of "done", "denied", "failed".
	RequestID string    `query:"request_id"`
	Target    string    `query:"target"` // Whom or what it is about: the id of an account, or a name, of a role for one.
	To        time.Time `query:"to"`     // Exclusive.
	User      string    `query:"user"`   // About or by this account.
}

// AuditEvent is a part of what the admin side answers.
type AuditEvent struct {
	ID         string                      `json:"id"`
	Actor      AuditEventActor             `json:"actor"` // In whose name it happened; all null for a stranger.
	At         time.Time                   `json:"at"`
	Changes    map[string]AuditEventChange `json:"changes"` // By field: what it was and what it became.
	IP         *string                     `json:"ip"`
	Method     *string                     `json:"method"`
	Operation  *string                     `json:"operation"` // Of the admin side: the method and path.
	Outcome    string                      `json:"outcome"`
	Provider   *string                     `json:"provider"`
	Reason     *string                     `json:"reason"`
	RequestID  *string                     `json:"request_id"`
	SessionID  *string                     `json:"session_id"`
	SessionIDs []string                    `json:"session_ids"` // Those that ended.
	Target     *string                     `json:"target"`      // As people call it: an account or a role, of operations of the admin side.
	Type       string                      `json:"type"`
	UserAgent  *string                     `json:"user_agent"`
	UserID     *string                     `json:"user_id"` // Whom it is about.
}

// AuditEventActor is in whose name it happened; all null for a stranger.
type AuditEventActor struct {
	ID        *string `json:"id"`
	Kind      *string `json:"kind"`
	Label     *string `json:"label"` // As people call them; the account may be gone.
	SessionID *string `json:"session_id"`
}

// AuditEventChange is a part of what the admin side answers.
type AuditEventChange struct {
	After  any `json:"after"`
	Before any `json:"before"`
}

// AuditPage is one page of Admin.AuditEvents.
type AuditPage struct {
	Events     []AuditEvent `json:"events"`
	NextCursor *string      `json:"next_cursor"` // what to ask for next; nil: that was all
}

// AuditEvents is GET /audit-logs: what has happened. Newest first. Filters have to hold
// together. What was refused and what failed is there about a second later. Permission:
// auth.audit.read. It follows cursors to the end; AuditPage reads one page.
func (a *Admin) AuditEvents(ctx context.Context, q AuditQuery, opts ...CallOption) iter.Seq2[AuditEvent, error] {
	return all(ctx, q, func(q *AuditQuery) *string { return &q.Cursor }, func(ctx context.Context, q AuditQuery) ([]AuditEvent, *string, error) {
		p, err := a.AuditPage(ctx, q, opts...)
		if err != nil {
			return nil, nil, err
		}
		return p.Events, p.NextCursor, nil
	})
}

// AuditPage is one page of AuditEvents.
func (a *Admin) AuditPage(ctx context.Context, q AuditQuery, opts ...CallOption) (*AuditPage, error) {
	k := a.prepared("GET", "/audit-logs", nil, opts)
	k.query = queryOf(q)
	return run[AuditPage](ctx, a, k)
}

// AuditEvent is GET /audit-logs/{id}: one event of the audit log. Permission:
// auth.audit.read.
func (a *Admin) AuditEvent(ctx context.Context, id string, opts ...CallOption) (*AuditEvent, error) {
	return run[AuditEvent](ctx, a, a.prepared("GET", "/audit-logs/"+segment(id), nil, opts))
}

// UserEventQuery picks what Admin.UserEvents returns; what is empty picks nothing out.
type UserEventQuery struct {
	Cursor string `query:"cursor"`
	Limit  int    `query:"limit"`
}

// UserEventPage is one page of Admin.UserEvents.
type UserEventPage struct {
	Events     []AuditEvent `json:"events"`
	NextCursor *string      `json:"next_cursor"` // what to ask for next; nil: that was all
}

// UserEvents is GET /users/{id}/events: what happened to an account, and what it did.
// Newest first; of one that is gone, too. Permission: auth.audit.read. It follows cursors
// to the end; UserEventPage reads one page.
func (a *Admin) UserEvents(ctx context.Context, userID string, q UserEventQuery, opts ...CallOption) iter.Seq2[AuditEvent, error] {
	return all(ctx, q, func(q *UserEventQuery) *string { return &q.Cursor }, func(ctx context.Context, q UserEventQuery) ([]AuditEvent, *string, error) {
		p, err := a.UserEventPage(ctx, userID, q, opts...)
		if err != nil {
			return nil, nil, err
		}
		return p.Events, p.NextCursor, nil
	})
}

// UserEventPage is one page of UserEvents.
func (a *Admin) UserEventPage(ctx context.Context, userID string, q UserEventQuery, opts ...CallOption) (*UserEventPage, error) {
	k := a.prepared("GET", "/users/"+segment(userID)+"/events", nil, opts)
	k.query = queryOf(q)
	return run[UserEventPage](ctx, a, k)
}

// AuditExportQuery picks what Admin.ExportAudit returns; what is empty picks nothing out.
type AuditExportQuery struct {
	Action    string    `query:"action"` // A type of events, or the begin of some: user.*
	Actor     string    `query:"actor"`  // Who did it: the id of a user or key, or the name of code of the application.
	Format    Format    `query:"format"` // ndjson: one AuditEvent a line. csv: with a line of names; a cell that begins with =, +, -, @, a tab or a carriage return has an apostrophe before it. One of "ndjson", "csv".
	From      time.Time `query:"from"`
	IP        string    `query:"ip"`
	Outcome   string    `query:"outcome"` // One of "done", "denied", "failed".
	RequestID string    `query:"request_id"`
	Target    string    `query:"target"` // Whom or what it is about: the id of an account, or a name, of a role for one.
	To        time.Time `query:"to"`     // Exclusive.
	User      string    `query:"user"`   // About or by this account.
}

// ExportAudit is GET /audit-logs/export: export the audit log. All events that the filters
// of GET /admin/audit-logs pick, newest first, as they are read. The export is in the audit
// log itself. A connection that breaks off means that the rest is missing. Needs a proof of
// the last 15 minutes. Permission: auth.audit.export. The caller closes the stream; Rows
// reads it.
func (a *Admin) ExportAudit(ctx context.Context, q AuditExportQuery, opts ...CallOption) (io.ReadCloser, error) {
	k := a.prepared("GET", "/audit-logs/export", nil, opts)
	k.query = queryOf(q)
	return a.stream(ctx, k, q.Format.mediaType())
}
