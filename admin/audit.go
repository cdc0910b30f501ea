package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var (
	opAudit       = operation{pattern: "GET /audit-logs", permission: PermAuditRead}
	opAuditEvent  = operation{strict: true, pattern: "GET /audit-logs/{id}", permission: PermAuditRead}
	opAuditExport = operation{pattern: "GET /audit-logs/export", permission: PermAuditExport, stepUp: true, recorded: true}
	opTimeline    = operation{pattern: "GET /users/{id}/events", permission: PermAuditRead, fails: []auth.Code{auth.CodeUserNotFound}}

	auditEndpoints = []endpoint{
		op(opAudit, (*Admin).AuditLog),
		export(opAuditExport, "audit-log", func(p ExportAuditLogParams) string { return p.Format }, (*Admin).ExportAuditLog),
		op(opAuditEvent, func(m *Admin, ctx context.Context, who Actor, p idOnly) (eventView, error) {
			e, err := m.AuditEvent(ctx, who, p.ID)
			return viewEvent(e), err
		}),
		op(opTimeline, (*Admin).Timeline),
	}
)

// EventFilter picks events. An event has to match all fields that are set.
type EventFilter struct {
	Actor     string             `query:"actor"`
	Action    string             `query:"action"` // a type, or a pattern such as user.*
	Target    string             `query:"target"`
	User      string             `query:"user"` // the account as target or actor
	RequestID string             `query:"request_id"`
	Outcome   store.EventOutcome `query:"outcome"`
	From      time.Time          `query:"from"` // inclusive
	To        time.Time          `query:"to"`   // exclusive
	IP        string             `query:"ip"`
}

// eventQuery reads a filter. Errors: CodeValidationFailed.
func (m *Admin) eventQuery(f EventFilter) (store.EventQuery, error) {
	q := store.EventQuery{ActorID: f.Actor, Type: f.Action, Target: f.Target, Involving: f.User, RequestID: f.RequestID, Outcome: f.Outcome, From: f.From, To: f.To}
	if f.IP != "" {
		ip, err := netip.ParseAddr(f.IP)
		if err != nil {
			return q, m.kit.Invalid("ip", "has to be an address such as 192.0.2.1")
		}
		q.IP = ip.Unmap()
	}
	return q, nil
}

// AuditLogParams pick events.
type AuditLogParams struct {
	EventFilter

	Limit  int    `query:"limit"`  // up to 200; 0: 50
	Cursor string `query:"cursor"` // EventPage.NextCursor of the page before
}

// EventPage is a page of the audit log, newest first.
type EventPage struct {
	Events     []auth.Event
	NextCursor *string // of the page after; nil: this was the last
}

func (p EventPage) reply(*Admin) reply {
	out := struct {
		Events     []eventView `json:"events"`
		NextCursor *string     `json:"next_cursor"`
	}{[]eventView{}, p.NextCursor}
	for _, e := range p.Events {
		out.Events = append(out.Events, viewEvent(e))
	}
	return reply{body: out}
}

// eventCursor is a position in a list of events.
type eventCursor struct {
	List string    `json:"list"`
	At   time.Time `json:"at"`
	ID   string    `json:"id"`
}

// AuditLog lists events, newest first: operations of admins, and sign-ins and changes by
// users themselves. Refused and failed operations appear about a second later. Errors:
// CodeValidationFailed, and those of every operation.
func (m *Admin) AuditLog(ctx context.Context, who Actor, p AuditLogParams) (EventPage, error) {
	q, err := m.eventQuery(p.EventFilter)
	if err != nil {
		return EventPage{}, err
	}
	q.Limit = p.Limit
	return m.eventPage(ctx, who, opAudit, q, "audit-logs", p.Cursor)
}

// TimelineParams pick events of one account.
type TimelineParams struct {
	UserID string `path:"id"`
	Limit  int    `query:"limit"`
	Cursor string `query:"cursor"` // EventPage.NextCursor of the page before
}

// Timeline is AuditLog of the events with one account as target or actor, also of a
// deleted account. Errors: CodeUserNotFound if UserID is not an id.
func (m *Admin) Timeline(ctx context.Context, who Actor, p TimelineParams) (EventPage, error) {
	return m.eventPage(ctx, who, opTimeline, store.EventQuery{Involving: p.UserID, Limit: p.Limit}, "events of "+p.UserID, p.Cursor)
}

// eventPage reads a page of a list of events. The cursor belongs to the list of that
// name.
func (m *Admin) eventPage(ctx context.Context, who Actor, op operation, q store.EventQuery, list, cursor string) (EventPage, error) {
	at, err := readCursor[eventCursor](m, cursor)
	switch {
	case err != nil || at != nil && at.List != list:
		return EventPage{}, m.kit.Invalid("cursor", "does not belong to this list")
	case at != nil:
		q.Before = &auth.Event{At: at.At, ID: at.ID}
	}
	if _, err := m.reader(ctx, who, op); err != nil {
		return EventPage{}, err
	}
	if op.pattern == opTimeline.pattern && uuid.Validate(q.Involving) != nil {
		return EventPage{}, m.fail(auth.CodeUserNotFound, nil)
	}
	q.Limit = pageSize(q.Limit)
	if err := q.Check(); err != nil {
		return EventPage{}, m.kit.StoreError(err)
	}
	found, err := m.journal.Events(ctx, q)
	if err != nil {
		return EventPage{}, m.kit.StoreError(err)
	}
	p := EventPage{Events: found}
	if len(found) == q.Limit {
		last := found[len(found)-1]
		p.NextCursor = cursorOf(&eventCursor{list, last.At, last.ID})
	}
	return p, nil
}

