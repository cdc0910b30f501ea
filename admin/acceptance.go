package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

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
			return none, m.sendAcceptance(ctx, t, &send)
		})
	}
	if err != nil {
		m.kit.Log().WarnContext(ctx, "auth: the link to accept permissions was not sent", "user_id", u.ID, "error", err)
	}
}

// sendAcceptance adds the link to accept to a change. The message names the roles, and the
// operator by the email address only, because operators choose their own names.
func (m *Admin) sendAcceptance(ctx context.Context, t *attempt, send *host.Send) error {
	if t.target.Email == "" {
		return m.kit.Invalid("type", "needs an account with an e-mail address; somebody with all permissions can create the link and hand it over")
	}
	inv, seen, err := m.acceptance(ctx, t)
	if err != nil {
		return err
	}
	operators := m.kit.OperatorRoles(t.roles)
	send.Roles = slices.DeleteFunc(slices.Concat(t.target.Roles, inv.Roles), func(r string) bool { return !slices.Contains(operators, r) })
	slices.Sort(send.Roles)
	send.Roles = slices.Compact(send.Roles)
	if send.By = ""; t.user != nil && t.user.EmailVerified() {
		send.By = t.user.Email
	}
	return m.kit.Invite(ctx, &t.change, send, inv, seen)
}

// acceptance returns an invitation of an attempt's target to accept its permissions of an
// operator, and the hash of the invitation that it replaces. Its roles are those of the
// replaced one. Errors: CodeValidationFailed, those of mayInvite and mayGive.
func (m *Admin) acceptance(ctx context.Context, t *attempt) (host.Invitation, []byte, error) {
	var none host.Invitation
	switch {
	case t.target.Email == "" && t.target.Phone == "":
		return none, nil, m.kit.Invalid("type", "needs an account with an e-mail address or a phone number")
	case !m.kit.Standing(t.roles, t.target).Waits:
		return none, nil, m.kit.Invalid("type", "needs an account that waits for an acceptance")
	case t.target.Banned(m.kit.Now()):
		return none, nil, m.fail(auth.CodeUserBanned, nil)
	}
	to := Invitation{Email: t.target.Email}
	if to.Email == "" {
		to.Phone = t.target.Phone
	}
	inv, err := m.cleanInvitation(to, 0)
	if err != nil {
		return none, nil, err
	}
	before, seen, err := m.invitation(ctx, inv.ID)
	if err != nil && !errors.Is(err, auth.CodeNotFound) {
		return none, nil, err
	}
	if err := m.mayInvite(t, m.acceptedRoles(t.roles, t.target, before.Roles)); err != nil {
		return none, nil, err
	}
	inv.By, inv.ByAccepted, inv.BySequence = t.change.Events[0].Event.Actor, t.accepted(), t.session.Sequence
	inv.Roles, inv.UserID, inv.AddressSequence = before.Roles, t.target.ID, t.target.EmailSequence
	if t.target.Email == "" {
		inv.AddressSequence = t.target.PhoneSequence
	}
	return host.Invitation(inv), seen, nil
}

// Waiting describes an account that waits for the acceptance of its operator permissions.
type Waiting struct {
	// Address is where the link to accept goes: the email address, or the phone number of
	// an account without one. Empty: the account has neither.
	Address string

	// Since and By are the time and the actor of the last change that made the account
	// wait: one that gave it an operator role, made one of its roles an operator role, or,
	// by an operator, gave it another address. They are zero if the audit log does not say,
	// because the event is no longer kept, or because the application declared a permission
	// or a role privileged.
	Since   time.Time
	By      auth.Actor
	ByLabel string // the actor's name at that time
}

// eventsRead is how many of an account's events the search for Waiting.Since reads.
const eventsRead = 100

