package dashboard

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// showUser shows an account: its name, and its data under tabs.
func showUser(v *visit) (*page, error) {
	u, err := v.account()
	if err != nil {
		return nil, err
	}
	tab := v.r.URL.Query().Get("tab")
	at := "/users/" + url.PathEscape(u.str("id"))
	p := &page{Title: u.label(), Under: u.str("full_name"), Tags: v.status(u)}
	tabs := []struct{ name, text, asks string }{
		{"", "Overview", ""}, {"timeline", "Timeline", "GET /users/{id}/events"}, {"sessions", "Sessions", "GET /users/{id}/sessions"}, {"access", "Sign-in methods", ""},
		{"roles", "Roles", "GET /roles"}, {"metadata", "Metadata", ""}, {"json", "JSON", ""},
	}
	for _, t := range tabs {
		if t.asks != "" && !v.may(t.asks) {
			continue
		}
		to := v.path(at)
		if t.name != "" {
			to += "?tab=" + t.name
		}
		p.Tabs = append(p.Tabs, link{Text: v.t(t.text), To: to, Here: t.name == tab})
	}
	shown := map[string]func(*visit, *page, object, string) error{
		"": userOverview, "timeline": userTimeline, "sessions": userSessions, "access": userAccess, "roles": userRoles, "metadata": userMetadata,
		"json": func(_ *visit, p *page, u object, _ string) error {
			p.Blocks = append(p.Blocks, block{Code: pretty(u.whole())})
			return nil
		},
	}
	show, ok := shown[tab]
	if !ok {
		return nil, auth.Reject(auth.CodeNotFound, "")
	}
	v.locked(p, u, at)
	v.waits(p, u, at)
	return p, show(v, p, u, at)
}

// account returns the page's account.
func (v *visit) account() (object, error) {
	return v.shown(v.d.adm.User(v.ctx, v.actor, v.id()))
}

// locked adds a warning for each limit that blocks sign-ins.
func (v *visit) locked(p *page, u object, at string) {
	for _, l := range u.list("locks") {
		p.Blocks = append(p.Blocks, block{Warn: true, Text: v.t("Too many failed attempts: sign-ins ({what}) are blocked until {time}.", "what", v.t(l.str("limit")), "time", absolute(l.time("until"))),
			Link: ptr(v.to("Unlock", "POST /users/{id}/unlock", at+"/unlock", false))})
	}
}

// waits adds a warning to the page of an account that waits for its holder to accept
// permissions, with the button that sends the link.
func (v *visit) waits(p *page, u object, at string) {
	w := u.of("waiting")
	if w == nil {
		return
	}
	text := []string{v.t("This account waits: its holder has not accepted its operator permissions.")}
	since, by := w.time("since"), w.of("by")
	who := v.actorText(by, v.waitingNames([]object{w}))
	switch {
	case since.IsZero():
		text = append(text, v.t("The audit log does not say since when."))
	default:
		text = append(text, v.t("Since {time}.", "time", absolute(since)), v.t("By {who}.", "who", who))
	}
	b := block{Warn: true}
	if u.str("email") == "" {
		text = append(text, v.t("It has no email address to send the link to: add one first."))
	} else {
		text = append(text, v.t("The link to accept goes to {address}.", "address", w.str("address")))
		b.Link = ptr(v.to("Send the link to accept", "POST /users/{id}/send", at+"/send?type=accept", false))
	}
	b.Text = strings.Join(text, " ")
	p.Blocks = append(p.Blocks, b)
}

// waitingNames returns the names of the users who made accounts wait, if the audit log has
// only their ids.
func (v *visit) waitingNames(list []object) map[string]string {
	var unnamed []string
	for _, w := range list {
		if by := w.of("by"); by.str("kind") == "user" && by.str("label") == "" {
			unnamed = append(unnamed, by.str("id"))
		}
	}
	return v.names(unnamed...)
}

