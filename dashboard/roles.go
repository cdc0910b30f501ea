package dashboard

import (
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/authmount/auth/admin"
)

// showRoles shows the matrix of roles and permissions.
func showRoles(v *visit) (*page, error) {
	o, err := v.shown(v.d.adm.RoleMatrix(v.ctx, v.actor))
	if err != nil {
		return nil, err
	}
	p := &page{Title: v.t("Roles and permissions"), Buttons: []link{v.to("New role", "POST /roles", "/roles/new", false)}}
	p.Filters = v.filters(field{Name: "q", Label: "Search", Type: "search", Hint: v.t("Part of a role's name")})
	list := &table{Name: v.t("Roles"), Columns: v.columns("Role", ""), Empty: v.t("There is no role with this name.")}
	t := &table{Name: v.t("Permissions by role"), Columns: []column{{Text: v.t("Permission")}}, Empty: v.t("No permission is declared."), Matrix: true}
	q := v.r.URL.Query()
	roles := slices.DeleteFunc(o.texts("roles"), func(name string) bool { return !strings.Contains(name, q.Get("q")) })
	rest := roles
	if after := q.Get("after"); after != "" {
		rest = rest[min(len(rest), slices.Index(rest, after)+1):]
	}
	if len(rest) > rolesAtOnce {
		rest = rest[:rolesAtOnce]
		list.Next = v.here(func(q url.Values) { q.Set("after", rest[len(rest)-1]) })
	}
	for _, name := range rest {
		list.Rows = append(list.Rows, row{Cells: []cell{{Text: name, To: v.path("/roles/" + url.PathEscape(name))}, {Links: []link{{Text: v.t("Users"), To: v.path("/users") + "?" + url.Values{"role": {name}}.Encode()}}}}})
	}
	shown := roles
	if len(shown) > maxMatrix { // a larger matrix is unreadable; every role has its own page
		shown = shown[:maxMatrix]
		p.Under = v.t("The first {n} roles of {all} are in the matrix; all are in the list below it.", "n", maxMatrix, "all", thousands(int64(len(roles))))
	}
	for _, name := range shown {
		t.Columns = append(t.Columns, column{Text: name})
	}
	permissions, via := o.list("permissions"), map[string]string{}
	t.Rows = make([]row, 0, len(permissions))
	for _, r := range permissions {
		clear(via)
		for _, h := range r.list("held_by") {
			via[h.str("role")] = h.str("via")
		}
		permission := r.str("name")
		head := cell{Text: permission, Code: true}
		if r.flag("privileged") {
			head.Tags = []tag{{v.t("Privileged"), "warn"}}
		}
		cells := append(make([]cell, 0, 1+len(shown)), head)
		for _, name := range shown {
			switch how := via[name]; how {
			case "":
				cells = append(cells, cell{Text: "–"})
			case permission:
				cells = append(cells, cell{Text: "✓"})
			default:
				cells = append(cells, cell{Text: "✓ " + how})
			}
		}
		t.Rows = append(t.Rows, row{Cells: cells})
	}
	p.Blocks = []block{{Table: t}, {Title: v.t("Roles"), Table: list}}
	return p, nil
}

// maxMatrix limits the roles in the matrix.
const maxMatrix = 25

// rolesAtOnce limits the roles that a page lists and that a form shows boxes for.
const rolesAtOnce = 100

// showRole shows a role, its permissions and its holders.
func showRole(v *visit) (*page, error) {
	name := v.r.PathValue("role")
	at := "/roles/" + url.PathEscape(name)
	r, err := v.role()
	if err != nil {
		return nil, err
	}
	of := admin.RoleUsersParams{Name: name}
	if err := v.fill(v.query(), &of); err != nil {
		return nil, err
	}
	users, err := v.shown(v.d.adm.RoleUsers(v.ctx, v.actor, of))
	if err != nil {
		return nil, err
	}
	p := &page{Title: name, Under: r.str("description")}
	if r.flag("privileged") {
		p.Tags = []tag{{v.t("Privileged"), "warn"}}
	}
	if name != "owner" {
		p.Buttons = []link{v.to("Change", "PATCH /roles/{role}", at+"/edit", false), v.to("Delete", "DELETE /roles/{role}", at+"/delete", true)}
	}
	t := &table{Name: v.t("Users"), Columns: v.columns("User", ""), Empty: v.t("Nobody has it."), Next: v.next(users)}
	for _, u := range users.list("users") {
		var tags []tag
		if u.flag("banned") {
			tags = []tag{{v.t("Banned"), "bad"}}
		}
		t.Rows = append(t.Rows, row{Cells: []cell{v.userCell(u.str("id"), u.str("label")), {Tags: tags}}})
	}
	p.Blocks = []block{{Title: v.t("Permissions"), Facts: []fact{{Name: v.t("Permissions"), Cells: []cell{{Tags: words(r.texts("permissions"))}}}}}, {Title: v.t("Users"), Table: t}}
	return p, nil
}

