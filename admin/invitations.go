package admin

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

var (
	opInvite         = operation{spends: true, created: http.StatusCreated, pattern: "POST /invitations", permission: PermUsersWrite, fails: []auth.Code{auth.CodeTargetStronger, auth.CodeRoleNotFound, auth.CodeReauthNeeded, auth.CodeRedirectNotAllowed, auth.CodeRateLimited}}
	opInvitations    = operation{pattern: "GET /invitations", permission: PermUsersRead}
	opInviteAgain    = operation{spends: true, pattern: "POST /invitations/{id}/resend", permission: PermUsersWrite, fails: []auth.Code{auth.CodeNotFound, auth.CodeTargetStronger, auth.CodeRoleNotFound, auth.CodeReauthNeeded, auth.CodeRateLimited}}
	opWithdrawInvite = operation{pattern: "DELETE /invitations/{id}", permission: PermUsersWrite, fails: []auth.Code{auth.CodeNotFound, auth.CodeTargetStronger, auth.CodeReauthNeeded}}

	invitationEndpoints = []endpoint{
		op(opInvite, (*Admin).invite),
		op(opInvitations, (*Admin).Invitations),
		op(opInviteAgain, byID((*Admin).InviteAgain)),
		op(opWithdrawInvite, silent(func(m *Admin, ctx context.Context, who Actor, p idOnly) error {
			return m.WithdrawInvitation(ctx, who, p.ID)
		})),
	}
)

// Invitation is a pending invitation to an email address, or a link to accept permissions
// for an account without one, which is bound to its phone number and is never sent.
type Invitation struct {
	ID         string         `json:"id"` // derived from the address, which has one invitation at a time
	Email      string         `json:"email"`
	Phone      string         `json:"phone,omitempty"`
	Roles      []string       `json:"roles"`
	Metadata   map[string]any `json:"metadata"` // becomes the account's app_metadata, merged into the present metadata (RFC 7396)
	RedirectTo string         `json:"redirect_to"`
	Locale     string         `json:"locale,omitempty"` // see InviteParams
	By         auth.Actor     `json:"by"`               // the actor who created it, or sent it again last
	CreatedAt  time.Time      `json:"created_at"`
	SentAt     time.Time      `json:"sent_at"`
	ExpiresAt  time.Time      `json:"expires_at"`

	// UserID is the account whose permissions of an operator it is for; empty: any account
	// with the address. Shown means that the link was shown and not mailed.
	UserID string `json:"user_id,omitempty"`
	Shown  bool   `json:"shown,omitempty"`

	// ByAccepted is User.AcceptedSequence of a user who created it: a new acceptance by that
	// user ends it.
	ByAccepted int64 `json:"by_accepted,omitempty"`

	// BySequence is Session.Sequence of that user's session: if the user reports the session
	// by an account recovery link, it ends the invitation.
	BySequence int64 `json:"by_sequence,omitempty"`

	// AddressSequence is the sequence of the address of UserID, or of its phone number without
	// one, when the link was made: the same address set again is another one.
	AddressSequence int64 `json:"address_sequence,omitempty"`
}

// address returns the email address or phone number that the invitation is bound to.
func (i Invitation) address() string { return cmp.Or(i.Email, i.Phone) }

// InviteParams describe an invitation.
type InviteParams struct {
	Email      string
	Roles      []string
	Metadata   map[string]any // becomes the app_metadata of a new account; an existing account keeps its own
	RedirectTo string         // where the accepting page leads; on the allow-list
	Locale     string         // language of the message, of its page and of a new account, such as "de"; "": that of the request, and the browser's
	Life       time.Duration  // 5 minutes to 30 days; 0: seven days
}