func userOverview(v *visit, p *page, u object, at string) error {
	ban := "Ban"
	if until := u.time("banned_until"); u.str("status") == "banned" {
		ban = "Change the ban"
		text := v.t("Banned until {time}.", "time", absolute(until))
		if until.Year() > 9000 {
			text = v.t("Banned permanently.")
		}
		if banDetails := v.banReason(u.str("id")); banDetails != "" {
			text += " " + banDetails
		}
		p.Blocks = append(p.Blocks, block{Warn: true, Text: text, Link: ptr(v.to("Lift the ban", "POST /users/{id}/unban", at+"/unban", false))})
	}
	for _, c := range u.list("pending_changes") {
		p.Blocks = append(p.Blocks, block{Warn: true, Text: v.t("{value} can be verified until {time}.", "value", c.str("value"), "time", absolute(c.time("expires_at")))})
	}
	edit, address := v.to("Change", "PATCH /users/{id}", at+"/edit", false), v.to("Change", "POST /users/{id}/password", at+"/address", false)
	p.Blocks = append(p.Blocks,
		block{Facts: []fact{
			{Name: v.t("Id"), Cells: []cell{{Text: u.str("id"), Code: true}}},
			{Name: v.t("Name"), Cells: []cell{{Text: cmp.Or(u.str("full_name"), "—")}}, Link: &edit},
			{Name: v.t("Email address"), Cells: v.contactCells(u, "email"), Link: &address},
			{Name: v.t("Phone number"), Cells: v.contactCells(u, "phone"), Link: &address},
			{Name: v.t("Created"), Cells: []cell{{Time: u.time("created_at")}}},
			{Name: v.t("Last sign-in"), Cells: []cell{v.when(u, "last_sign_in_at")}},
			{Name: v.t("Roles"), Cells: []cell{{Text: cmp.Or(strings.Join(u.texts("roles"), ", "), "—")}}},
			{Name: v.t("Notes"), Cells: []cell{{Text: cmp.Or(u.str("notes"), "—")}}, Link: &edit},
		}})
	p.Buttons = []link{
		v.to("Send a message", "POST /users/{id}/send", at+"/send", false),
		v.to("Create a link", "POST /links", at+"/link", false),
		v.to("Act as this user", "POST /users/{id}/impersonate", at+"/impersonate", false),
		{Text: v.t("Export"), To: v.path(at + "/export"), Post: true},
		v.to(ban, "POST /users/{id}/ban", at+"/ban", true),
		v.to("Anonymise", "POST /users/{id}/anonymize", at+"/anonymize", true),
		v.to("Delete", "POST /users/{id}/delete", at+"/delete", true),
	}
	return nil
}

// banReason returns the actor and reason of the last ban, if they are recorded and the
// visitor may read them.
func (v *visit) banReason(id string) string {
	if !v.may("GET /audit-logs") {
		return ""
	}
	o, err := v.shown(v.d.adm.AuditLog(v.ctx, v.actor, admin.AuditLogParams{EventFilter: admin.EventFilter{User: id, Action: string(auth.EventUserBanned), Outcome: store.EventDone}, Limit: 1}))
	if err != nil || len(o.list("events")) == 0 {
		return ""
	}
	e := o.list("events")[0]
	by := v.actorText(e.of("actor"), v.namesIn([]object{e}, ""))
	if e.str("reason") == "" {
		return v.t("By {who}.", "who", by)
	}
	return v.t("By {who}: {reason}", "who", by, "reason", e.str("reason"))
}

// contactCells returns an email address or phone number, and whether it is verified.
func (v *visit) contactCells(u object, field string) []cell {
	if u.str(field) == "" {
		return []cell{{Text: "—"}}
	}
	c := cell{Text: u.str(field), Tags: []tag{{v.t("Not verified"), "warn"}}}
	if u.flag(field + "_verified") {
		c.Tags = []tag{{v.t("Verified"), "good"}}
	}
	return []cell{c}
}

func userTimeline(v *visit, p *page, u object, _ string) error {
	of := admin.TimelineParams{UserID: u.str("id")}
	if err := v.fill(v.query(), &of); err != nil {
		return err
	}
	o, err := v.shown(v.d.adm.Timeline(v.ctx, v.actor, of))
	if err != nil {
		return err
	}
	t := v.events(o, u)
	t.Empty = v.t("Nothing is recorded for this account, or it is no longer kept.")
	p.Blocks = append(p.Blocks, block{Table: t})
	return nil
}

func userSessions(v *visit, p *page, u object, at string) error {
	o, err := v.sessionsOf(u.str("id"))
	if err != nil {
		return err
	}
	t := &table{Name: v.t("Sessions"), Columns: v.columns("Device", "Address", "Started", "Last active", "Verified by", ""), Empty: v.t("No active sessions.")}
	back := v.back(strings.TrimPrefix(v.r.URL.Path, v.d.prefix) + "?tab=sessions")
	for _, s := range o.list("sessions") {
		t.Rows = append(t.Rows, row{Cells: v.session(s, back)})
	}
	p.Buttons = []link{v.to("Sign out everywhere", "DELETE /users/{id}/sessions", at+"/sign-out", true)}
	p.Blocks = append(p.Blocks, block{Table: t})
	if !v.may("GET /impersonations") {
		return nil
	}
	acting, err := v.impersonations(u.str("id"))
	if err != nil {
		return err
	}
	if len(acting.Rows) > 0 {
		p.Blocks = append(p.Blocks, block{Title: v.t("Operators who act as this user"), Table: acting})
	}
	return nil
}

// sessionsOf returns the active sessions of an account.
func (v *visit) sessionsOf(id string) (object, error) {
	list, err := v.d.adm.UserSessions(v.ctx, v.actor, id)
	var views []any
	for _, s := range list {
		views = append(views, v.d.kit.SessionView(s))
	}
	return v.shown(map[string]any{"sessions": views}, err)
}

