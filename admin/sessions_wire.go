package admin

import "net/http"

var sessionEndpoints = []endpoint{
	{opUserSessions, (*Admin).handleUserSessions},
	{opEndSessions, (*Admin).handleEndSessions},
	{opEndSession, (*Admin).handleEndSession},
	{opListSessions, (*Admin).handleListSessions},
	{opRevokeSessions, (*Admin).handleRevokeSessions},
}

func (m *Admin) handleUserSessions(who Actor, w http.ResponseWriter, r *http.Request) error {
	list, err := m.UserSessions(r.Context(), who, r.PathValue("id"))
	if err != nil {
		return err
	}
	views := make([]any, 0, len(list))
	for _, s := range list {
		views = append(views, m.kit.SessionView(s))
	}
	return m.kit.WriteJSON(w, http.StatusOK, map[string]any{"sessions": views})
}

func (m *Admin) handleEndSessions(who Actor, w http.ResponseWriter, r *http.Request) error {
	p, _, err := m.why(r)
	if err == nil {
		_, err = m.EndSessions(r.Context(), who, r.PathValue("id"), p.Reason)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (m *Admin) handleEndSession(who Actor, w http.ResponseWriter, r *http.Request) error {
	p, _, err := m.why(r)
	if err == nil {
		err = m.EndSession(r.Context(), who, r.PathValue("id"), p.Reason)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
