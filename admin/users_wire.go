package admin

import (
	"net/http"
	"time"

	"github.com/authmount/auth"
)

var userEndpoints = []endpoint{
	{opListUsers, (*Admin).handleListUsers},
	{opUser, (*Admin).handleUser},
	{opBanUser, (*Admin).handleBanUser},
	{opUnbanUser, (*Admin).handleUnbanUser},
	{opDeleteUser, (*Admin).handleDeleteUser},
}

func (m *Admin) handleListUsers(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	p := ListUsersParams{auth.UserQuery{
		Prefix: v.text("q"), Role: v.text("role"), MFA: v.flag("mfa"),
		CreatedFrom: v.time("created_from"), CreatedTo: v.time("created_to"),
		SignedInFrom: v.time("signed_in_from"), SignedInTo: v.time("signed_in_to"),
		Sort: auth.UserSort(v.text("sort")), Limit: v.number("limit"),
	}}
	switch v.text("status") {
	case "":
	case "active":
		p.Banned, p.Confirmed = ptr(false), ptr(true)
	case "banned":
		p.Banned = ptr(true)
	case "unconfirmed":
		p.Confirmed = ptr(false)
	default:
		v.fault("status", "has to be active, banned or unconfirmed")
	}
	switch v.text("order") {
	case "", "desc":
		p.Desc = true
	case "asc":
	default:
		v.fault("order", "has to be asc or desc")
	}
	if c := v.text("cursor"); c != "" {
		p.After = &auth.UserCursor{}
		if err := m.readCursor(c, p.After); err != nil {
			return err
		}
	}
	if err := v.done(); err != nil {
		return err
	}
	page, err := m.ListUsers(r.Context(), who, p)
	if err != nil {
		return err
	}
	out := struct {
		Users      []userView `json:"users"`
		NextCursor *string    `json:"next_cursor"`
	}{Users: []userView{}}
	for _, u := range page.Users {
		out.Users = append(out.Users, m.view(u))
	}
	if page.Next != nil {
		out.NextCursor = ptr(cursorOf(page.Next.After))
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

func (m *Admin) handleUser(who Actor, w http.ResponseWriter, r *http.Request) error {
	u, err := m.User(r.Context(), who, r.PathValue("id"))
	return m.writeUser(w, u, err)
}

func (m *Admin) handleBanUser(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Until  *time.Time `json:"until"`
		Reason string     `json:"reason"`
	}
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.kit.Decode(r, &p)
	}
	if err != nil {
		return err
	}
	ban := BanUserParams{UserID: r.PathValue("id"), Reason: p.Reason, Revision: rev}
	if p.Until != nil {
		ban.Until = p.Until.UTC()
	}
	u, err := m.BanUser(r.Context(), who, ban)
	return m.writeUser(w, u, err)
}

// why is the body of an operation that takes a reason only.
type why struct {
	Reason string `json:"reason"`
}

func (m *Admin) why(r *http.Request) (p why, rev *int64, err error) {
	if rev, err = m.ifMatch(r); err == nil {
		err = m.kit.DecodeOptional(r, &p)
	}
	return p, rev, err
}

func (m *Admin) handleUnbanUser(who Actor, w http.ResponseWriter, r *http.Request) error {
	p, rev, err := m.why(r)
	if err != nil {
		return err
	}
	u, err := m.UnbanUser(r.Context(), who, UnbanUserParams{UserID: r.PathValue("id"), Reason: p.Reason, Revision: rev})
	return m.writeUser(w, u, err)
}

func (m *Admin) handleDeleteUser(who Actor, w http.ResponseWriter, r *http.Request) error {
	p, rev, err := m.why(r)
	if err == nil {
		err = m.DeleteUser(r.Context(), who, DeleteUserParams{UserID: r.PathValue("id"), Reason: p.Reason, Revision: rev})
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
