package admin

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/authmount/auth/store"
)

var roleEndpoints = []endpoint{
	{opPermissions, (*Admin).handlePermissions},
	{opListRoles, (*Admin).handleRoles},
	{opRole, (*Admin).handleRole},
	{opRoleMatrix, (*Admin).handleRoleMatrix},
	{opRoleUsers, (*Admin).handleRoleUsers},
	{opCreateRole, (*Admin).handleCreateRole},
	{opUpdateRole, (*Admin).handleUpdateRole},
	{opDeleteRole, (*Admin).handleDeleteRole},
	{opSetRoles, (*Admin).handleSetRoles},
	{opGrant, (*Admin).handleGrant},
	{opWithdraw, (*Admin).handleWithdraw},
	{opCheck, (*Admin).handleCheck},
}

func (m *Admin) handlePermissions(who Actor, w http.ResponseWriter, r *http.Request) error {
	list, err := m.Permissions(r.Context(), who)
	if err != nil {
		return err
	}
	out := struct {
		Permissions []permissionView `json:"permissions"`
	}{}
	for _, p := range list {
		out.Permissions = append(out.Permissions, permissionView(p))
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

// permissionView is a permission on the wire.
type permissionView struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Privileged  bool   `json:"privileged"`
}

type roleView struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Permissions []string   `json:"permissions"`
	CreatedAt   *time.Time `json:"created_at"`
	UpdatedAt   *time.Time `json:"updated_at"`
}

func viewRole(r store.RolePermissions) roleView {
	return roleView{r.Name, r.Description, orNone(r.Permissions), orNever(r.CreatedAt), orNever(r.UpdatedAt)}
}

func (m *Admin) handleRoles(who Actor, w http.ResponseWriter, r *http.Request) error {
	t, err := m.Roles(r.Context(), who)
	if err != nil {
		return err
	}
	out := struct {
		Revision int64      `json:"revision"`
		Roles    []roleView `json:"roles"`
	}{t.Revision, []roleView{}}
	for _, role := range t.Roles {
		out.Roles = append(out.Roles, viewRole(role))
	}
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(t.Revision, 10)))
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

// writeRoleChange writes what a change of a role led to, or would.
func (m *Admin) writeRoleChange(w http.ResponseWriter, status int, c RoleChange, dry bool, err error) error {
	if err != nil {
		return err
	}
	if dry {
		status = http.StatusOK
	}
	return m.kit.WriteJSON(w, status, struct {
		Role   roleView  `json:"role"`
		Users  totalView `json:"users"`
		DryRun bool      `json:"dry_run"`
	}{viewRole(c.Role), totalView{c.Users.N, c.Users.Exact}, dry})
}

func (m *Admin) handleCreateRole(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Permissions []string `json:"permissions"`
		DryRun      bool     `json:"dry_run"`
	}
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.kit.Decode(r, &p)
	}
	if err != nil {
		return err
	}
	c, err := m.CreateRole(r.Context(), who, CreateRoleParams{Name: p.Name, Description: p.Description, Permissions: p.Permissions, Revision: rev, DryRun: p.DryRun})
	return m.writeRoleChange(w, http.StatusCreated, c, p.DryRun, err)
}

func (m *Admin) handleUpdateRole(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Description *string   `json:"description"`
		Permissions *[]string `json:"permissions"`
		DryRun      bool      `json:"dry_run"`
	}
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.kit.Decode(r, &p)
	}
	if err != nil {
		return err
	}
	c, err := m.UpdateRole(r.Context(), who, UpdateRoleParams{Name: r.PathValue("role"), Description: p.Description, Permissions: p.Permissions, Revision: rev, DryRun: p.DryRun})
	return m.writeRoleChange(w, http.StatusOK, c, p.DryRun, err)
}

func (m *Admin) handleDeleteRole(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	flag := v.flag("dry_run")
	dry := flag != nil && *flag
	rev, err := m.ifMatch(r)
	if err == nil {
		err = v.done()
	}
	if err != nil {
		return err
	}
	c, err := m.DeleteRole(r.Context(), who, DeleteRoleParams{Name: r.PathValue("role"), Revision: rev, DryRun: dry})
	return m.writeRoleChange(w, http.StatusOK, c, dry, err)
}

func (m *Admin) handleSetRoles(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Roles  []string `json:"roles"`
		Reason string   `json:"reason"`
	}
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.kit.Decode(r, &p)
	}
	if err == nil && p.Roles == nil {
		err = m.kit.Invalid("roles", "is required")
	}
	if err != nil {
		return err
	}
	u, err := m.SetRoles(r.Context(), who, SetRolesParams{UserID: r.PathValue("id"), Roles: p.Roles, Reason: p.Reason, Revision: rev})
	return m.writeUser(w, u, err)
}

func (m *Admin) handleGrant(who Actor, w http.ResponseWriter, r *http.Request) error {
	rev, err := m.ifMatch(r)
	if err != nil {
		return err
	}
	u, err := m.grant(r.Context(), who, r.PathValue("id"), r.PathValue("role"), "", rev)
	return m.writeUser(w, u, err)
}

func (m *Admin) handleWithdraw(who Actor, w http.ResponseWriter, r *http.Request) error {
	rev, err := m.ifMatch(r)
	if err != nil {
		return err
	}
	u, err := m.withdraw(r.Context(), who, r.PathValue("id"), r.PathValue("role"), "", rev)
	return m.writeUser(w, u, err)
}

func (m *Admin) handleCheck(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		UserID     string `json:"user_id"`
		Permission string `json:"permission"`
	}
	if err := m.kit.Decode(r, &p); err != nil {
		return err
	}
	c, err := m.Check(r.Context(), who, p.UserID, p.Permission)
	if err != nil {
		return err
	}
	return m.kit.WriteJSON(w, http.StatusOK, struct {
		Allowed bool     `json:"allowed"`
		Via     []string `json:"via"`
	}{c.Allowed, slices.Clip(c.Via)})
}
