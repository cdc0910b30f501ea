package dashboard

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/store"
)

func showSessions(v *visit) (*page, error) {
	p := &page{Title: v.t("Sessions"), Under: v.t("Active sessions, newest first."), Filters: v.filters(
		field{Name: "ip", Label: "Address", Type: "text"},
		field{Name: "client", Label: "Device", Type: "text", Hint: v.t("Part of the browser's name (User-Agent); together with an address or a day")},
		field{Name: "aal", Label: "Second factor", Type: "select", Options: v.choices("", "Any", "aal2", "Shown", "aal1", "Not shown")},
		field{Name: "since", Label: "Started after", Type: "date"},
		field{Name: "before", Label: "Started before", Type: "date"},
	)}
	o, err := listed(v, p, v.query("ip", "client", "aal", "since", "before", "user"), v.d.adm.ListSessions)
	if err != nil {
		return nil, err
	}
	list := o.list("sessions")
	t := &table{Name: v.t("Sessions"), Columns: v.columns("User", "Device", "Address", "Started", "Last active", "Verified by", ""), Empty: v.t("No matching active sessions."), Next: v.next(o), Rows: make([]row, 0, len(list))}
	names, back := v.names(ids(list, "user_id")...), v.back("/sessions")
	for _, s := range list {
		id := s.str("user_id")
		t.Rows = append(t.Rows, row{Cells: v.session(s.of("session"), back, v.userCell(id, names[id]))})
	}
	q := v.r.URL.Query()
	p.Buttons = []link{v.to("End sessions", "POST /sessions/revoke", "/sessions/revoke?"+url.Values{"ip": {q.Get("ip")}, "before": {q.Get("before")}}.Encode(), true)}
	if v.may("GET /impersonations") {
		p.Buttons = append(p.Buttons, link{Text: v.t("Operators acting as users"), To: v.path("/impersonations")})
		p.Under += " " + v.t("Sessions of operators who act as a user are on a separate page.")
	}
	p.Blocks = append(p.Blocks, block{Table: t})
	return p, nil
}

// addEndingSessions shows the sessions that a form would end now, up to one page.
func (v *visit) addEndingSessions(p *page, o object, err error) error {
	if err != nil {
		return err
	}
	list := o.list("sessions")
	text := v.t("{n} sessions would end now.", "n", len(list))
	switch {
	case o.str("next_cursor") != "":
		text = v.t("More than {n} sessions would end now. The newest of them:", "n", len(list))
	case len(list) == 1:
		text = v.t("1 session would end now.")
	}
	t := &table{Name: v.t("Sessions"), Columns: v.columns("User", "Device", "Address", "Started"), Empty: v.t("No matching active sessions.")}
	names := v.names(ids(list, "user_id")...)
	for _, s := range list {
		who := cell{Text: p.Under}
		if id := s.str("user_id"); id != "" {
			who = v.userCell(id, names[id])
		}
		if inner := s.of("session"); inner != nil {
			s = inner
		}
		if s.flag("current") {
			text += " " + v.t("Your own session continues.")
		}
		t.Rows = append(t.Rows, row{Cells: v.session(s, "", who)[:4]})
	}
	p.Blocks = append(p.Blocks, block{Text: text, Table: t})
	return nil
}

// previewRevoke shows the sessions that the form selects, once it has a filter.
func previewRevoke(v *visit, p *page) error {
	from := v.r.URL.Query()
	if v.form != nil {
		from = v.form
	}
	q := url.Values{}
	if ip := from.Get("ip"); ip != "" {
		q.Set("ip", ip)
	}
	if before := dayTime(from.Get("before")); before != "" {
		q.Set("before", before+":00Z")
	}
	if len(q) == 0 || !v.may("GET /sessions") {
		return nil
	}
	o, err := find(v, q, v.d.adm.ListSessions)
	err = v.addEndingSessions(p, o, err)
	if e := asError(err); e != nil && e.Code == auth.CodeValidationFailed {
		return nil // the form reports the error when it is sent
	}
	return err
}

// dayTime returns a day or an instant as the value of an instant field.
func dayTime(s string) string {
	if s != "" && !strings.Contains(s, "T") {
		s += "T00:00"
	}
	return s[:min(len(s), len("2006-01-02T15:04"))]
}

// session returns a session's cells after the given ones. back is the page to continue
// at after a form revokes it.
func (v *visit) session(s object, back string, cells ...cell) []cell {
	device := cell{Text: cmp.Or(s.str("device"), v.t("Unknown device"))}
	if s.flag("current") {
		device.Tags = append(device.Tags, tag{v.t("This one"), "good"})
	}
	if s.str("impersonated_by") != "" {
		device.Tags = append(device.Tags, tag{v.t("Operator acting as the user"), "warn"})
	}
	ip := cell{Text: s.str("ip")}
	if ip.Text != "" && v.may("GET /sessions") {
		ip.To = v.path("/sessions") + "?" + url.Values{"ip": {ip.Text}}.Encode()
	}
	var proofs []tag
	for _, a := range s.list("amr") {
		proofs = append(proofs, tag{Text: a.str("method")})
	}
	end := link{Text: v.t("End"), Danger: true}
	if v.may("DELETE /sessions/{id}") {
		end.To = v.path("/sessions/"+url.PathEscape(s.str("id"))+"/end") + back
	}
	return append(slices.Grow(cells, 6), device, ip, cell{Time: s.time("created_at")}, cell{Time: s.time("last_active_at")}, cell{Tags: proofs}, cell{Links: []link{end}})
}