// userAccess shows an account's sign-in methods and sessions.
func userAccess(v *visit, p *page, u object, at string) error {
	password := fact{Name: v.t("Password"), Cells: []cell{{Text: v.t("None")}}, Link: ptr(v.to("Set", "POST /users/{id}/password", at+"/password", false))}
	if u.flag("has_password") {
		password.Cells = []cell{{Text: v.t("Stored")}}
	}
	facts := []fact{password, {Name: v.t("Recovery codes left"), Cells: []cell{{Text: thousands(u.num("recovery_codes_left"))}}}}
	factors := &table{Name: v.t("Second factors and passkeys"), Columns: v.columns("Kind", "Created", "Last used", ""), Empty: v.t("No second factor.")}
	for _, f := range u.list("factors") {
		factors.Rows = append(factors.Rows, row{Cells: []cell{{Text: factorName(f)}, {Time: f.time("created_at")}, v.when(f, "last_used_at"),
			{Links: []link{v.to("Remove", "DELETE /users/{id}/factors/{factor}", at+"/factors/"+url.PathEscape(f.str("id"))+"/remove", true)}}}})
	}
	identities := &table{Name: v.t("Identities"), Columns: v.columns("Provider", "Address there", "Linked", "Last sign-in", ""), Empty: v.t("None linked.")}
	for _, i := range u.list("identities") {
		identities.Rows = append(identities.Rows, row{Cells: []cell{{Text: i.str("provider")}, {Text: i.str("email")}, {Time: i.time("created_at")}, v.when(i, "last_sign_in_at"),
			{Links: []link{v.to("Unlink", "DELETE /users/{id}/identities/{identity}", at+"/identities/"+url.PathEscape(i.str("id"))+"/unlink", true)}}}})
	}
	p.Blocks = append(p.Blocks, block{Facts: facts}, block{Title: v.t("Second factors and passkeys"), Table: factors}, block{Title: v.t("Identities"), Table: identities})
	return nil
}

// userRoles shows an account's roles and permissions.
func userRoles(v *visit, p *page, u object, at string) error {
	t := &table{Name: v.t("Roles"), Columns: v.columns("Role"), Empty: v.t("No role.")}
	for _, name := range u.texts("roles") {
		c := cell{Text: name, To: v.path("/roles/" + url.PathEscape(name))}
		if slices.Contains(v.d.adm.Auth().Settings(v.ctx).MFARequiredFor, name) {
			c.Tags = []tag{{v.t("Needs a second factor"), "warn"}}
		}
		t.Rows = append(t.Rows, row{Cells: []cell{c}})
	}
	p.Buttons = []link{v.to("Change the roles", "PUT /users/{id}/roles", at+"/roles", false)}
	permission := v.r.URL.Query().Get("permission")
	ask := field{Name: "permission", Label: "Permission", Type: "text", Hint: v.t("Such as auth.users.ban")}
	if v.may("GET /permissions") {
		all, err := v.d.adm.Permissions(v.ctx, v.actor)
		if err != nil {
			return err
		}
		for _, p := range all {
			ask.List = append(ask.List, p.Name)
		}
	}
	result := block{Title: v.t("Check a permission"), Form: v.filters(ask)}
	result.Form.Hidden = []field{{Name: "tab", Value: "roles"}}
	if permission != "" {
		c, err := v.d.adm.Check(v.ctx, v.actor, u.str("id"), permission)
		switch {
		case err != nil:
			result.Text = v.problemText(err)
		case c.NeedsFactor && len(u.list("factors")) == 0:
			result.Text = v.t("Not allowed yet: {roles} needs a second factor, and the account has none.", "roles", strings.Join(c.Via, ", "))
		case c.NeedsFactor:
			result.Text = v.t("Allowed in sessions with a second factor, by: {roles}.", "roles", strings.Join(c.Via, ", "))
		case c.Allowed:
			result.Text = v.t("Allowed, by: {roles}.", "roles", strings.Join(c.Via, ", "))
		default:
			result.Text = v.t("Not allowed: no role includes it, or it waits for the holder to accept it.")
		}
	}
	p.Blocks = append(p.Blocks, block{Table: t}, result)
	return nil
}

func userMetadata(v *visit, p *page, u object, at string) error {
	p.Buttons = []link{v.to("Change", "PATCH /users/{id}", at+"/metadata", false)}
	p.Blocks = append(p.Blocks,
		block{Title: "app_metadata", Text: v.t("Set by the application. The user can read it but not change it."), Code: pretty(u.get("app_metadata"))},
		block{Title: "user_metadata", Text: v.t("Set by the user. Never trust it."), Code: pretty(u.get("user_metadata"))})
	return nil
}

func exportPerson(v *visit) error {
	e, err := v.d.adm.ExportUser(v.ctx, v.actor, v.id())
	if err != nil {
		return err
	}
	v.w.Header().Set("X-Content-Type-Options", "nosniff")
	return v.d.kit.WriteExport(v.w, v.r, e)
}

func ptr[T any](v T) *T { return &v }

// day returns a time in the format of browsers' date fields.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04")
}

// factorName names a second factor or a passkey in a table.
func factorName(f object) string {
	kind := map[string]string{"totp": "TOTP", "passkey": "passkey"}[f.str("kind")]
	if label := f.str("label"); label != "" && kind != "" {
		return label + " (" + kind + ")"
	}
	return cmp.Or(f.str("label"), kind, f.str("kind"))
}
