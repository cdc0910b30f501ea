package dashboard

import (
	"cmp"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
)

const csvMedia = "text/csv; charset=utf-8"

// auditFilters are the filters of GET /audit-logs.
var auditFilters = []string{"actor", "action", "target", "user", "ip", "request_id", "outcome", "from", "to"}

func showAudit(v *visit) (*page, error) {
	p := &page{Title: v.t("Audit log"), Live: v.r.URL.Query().Get("live") != "", Filters: v.filters(
		field{Name: "action", Label: "What", Type: "text", Hint: v.t("Such as user.banned, or user.*")},
		field{Name: "actor", Label: "By (address or ID)", Type: "text"},
		field{Name: "user", Label: "About or by a user (address or id)", Type: "text"},
		field{Name: "target", Label: "Target", Type: "text"},
		field{Name: "ip", Label: "Address", Type: "text"},
		field{Name: "outcome", Label: "Outcome", Type: "select", Options: v.choices("", "Any", "done", "Done", "denied", "Denied", "failed", "Failed")},
		field{Name: "request_id", Label: "Request", Type: "text"},
		field{Name: "from", Label: "From", Type: "date"},
		field{Name: "to", Label: "Before", Type: "date"},
	)}
	q := v.byAddress(v.query(auditFilters...), "actor", "user")
	o, err := listed(v, p, q, v.d.adm.AuditLog)
	if err != nil {
		return nil, err
	}
	t := v.events(o, nil)
	t.Empty = v.t("No matching entries.")
	live := link{Text: v.t("Refresh automatically"), To: v.here(func(q url.Values) { q.Set("live", "1"); q.Del("cursor") })}
	if p.Live {
		live = link{Text: v.t("Stop refreshing"), To: v.here(func(q url.Values) { q.Del("live") })}
	}
	p.Buttons = []link{live}
	if v.may("GET /audit-logs/export") {
		p.Buttons = append(p.Buttons, link{Text: v.t("Export these"), To: v.path("/audit/export") + "?" + v.byAddress(v.filtered(auditFilters...), "actor", "user").Encode(), Post: true})
	}
	p.Blocks = append(p.Blocks, block{Table: t})
	return p, nil
}

// events returns events as rows. In an account's timeline, of is the account: repeated
// events share one row, and other actors stand out.
func (v *visit) events(o, of object) *table {
	about := of.str("id")
	t := &table{Name: v.t("Events"), Columns: v.columns("When", "What", "By", "Target", "Address"), Next: v.next(o)}
	list := o.list("events")
	t.Rows = make([]row, 0, len(list))
	names := v.namesIn(list, about)
	last, times := "", 0
	for _, e := range list {
		actor := e.of("actor")
		same := ""
		if about != "" {
			same = strings.Join([]string{e.str("type"), e.str("outcome"), actor.str("id"), e.str("user_id"), e.str("target"), e.str("ip"), e.str("reason")}, "\x00")
		}
		if n := len(t.Rows); about != "" && same == last && n > 0 {
			times++
			tags := t.Rows[n-1].Cells[1].Tags
			if times > 2 {
				tags = tags[:len(tags)-1] // replace the previous count
			}
			t.Rows[n-1].Cells[1].Tags = append(tags, tag{Text: "×" + thousands(int64(times))})
			continue
		}
		last, times = same, 1
		what := cell{Text: v.t(e.str("type")), To: v.path("/audit/" + url.PathEscape(e.str("id")))}
		if d := cmp.Or(e.str("method"), e.str("provider")); d != "" {
			what.Tags = append(what.Tags, tag{Text: v.t(d)})
		}
		what.Tags = append(what.Tags, rolesChanged(e)...)
		switch e.str("outcome") {
		case "denied":
			what.Tags = append(what.Tags, tag{v.t("Denied"), "bad"})
		case "failed":
			what.Tags = append(what.Tags, tag{v.t("Failed"), "warn"})
		}
		if r := e.str("reason"); r != "" {
			what.Tags = append(what.Tags, tag{Text: v.t(r)})
		}
		by, target := v.actorCell(actor, names), v.targetCell(e, names)
		if about != "" && actor.str("id") == about {
			by = v.userCell(about, of.label())
		}
		if about != "" && e.str("user_id") == about {
			target = v.userCell(about, of.label())
		}
		if about != "" && actor.str("kind") == "user" && actor.str("id") != about {
			by.Tags = append(by.Tags, tag{v.t("Somebody else"), "warn"})
		}
		ip := cell{Text: e.str("ip")}
		if ip.Text != "" {
			ip.To = v.path("/audit") + "?" + url.Values{"ip": {ip.Text}}.Encode()
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Time: e.time("at")}, what, by, target, ip}})
	}
	return t
}

