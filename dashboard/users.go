package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/authmount/auth/admin"
)

// userFilters are the filters of GET /users that have a field.
var userFilters = []string{"q", "status", "role", "mfa", "provider", "created_from", "created_to", "signed_in_from", "signed_in_to", "metadata.", "sort", "order"}

func showUsers(v *visit) (*page, error) {
	p := &page{Title: v.t("Users"), Filters: v.filters(
		field{Name: "q", Label: "Search", Type: "search", Hint: v.t("Email address, phone number or ID, @domain, or the beginning of an address or of a word of a name")},
		field{Name: "status", Label: "Status", Type: "select", Options: v.choices("", "Any", "active", "Active", "banned", "Banned", "unconfirmed", "Unconfirmed", "invited", "Invited", "waiting", "Waiting to accept")},
		field{Name: "role", Label: "Role", Type: "text"},
		field{Name: "mfa", Label: "Second factor", Type: "select", Options: v.choices("", "Any", "true", "Yes", "false", "No")},
		field{Name: "provider", Label: "Provider", Type: "text"},
		field{Name: "created_from", Label: "Created after", Type: "date"},
		field{Name: "created_to", Label: "Created before", Type: "date"},
		field{Name: "signed_in_from", Label: "Signed in from", Type: "date"},
		field{Name: "column", Label: "Columns", Type: "checks", Options: v.choices("status", "Status", "name", "Name", "phone", "Phone number", "roles", "Roles", "created", "Created", "signed_in", "Last sign-in", "id", "Id")},
	)}
	q := v.query(userFilters...)
	q.Set("count", "estimate")
	o, err := listed(v, p, q, v.d.adm.ListUsers)
	if err != nil {
		return nil, err
	}
	p.Under = v.countText(o)
	p.Buttons = []link{
		v.to("Invite", "POST /invitations", "/invitations/new", false),
		v.to("Create a user", "POST /users", "/users/new", false),
		v.to("Import", "POST /users/import", "/users/import", false),
	}
	if v.may("GET /users/export") {
		p.Buttons = append(p.Buttons, link{Text: v.t("Export these"), To: v.path("/users/export") + "?" + v.filtered(userFilters...).Encode(), Post: true})
	}
	t := &table{Name: v.t("Users"), Columns: []column{v.sorted("User", "email")},
		Empty: v.t("No matching users. Remove a filter, or invite somebody."), Next: v.next(o), Select: v.bulk()}
	columns := v.userColumns()
	for _, c := range columns {
		t.Columns = append(t.Columns, c.head)
	}
	waiting := v.r.URL.Query().Get("status") == "waiting"
	if waiting {
		t.Columns = append(t.Columns, v.columns("Waiting since", "By")...)
	}
	list, named := o.list("users"), slices.Contains(v.r.URL.Query()["column"], "name")
	t.Rows = make([]row, 0, len(list))
	var names map[string]string
	if waiting {
		var all []object
		for _, u := range list {
			all = append(all, u.of("waiting"))
		}
		names = v.waitingNames(all)
	}
	for _, u := range list {
		r := row{ID: u.str("id"), Label: u.label(), Cells: make([]cell, 0, 1+len(columns))}
		who := v.userCell(r.ID, r.Label)
		if name := u.str("full_name"); name != "" && name != who.Text && !named {
			who.Under = name
		}
		r.Cells = append(r.Cells, who)
		for _, c := range columns {
			r.Cells = append(r.Cells, c.of(u))
		}
		if waiting {
			since := cell{Text: "—"}
			if at := u.of("waiting").time("since"); !at.IsZero() {
				since = cell{Time: at}
			}
			r.Cells = append(r.Cells, since, v.actorCell(u.of("waiting").of("by"), names))
		}
		t.Rows = append(t.Rows, r)
	}
	p.Blocks = append(p.Blocks, block{Table: t})
	return p, nil
}

// userColumn is a column of the users table.
type userColumn struct {
	head column
	of   func(u object) cell
}

// userColumns returns the columns that the query selects, or the default ones.
func (v *visit) userColumns() []userColumn {
	all := []struct {
		name string
		userColumn
	}{
		{"status", userColumn{column{Text: v.t("Status")}, func(u object) cell { return cell{Tags: v.status(u)} }}},
		{"name", userColumn{column{Text: v.t("Name")}, func(u object) cell { return cell{Text: cmp.Or(u.str("full_name"), "—")} }}},
		{"phone", userColumn{column{Text: v.t("Phone number")}, func(u object) cell { return cell{Text: cmp.Or(u.str("phone"), "—")} }}},
		{"roles", userColumn{column{Text: v.t("Roles")}, func(u object) cell { return cell{Tags: words(u.texts("roles"))} }}},
		{"created", userColumn{v.sorted("Created", "created_at"), func(u object) cell { return cell{Time: u.time("created_at")} }}},
		{"signed_in", userColumn{v.sorted("Last sign-in", "last_sign_in_at"), func(u object) cell { return v.when(u, "last_sign_in_at") }}},
		{"id", userColumn{column{Text: v.t("Id")}, func(u object) cell { return cell{Text: u.str("id"), Code: true} }}},
	}
	chosen := v.r.URL.Query()["column"]
	if len(chosen) == 0 {
		chosen = []string{"status", "roles", "created", "signed_in"}
	}
	var list []userColumn
	for _, c := range all {
		if slices.Contains(chosen, c.name) {
			list = append(list, c.userColumn)
		}
	}
	return list
}

