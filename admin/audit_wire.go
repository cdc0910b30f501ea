package admin

import (
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var auditEndpoints = []endpoint{
	{opAudit, (*Admin).handleAudit},
	{opAuditExport, (*Admin).handleAuditExport},
	{opAuditEvent, (*Admin).handleAuditEvent},
	{opTimeline, (*Admin).handleTimeline},
}

// eventCursor is a place in a list of events.
type eventCursor struct {
	List string    `json:"list"`
	At   time.Time `json:"at"`
	ID   string    `json:"id"`
}

// eventQuery reads the filters of the audit log.
func (v *values) eventQuery() store.EventQuery {
	q := store.EventQuery{
		ActorID: v.text("actor"), Type: v.text("action"), Target: v.text("target"), Involving: v.text("user"),
		RequestID: v.text("request_id"), Outcome: store.EventOutcome(v.text("outcome")), From: v.time("from"), To: v.time("to"),
	}
	if s := v.text("ip"); s != "" {
		ip, err := netip.ParseAddr(s)
		if err != nil {
			v.fault("ip", "has to be an address such as 192.0.2.1")
		}
		q.IP = ip.Unmap()
	}
	return q
}

// eventPlace reads limit and cursor of a list of events.
func (v *values) eventPlace(list string) (before *auth.Event, limit int) {
	limit = v.limit()
	if s := v.text("cursor"); s != "" {
		var c eventCursor
		err := v.m.readCursor(s, &c)
		if err != nil || c.List != list {
			v.fault("cursor", "is none of this list")
		}
		before = &auth.Event{At: c.At, ID: c.ID}
	}
	return before, limit
}

func (m *Admin) handleAudit(who Actor, w http.ResponseWriter, r *http.Request) error {
	const list = "audit-logs"
	v := m.values(r)
	p := AuditLogParams{v.eventQuery()}
	p.Before, p.Limit = v.eventPlace(list)
	if err := v.done(); err != nil {
		return err
	}
	page, err := m.AuditLog(r.Context(), who, p)
	return m.writeEvents(w, list, page, err)
}

func (m *Admin) handleTimeline(who Actor, w http.ResponseWriter, r *http.Request) error {
	p := TimelineParams{UserID: r.PathValue("id")}
	list := "events of " + p.UserID
	v := m.values(r)
	p.Before, p.Limit = v.eventPlace(list)
	if err := v.done(); err != nil {
		return err
	}
	page, err := m.Timeline(r.Context(), who, p)
	return m.writeEvents(w, list, page, err)
}

func (m *Admin) writeEvents(w http.ResponseWriter, list string, page EventPage, err error) error {
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
		out.NextCursor = ptr(cursorOf(eventCursor{list, page.Next.At, page.Next.ID}))
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

func (m *Admin) handleAuditEvent(who Actor, w http.ResponseWriter, r *http.Request) error {
	if err := m.values(r).done(); err != nil {
		return err
	}
	e, err := m.AuditEvent(r.Context(), who, r.PathValue("id"))
	if err != nil {
		return err
	}
	return m.kit.WriteJSON(w, http.StatusOK, viewEvent(e))
}

func (m *Admin) handleAuditExport(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	p := ExportAuditLogParams{EventQuery: v.eventQuery(), Format: v.text("format")}
	if err := v.done(); err != nil {
		return err
	}
	out := newDownload(w, "audit-log", p.Format)
	return m.serveDownload(who, opAuditExport, out, r, func() error { return m.ExportAuditLog(r.Context(), who, p, out) })
}

// serveDownload has an export written.
func (m *Admin) serveDownload(who Actor, op operation, out *download, r *http.Request, write func() error) error {
	if r.Method == http.MethodHead { // nothing leaves
		_, err := m.reader(r.Context(), who, op)
		if err == nil {
			out.begin()
		}
		return err
	}
	return m.finish(r, out, write())
}

// finish ends a download, whose head may have gone out before something failed.
func (m *Admin) finish(r *http.Request, out *download, err error) error {
	switch {
	case err == nil:
		out.begin() // of nothing
	case out.begun:
		var e *auth.Error
		if errors.As(err, &e) {
			m.kit.Log().WarnContext(r.Context(), "auth: export broken off", "error", err)
		}
		panic(http.ErrAbortHandler) // what was sent must not look whole
	}
	return err
}

// downloadPause is how long a client may take for a part of a download.
const downloadPause = 30 * time.Second

// download is a response that is written bit by bit. Its head goes with the first bit.
type download struct {
	w           http.ResponseWriter
	name, media string
	begun       bool
}

func newDownload(w http.ResponseWriter, name, format string) *download {
	if format == FormatCSV {
		return &download{w: w, name: name + "." + FormatCSV, media: "text/csv; charset=utf-8"}
	}
	return &download{w: w, name: name + "." + FormatNDJSON, media: mediaNDJSON}
}

func (d *download) begin() {
	if d.begun {
		return
	}
	d.begun = true
	h := d.w.Header()
	h.Set("Content-Type", d.media)
	h.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
	h.Set("Cache-Control", "no-store")
	d.w.WriteHeader(http.StatusOK)
}

// Write sends what was written, and waits for a client that is slow, but not for ever.
func (d *download) Write(b []byte) (int, error) {
	d.begin()
	c := http.NewResponseController(d.w)
	if err := c.SetWriteDeadline(time.Now().Add(downloadPause)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := d.w.Write(b)
	if err != nil {
		return n, err
	}
	if err := c.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return n, err
	}
	return n, nil
}
