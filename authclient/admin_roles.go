package authclient

import (
	"context"
	"iter"
	"net/url"
	"time"
)

// Roles and permissions, from the admin side.

// RoleList is what Admin.Roles returns.
type RoleList struct {
	Revision int64  `json:"revision"`
	Roles    []Role `json:"roles"`
}

// Role is owner has no times.
type Role struct {
	Name        string     `json:"name"`
	CreatedAt   *time.Time `json:"created_at"`
	Description string     `json:"description"`
	Permissions []string   `json:"permissions"`
	UpdatedAt   *time.Time `json:"updated_at"`
}

// Roles is GET /roles: the roles. owner, which permits everything, is not among them.
// Permission: auth.roles.read.
func (a *Admin) Roles(ctx context.Context, opts ...CallOption) (*RoleList, error) {
	return run[RoleList](ctx, a, a.prepared("GET", "/roles", nil, opts))
}

// Role is GET /roles/{role}: a role. owner, too. ETag is the revision of the table of
// roles. Permission: auth.roles.read.
func (a *Admin) Role(ctx context.Context, role string, opts ...CallOption) (*Role, error) {
	return run[Role](ctx, a, a.prepared("GET", "/roles/"+segment(role), nil, opts))
}

// RoleMatrix is what Admin.RoleMatrix returns.
type RoleMatrix struct {
	Permissions []RoleMatrixPermission `json:"permissions"`
	Revision    int64                  `json:"revision"`
	Roles       []string               `json:"roles"` // owner, and the others by name.
}

// RoleMatrixPermission is a part of what the admin side answers.
type RoleMatrixPermission struct {
	Name        string                       `json:"name"`
	Description string                       `json:"description"`
	HeldBy      []RoleMatrixPermissionHeldBy `json:"held_by"`
	Privileged  bool                         `json:"privileged"`
}

// RoleMatrixPermissionHeldBy is a part of what the admin side answers.
type RoleMatrixPermissionHeldBy struct {
	Role string `json:"role"`
	Via  string `json:"via"` // The permission itself, or the pattern that covers it.
}

// RoleMatrix is GET /roles/matrix: which roles hold which permission. Every permission that
// is declared, and each role that holds it, by its name or a pattern. Permission:
// auth.roles.read.
func (a *Admin) RoleMatrix(ctx context.Context, opts ...CallOption) (*RoleMatrix, error) {
	return run[RoleMatrix](ctx, a, a.prepared("GET", "/roles/matrix", nil, opts))
}

// RoleUserQuery picks what Admin.RoleUsers returns; what is empty picks nothing out.
type RoleUserQuery struct {
	Cursor string `query:"cursor"`
	Limit  int    `query:"limit"`
}

// RoleUser is one row of Admin.RoleUsers.
type RoleUser struct {
	ID     string `json:"id"`
	Banned bool   `json:"banned"`
	Label  string `json:"label"`
}

// RoleUserPage is one page of Admin.RoleUsers.
type RoleUserPage struct {
	NextCursor *string    `json:"next_cursor"` // what to ask for next; nil: that was all
	Users      []RoleUser `json:"users"`
}

// RoleUsers is GET /roles/{role}/users: who has a role. Who they are, and no more: GET
// /admin/users?role= shows accounts. Permission: auth.roles.read. It follows cursors to the
// end; RoleUserPage reads one page.
func (a *Admin) RoleUsers(ctx context.Context, role string, q RoleUserQuery, opts ...CallOption) iter.Seq2[RoleUser, error] {
	return all(ctx, q, func(q *RoleUserQuery) *string { return &q.Cursor }, func(ctx context.Context, q RoleUserQuery) ([]RoleUser, *string, error) {
		p, err := a.RoleUserPage(ctx, role, q, opts...)
		if err != nil {
			return nil, nil, err
		}
		return p.Users, p.NextCursor, nil
	})
}

// RoleUserPage is one page of RoleUsers.
func (a *Admin) RoleUserPage(ctx context.Context, role string, q RoleUserQuery, opts ...CallOption) (*RoleUserPage, error) {
	k := a.prepared("GET", "/roles/"+segment(role)+"/users", nil, opts)
	k.query = queryOf(q)
	return run[RoleUserPage](ctx, a, k)
}

// Permission is one row of Admin.Permissions.
type Permission struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Privileged  bool   `json:"privileged"`
}