// countText returns the number of users and the field that a search matched.
func (v *visit) countText(o object) string {
	c := o.of("count")
	text := v.t("{n} users", "n", thousands(c.num("users")))
	if c.num("users") == 1 {
		text = v.t("1 user")
	}
	if !c.flag("exact") {
		text = v.t("About {n} users", "n", thousands(c.num("users")))
	}
	if o == nil {
		return ""
	}
	switch o.str("matched") {
	case "id":
		text += ". " + v.t("The search was read as an ID.")
	case "email":
		text += ". " + v.t("The search matches one complete address.")
	case "phone":
		text += ". " + v.t("The search matches one complete phone number.")
	case "domain":
		text += ". " + v.t("The search was read as the domain of email addresses.")
	case "prefix":
		text += ". " + v.t("The search was read as the beginning of an address or of a word of a name.")
	}
	return text
}

// status returns the tags of an account's state.
func (v *visit) status(u object) []tag {
	var tags []tag
	switch u.str("status") {
	case "banned":
		tags = append(tags, tag{v.t("Banned"), "bad"})
	case "unconfirmed":
		tags = append(tags, tag{v.t("Unconfirmed"), "warn"})
	default:
		tags = append(tags, tag{v.t("Active"), "good"})
	}
	if u.flag("mfa_enabled") {
		tags = append(tags, tag{v.t("2FA"), ""})
	}
	return tags
}

func words(list []string) []tag {
	tags := make([]tag, 0, len(list))
	for _, s := range list {
		tags = append(tags, tag{Text: s})
	}
	return tags
}

// when returns a cell with a time, or "never".
func (v *visit) when(o object, name string) cell {
	if t := o.time(name); !t.IsZero() {
		return cell{Time: t}
	}
	return cell{Text: v.t("Never")}
}

// sorted returns the head of a column that the list can be sorted by.
func (v *visit) sorted(text, by string) column {
	q := v.r.URL.Query()
	c := column{Text: v.t(text)}
	is := q.Get("sort") == by || q.Get("sort") == "" && by == "created_at"
	up := q.Get("order") == "asc"
	if is && up {
		c.Dir = "ascending"
	} else if is {
		c.Dir = "descending"
	}
	c.Sort = v.here(func(q url.Values) {
		q.Del("cursor")
		q.Set("sort", by)
		if q.Set("order", "asc"); is && up || !is && by != "email" {
			q.Set("order", "desc")
		}
	})
	return c
}

// bulk returns the actions on selected users.
func (v *visit) bulk() *selection {
	s := &selection{To: v.path("/users/bulk")}
	for _, a := range []struct{ value, text, asks string }{
		{"ban", "Ban", "POST /users/{id}/ban"}, {"unban", "Lift the ban", "POST /users/{id}/unban"},
		{"revoke_sessions", "Sign out everywhere", "DELETE /users/{id}/sessions"},
		{"add_role", "Add a role", "POST /users/{id}/roles/{role}"}, {"remove_role", "Remove a role", "DELETE /users/{id}/roles/{role}"},
		{"send", "Send a message", "POST /users/{id}/send"},
		{"delete", "Delete", "POST /users/{id}/delete"}, {"anonymize", "Anonymise", "POST /users/{id}/anonymize"},
	} {
		if v.may(a.asks) {
			s.Actions = append(s.Actions, option{Value: a.value, Text: v.t(a.text)})
		}
	}
	if len(s.Actions) == 0 {
		return nil
	}
	return s
}

func exportUsers(v *visit) error {
	var p admin.ExportUsersParams
	if err := v.fill(v.filtered(userFilters...), &p); err != nil {
		return err
	}
	p.Format = admin.FormatCSV
	return v.download("users.csv", csvMedia, func(w io.Writer) error { return v.d.adm.ExportUsers(v.ctx, v.actor, p, w) })
}

