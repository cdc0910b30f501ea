package admin

import (
	"net/http"
	"time"

	"github.com/authmount/auth/store"
)

// sessionOf is a session in a list of everybody's.
type sessionOf struct {
	UserID  string `json:"user_id"`
	Session any    `json:"session"`
}

func (m *Admin) handleListSessions(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	q := store.SessionQuery{UserID: v.text("user"), IP: v.text("ip"), AAL: v.text("aal"), Client: v.text("client"), Since: v.time("since"), Before: v.time("before"), Limit: v.limit()}
	if c := v.text("cursor"); c != "" {
		q.After = &store.SessionCursor{}
		if err := m.readCursor(c, q.After); err != nil {
			return err
		}
	}
	if err := v.done(); err != nil {
		return err
	}
	page, err := m.ListSessions(r.Context(), who, q)
	if err != nil {
		return err
	}
	out := struct {
		Sessions   []sessionOf `json:"sessions"`
		NextCursor *string     `json:"next_cursor"`
	}{Sessions: []sessionOf{}}
	for _, s := range page.Sessions {
		out.Sessions = append(out.Sessions, sessionOf{s.UserID, m.kit.SessionView(m.kit.SessionInfo(s, who.caller.SessionID))})
	}
	if page.Next != nil {
		out.NextCursor = ptr(cursorOf(page.Next.After))
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

func (m *Admin) handleRevokeSessions(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		UserIDs []string  `json:"user_ids"`
		IP      string    `json:"ip"`
		Before  time.Time `json:"before"`
		All     bool      `json:"all"`
		Reason  string    `json:"reason"`
	}
	if err := m.kit.Decode(r, &p); err != nil {
		return err
	}
	res, err := m.RevokeSessions(r.Context(), who, RevokeSessionsParams{UserIDs: p.UserIDs, IP: p.IP, Before: p.Before.UTC(), All: p.All, Reason: p.Reason})
	if err != nil {
		return err
	}
	return m.kit.WriteJSON(w, http.StatusOK, res)
}
