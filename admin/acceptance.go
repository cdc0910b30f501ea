package admin

import (
	"context"
	"errors"
	"slices"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// Accounts with operator permissions that their holders have not accepted yet.

// checkAddress checks the address to which an actor wants the link to accept to be sent.
// Naming it keeps the link from going to an address that the actor has never seen.
// Errors: CodeValidationFailed.
func (m *Admin) checkAddress(u auth.User, address string, required bool) error {
	switch {
	case address == "" && required:
		return m.kit.Invalid("address", "is required: the account's email address, or its phone number if it has none, where the link to accept the permissions is sent")
	case address != "" && !hasAddress(u, address):
		return m.kit.Invalid("address", "is not the account's")
	}
	return nil
}

// hasAddress reports whether an address is an account's email address, or its phone number
// if it has none.
func hasAddress(u auth.User, address string) bool {
	if u.Email != "" {
		return store.EmailKey(address) == store.EmailKey(u.Email)
	}
	phone, err := auth.NormalizePhone(address)
	return err == nil && phone == u.Phone
}

// askToAccept sends a user who waits the link to accept. The roles stay if it fails: an
// operator can send it again.
func (m *Admin) askToAccept(ctx context.Context, who Actor, u auth.User) {
	table, err := m.project.Roles(ctx)
	if err == nil && !m.kit.Standing(table, u).Waits {
		return
	}
	if err == nil {
		var send host.Send
		ctx = context.WithValue(ctx, requestKey{}, nil) // a repeated request repeats the roles only
		op := opSetRoles
		op.spends = true
		_, err = carryOut(ctx, m, who, op, u.ID, auth.EventMessageAsked, func(t *attempt) (none struct{}, err error) {
			t.change.Events[0].Event.Method = string(LinkAccept)
			inv, seen, err := m.acceptance(ctx, t)
			if err != nil {
				return none, err
			}
			return none, m.kit.Invite(ctx, &t.change, &send, inv, seen)
		})
	}
	if err != nil {
		m.kit.Log().WarnContext(ctx, "auth: the link to accept permissions was not sent", "user_id", u.ID, "error", err)
	}
}

// acceptance returns an invitation of an attempt's target to accept its permissions of an
// operator, and the hash of the invitation that it replaces. Its roles are those of the
// replaced one. Errors: CodeValidationFailed, those of mayInvite and mayGive.
func (m *Admin) acceptance(ctx context.Context, t *attempt) (host.Invitation, []byte, error) {
	var none host.Invitation
	switch {
	case t.target.Email == "":
		return none, nil, m.kit.Invalid("type", "needs an account with an e-mail address")
	case !m.kit.Standing(t.roles, t.target).Waits:
		return none, nil, m.kit.Invalid("type", "needs an account that waits for an acceptance")
	case t.target.Banned(m.kit.Now()):
		return none, nil, m.fail(auth.CodeUserBanned, nil)
	}
	inv, err := m.cleanInvitation(Invitation{Email: t.target.Email}, 0)
	if err != nil {
		return none, nil, err
	}
	before, seen, err := m.invitation(ctx, inv.ID)
	if err != nil && !errors.Is(err, auth.CodeNotFound) {
		return none, nil, err
	}
	if err := m.mayInvite(t, slices.Concat(t.target.Roles, before.Roles)); err != nil {
		return none, nil, err
	}
	inv.By, inv.ByAccepted, inv.BySequence = t.change.Events[0].Event.Actor, t.accepted(), t.session.Sequence
	inv.Roles, inv.UserID = before.Roles, t.target.ID
	return host.Invitation(inv), seen, nil
}

// logWaiting logs how many accounts wait for an acceptance, for example because the
// application has declared a permission privileged.
func (m *Admin) logWaiting(ctx context.Context) error {
	table, err := m.project.Roles(ctx)
	if err != nil {
		return err
	}
	n, err := m.admin.CountUsers(ctx, store.UserQuery{Waiting: m.kit.OperatorRoles(table), Now: m.kit.Now(), Limit: 1})
	if err == nil && n.N > 0 {
		m.kit.Log().InfoContext(ctx, "admin: accounts have permissions of operators that their holders have not accepted, and cannot use them; GET /admin/users?status=waiting lists them, and POST /admin/users/{id}/send with the type accept sends a link", "accounts", n.N)
	}
	return err
}