// Permissions is GET /permissions: the permissions that are declared. Permission:
// auth.roles.read.
func (a *Admin) Permissions(ctx context.Context, opts ...CallOption) ([]Permission, error) {
	v, err := run[struct {
		Rows []Permission `json:"permissions"`
	}](ctx, a, a.prepared("GET", "/permissions", nil, opts))
	if err != nil {
		return nil, err
	}
	return v.Rows, nil
}

// CreateRoleParams are of Admin.CreateRole.
type CreateRoleParams struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	DryRun      bool     `json:"dry_run,omitempty"`
	Permissions []string `json:"permissions,omitempty"`
}

// RoleChange is a part of what the admin side answers.
type RoleChange struct {
	DryRun bool  `json:"dry_run"`
	Role   Role  `json:"role"`
	Users  Total `json:"users"`
}

// Total is a part of what the admin side answers.
type Total struct {
	Count int  `json:"count"`
	Exact bool `json:"exact"` // Else it is about so many: above 10,000.
}

// CreateRole is POST /roles: make a role. Only with permissions that one has; if there is
// one of the name: 422 validation_failed. With dry_run it is judged, and nothing is changed
// (200). Needs a proof of the last 15 minutes. Permission: auth.roles.write.
func (a *Admin) CreateRole(ctx context.Context, p CreateRoleParams, opts ...CallOption) (*RoleChange, error) {
	return run[RoleChange](ctx, a, a.prepared("POST", "/roles", p, opts))
}

// UpdateRoleChanges are of Admin.UpdateRole.
type UpdateRoleChanges struct {
	Description Change[string]   `json:"description,omitzero"`
	DryRun      Change[bool]     `json:"dry_run,omitzero"`
	Permissions Change[[]string] `json:"permissions,omitzero"`
}

// UpdateRole is PATCH /roles/{role}: change a role. What is absent stays. Only with
// permissions that one has. With dry_run it is judged, and nothing is changed. Needs a
// proof of the last 15 minutes. Permission: auth.roles.write.
func (a *Admin) UpdateRole(ctx context.Context, role string, p UpdateRoleChanges, opts ...CallOption) (*RoleChange, error) {
	return run[RoleChange](ctx, a, a.prepared("PATCH", "/roles/"+segment(role), p, opts))
}

// DeleteRole is DELETE /roles/{role}: delete a role that nobody has. With dry_run=true it
// is judged, and nothing is changed. Needs a proof of the last 15 minutes. Permission:
// auth.roles.write.
func (a *Admin) DeleteRole(ctx context.Context, role string, dryRun bool, opts ...CallOption) (*RoleChange, error) {
	k := a.prepared("DELETE", "/roles/"+segment(role), nil, opts)
	if dryRun {
		k.query = url.Values{"dry_run": {"true"}}
	}
	return run[RoleChange](ctx, a, k)
}

// SetRolesParams are of Admin.SetRoles.
type SetRolesParams struct {
	Reason string   `json:"reason,omitempty"`
	Roles  []string `json:"roles"`
}

// SetRoles is PUT /users/{id}/roles: say which roles somebody has. Only roles whose
// permissions one has. Needs a proof of the last 15 minutes. Permission: auth.roles.assign.
func (a *Admin) SetRoles(ctx context.Context, userID string, p SetRolesParams, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("PUT", "/users/"+segment(userID)+"/roles", p, opts))
}

// AddRole is POST /users/{id}/roles/{role}: give somebody a role. As PUT
// /admin/users/{id}/roles. Permission: auth.roles.assign.
func (a *Admin) AddRole(ctx context.Context, userID, role string, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("POST", "/users/"+segment(userID)+"/roles/"+segment(role), nil, opts))
}

// RemoveRole is DELETE /users/{id}/roles/{role}: take a role from somebody. As PUT
// /admin/users/{id}/roles. Permission: auth.roles.assign.
func (a *Admin) RemoveRole(ctx context.Context, userID, role string, opts ...CallOption) (*AdminUser, error) {
	return run[AdminUser](ctx, a, a.prepared("DELETE", "/users/"+segment(userID)+"/roles/"+segment(role), nil, opts))
}

// CheckParams are of Admin.Check.
type CheckParams struct {
	Permission string `json:"permission"`
	UserID     string `json:"user_id"`
}

// CheckResult is what Admin.Check returns.
type CheckResult struct {
	Allowed bool     `json:"allowed"`
	Via     []string `json:"via"`
}

// Check is POST /check: may somebody do something. By the roles as they are now.
// Permission: auth.roles.read.
func (a *Admin) Check(ctx context.Context, p CheckParams, opts ...CallOption) (*CheckResult, error) {
	return run[CheckResult](ctx, a, a.prepared("POST", "/check", p, opts))
}