func userActions() []action {
	toUsers := func(v *visit) string { return v.path("/users") }
	return []action{
		{
			at: "/users/new", boxes: []string{"roles"}, operation: "POST /users", title: "Create a user", submit: "Create", done: "The account was created.", back: toUsers,
			fields: func(v *visit) ([]field, error) {
				roles, err := v.roles(nil)
				return []field{
					{Name: "email", Label: v.t("Email address"), Type: "email"},
					{Name: "phone", Label: v.t("Phone number"), Type: "tel", Hint: v.t("With the country code, such as +4915112345678")},
					{Name: "full_name", Label: v.t("Name"), Type: "text"},
					roles, v.locales(),
					{Name: "send", Label: v.t("Send"), Type: "select", Options: v.choices("invite", "An invitation to choose a password", "verify", "A link that verifies the address", "", "Nothing")},
					{Name: "notes", Label: v.t("Notes"), Type: "textarea", Hint: v.t("For operators; the user never sees them.")},
				}, err
			},
			do: func(v *visit) (any, error) {
				return v.d.adm.CreateUser(v.ctx, v.actor, admin.CreateUserParams{Email: v.formValue("email"), Phone: v.formValue("phone"), FullName: v.formValue("full_name"), Roles: v.formValues("roles"), Send: v.formValue("send"), Locale: v.formValue("locale"), Notes: v.formValue("notes")})
			},
		},
		{
			at: "/users/bulk", operation: "POST /users/bulk", title: "Apply to several users", text: "The first step is a preview: nothing changes before you have seen the effect.", submit: "Continue", done: "Done.", back: toUsers,
			fields: bulkFields, do: doBulk, show: bulkResults, noCurl: true,
		},
		{
			at: "/users/import", operation: "POST /users/import", title: "Import users", submit: "Import", done: "The import has started.", back: toUsers, noDialog: true,
			text: "One JSON object per line, with the fields of POST /users and an optional password_hash.",
			fields: func(v *visit) ([]field, error) {
				return []field{
					{Name: "rows", Label: v.t("Rows"), Type: "textarea", Required: true},
					{Name: "on_conflict", Label: v.t("If there is already an account"), Type: "select", Options: v.choices("skip", "Skip the row", "error", "Let the row fail", "update", "Change the account")},
				}, nil
			},
			noCurl: true,
			do: func(v *visit) (any, error) {
				id, err := v.d.adm.ImportUsers(v.ctx, v.actor, admin.ImportUsersParams{OnConflict: v.formValue("on_conflict")}, strings.NewReader(v.form.Get("rows")))
				return map[string]string{"job_id": id}, err
			},
			show: func(v *visit, o object) (*page, error) {
				v.redirect(v.path("/jobs/" + url.PathEscape(o.str("job_id"))))
				return nil, nil
			},
		},
	}
}

// bulkDetails are the fields that a preview hands to the form which applies it.
var bulkDetails = []string{"reason", "role", "type"}

// bulkFields returns the selected users and the fields of the action.
func bulkFields(v *visit) ([]field, error) {
	from := v.r.URL.Query()
	if len(v.form["ids"]) > 0 {
		from = v.form
	}
	do := from.Get("action")
	may := v.bulk()
	if may == nil {
		return nil, v.checkOperation("POST /users/{id}/ban")
	}
	f := []field{
		{Name: "action", Label: v.t("What"), Type: "select", Options: may.Actions, Required: true},
		{Name: "ids", Label: v.t("Ids"), Type: "textarea", Value: strings.Join(from["ids"], "\n"), Required: true},
		reasonField(v, slices.Contains([]string{"ban", "delete", "anonymize"}, do)),
	}
	f[0].Options = slices.Clone(f[0].Options)
	for i := range f[0].Options {
		f[0].Options[i].Chosen = f[0].Options[i].Value == do
	}
	if do == "" || do == "add_role" || do == "remove_role" {
		f = append(f, field{Name: "role", Label: v.t("Role"), Type: "text"})
	}
	if do == "" || do == "send" {
		f = append(f, field{Name: "type", Label: v.t("Message"), Type: "select", Options: v.choices("", "None", "verify", "Address verification", "reset", "Password reset", "magic_link", "Sign-in link", "accept", "Link to accept permissions")})
	}
	for i := range f {
		if slices.Contains(bulkDetails, f[i].Name) {
			f[i].entered(from)
		}
	}
	if len(from["ids"]) == 0 {
		f[1].Hint = v.t("No users were selected: go back and tick some, or enter their IDs, one per line.")
	}
	return append(f, field{Name: "sure", Label: v.t("Apply now (otherwise this is only a preview)"), Type: "check"}), nil
}

func doBulk(v *visit) (any, error) {
	if v.bulk() == nil {
		return nil, v.checkOperation("POST /users/{id}/ban")
	}
	return v.d.adm.Bulk(v.ctx, v.actor, admin.BulkParams{
		Action: admin.BulkAction(v.formValue("action")), UserIDs: v.formValues("ids"), DryRun: !v.isChecked("sure"),
		BulkDetails: admin.BulkDetails{Reason: v.formValue("reason"), Role: v.formValue("role"), Type: admin.LinkType(v.formValue("type"))},
	})
}

