package admin

import (
	"net/http"
	"time"

	"github.com/authmount/auth/store"
)

var invitationEndpoints = []endpoint{
	{opInvite, (*Admin).handleInvite},
	{opInvitations, (*Admin).handleInvitations},
	{opInviteAgain, (*Admin).handleInviteAgain},
	{opWithdrawInvite, (*Admin).handleWithdrawInvitation},
}

// invitationView is an invitation on the wire.
type invitationView struct {
	ID         string         `json:"id"`
	Email      string         `json:"email"`
	Roles      []string       `json:"roles"`
	Metadata   map[string]any `json:"metadata"`
	RedirectTo *string        `json:"redirect_to"`
	InvitedBy  actorView      `json:"invited_by"`
	CreatedAt  time.Time      `json:"created_at"`
	SentAt     time.Time      `json:"sent_at"`
	ExpiresAt  time.Time      `json:"expires_at"`
}

func viewInvitation(i Invitation) invitationView {
	return invitationView{
		ID: i.ID, Email: i.Email, Roles: orNone(i.Roles), Metadata: i.Metadata, RedirectTo: optional(i.RedirectTo),
		InvitedBy: actorView{optional(string(i.By.Kind)), optional(i.By.ID), optional(i.By.SessionID), nil},
		CreatedAt: i.CreatedAt, SentAt: i.SentAt, ExpiresAt: i.ExpiresAt,
	}
}

func (m *Admin) handleInvite(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Email      string         `json:"email"`
		Roles      []string       `json:"roles"`
		Metadata   map[string]any `json:"metadata"`
		RedirectTo string         `json:"redirect_to"`
		ExpiresIn  *int           `json:"expires_in"`
	}
	if err := m.kit.Decode(r, &p); err != nil {
		return err
	}
	in := InviteParams{Email: p.Email, Roles: p.Roles, Metadata: p.Metadata, RedirectTo: p.RedirectTo}
	if p.ExpiresIn != nil {
		in.Life = max(-1, min(time.Duration(*p.ExpiresIn), 1<<31)) * time.Second
		if in.Life == 0 {
			in.Life = -1
		}
	}
	return m.writeInvitation(w, http.StatusCreated)(m.Invite(r.Context(), who, in))
}

func (m *Admin) writeInvitation(w http.ResponseWriter, status int) func(Invitation, error) error {
	return func(i Invitation, err error) error {
		if err != nil {
			return err
		}
		return m.kit.WriteJSON(w, status, viewInvitation(i))
	}
}

func (m *Admin) handleInvitations(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	limit, cursor := v.limit(), v.text("cursor")
	if err := v.done(); err != nil {
		return err
	}
	var after *store.InvitationCursor
	if cursor != "" {
		after = &store.InvitationCursor{}
		if err := m.readCursor(cursor, after); err != nil {
			return err
		}
	}
	list, next, err := m.Invitations(r.Context(), who, after, limit)
	if err != nil {
		return err
	}
	out := struct {
		Invitations []invitationView `json:"invitations"`
		NextCursor  *string          `json:"next_cursor"`
	}{Invitations: []invitationView{}}
	for _, i := range list {
		out.Invitations = append(out.Invitations, viewInvitation(i))
	}
	if next != nil {
		out.NextCursor = ptr(cursorOf(next))
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

func (m *Admin) handleInviteAgain(who Actor, w http.ResponseWriter, r *http.Request) error {
	return m.writeInvitation(w, http.StatusOK)(m.InviteAgain(r.Context(), who, r.PathValue("id")))
}

func (m *Admin) handleWithdrawInvitation(who Actor, w http.ResponseWriter, r *http.Request) error {
	err := m.WithdrawInvitation(r.Context(), who, r.PathValue("id"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
