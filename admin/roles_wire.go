package admin

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var roleEndpoints = []endpoint{
	op(opPermissions, listed("permissions", bare((*Admin).Permissions), func(_ *Admin, p Permission) Permission { return p })),
	op(opListRoles, func(m *Admin, ctx context.Context, who Actor, _ none) (rolesAnswer, error) {
		t, err := m.Roles(ctx, who)
		return rolesAnswer(t), err
	}),
	op(opRole, (*Admin).role),
	op(opRoleMatrix, bare((*Admin).RoleMatrix)),
	op(opRoleUsers, (*Admin).RoleUsers),
	op(opCreateRole, (*Admin).CreateRole),
	op(opUpdateRole, (*Admin).UpdateRole),
	op(opDeleteRole, (*Admin).DeleteRole),
	op(opSetRoles, (*Admin).setRoles),
	op(opGrant, func(m *Admin, ctx context.Context, who Actor, p GrantParams) (assignedUser, error) {
		return m.grant(ctx, who, p.UserID, p.Role, roleChange{revision: p.Revision, address: p.Address})
	}),
	op(opWithdraw, func(m *Admin, ctx context.Context, who Actor, p userRole) (assignedUser, error) {
		return m.withdraw(ctx, who, p.UserID, p.Role, "", p.Revision)
	}),
	op(opCheck, func(m *Admin, ctx context.Context, who Actor, p checkBody) (CheckResult, error) {
		return m.Check(ctx, who, p.UserID, p.Permission)
	}),
}

// assignedUser is an account after a change of its roles.
type assignedUser struct {
	user  auth.User
	waits bool // for the acceptance of its permissions of an operator
}

func (a assignedUser) reply(m *Admin) reply {
	body := listedUser{userView: m.view(a.user)}
	if a.waits {
		body.Waiting = viewWaiting(&Waiting{Address: cmp.Or(a.user.Email, a.user.Phone)})
	}
	return reply{revision: &a.user.Revision, body: body}
}

// userRole is a role of an account.
type userRole struct {
	UserID   string `path:"id"`
	Role     string `path:"role"`
	Revision *int64 `header:"If-Match"`
}

// checkBody are the parameters of Check.
type checkBody struct {
	UserID     string `json:"user_id" is:"id"`
	Permission string `json:"permission"`
}

type roleView struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Permissions []string   `json:"permissions"`
	Privileged  bool       `json:"privileged"`
	CreatedAt   *time.Time `json:"created_at"`
	UpdatedAt   *time.Time `json:"updated_at"`
}

func viewRole(r store.RolePermissions) roleView {
	return roleView{r.Name, r.Description, nonNil(r.Permissions), r.Privileged, orNever(r.CreatedAt), orNever(r.UpdatedAt)}
}

// rolesAnswer is the table of roles on the wire.
type rolesAnswer store.RoleTable

func (t rolesAnswer) reply(*Admin) reply {
	out := struct {
		Revision int64      `json:"revision"`
		Roles    []roleView `json:"roles"`
	}{t.Revision, []roleView{}}
	for _, role := range t.Roles {
		out.Roles = append(out.Roles, viewRole(role))
	}
	return reply{revision: &t.Revision, body: out}
}

// roleParams name a role.
type roleParams struct {
	Name string `path:"role"`
}

// roleAnswer is a role on the wire, with the revision of the table of roles.
type roleAnswer struct {
	roleView

	revision int64
}

func (r roleAnswer) reply(*Admin) reply { return reply{revision: &r.revision, body: r.roleView} }

func (m *Admin) role(ctx context.Context, who Actor, p roleParams) (roleAnswer, error) {
	r, revision, err := m.Role(ctx, who, p.Name)
	return roleAnswer{viewRole(r), revision}, err
}

func (c RoleChange) reply(*Admin) reply {
	a := reply{body: struct {
		Role   roleView  `json:"role"`
		Users  totalView `json:"users"`
		DryRun bool      `json:"dry_run"`
	}{viewRole(c.Role), totalView{c.Users.N, c.Users.Exact}, c.dry}}
	if c.dry {
		a.status = http.StatusOK
	}
	return a
}

// setRolesBody is SetRolesParams on the wire, with the list required.
type setRolesBody struct {
	UserID   string   `path:"id"`
	Roles    []string `json:"roles" required:"is required"`
	Reason   string   `json:"reason"`
	Revision *int64   `header:"If-Match"`
	Address  string   `json:"address"`
}

func (m *Admin) setRoles(ctx context.Context, who Actor, p setRolesBody) (assignedUser, error) {
	return m.changeRoles(ctx, who, opSetRoles, p.UserID, roleChange{p.Reason, p.Revision, p.Address, false}, func(auth.User) ([]string, error) { return p.Roles, nil })
}