// waiting describes the accounts of a list that wait, by id. It reads the events of each,
// so that lists of other accounts do not call it.
func (m *Admin) waiting(ctx context.Context, users []auth.User) (map[string]Waiting, error) {
	table, err := m.kit.Roles(ctx)
	if err != nil {
		return nil, m.kit.StoreError(err)
	}
	operators, changes := m.kit.OperatorRoles(table), map[string]Waiting{}
	all := map[string]Waiting{}
	for _, u := range users {
		if !m.kit.Standing(table, u).Waits {
			continue
		}
		w := Waiting{}
		took := func(e auth.Event) bool { return madeWait(e, u, operators) }
		of := store.EventQuery{UserID: u.ID, Types: []auth.EventType{auth.EventRolesChanged, auth.EventInvitationAccepted, auth.EventUserUpdated, auth.EventUserImported, auth.EventUserCreated}}
		if err := m.latest(ctx, of, took, &w); err != nil {
			return nil, err
		}
		for _, r := range u.Roles {
			if !slices.Contains(operators, r) {
				continue
			}
			c, known := changes[r]
			if !known {
				of := store.EventQuery{Target: r, Type: string(auth.EventRoleChanged)}
				if err := m.latest(ctx, of, func(e auth.Event) bool { return m.madeOperator(e, r) }, &c); err != nil {
					return nil, err
				}
				changes[r] = c
			}
			if c.Since.After(w.Since) {
				w = c
			}
		}
		w.Address = cmp.Or(u.Email, u.Phone)
		all[u.ID] = w
	}
	return all, nil
}

// latest finds the newest event of a query that meets a condition.
func (m *Admin) latest(ctx context.Context, q store.EventQuery, is func(auth.Event) bool, into *Waiting) error {
	q.Outcome, q.Limit = store.EventDone, eventsRead
	list, err := m.journal.Events(ctx, q)
	if err != nil {
		return m.kit.StoreError(err)
	}
	if i := slices.IndexFunc(list, is); i >= 0 {
		into.Since, into.By = list[i].At, list[i].Actor
		if r := list[i].Record; r != nil {
			into.ByLabel = r.Actor
		}
	}
	return nil
}

// madeWait reports whether an event gave its account an operator role that it has, or
// another address by an operator.
func madeWait(e auth.Event, u auth.User, operators []string) bool {
	if e.Record == nil { // an import in Go
		return e.Type == auth.EventUserImported
	}
	for _, address := range []string{"email", "phone"} {
		_, changed := e.Record.Changes[address]
		if changed && e.Type == auth.EventUserUpdated && e.Actor.ID != u.ID && (address == "email" || u.Email == "") {
			return true
		}
	}
	c := e.Record.Changes["roles"]
	before := textsIn(c.Before)
	return slices.ContainsFunc(textsIn(c.After), func(r string) bool {
		return slices.Contains(operators, r) && slices.Contains(u.Roles, r) && !slices.Contains(before, r)
	})
}

// madeOperator reports whether a change of a role made its bearers operators.
func (m *Admin) madeOperator(e auth.Event, role string) bool {
	if e.Record == nil {
		return false
	}
	operator := func(permissions any, privileged any) bool {
		t := store.RoleTable{Roles: []store.RolePermissions{{Name: role, Permissions: textsIn(permissions)}}}
		if privileged == true {
			t.Privileged = []string{role}
		}
		return slices.Contains(m.kit.OperatorRoles(t), role)
	}
	p, mark := e.Record.Changes["permissions"], e.Record.Changes["privileged"]
	return operator(p.After, mark.After) && !operator(p.Before, mark.Before)
}

// textsIn returns the texts of a list in an event, which stores may return as JSON.
func textsIn(v any) (list []string) {
	switch v := v.(type) {
	case []string:
		return v
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				list = append(list, s)
			}
		}
	}
	return list
}

type waitingView struct {
	Address *string    `json:"address"`
	Since   *time.Time `json:"since"`
	By      actorView  `json:"by"`
}

func viewWaiting(w *Waiting) *waitingView {
	if w == nil {
		return nil
	}
	return &waitingView{optional(w.Address), orNever(w.Since), actorView{optional(string(w.By.Kind)), optional(w.By.ID), nil, optional(w.ByLabel)}}
}

// countWaiting counts the accounts that wait for an acceptance.
func (m *Admin) countWaiting(ctx context.Context) (store.Total, error) {
	table, err := m.project.Roles(ctx)
	if err != nil {
		return store.Total{}, err
	}
	return m.admin.CountUsers(ctx, store.UserQuery{Waiting: m.kit.OperatorRoles(table), Now: m.kit.Now(), Limit: 1})
}

// logWaiting logs how many accounts wait, for example because the application has declared
// a permission privileged.
func (m *Admin) logWaiting(ctx context.Context) error {
	n, err := m.countWaiting(ctx)
	if err == nil && n.N > 0 {
		m.kit.Log().InfoContext(ctx, "admin: accounts have permissions of operators that their holders have not accepted, and cannot use them; GET /admin/users?status=waiting lists them, and POST /admin/users/{id}/send with the type accept sends a link", "accounts", n.N)
	}
	return err
}