// Invite sends an invitation to create an account, with roles that the actor may give.
// Roles require PermRolesAssign and recent authentication (15 minutes). The invitation
// replaces an older one to the same email address. The owner of the email address accepts
// it (auth.AcceptInvitation), once, and only while the actor could still create it: it
// ends with the actor's permissions, account or key, and with a ban of the actor. Errors:
// CodeValidationFailed, CodeRedirectNotAllowed, CodeRoleNotFound, CodeTargetStronger,
// CodeReauthNeeded, CodeRateLimited.
func (m *Admin) Invite(ctx context.Context, who Actor, p InviteParams) (Invitation, error) {
	inv, err := m.cleanInvitation(Invitation{Email: p.Email, Roles: p.Roles, Metadata: p.Metadata, RedirectTo: p.RedirectTo, Locale: p.Locale}, p.Life)
	if err != nil {
		return inv, err
	}
	var send host.Send
	return carryOut(ctx, m, who, opInvite, "", auth.EventInvited, func(t *attempt) (Invitation, error) {
		before, hash, err := m.invitation(ctx, inv.ID)
		if err != nil && !errors.Is(err, auth.CodeNotFound) {
			return inv, err
		}
		return m.putInvitation(ctx, t, &send, inv, before, hash)
	})
}

// InvitationsParams pick invitations.
type InvitationsParams struct {
	Limit  int    `query:"limit"`  // up to 200; 0: 50
	Cursor string `query:"cursor"` // InvitationPage.NextCursor of the page before
}

// InvitationPage is a page of invitations.
type InvitationPage struct {
	Invitations []Invitation
	NextCursor  *string // of the page after; nil: this was the last
}

// Invitations lists the pending invitations, newest first.
func (m *Admin) Invitations(ctx context.Context, who Actor, p InvitationsParams) (InvitationPage, error) {
	after, err := readCursor[store.InvitationCursor](m, p.Cursor)
	if err != nil {
		return InvitationPage{}, err
	}
	if _, err := m.reader(ctx, who, opInvitations); err != nil {
		return InvitationPage{}, err
	}
	found, _, next, err := m.kit.Invitations(ctx, "", after, pageSize(p.Limit))
	page := InvitationPage{NextCursor: cursorOf(next)}
	for _, inv := range found {
		page.Invitations = append(page.Invitations, Invitation(inv))
	}
	return page, err
}

// InviteAgain sends an invitation again, with a new link that is valid for as long as the
// first one was; the old link becomes invalid. The actor becomes the inviter. Errors as
// for Invite, and CodeNotFound.
func (m *Admin) InviteAgain(ctx context.Context, who Actor, id string) (Invitation, error) {
	var send host.Send
	return carryOut(ctx, m, who, opInviteAgain, "", auth.EventInvited, func(t *attempt) (Invitation, error) {
		before, hash, err := m.invitation(ctx, id)
		if err != nil {
			return before, err
		}
		if before.Email == "" {
			return before, m.kit.Invalid("id", "is that of a link for an account without an e-mail address, which cannot be sent")
		}
		inv, err := m.cleanInvitation(before, before.ExpiresAt.Sub(before.SentAt))
		if err != nil {
			return inv, err
		}
		return m.putInvitation(ctx, t, &send, inv, before, hash)
	})
}

// WithdrawInvitation withdraws an invitation. The actor has to hold the permissions of
// its roles. Errors: CodeNotFound, also if it was accepted meanwhile; CodeTargetStronger,
// CodeMissingPermission, CodeReauthNeeded.
func (m *Admin) WithdrawInvitation(ctx context.Context, who Actor, id string) error {
	_, err := carryOut(ctx, m, who, opWithdrawInvite, "", auth.EventInvitationWithdrawn, func(t *attempt) (struct{}, error) {
		inv, hash, err := m.invitation(ctx, id)
		if err != nil {
			return struct{}{}, err
		}
		t.record.Target = store.EmailKey(inv.address())
		t.changed("roles", nonNil(inv.Roles), nil)
		if err := m.mayReplace(ctx, t, inv); err != nil {
			return struct{}{}, err
		}
		err = m.kit.WithdrawInvitation(ctx, t.change, hash)
		if errors.Is(err, store.ErrNotFound) {
			err = m.fail(auth.CodeNotFound, err)
		}
		return struct{}{}, err
	})
	return err
}