// bulkResults shows the result for each user.
func bulkResults(v *visit, o object) (*page, error) {
	p := &page{Title: v.t("Action"), Buttons: []link{{Text: v.t("To the users"), To: v.path("/users")}}}
	if o.flag("dry_run") {
		p.Title = v.t("Preview")
		again := v.here(func(q url.Values) {
			q.Set("action", v.form.Get("action"))
			q["ids"] = strings.Fields(strings.Join(v.form["ids"], " "))
			for _, name := range bulkDetails {
				q.Set(name, v.form.Get(name))
			}
		})
		p.Buttons = append(p.Buttons, link{Text: v.t("Go back and apply"), To: again})
	}
	p.Under = v.t("{done} done, {skipped} skipped, {failed} failed", "done", o.num("done"), "skipped", o.num("skipped"), "failed", o.num("failed"))
	if text := v.budgetText(o.of("budget")); text != "" {
		p.Blocks = append(p.Blocks, block{Text: text, Warn: o.of("budget").str("code") != ""})
	}
	t := &table{Name: p.Title, Columns: v.columns("User", "Result", "Why"), Empty: v.t("Nothing.")}
	names := v.names(ids(o.list("results"), "id")...)
	for _, r := range o.list("results") {
		t.Rows = append(t.Rows, row{Cells: []cell{v.userCell(r.str("id"), names[r.str("id")]), {Text: v.t(r.str("result"))}, {Text: v.t(r.str("message"))}}})
	}
	p.Blocks = append(p.Blocks, block{Table: t})
	return p, nil
}

// budgetText returns the accounts that the visitor's hourly budget still allows, or "" if
// there is no limit.
func (v *visit) budgetText(o object) string {
	if o == nil || o.get("left") == nil {
		return ""
	}
	n := o.num("left")
	if o.get("left_recent") != nil && o.num("left_recent") == n {
		return v.t("Your hourly budget still allows {n} accounts.", "n", n)
	}
	if o.get("left_recent") == nil {
		return v.t("Your hourly budget still allows {n} accounts. After signing in again there is no limit.", "n", n)
	}
	return v.t("Your hourly budget still allows {n} accounts, and {recent} after signing in again.", "n", n, "recent", o.num("left_recent"))
}

// showJob shows the progress of an import or a bulk operation.
func showJob(v *visit) (*page, error) {
	j, err := v.shown(v.d.adm.Job(v.ctx, v.actor, v.id()))
	if err != nil {
		return nil, err
	}
	p := &page{Title: v.t("Job"), Tags: []tag{{v.t(j.str("state")), ""}}, Live: j.str("finished_at") == ""}
	p.Blocks = []block{{Figures: []figure{
		{Label: v.t("Rows"), Value: thousands(j.num("rows"))}, {Label: v.t("Done"), Value: thousands(j.num("done"))},
		{Label: v.t("Skipped"), Value: thousands(j.num("skipped"))}, {Label: v.t("Failed"), Value: thousands(j.num("failed"))},
	}}}
	if p.Live || j.num("skipped")+j.num("failed") == 0 {
		return p, nil
	}
	var refused refusedRows
	if err := v.d.adm.JobResults(v.ctx, v.actor, v.id(), &refused); err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	t := &table{Name: v.t("Rows that were not done"), Columns: v.columns("Line", "User", "Result", "Why"), Empty: v.t("Nothing.")}
	var of []string
	for _, r := range refused.rows {
		of = append(of, r.ID)
	}
	names := v.names(of...)
	for _, r := range refused.rows {
		line, why := "", r.Message
		if r.Row > 0 {
			line = thousands(r.Row)
		}
		if r.Field != "" {
			why = r.Field + ": " + why
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Text: line}, v.userCell(r.ID, names[r.ID]), {Text: v.t(r.Result)}, {Text: why}}})
	}
	p.Blocks = append(p.Blocks, block{Title: t.Name, Table: t})
	return p, nil
}

// refusedRows is a writer of results that collects the first rows that were not done.
type refusedRows struct {
	rows []refusedRow
	read int // bytes
}

type refusedRow struct {
	Row                        int64
	ID, Result, Field, Message string
}

// errEnough ends the reading of results. The page shows few of them, and a job may have a
// million rows; the API returns all.
var errEnough = errors.New("the page shows no more rows")

func (w *refusedRows) Write(b []byte) (int, error) {
	w.read += len(b)
	for rows := json.NewDecoder(bytes.NewReader(b)); ; {
		var r refusedRow
		if err := rows.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, err
		}
		if r.Result != "done" {
			w.rows = append(w.rows, r)
		}
		if len(w.rows) == 100 {
			return 0, errEnough
		}
	}
	if w.read > 4<<20 {
		return 0, errEnough
	}
	return len(b), nil
}
