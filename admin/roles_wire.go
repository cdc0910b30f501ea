package admin

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/authmount/auth"
)

var roleEndpoints = []endpoint{
	{opPermissions, (*Admin).handlePermissions},
	{opListRoles, (*Admin).handleRoles},
	{opPutRole, (*Admin).handlePutRole},
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
	type view struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Privileged  bool   `json:"privileged"`
	}
	out := struct {
		Permissions []view `json:"permissions"`
	}{}
	for _, p := range list {
		out.Permissions = append(out.Permissions, view(p))
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

type roleView struct {
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Permissions []string  `json:"permissions"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

func viewRole(r auth.RolePermissions) roleView {
	r.Permissions = orNone(r.Permissions)
	return roleView(r)
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

func (m *Admin) handlePutRole(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Description string   `json:"description"`
		Permissions []string `json:"permissions"`
	}
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.kit.Decode(r, &p)
	}
	if err != nil {
		return err
	}
	role, err := m.PutRole(r.Context(), who, PutRoleParams{Name: r.PathValue("role"), Description: p.Description, Permissions: p.Permissions, Revision: rev})
	if err != nil {
		return err
	}
	return m.kit.WriteJSON(w, http.StatusOK, viewRole(role))
}

func (m *Admin) handleDeleteRole(who Actor, w http.ResponseWriter, r *http.Request) error {
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.DeleteRole(r.Context(), who, DeleteRoleParams{Name: r.PathValue("role"), Revision: rev})
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
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
	u, err := m.Grant(r.Context(), who, r.PathValue("id"), r.PathValue("role"))
	return m.writeUser(w, u, err)
}

func (m *Admin) handleWithdraw(who Actor, w http.ResponseWriter, r *http.Request) error {
	u, err := m.Withdraw(r.Context(), who, r.PathValue("id"), r.PathValue("role"))
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
