package admin

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// The formats of exports.
const (
	FormatNDJSON = "ndjson" // one JSON object a line
	FormatCSV    = "csv"    // with a line of names; a cell that a spreadsheet would calculate gets an apostrophe in front
)

// exportPage is how many events an export reads at once.
const exportPage = 500

// ExportAuditLogParams pick the events to export.
type ExportAuditLogParams struct {
	EventFilter

	Format string `query:"format"` // FormatNDJSON if empty
}

// ExportAuditLog writes all events that match a filter, newest first, page by page, and
// so needs only a few hundred kilobytes of memory. It checks the actor's permissions for
// each page. The export is recorded in the audit log before the first byte is written; if
// that fails, nothing is written. It ends when ctx or w does. Errors:
// CodeValidationFailed, those of every operation, and the error of w.
func (m *Admin) ExportAuditLog(ctx context.Context, who Actor, p ExportAuditLogParams, w io.Writer) error {
	if p.Format == "" {
		p.Format = FormatNDJSON
	}
	if !slices.Contains([]string{FormatNDJSON, FormatCSV}, p.Format) {
		return m.kit.Invalid("format", "has to be ndjson or csv")
	}
	q, err := m.eventQuery(p.EventFilter)
	if err != nil {
		return err
	}
	q.Limit = exportPage
	if err := q.Check(); err != nil {
		return m.kit.StoreError(err)
	}
	_, err = carryOut(ctx, m, who, opAuditExport, "", auth.EventAuditExported, func(t *attempt) (struct{}, error) {
		t.changed("format", nil, p.Format)
		for name, value := range filtersOf(q) {
			t.changed(name, nil, value)
		}
		return struct{}{}, m.journal.AddEvents(ctx, []auth.Event{t.change.Events[0].Event})
	})
	if err != nil {
		return err
	}
	return m.writeEventsTo(ctx, who, q, p.Format, w)
}

// writeEventsTo writes the events page by page.
func (m *Admin) writeEventsTo(ctx context.Context, who Actor, q store.EventQuery, format string, w io.Writer) error {
	out := bufio.NewWriter(w)
	table, lines := csv.NewWriter(out), json.NewEncoder(out)
	if format == FormatCSV {
		if err := table.Write(eventColumns()); err != nil {
			return err
		}
	}
	for {
		list, err := m.journal.Events(ctx, q)
		if err != nil {
			return m.kit.StoreError(err)
		}
		if _, err := m.exporting(ctx, who, opAuditExport); err != nil { // after reading, so that a page is not written after the permission was lost
			return err
		}
		for _, e := range list {
			if format == FormatNDJSON {
				err = lines.Encode(viewEvent(e))
			} else {
				var row []string
				if row, err = viewEvent(e).cells(); err == nil {
					err = table.Write(row)
				}
			}
			if err != nil {
				return err
			}
		}
		if table.Flush(); table.Error() != nil {
			return table.Error()
		}
		if err := out.Flush(); err != nil || len(list) < q.Limit {
			return err
		}
		q.Before = &list[len(list)-1]
	}
}

// filtersOf returns the filters of a query for the audit log.
func filtersOf(q store.EventQuery) map[string]string {
	all := map[string]string{"id": q.ID, "about": q.UserID, "user": q.Involving, "actor": q.ActorID, "target": q.Target, "action": q.Type, "request_id": q.RequestID, "outcome": string(q.Outcome)}
	for _, t := range q.Types {
		all["actions"] += string(t) + " "
	}
	if q.IP.IsValid() {
		all["ip"] = q.IP.String()
	}
	if !q.From.IsZero() {
		all["from"] = q.From.String()
	}
	if !q.To.IsZero() {
		all["to"] = q.To.String()
	}
	for name, value := range all {
		if value == "" {
			delete(all, name)
		}
	}
	return all
}
