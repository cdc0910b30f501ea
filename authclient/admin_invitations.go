package authclient

import (
	"context"
	"iter"
	"time"
)

// Invitations, from the admin side.

// InvitationQuery picks what Admin.Invitations returns; what is empty picks nothing out.
type InvitationQuery struct {
	Cursor string `query:"cursor"` // next_cursor of the page before.
	Limit  int    `query:"limit"`  // How many.
}

// Invitation is a part of what the admin side answers.
type Invitation struct {
	ID         string              `json:"id"` // Stays the same when it is sent again: of each address there is one.
	CreatedAt  time.Time           `json:"created_at"`
	Email      string              `json:"email"`
	ExpiresAt  time.Time           `json:"expires_at"`
	InvitedBy  InvitationInvitedBy `json:"invited_by"` // In whose name it is. It is good only while they could still make it.
	Metadata   map[string]any      `json:"metadata"`   // Becomes the account's app_metadata.
	RedirectTo *string             `json:"redirect_to"`
	Roles      []string            `json:"roles"`
	SentAt     time.Time           `json:"sent_at"`
}

// InvitationInvitedBy is in whose name it is. It is good only while they could still make
// it.
type InvitationInvitedBy struct {
	ID        *string `json:"id"`
	Kind      *string `json:"kind"`
	Label     *string `json:"label"`
	SessionID *string `json:"session_id"`
}

// InvitationPage is one page of Admin.Invitations.
type InvitationPage struct {
	Invitations []Invitation `json:"invitations"`
	NextCursor  *string      `json:"next_cursor"` // what to ask for next; nil: that was all
}

// Invitations is GET /invitations: invitations that wait. Newest first; those that were
// accepted or are over are not among them. Permission: auth.users.read. It follows cursors
// to the end; InvitationPage reads one page.
func (a *Admin) Invitations(ctx context.Context, q InvitationQuery, opts ...CallOption) iter.Seq2[Invitation, error] {
	return all(ctx, q, func(q *InvitationQuery) *string { return &q.Cursor }, func(ctx context.Context, q InvitationQuery) ([]Invitation, *string, error) {
		p, err := a.InvitationPage(ctx, q, opts...)
		if err != nil {
			return nil, nil, err
		}
		return p.Invitations, p.NextCursor, nil
	})
}

// InvitationPage is one page of Invitations.
func (a *Admin) InvitationPage(ctx context.Context, q InvitationQuery, opts ...CallOption) (*InvitationPage, error) {
	k := a.prepared("GET", "/invitations", nil, opts)
	k.query = queryOf(q)
	return run[InvitationPage](ctx, a, k)
}

// InviteParams are of Admin.Invite.
type InviteParams struct {
	Email      string         `json:"email"`
	ExpiresIn  int            `json:"expires_in,omitempty"` // Seconds; absent: seven days.
	Metadata   map[string]any `json:"metadata,omitempty"`   // Becomes the app_metadata of a new account.
	RedirectTo string         `json:"redirect_to,omitempty"`
	Roles      []string       `json:"roles,omitempty"`
}

// Invite is POST /invitations: invite somebody. Mails a link to make an account with, good
// once. It takes the place of an older one to the address. Roles only if one may give them:
// that needs auth.roles.assign, too, and a proof of the last 15 minutes. Permission:
// auth.users.write.
func (a *Admin) Invite(ctx context.Context, p InviteParams, opts ...CallOption) (*Invitation, error) {
	return run[Invitation](ctx, a, a.prepared("POST", "/invitations", p, opts))
}

// ResendInvitation is POST /invitations/{id}/resend: send an invitation again. With a new
// link; the old one dies. It is in one's own name from now on, and takes what making it
// takes. Permission: auth.users.write.
func (a *Admin) ResendInvitation(ctx context.Context, id string, opts ...CallOption) (*Invitation, error) {
	return run[Invitation](ctx, a, a.prepared("POST", "/invitations/"+segment(id)+"/resend", nil, opts))
}

// RevokeInvitation is DELETE /invitations/{id}: take an invitation back. One with roles
// only if one may give them. Permission: auth.users.write.
func (a *Admin) RevokeInvitation(ctx context.Context, id string, opts ...CallOption) error {
	err := a.wire.do(ctx, a.prepared("DELETE", "/invitations/"+segment(id), nil, opts), nil)
	return err
}