// back returns the query that makes a form continue at a page of the dashboard.
func (v *visit) back(to string) string { return "?" + url.Values{"back": {to}}.Encode() }

// backTo returns the page that the query names, if it is within the dashboard, or other.
func backTo(other string) func(*visit) string {
	return func(v *visit) string {
		to := v.r.URL.Query().Get("back")
		if !redirect.IsLocal(to) {
			to = other
		}
		return v.path(to)
	}
}

func sessionActions() []action {
	return []action{
		{at: "/sessions/{id}/end", operation: "DELETE /sessions/{id}", title: "End the session", text: "Its tokens stop working immediately where sessions are checked, and after a few minutes elsewhere.", submit: "End it", danger: true, done: "The session has ended.", back: backTo("/sessions"), fields: withReason(false),
			do: func(v *visit) (any, error) {
				return nil, v.d.adm.EndSession(v.ctx, v.actor, v.id(), v.formValue("reason"))
			}},
		{
			at: "/sessions/revoke", operation: "POST /sessions/revoke", title: "End sessions", text: "Those of one address, those that started before a time, or all.", submit: "End them", danger: true, back: backTo("/sessions"), preview: previewRevoke,
			fields: func(v *visit) ([]field, error) {
				return []field{
					{Name: "ip", Label: v.t("Address"), Type: "text", Value: v.r.URL.Query().Get("ip")},
					{Name: "before", Label: v.t("Started before"), Type: "datetime-local", Value: dayTime(v.r.URL.Query().Get("before")), Hint: v.t("In UTC")},
					{Name: "all", Label: v.t("All sessions of everybody"), Type: "check"}, reasonField(v, false),
				}, nil
			},
			confirmation: func(v *visit) (string, error) { return v.t("end"), nil },
			do: func(v *visit) (any, error) {
				before, err := v.formTime("before")
				if err != nil {
					return nil, err
				}
				return v.d.adm.RevokeSessions(v.ctx, v.actor, admin.RevokeSessionsParams{IP: v.formValue("ip"), Before: before, All: v.isChecked("all"), Reason: v.formValue("reason")})
			},
			show: func(v *visit, o object) (*page, error) {
				text := v.t("{n} sessions ended; {skipped} users were skipped.", "n", o.num("ended"), "skipped", o.num("skipped"))
				if o.flag("more") {
					text += " " + v.t("There are more: apply it again.")
				}
				return &page{Title: v.t("Sessions"), Blocks: []block{{Text: text, Link: &link{Text: v.t("To the sessions"), To: v.path("/sessions")}}}}, nil
			},
		},
		{at: "/impersonations/{id}/end", operation: "DELETE /impersonations/{id}", title: "Stop acting as the user", submit: "End it", danger: true, done: "It has ended.", back: func(v *visit) string { return v.path("/impersonations") }, fields: withReason(false), do: func(v *visit) (any, error) {
			return nil, v.d.adm.EndImpersonation(v.ctx, v.actor, v.id(), v.formValue("reason"))
		}},
	}
}

func showImpersonations(v *visit) (*page, error) {
	t, err := v.impersonations("")
	if err != nil {
		return nil, err
	}
	return &page{Title: v.t("Operators acting as users"), Blocks: []block{{Table: t}}}, nil
}

// impersonations lists the running ones, of all accounts or of one.
func (v *visit) impersonations(of string) (*table, error) {
	list, err := v.d.adm.Impersonations(v.ctx, v.actor)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(i store.Impersonation) bool { return of != "" && i.UserID != of })
	t := &table{Name: v.t("Operators acting as users"), Columns: v.columns("Who", "User", "Reason", "Started", "Ends", ""), Empty: v.t("Nobody acts as another user.")}
	var people []string
	for _, i := range list {
		people = append(people, i.ActorID, i.UserID)
	}
	names := v.names(people...)
	for _, i := range list {
		t.Rows = append(t.Rows, row{Cells: []cell{v.userCell(i.ActorID, names[i.ActorID]), v.userCell(i.UserID, names[i.UserID]), {Text: i.Reason}, {Time: i.CreatedAt}, {Time: i.ExpiresAt},
			{Links: []link{v.to("End", "DELETE /impersonations/{id}", "/impersonations/"+url.PathEscape(i.ID)+"/end", true)}}}})
	}
	return t, nil
}
