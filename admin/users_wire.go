package admin

import (
	"net/http"
	"time"
)

var userEndpoints = []endpoint{
	{opListUsers, (*Admin).handleListUsers},
	{opExportUsers, (*Admin).handleExportUsers},
	{opLookupUser, (*Admin).handleLookupUser},
	{opUser, (*Admin).handleUser},
	{opCreateUser, (*Admin).handleCreateUser},
	{opUpdateUser, (*Admin).handleUpdateUser},
	{opSetPassword, (*Admin).handleSetPassword},
	{opFactors, (*Admin).handleFactors},
	{opRemoveFactors, (*Admin).handleRemoveFactors},
	{opRemoveFactor, (*Admin).handleRemoveFactors},
	{opUnlink, (*Admin).handleUnlink},
	{opUnlock, (*Admin).handleUnlock},
	{opBanUser, (*Admin).handleBanUser},
	{opUnbanUser, (*Admin).handleUnbanUser},
	{opDeleteUser, (*Admin).handleDeleteUser},
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
