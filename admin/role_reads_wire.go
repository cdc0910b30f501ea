package admin

import (
	"net/http"

	"github.com/authmount/auth/store"
)

func (m *Admin) handleRole(who Actor, w http.ResponseWriter, r *http.Request) error {
	role, revision, err := m.Role(r.Context(), who, r.PathValue("role"))
	if err != nil {
		return err
	}
	setRevision(w, revision)
	return m.kit.WriteJSON(w, http.StatusOK, viewRole(role))
}

func (m *Admin) handleRoleMatrix(who Actor, w http.ResponseWriter, r *http.Request) error {
	x, err := m.RoleMatrix(r.Context(), who)
	if err != nil {
		return err
	}
	type (
		holding struct {
			Role string `json:"role"`
			Via  string `json:"via"`
		}
		row struct {
			permissionView

			HeldBy []holding `json:"held_by"`
		}
	)
	out := struct {
		Revision    int64    `json:"revision"`
		Roles       []string `json:"roles"`
		Permissions []row    `json:"permissions"`
	}{x.Revision, x.Roles, []row{}}
	for _, p := range x.Rows {
		v := row{permissionView(p.Permission), []holding{}}
		for _, h := range p.HeldBy {
			v.HeldBy = append(v.HeldBy, holding(h))
		}
		out.Permissions = append(out.Permissions, v)
	}
	setRevision(w, x.Revision)
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

// roleUserCursor is a place in a list of who has a role.
type roleUserCursor struct {
	store.UserCursor

	Role string `json:"role"`
}

func (m *Admin) handleRoleUsers(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	p := RoleUsersParams{Name: r.PathValue("role"), Limit: v.limit()}
	if c := v.text("cursor"); c != "" {
		var at roleUserCursor
		if err := m.readCursor(c, &at); err != nil {
			return err
		}
		if at.Role != p.Name {
			return m.kit.Invalid("cursor", "is one of another list")
		}
		p.After = &at.UserCursor
	}
	if err := v.done(); err != nil {
		return err
	}
	page, err := m.RoleUsers(r.Context(), who, p)
	if err != nil {
		return err
	}
	type user struct {
		ID     string `json:"id"`
		Label  string `json:"label"`
		Banned bool   `json:"banned"`
	}
	out := struct {
		Users      []user  `json:"users"`
		NextCursor *string `json:"next_cursor"`
	}{Users: []user{}}
	for _, u := range page.Users {
		out.Users = append(out.Users, user(u))
	}
	if page.Next != nil {
		out.NextCursor = ptr(cursorOf(roleUserCursor{*page.Next, p.Name}))
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}
