package admin

import (
	"net/http"
	"time"

	"github.com/authmount/auth/store"
)

var impersonationEndpoints = []endpoint{
	{opImpersonate, (*Admin).handleImpersonate},
	{opImpersonations, (*Admin).handleImpersonations},
	{opEndImpersonation, (*Admin).handleEndImpersonation},
}

func (m *Admin) handleImpersonate(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Reason     string `json:"reason"`
		RedirectTo string `json:"redirect_to"`
	}
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.kit.Decode(r, &p)
	}
	if err != nil {
		return err
	}
	res, err := m.Impersonate(r.Context(), who, ImpersonateParams{UserID: r.PathValue("id"), Reason: p.Reason, RedirectTo: p.RedirectTo, Revision: rev})
	switch {
	case err != nil:
		return err
	case res.URL != "":
		return m.kit.WriteJSON(w, http.StatusOK, map[string]any{"session_id": res.SessionID, "url": res.URL})
	}
	return m.kit.WriteJSON(w, http.StatusOK, map[string]any{"session_id": res.SessionID, "access_token": res.AccessToken, "expires_in": res.ExpiresIn})
}

type impersonationView struct {
	ID             string    `json:"id"`
	UserID         string    `json:"user_id"`
	ActorID        string    `json:"actor_id"`
	ActorSessionID string    `json:"actor_session_id"`
	Reason         string    `json:"reason"`
	CreatedAt      time.Time `json:"created_at"`
	ExpiresAt      time.Time `json:"expires_at"`
	IP             *string   `json:"ip"`
	UserAgent      *string   `json:"user_agent"`
}

func viewImpersonation(i store.Impersonation) impersonationView {
	return impersonationView{i.ID, i.UserID, i.ActorID, i.ActorSessionID, i.Reason, i.CreatedAt, i.ExpiresAt, optional(i.IP), optional(i.UserAgent)}
}

func (m *Admin) handleImpersonations(who Actor, w http.ResponseWriter, r *http.Request) error {
	if err := m.values(r).done(); err != nil {
		return err
	}
	list, err := m.Impersonations(r.Context(), who)
	if err != nil {
		return err
	}
	out := []impersonationView{}
	for _, i := range list {
		out = append(out, viewImpersonation(i))
	}
	return m.kit.WriteJSON(w, http.StatusOK, map[string]any{"impersonations": out})
}

func (m *Admin) handleEndImpersonation(who Actor, w http.ResponseWriter, r *http.Request) error {
	p, _, err := m.why(r)
	if err == nil {
		err = m.EndImpersonation(r.Context(), who, r.PathValue("id"), p.Reason)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
