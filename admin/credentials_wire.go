package admin

import (
	"encoding/json"
	"net/http"
)

func (m *Admin) handleSetPassword(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Password json.RawMessage `json:"password"`
		Reason   string          `json:"reason"`
	}
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.kit.Decode(r, &p)
	}
	if err == nil && p.Password == nil {
		err = m.kit.Invalid("password", "is required; null removes it")
	}
	if err != nil {
		return err
	}
	set := SetPasswordParams{UserID: r.PathValue("id"), Reason: p.Reason, Revision: rev}
	if err := json.Unmarshal(p.Password, &set.Password); err != nil {
		return m.kit.Invalid("password", "has to be a text, or null")
	}
	u, err := m.SetPassword(r.Context(), who, set)
	return m.writeUser(w, u, err)
}

func (m *Admin) handleFactors(who Actor, w http.ResponseWriter, r *http.Request) error {
	list, err := m.Factors(r.Context(), who, r.PathValue("id"))
	if err != nil {
		return err
	}
	return m.kit.WriteJSON(w, http.StatusOK, map[string]any{"factors": viewFactors(list)})
}

// handleRemoveFactors is for one factor and for all.
func (m *Admin) handleRemoveFactors(who Actor, w http.ResponseWriter, r *http.Request) error {
	p, rev, err := m.why(r)
	if err != nil {
		return err
	}
	u, err := m.RemoveFactor(r.Context(), who, RemoveFactorParams{UserID: r.PathValue("id"), FactorID: r.PathValue("factor"), Reason: p.Reason, Revision: rev})
	return m.writeUser(w, u, err)
}

func (m *Admin) handleUnlink(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Force  bool   `json:"force"`
		Reason string `json:"reason"`
	}
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.kit.DecodeOptional(r, &p)
	}
	if err != nil {
		return err
	}
	u, err := m.Unlink(r.Context(), who, UnlinkParams{UserID: r.PathValue("id"), IdentityID: r.PathValue("identity"), Force: p.Force, Reason: p.Reason, Revision: rev})
	return m.writeUser(w, u, err)
}

func (m *Admin) handleUnlock(who Actor, w http.ResponseWriter, r *http.Request) error {
	p, rev, err := m.why(r)
	if err != nil {
		return err
	}
	u, err := m.Unlock(r.Context(), who, UnlockParams{UserID: r.PathValue("id"), Reason: p.Reason, Revision: rev})
	return m.writeUser(w, u, err)
}
