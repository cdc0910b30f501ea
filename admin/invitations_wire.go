package admin

import (
	"context"
	"time"
)

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

func (i Invitation) reply(*Admin) reply { return reply{body: viewInvitation(i)} }

func (p InvitationPage) reply(*Admin) reply {
	out := struct {
		Invitations []invitationView `json:"invitations"`
		NextCursor  *string          `json:"next_cursor"`
	}{[]invitationView{}, p.NextCursor}
	for _, i := range p.Invitations {
		out.Invitations = append(out.Invitations, viewInvitation(i))
	}
	return reply{body: out}
}

// inviteBody is InviteParams on the wire, where a life is a number of seconds.
type inviteBody struct {
	Email      string         `json:"email"`
	Roles      []string       `json:"roles"`
	Metadata   map[string]any `json:"metadata"`
	RedirectTo string         `json:"redirect_to"`
	ExpiresIn  *int           `json:"expires_in"`
}

func (m *Admin) invite(ctx context.Context, who Actor, p inviteBody) (Invitation, error) {
	in := InviteParams{Email: p.Email, Roles: p.Roles, Metadata: p.Metadata, RedirectTo: p.RedirectTo}
	if p.ExpiresIn != nil {
		in.Life = max(-1, min(time.Duration(*p.ExpiresIn), 1<<31)) * time.Second
		if in.Life == 0 {
			in.Life = -1
		}
	}
	return m.Invite(ctx, who, in)
}