// AuditEvent returns one event of the audit log. Errors: CodeNotFound.
func (m *Admin) AuditEvent(ctx context.Context, who Actor, id string) (auth.Event, error) {
	if _, err := m.reader(ctx, who, opAuditEvent); err != nil {
		return auth.Event{}, err
	}
	if uuid.Validate(id) != nil {
		return auth.Event{}, m.fail(auth.CodeNotFound, nil)
	}
	list, err := m.journal.Events(ctx, store.EventQuery{ID: id, Limit: 1})
	switch {
	case err != nil:
		return auth.Event{}, m.kit.StoreError(err)
	case len(list) == 0:
		return auth.Event{}, m.fail(auth.CodeNotFound, nil)
	}
	return list[0], nil
}

// eventView is an event on the wire.
type eventView struct {
	ID         string                       `json:"id"`
	Type       auth.EventType               `json:"type"`
	At         time.Time                    `json:"at"`
	Outcome    store.EventOutcome           `json:"outcome"`
	Actor      actorView                    `json:"actor"`
	UserID     *string                      `json:"user_id"`
	Target     *string                      `json:"target"`
	SessionID  *string                      `json:"session_id"`
	SessionIDs []string                     `json:"session_ids"`
	Method     *string                      `json:"method"`
	Provider   *string                      `json:"provider"`
	Reason     *string                      `json:"reason"`
	IP         *string                      `json:"ip"`
	UserAgent  *string                      `json:"user_agent"`
	RequestID  *string                      `json:"request_id"`
	ServerID   *string                      `json:"server_request_id"`
	Operation  *string                      `json:"operation"`
	Changes    map[string]store.FieldChange `json:"changes"`
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
		r = &store.Record{}
	}
	v := eventView{
		ID: e.ID, Type: e.Type, At: e.At, Outcome: e.Outcome(),
		Actor:  actorView{optional(string(e.Actor.Kind)), optional(e.Actor.ID), optional(e.Actor.SessionID), optional(r.Actor)},
		UserID: optional(e.UserID), Target: optional(r.Target), SessionID: optional(e.SessionID), SessionIDs: nonNil(e.SessionIDs),
		Method: optional(e.Method), Provider: optional(e.Provider), Reason: optional(e.Reason),
		UserAgent: optional(e.Client.UserAgent), RequestID: optional(r.RequestID), ServerID: optional(r.ServerID), Operation: optional(r.Operation), Changes: r.Changes,
	}
	if e.Client.IP.IsValid() {
		v.IP = ptr(e.Client.IP.String())
	}
	if v.Changes == nil {
		v.Changes = map[string]store.FieldChange{}
	}
	return v
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// eventColumns returns the columns of an export as a table.
func eventColumns() []string {
	return []string{"id", "at", "type", "outcome", "actor_kind", "actor_id", "actor", "actor_session_id", "user_id", "target",
		"session_id", "session_ids", "method", "provider", "reason", "ip", "user_agent", "request_id", "server_request_id", "operation", "changes"}
}

// cells returns an event as a row of those columns.
func (v eventView) cells() ([]string, error) {
	changes, err := json.Marshal(v.Changes)
	if err != nil {
		return nil, err
	}
	row := []string{v.ID, v.At.Format(time.RFC3339Nano), string(v.Type), string(v.Outcome)}
	for _, p := range []*string{v.Actor.Kind, v.Actor.ID, v.Actor.Label, v.Actor.SessionID, v.UserID, v.Target, v.SessionID, ptr(strings.Join(v.SessionIDs, " ")),
		v.Method, v.Provider, v.Reason, v.IP, v.UserAgent, v.RequestID, v.ServerID, v.Operation} {
		if p == nil {
			p = new(string)
		}
		row = append(row, escapeFormulas(*p))
	}
	return append(row, escapeFormulasJSON(string(changes))), nil
}

// formula matches the start of a spreadsheet formula: at the start of a cell, or after a
// cell separator in tables with semicolons or tabs. Some spreadsheets also accept the
// full-width forms.
var formula = regexp.MustCompile(`(^|[;\t\r\n])(["' ]*)([=+\-@＝＋－＠])`)

// suspicious reports whether a text might contain a formula, so that most texts need no
// search.
func suspicious[T string | []byte](s T) bool {
	if len(s) == 0 {
		return false
	}
	if s[0] >= 0x80 || strings.IndexByte("=+-@\"' ", s[0]) >= 0 {
		return true
	}
	for i := range len(s) {
		if c := s[i]; c == ';' || c == '\t' || c == '\r' || c == '\n' {
			return true
		}
	}
	return false
}

// escapeFormulas returns a text for a cell of a table, in which a formula becomes text.
func escapeFormulas(s string) string {
	if !suspicious(s) {
		return s
	}
	if s != "" && strings.ContainsRune("\t\r\n", rune(s[0])) {
		s = "'" + s
	}
	return formula.ReplaceAllString(s, "$1$2'$3")
}

// escapeFormulasJSON returns JSON with the same value for a cell of a table. A formula could
// only be within its strings, where characters have another form.
func escapeFormulasJSON(s string) string {
	if !suspicious(s) {
		return s
	}
	return formula.ReplaceAllStringFunc(s, func(found string) string {
		r, size := utf8.DecodeLastRuneInString(found)
		if len(found) == size { // a number
			return "'" + found
		}
		return fmt.Sprintf("%s\\u%04x", found[:len(found)-size], r)
	})
}