func roleActions() []action {
	toRole := func(v *visit) string { return v.path("/roles/" + url.PathEscape(v.r.PathValue("role"))) }
	return []action{
		{
			at: "/roles/new", boxes: []string{"permissions"}, operation: "POST /roles", title: "New role", submit: "Create", noDialog: true, done: "The role was created.",
			back: func(v *visit) string { return v.path("/roles") },
			fields: func(v *visit) ([]field, error) {
				permissions, err := v.permissions(nil)
				return []field{
					{Name: "name", Label: v.t("Name"), Type: "text", Required: true, Hint: v.t("Lower-case letters, digits, - and _")},
					{Name: "description", Label: v.t("Description"), Type: "text"}, permissions, v.others(nil), v.privilegedField(false),
				}, err
			},
			do: func(v *visit) (any, error) {
				p := admin.CreateRoleParams{Name: v.formValue("name"), Description: v.formValue("description"), Permissions: v.postedPermissions()}
				if yes := v.isChecked("privileged"); yes { // a name may be privileged already
					p.Privileged = &yes
				}
				return v.d.adm.CreateRole(v.ctx, v.actor, p)
			},
		},
		{
			at: "/roles/{role}/edit", boxes: []string{"permissions"}, operation: "PATCH /roles/{role}", title: "Change the role", submit: "Save", noDialog: true, back: toRole,
			text: "The first step is a preview: it shows how many users are affected.",
			fields: func(v *visit) ([]field, error) {
				r, err := v.role()
				if err != nil {
					return nil, err
				}
				permissions, err := v.permissions(r.texts("permissions"))
				return []field{
					{Name: "description", Label: v.t("Description"), Type: "text", Value: r.str("description")}, permissions, v.others(r.texts("permissions")), v.privilegedField(r.flag("privileged")),
					{Name: "sure", Label: v.t("Save now (otherwise this is only a preview)"), Type: "check"}, revisionField(r),
				}, err
			},
			do: func(v *visit) (any, error) {
				description, permissions, privileged := v.formValue("description"), v.postedPermissions(), v.isChecked("privileged")
				return v.d.adm.UpdateRole(v.ctx, v.actor, admin.UpdateRoleParams{Name: v.r.PathValue("role"), Description: &description, Permissions: &permissions, Privileged: &privileged, Revision: v.revision(), DryRun: !v.isChecked("sure")})
			},
			show: func(v *visit, o object) (*page, error) {
				if !o.flag("dry_run") {
					v.setNotice(v.t("The role was changed. It takes effect in every session within a second."))
					v.redirect(toRole(v))
					return nil, nil
				}
				p, err := v.actionPage(nil)
				if err == nil {
					p.Blocks[0].Text = v.t("This affects {n} users. Tick the box to save it.", "n", thousands(o.of("users").num("count")))
					p.Blocks[0].Warn = true
				}
				return p, err
			},
		},
		{at: "/roles/{role}/delete", operation: "DELETE /roles/{role}", title: "Delete the role", text: "Only a role that nobody has can be deleted.", submit: "Delete", danger: true, done: "The role was deleted.",
			back: func(v *visit) string { return v.path("/roles") },
			fields: func(v *visit) ([]field, error) {
				r, err := v.role()
				return []field{revisionField(r)}, err
			},
			do: func(v *visit) (any, error) {
				return v.d.adm.DeleteRole(v.ctx, v.actor, admin.DeleteRoleParams{Name: v.r.PathValue("role"), Revision: v.revision()})
			},
			confirmation: func(v *visit) (string, error) { return v.r.PathValue("role"), nil }},
	}
}

// permissions returns boxes for all declared permissions. The ones that the visitor cannot
// grant are marked.
func (v *visit) permissions(held []string) (field, error) {
	all, err := v.d.adm.Permissions(v.ctx, v.actor)
	f := field{Name: "permissions", Label: v.t("Permissions"), Type: "checks"}
	has := map[string]bool{}
	for _, name := range held {
		has[name] = true
	}
	for _, p := range all {
		description := p.Description
		if !v.me.Holds(p.Name) {
			description = v.t("You do not have it and so cannot give it.")
		}
		f.Options = append(f.Options, option{Value: p.Name, Text: p.Name, Description: description, Chosen: has[p.Name]})
	}
	return f, err
}

// others returns the field for patterns that a role holds, such as "notes.*".
func (v *visit) others(held []string) field {
	var patterns []string
	for _, p := range held {
		if strings.Contains(p, "*") {
			patterns = append(patterns, p)
		}
	}
	return field{Name: "patterns", Label: v.t("Patterns"), Type: "lines", Value: strings.Join(patterns, " "), Hint: v.t("Such as notes.*, separated by spaces")}
}

// postedPermissions returns the posted permissions of a role.
func (v *visit) postedPermissions() []string {
	return slices.Concat(v.formValues("permissions"), v.formValues("patterns"))
}

// role returns the page's role, with the revision of all roles.
func (v *visit) role() (object, error) {
	r, revision, err := v.d.adm.Role(v.ctx, v.actor, v.r.PathValue("role"))
	if err != nil {
		return nil, err
	}
	return &record{value: reflect.ValueOf(map[string]any{"name": r.Name, "description": r.Description, "permissions": r.Permissions, "privileged": r.Privileged}), revision: strconv.FormatInt(revision, 10)}, nil
}

// privilegedField is the mark of a role's name. Only "*" changes it.
func (v *visit) privilegedField(checked bool) field {
	return field{Name: "privileged", Label: v.t("The name is privileged"), Type: "check", Checked: checked, Hint: v.t("For names that your code checks. Users who get the role have to accept it, and only its holders may give it")}
}
