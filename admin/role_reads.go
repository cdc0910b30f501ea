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

// roleMatrix cannot be the name of a role, because it has its own path.
const roleMatrix = "matrix"

// Role returns a role, and the revision of the table of roles. auth.RoleOwner, which is
// in no table, holds "*" and has no times. Errors: CodeRoleNotFound.
func (m *Admin) Role(ctx context.Context, who Actor, name string) (store.RolePermissions, int64, error) {
	a, err := m.reader(ctx, who, opRole)
	if err != nil {
		return store.RolePermissions{}, 0, err
	}
	r, err := m.roleOf(a.roles, name)
	return r, a.roles.Revision, err
}

// roleOf returns an existing role. Errors: CodeRoleNotFound.
func (m *Admin) roleOf(t store.RoleTable, name string) (store.RolePermissions, error) {
	if name == auth.RoleOwner {
		return store.RolePermissions{Name: name, Description: "May do everything.", Permissions: []string{permAll}, Privileged: true}, nil
	}
	r := find(t, name)
	if r.Name == "" {
		return r, noRole(name)
	}
	r.Privileged = m.isPrivileged(t, name)
	return r, nil
}

// RoleMatrix lists the roles that hold each permission.
type RoleMatrix struct {
	Revision int64     `json:"revision"`    // of the table of roles
	Roles    []string  `json:"roles"`       // auth.RoleOwner, and the others by name
	Rows     []HeldRow `json:"permissions"` // every declared permission, by name
}

// HeldRow is a permission with the roles that hold it.
type HeldRow struct {
	Permission

	HeldBy []Holding `json:"held_by"` // in the order of RoleMatrix.Roles
}

// Holding is a role that holds a permission, by its name or by a pattern.
type Holding struct {
	Role string `json:"role"`
	Via  string `json:"via"` // "notes.write", "notes.*", "*"
}

func (x RoleMatrix) reply(*Admin) reply { return reply{revision: &x.Revision, body: x} }

// RoleMatrix returns the roles that hold each declared permission.
func (m *Admin) RoleMatrix(ctx context.Context, who Actor) (RoleMatrix, error) {
	a, err := m.reader(ctx, who, opRoleMatrix)
	if err != nil {
		return RoleMatrix{}, err
	}
	x := RoleMatrix{Revision: a.roles.Revision, Roles: []string{auth.RoleOwner}}
	held := [][]string{permissionsIn(a.roles, x.Roles)}
	for i, r := range a.roles.Roles { // each looked up in its own row only, because there may be thousands
		x.Roles = append(x.Roles, r.Name)
		held = append(held, permissionsIn(store.RoleTable{Roles: a.roles.Roles[i : i+1]}, []string{r.Name}))
	}
	for _, p := range m.permissions {
		row := HeldRow{Permission: p, HeldBy: []Holding{}}
		for i, name := range x.Roles {
			if via := grantingPermission(held[i], p.Name); via != "" {
				row.HeldBy = append(row.HeldBy, Holding{name, via})
			}
		}
		x.Rows = append(x.Rows, row)
	}
	return x, nil
}

// grantingPermission returns the permission held that grants another: the same one, if present.
func grantingPermission(held []string, wanted string) string {
	if slices.Contains(held, wanted) {
		return wanted
	}
	i := slices.IndexFunc(held, func(p string) bool { return grants([]string{p}, wanted) })
	if i < 0 {
		return ""
	}
	return held[i]
}

// roleUserCursor is a position in a list of accounts with a role.
type roleUserCursor struct {
	store.UserCursor

	Role string `json:"role"`
}

// RoleUsersParams pick accounts with a role.
type RoleUsersParams struct {
	Name   string `path:"role"`
	Limit  int    `query:"limit"`  // 0: 50; at most 200
	Cursor string `query:"cursor"` // RoleUsersPage.NextCursor of the page before
}

// RoleUser is an account with a role. It only identifies the account, because other data
// requires a permission of its own (ListUsers).
type RoleUser struct {
	ID     string `json:"id"`
	Label  string `json:"label"` // for people: the email address, the phone number or the id
	Banned bool   `json:"banned"`
}

// RoleUsersPage is a page of accounts with a role.
type RoleUsersPage struct {
	Users      []RoleUser `json:"users"`       // the newest accounts first
	NextCursor *string    `json:"next_cursor"` // of the page after; nil: this was the last
}

// RoleUsers lists the accounts with a role. Errors: CodeRoleNotFound,
// CodeValidationFailed.
func (m *Admin) RoleUsers(ctx context.Context, who Actor, p RoleUsersParams) (RoleUsersPage, error) {
	at, err := readCursor[roleUserCursor](m, p.Cursor)
	if err != nil {
		return RoleUsersPage{}, err
	}
	q := store.UserQuery{Role: p.Name, Desc: true, Limit: pageSize(p.Limit)}
	if at != nil {
		if at.Role != p.Name {
			return RoleUsersPage{}, m.kit.Invalid("cursor", "belongs to another list")
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