func (m *Admin) cleanInvitation(inv Invitation, life time.Duration) (Invitation, error) {
	clean, err := m.kit.CheckInvitation(host.Invitation(inv), life)
	return Invitation(clean), err
}

// invitation returns the invitation with an id, and its hash in the store. Errors:
// CodeNotFound.
func (m *Admin) invitation(ctx context.Context, id string) (Invitation, []byte, error) {
	if id == "" {
		return Invitation{}, nil, m.fail(auth.CodeNotFound, nil)
	}
	list, hashes, _, err := m.kit.Invitations(ctx, id, nil, 1)
	switch {
	case err != nil:
		return Invitation{}, nil, err
	case len(list) == 0:
		return Invitation{}, nil, m.fail(auth.CodeNotFound, nil)
	}
	return Invitation(list[0]), hashes[0], nil
}

// putInvitation stores and sends an invitation of the actor. It replaces the invitation
// before, with the hash seen.
func (m *Admin) putInvitation(ctx context.Context, t *attempt, send *host.Send, inv, before Invitation, seen []byte) (Invitation, error) {
	t.record.Target = store.EmailKey(inv.Email)
	if self := cmp.Or(t.user, t.creator); self != nil && store.EmailKey(self.Email) == store.EmailKey(inv.Email) {
		return inv, auth.Reject(auth.CodeTargetStronger, "You cannot do this to your own account.")
	}
	for _, r := range inv.Roles {
		if r != auth.RoleOwner && find(t.roles, r).Name == "" {
			return inv, noRole(r)
		}
	}
	if err := m.mayReplace(ctx, t, before, inv.Roles...); err != nil {
		return inv, err
	}
	inv.By, inv.ByAccepted, inv.BySequence = t.change.Events[0].Event.Actor, t.accepted(), t.session.Sequence
	t.changed("roles", nonNil(before.Roles), nonNil(inv.Roles))
	if err := t.keep(inv); err != nil {
		return inv, err
	}
	return inv, m.kit.Invite(ctx, &t.change, send, host.Invitation(inv), seen)
}

// givenBy returns the roles that the use of an invitation gives power to: its own, and
// those of the account that it is bound to, with the condition that they stay the same.
func (m *Admin) givenBy(ctx context.Context, t store.RoleTable, inv Invitation) (given givenRoles, still []auth.UserAt, err error) {
	if inv.UserID == "" {
		return givenRoles{changed: inv.Roles}, nil, nil
	}
	u, err := m.store.User(ctx, store.ByID(inv.UserID))
	switch {
	case errors.Is(err, store.ErrNotFound): // then nobody can use it
		return givenRoles{changed: inv.Roles}, nil, nil
	case err != nil:
		return given, nil, m.kit.StoreError(err)
	}
	return m.acceptedRoles(t, u, inv.Roles), []auth.UserAt{{ID: u.ID, CredentialRevision: &u.CredentialRevision}}, nil
}

// acceptedRoles returns the roles that an acceptance of an account gives: those of its
// invitation, and the account's own that take effect with it.
func (m *Admin) acceptedRoles(t store.RoleTable, u auth.User, invited []string) givenRoles {
	given, waiting := givenRoles{changed: invited}, m.kit.OperatorRoles(t)
	for _, r := range u.Roles {
		if slices.Contains(waiting, r) {
			given.changed = append(given.changed[:len(given.changed):len(given.changed)], r)
		} else {
			given.kept = append(given.kept, r)
		}
	}
	return given
}

