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
	Revision int64     // of the table of roles
	Roles    []string  // auth.RoleOwner, and the others by name
	Rows     []HeldRow // every permission that is declared, by name
}

// HeldRow is a permission and who holds it.
type HeldRow struct {
	Permission

	HeldBy []Holding // in the order of RoleMatrix.Roles
}

// Holding is how a role holds a permission: by its very name, or by a pattern.
type Holding struct {
	Role string
	Via  string // "notes.write", "notes.*", "*"
}

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

// RoleUsersParams pick who has a role.
type RoleUsersParams struct {
	Name  string
	After *store.UserCursor // for the next page
	Limit int               // 0: 50; at most 200
}

// RoleUser is somebody who has a role: no more than who they are, as what else is known
// of accounts needs a permission of its own (ListUsers).
type RoleUser struct {
	ID     string
	Label  string // what people call them: the address, or the number, the name or the id
	Banned bool
}

// RoleUsersPage is a page of those who have a role.
type RoleUsersPage struct {
	Users []RoleUser        // the newest accounts first
	Next  *store.UserCursor // nil: this was the last
}

// RoleUsers lists who has a role. Errors: CodeRoleNotFound, CodeValidationFailed.
func (m *Admin) RoleUsers(ctx context.Context, who Actor, p RoleUsersParams) (RoleUsersPage, error) {
	a, err := m.reader(ctx, who, opRoleUsers)
	if err != nil {
		return RoleUsersPage{}, err
	}
	if _, err := m.roleOf(a.roles, p.Name); err != nil {
		return RoleUsersPage{}, err
	}
	list, err := m.listUsers(ctx, ListUsersParams{UserQuery: store.UserQuery{Role: p.Name, Desc: true, After: p.After, Limit: pageSize(p.Limit)}})
	if err != nil {
		return RoleUsersPage{}, err
	}
	page := RoleUsersPage{Users: []RoleUser{}}
	for _, u := range list.Users {
		page.Users = append(page.Users, RoleUser{u.ID, labelOf(u), u.Banned(m.kit.Now())})
	}
	if list.Next != nil {
		page.Next = list.Next.After
	}
	return page, nil
}