// rolesChanged returns the roles that an event added and removed.
func rolesChanged(e object) []tag {
	c := e.of("changes").of("roles")
	before, after := c.texts("before"), c.texts("after")
	var tags []tag
	for _, r := range after {
		if !slices.Contains(before, r) {
			tags = append(tags, tag{Text: "+" + r})
		}
	}
	for _, r := range before {
		if !slices.Contains(after, r) {
			tags = append(tags, tag{Text: "−" + r})
		}
	}
	return tags
}

// namesIn returns the names of accounts that events only give ids of, except the known
// one.
func (v *visit) namesIn(events []object, known string) map[string]string {
	var unnamed []string
	for _, e := range events {
		if id := e.str("user_id"); id != known && e.str("target") == "" {
			unnamed = append(unnamed, id)
		}
		if a := e.of("actor"); a.str("kind") == "user" && a.str("label") == "" && a.str("id") != known {
			unnamed = append(unnamed, a.str("id"))
		}
	}
	return v.names(unnamed...)
}

// actorCell returns the cell of an event's actor.
func (v *visit) actorCell(a object, names map[string]string) cell {
	label := cmp.Or(a.str("label"), cmp.Or(names[a.str("id")], a.str("id")))
	switch a.str("kind") {
	case "user":
		return v.userCell(a.str("id"), label)
	case "":
		return cell{Text: cmp.Or(label, "—")}
	}
	kind := v.t(a.str("kind"))
	if a.str("kind") == "system" && strings.HasPrefix(a.str("id"), "authmount ") {
		kind = v.t("Command line")
	}
	return cell{Text: label, Tags: []tag{{Text: kind}}}
}

// actorText returns an event's actor for a sentence. Keys and programs have their kind.
func (v *visit) actorText(a object, names map[string]string) string {
	c := v.actorCell(a, names)
	if len(c.Tags) == 0 {
		return c.Text
	}
	return c.Text + " (" + c.Tags[0].Text + ")"
}

// targetCell returns the cell of an event's target.
func (v *visit) targetCell(e object, names map[string]string) cell {
	if e.str("user_id") != "" {
		return v.userCell(e.str("user_id"), cmp.Or(e.str("target"), names[e.str("user_id")]))
	}
	return cell{Text: e.str("target")}
}

// showEvent shows one event and its changes.
func showEvent(v *visit) (*page, error) {
	o, err := v.event()
	if err != nil {
		return nil, err
	}
	e := o.list("events")[0]
	names := v.namesIn([]object{e}, "")
	p := &page{Title: v.t(e.str("type")), Tags: []tag{{v.t(e.str("outcome")), map[string]string{"denied": "bad", "failed": "warn"}[e.str("outcome")]}}}
	facts := []fact{
		{Name: v.t("What"), Cells: []cell{{Text: e.str("type"), Code: true, To: v.path("/audit") + "?" + url.Values{"action": {e.str("type")}}.Encode()}}},
		{Name: v.t("When"), Cells: []cell{{Time: e.time("at")}}}, {Name: v.t("By"), Cells: []cell{v.actorCell(e.of("actor"), names)}}, {Name: v.t("Target"), Cells: []cell{v.targetCell(e, names)}},
	}
	for _, f := range []struct{ name, field, filter string }{
		{"Reason", "reason", ""}, {"Operation", "operation", ""}, {"Method", "method", ""}, {"Provider", "provider", ""}, {"Address", "ip", "ip"}, {"Browser", "user_agent", ""}, {"Request", "request_id", "request_id"}, {"Request on the server", "server_request_id", ""}, {"Session", "session_id", ""}, {"Event", "id", ""},
	} {
		if text := e.str(f.field); text != "" {
			c := cell{Text: text, Code: strings.HasSuffix(f.field, "id")}
			if f.filter != "" {
				c.To = v.path("/audit") + "?" + url.Values{f.filter: {text}}.Encode()
			}
			facts = append(facts, fact{Name: v.t(f.name), Cells: []cell{c}})
		}
	}
	p.Blocks = []block{{Facts: facts}}
	if changes := e.of("changes"); changes != nil {
		t := &table{Name: v.t("What changed"), Columns: v.columns("Field", "Before", "After")}
		for _, name := range changes.names() {
			c := changes.of(name)
			t.Rows = append(t.Rows, row{Cells: []cell{{Text: name, Code: true}, {Text: compactText(c.get("before")), Code: true}, {Text: compactText(c.get("after")), Code: true}}})
		}
		p.Blocks = append(p.Blocks, block{Title: v.t("What changed"), Table: t})
	}
	return p, nil
}

// event returns the page's event.
func (v *visit) event() (object, error) {
	e, err := v.d.adm.AuditEvent(v.ctx, v.actor, v.id())
	return v.shown(admin.EventPage{Events: []auth.Event{e}}, err)
}

func exportAudit(v *visit) error {
	var p admin.ExportAuditLogParams
	if err := v.fill(v.filtered(auditFilters...), &p); err != nil {
		return err
	}
	p.Format = admin.FormatCSV
	return v.download("audit-log.csv", csvMedia, func(w io.Writer) error { return v.d.adm.ExportAuditLog(v.ctx, v.actor, p, w) })
}
