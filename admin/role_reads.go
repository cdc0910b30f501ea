package admin

import (
	"context"
	"slices"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var (
	opRole       = operation{pattern: "GET /roles/{role}", permission: PermRolesRead, fails: []auth.Code{auth.CodeRoleNotFound}}
	opRoleMatrix = operation{pattern: "GET /roles/" + roleMatrix, permission: PermRolesRead}
	opRoleUsers  = operation{pattern: "GET /roles/{role}/users", permission: PermRolesRead, fails: []auth.Code{auth.CodeRoleNotFound, auth.CodeQueryTooBroad}}
)

// roleMatrix is no name of a role: it has a path of its own.
const roleMatrix = "matrix"

// Role is a role, and the revision of the table of roles. auth.RoleOwner, which is in
// no table, holds "*" and has no times. Errors: CodeRoleNotFound.
func (m *Admin) Role(ctx context.Context, who Actor, name string) (store.RolePermissions, int64, error) {
	a, err := m.reader(ctx, who, opRole)
	if err != nil {
		return store.RolePermissions{}, 0, err
	}
	r, err := m.roleOf(a.roles, name)
	return r, a.roles.Revision, err
}

// roleOf is a role that there is. Errors: CodeRoleNotFound.
func (m *Admin) roleOf(t store.RoleTable, name string) (store.RolePermissions, error) {
	if name == auth.RoleOwner {
		return store.RolePermissions{Name: name, Description: "May do everything.", Permissions: []string{permAll}}, nil
	}
	r := find(t, name)
	if r.Name == "" {
		return r, m.fail(auth.CodeRoleNotFound, nil)
	}
	return r, nil
}

// RoleMatrix says which roles hold which permission.
type RoleMatrix struct {
	Revision int64     `json:"revision"`    // of the table of roles
	Roles    []string  `json:"roles"`       // auth.RoleOwner, and the others by name
	Rows     []HeldRow `json:"permissions"` // every permission that is declared, by name
}

// HeldRow is a permission and who holds it.
type HeldRow struct {
	Permission

	HeldBy []Holding `json:"held_by"` // in the order of RoleMatrix.Roles
}

// Holding is how a role holds a permission: by its very name, or by a pattern.
type Holding struct {
	Role string `json:"role"`
	Via  string `json:"via"` // "notes.write", "notes.*", "*"
}

func (x RoleMatrix) reply(*Admin) reply { return reply{revision: &x.Revision, body: x} }

// RoleMatrix tells which roles hold which permission, for every one that is declared.
func (m *Admin) RoleMatrix(ctx context.Context, who Actor) (RoleMatrix, error) {
	a, err := m.reader(ctx, who, opRoleMatrix)
	if err != nil {
		return RoleMatrix{}, err
	}
	x := RoleMatrix{Revision: a.roles.Revision, Roles: []string{auth.RoleOwner}}
	held := [][]string{permissionsIn(a.roles, x.Roles)}
	for i, r := range a.roles.Roles { // each looked up in its own row alone: there may be thousands
		x.Roles = append(x.Roles, r.Name)
		held = append(held, permissionsIn(store.RoleTable{Roles: a.roles.Roles[i : i+1]}, []string{r.Name}))
	}
	for _, p := range m.permissions {
		row := HeldRow{Permission: p, HeldBy: []Holding{}}
		for i, name := range x.Roles {
			if via := heldBy(held[i], p.Name); via != "" {
				row.HeldBy = append(row.HeldBy, Holding{name, via})
			}
		}
		x.Rows = append(x.Rows, row)
	}
	return x, nil
}

// heldBy is which of the permissions held grants another: itself, if it is there.
func heldBy(held []string, wanted string) string {
	if slices.Contains(held, wanted) {
		return wanted
	}
	i := slices.IndexFunc(held, func(p string) bool { return grants([]string{p}, wanted) })
	if i < 0 {
		return ""
	}
	return held[i]
}

// roleUserCursor is a place in a list of who has a role.
type roleUserCursor struct {
	store.UserCursor

	Role string `json:"role"`
}

// RoleUsersParams pick who has a role.
type RoleUsersParams struct {
	Name   string `path:"role"`
	Limit  int    `query:"limit"`  // 0: 50; at most 200
	Cursor string `query:"cursor"` // RoleUsersPage.NextCursor of the page before
}

// RoleUser is somebody who has a role: no more than who they are, as what else is known
// of accounts needs a permission of its own (ListUsers).
type RoleUser struct {
	ID     string `json:"id"`
	Label  string `json:"label"` // what people call them: the email address, or the phone number, or the id
	Banned bool   `json:"banned"`
}

// RoleUsersPage is a page of those who have a role.
type RoleUsersPage struct {
	Users      []RoleUser `json:"users"`       // the newest accounts first
	NextCursor *string    `json:"next_cursor"` // of the page after; nil: this was the last
}

// RoleUsers lists who has a role. Errors: CodeRoleNotFound, CodeValidationFailed.
func (m *Admin) RoleUsers(ctx context.Context, who Actor, p RoleUsersParams) (RoleUsersPage, error) {
	at, err := readCursor[roleUserCursor](m, p.Cursor)
	if err != nil {
		return RoleUsersPage{}, err
	}
	q := store.UserQuery{Role: p.Name, Desc: true, Limit: pageSize(p.Limit)}
	if at != nil {
		if at.Role != p.Name {
			return RoleUsersPage{}, m.kit.Invalid("cursor", "is one of another list")
		}
		q.After = &at.UserCursor
	}
	a, err := m.reader(ctx, who, opRoleUsers)
	if err != nil {
		return RoleUsersPage{}, err
	}
	if _, err := m.roleOf(a.roles, p.Name); err != nil {
		return RoleUsersPage{}, err
	}
	list, err := m.listUsers(ctx, userSearch{UserQuery: q})
	if err != nil {
		return RoleUsersPage{}, err
	}
	page := RoleUsersPage{Users: []RoleUser{}}
	for _, u := range list.Users {
		page.Users = append(page.Users, RoleUser{u.ID, labelOf(u), u.Banned(m.kit.Now())})
	}
	if list.next != nil {
		page.NextCursor = cursorOf(&roleUserCursor{*list.next.After, p.Name})
	}
	return page, nil
}