// mayReplace checks whether the actor may withdraw an invitation, or replace it with one
// that gives more roles. Errors: those of mayInvite.
func (m *Admin) mayReplace(ctx context.Context, t *attempt, before Invitation, more ...string) error {
	given, still, err := m.givenBy(ctx, t.roles, before)
	if err != nil {
		return err
	}
	t.change.IfUsers = append(t.change.IfUsers, still...)
	given.changed = slices.Concat(given.changed, more)
	return m.mayInvite(t, given)
}

// mayInvite checks whether the actor may create, replace or withdraw an invitation with
// roles. The requirements are those of giving the roles.
func (m *Admin) mayInvite(t *attempt, given givenRoles) error {
	if given.none() {
		return nil
	}
	if t.untraceable() {
		return auth.Reject(auth.CodeTargetStronger, "Invite without roles, and give them when the account exists.")
	}
	if err := m.allow(t.acting, fieldOfRoles); err != nil {
		return err
	}
	return m.mayGiveRoles(t.acting, given)
}

// checkInvitation checks whether the inviter could still create an invitation, and
// returns the conditions for that. The inviter's permissions count as of acceptance, not
// as of creation. Errors: CodeInvalidToken.
func (m *Admin) checkInvitation(ctx context.Context, inv host.Invitation) (host.Terms, error) {
	over := func(why string) (host.Terms, error) {
		return host.Terms{}, m.fail(auth.CodeInvalidToken, errors.New(why))
	}
	a, terms, err := m.holdsNow(ctx, inv.By, inv.ByAccepted, inv.BySequence)
	if err != nil {
		return host.Terms{}, err
	}
	if inv.UserID == "" && !a.may(PermUsersWrite) {
		return over("the inviter may not invite any more")
	}
	for _, r := range inv.Roles {
		if r != auth.RoleOwner && find(a.roles, r).Name == "" {
			return over("a role was deleted")
		}
	}
	given, still, err := m.givenBy(ctx, a.roles, Invitation(inv))
	if err != nil {
		return host.Terms{}, err
	}
	terms.IfUsers = append(terms.IfUsers, still...)
	if !given.none() && (!a.may(PermRolesAssign) || m.mayGiveRoles(a, given) != nil) {
		return over("the inviter may not give the roles any more")
	}
	operators := m.kit.OperatorRoles(a.roles)
	terms.NeedsFactor = m.requireMFA && slices.ContainsFunc(given.changed, func(r string) bool { return slices.Contains(operators, r) })
	return terms, nil
}

// invitationView is an invitation on the wire.
type invitationView struct {
	ID         string         `json:"id"`
	Email      string         `json:"email"`
	Phone      *string        `json:"phone"`
	Roles      []string       `json:"roles"`
	Metadata   map[string]any `json:"metadata"`
	RedirectTo *string        `json:"redirect_to"`
	Locale     *string        `json:"locale"`
	InvitedBy  actorView      `json:"invited_by"`
	CreatedAt  time.Time      `json:"created_at"`
	SentAt     time.Time      `json:"sent_at"`
	ExpiresAt  time.Time      `json:"expires_at"`
}

func viewInvitation(i Invitation) invitationView {
	return invitationView{
		ID: i.ID, Email: i.Email, Phone: optional(i.Phone), Roles: nonNil(i.Roles), Metadata: i.Metadata, RedirectTo: optional(i.RedirectTo), Locale: optional(i.Locale),
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
	Locale     string         `json:"locale"`
	ExpiresIn  *int           `json:"expires_in"`
}

func (m *Admin) invite(ctx context.Context, who Actor, p inviteBody) (Invitation, error) {
	in := InviteParams{Email: p.Email, Roles: p.Roles, Metadata: p.Metadata, RedirectTo: p.RedirectTo, Locale: p.Locale}
	if p.ExpiresIn != nil {
		in.Life = max(-1, min(time.Duration(*p.ExpiresIn), 1<<31)) * time.Second
		if in.Life == 0 {
			in.Life = -1
		}
	}
	return m.Invite(ctx, who, in)
}
