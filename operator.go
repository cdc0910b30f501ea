package auth

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

// Operator permissions are "*", those of package admin ("auth.…"), those that the
// application declared privileged, patterns that cover any of them, and the names of
// privileged roles. An account that has some waits until its holder accepts them: somebody
// else may have set up a way to sign in before. As an actor a waiting account lacks them
// everywhere; as a target it counts with them.

const (
	roleAdmin   = "admin" // privileged, as RoleOwner is
	ownOperator = "auth." // begins the permissions of package admin
)

// acceptanceKept is how long an acceptance outlasts the last operator permission, so that
// a demotion by mistake can be undone.
const acceptanceKept = 30 * 24 * time.Hour

// acceptanceOver is the AcceptedUntil of an acceptance that has ended. No clock of another
// instance is before it.
func acceptanceOver() time.Time { return time.Unix(1, 0).UTC() }

// isOperatorPermission reports whether a permission makes its holder an operator.
func (a *Auth) isOperatorPermission(p string) bool {
	if p == permissionAll || strings.HasPrefix(p, ownOperator) {
		return true
	}
	declared := a.privilegedPermissions.Load()
	return declared != nil && slices.ContainsFunc(*declared, func(d string) bool { return grants(p, d) })
}

// isPrivilegedRole reports whether the name of a role makes its bearer an operator.
func (a *Auth) isPrivilegedRole(role string, t store.RoleTable) bool {
	return role == RoleOwner || role == roleAdmin || slices.Contains(a.cfg.privileged, role) || slices.Contains(t.Privileged, role)
}

// standing is the part of an account's roles that counts when the account acts.
type standing struct {
	roles       []string
	permissions []string // sorted, without duplicates
	revision    int64    // of the table of roles
	waits       bool     // the account has operator permissions that it has not accepted
}

// standingIn decides whether an account waits. Stores repeat only the check of the
// acceptance (User.Accepted).
func (a *Auth) standingIn(known *knownRoles, u User) standing {
	s := standing{roles: u.Roles, permissions: known.permissionsOf(u.Roles), revision: known.revision}
	privileged := func(role string) bool { return a.isPrivilegedRole(role, known.table) }
	if u.Accepted(a.now()) || !slices.ContainsFunc(u.Roles, privileged) && !slices.ContainsFunc(s.permissions, a.isOperatorPermission) {
		return s
	}
	s.waits = true
	s.roles = slices.DeleteFunc(slices.Clone(s.roles), privileged)
	s.permissions = a.withoutOperator(s.permissions)
	return s
}

// withoutOperator returns the permissions that are no operator's. A pattern such as
// "invoices.*" that covers some is replaced by the other declared permissions that it
// covers.
func (a *Auth) withoutOperator(permissions []string) []string {
	kept := []string{}
	for _, p := range permissions {
		declared := a.declaredPermissions.Load()
		switch {
		case !a.isOperatorPermission(p):
			kept = append(kept, p)
		case p != permissionAll && declared != nil:
			for _, d := range *declared {
				if grants(p, d) && !a.isOperatorPermission(d) {
					kept = append(kept, d)
				}
			}
		}
	}
	slices.Sort(kept)
	return slices.Compact(kept)
}

// standing is standingIn by the present table of roles. Without a ProjectStore only the
// owner's role permits anything.
func (a *Auth) standing(ctx context.Context, u User) (standing, error) {
	if len(u.Roles) == 0 {
		return standing{roles: u.Roles, permissions: []string{}}, nil
	}
	known, err := a.rolePermissions(ctx)
	if err != nil {
		return standing{}, err
	}
	return a.standingIn(known, u), nil
}

// requireNoWait refuses changes of the address, phone number or second factor while an
// account waits, because a stranger may hold its sessions. Errors: CodeTargetStronger.
func (a *Auth) requireNoWait(ctx context.Context, u User) error {
	s, err := a.standing(ctx, u)
	if err == nil && s.waits {
		err = Reject(CodeTargetStronger, "This account has permissions that its holder has not accepted. Accept them first, with the link sent to its address.")
	}
	return err
}

// asActor returns a user with the roles that count when the account acts, for responses
// and hooks.
func (a *Auth) asActor(ctx context.Context, u User) (User, error) {
	s, err := a.standing(ctx, u)
	u.Roles = s.roles
	return u, err
}

// holdsOperator returns the operator permissions of roles, accepted or not, and the names
// of privileged roles among them.
func (a *Auth) holdsOperator(known *knownRoles, roles []string) []string {
	held := slices.DeleteFunc(known.permissionsOf(roles), func(p string) bool { return !a.isOperatorPermission(p) })
	for _, r := range roles {
		if a.isPrivilegedRole(r, known.table) {
			held = append(held, "role "+r) // no permission has a space
		}
	}
	return held
}

// setRoles makes a patch replace the roles of a user. An acceptance covers later roles,
// too, unless the address of the account changed after it; it outlasts the last operator
// permission by acceptanceKept. A patch that accepts does so only if there is something to
// accept. Every change of roles calls it. asks reports whether the change adds operator
// permissions that wait.
func (a *Auth) setRoles(p *store.UserPatch, known *knownRoles, u User, roles []string) (asks bool) {
	p.Roles = &roles
	now, before, after := a.now(), a.holdsOperator(known, u.Roles), a.holdsOperator(known, roles)
	gains := slices.ContainsFunc(after, func(p string) bool { return !slices.Contains(before, p) })
	if p.Accept = p.Accept && len(after) > 0; p.Accept || !u.Accepted(now) {
		return gains && !p.Accept
	}
	until := u.AcceptedUntil
	switch {
	case gains && addressSequence(u) > u.AcceptedSequence:
		until, asks = acceptanceOver(), true
	case len(after) > 0:
		until = time.Time{}
	case until.IsZero():
		until = now.Add(acceptanceKept)
	}
	if !until.Equal(u.AcceptedUntil) {
		p.AcceptedUntil = &until
	}
	return asks
}

// acceptedWith returns the AcceptedSequence of a new user who accepts the roles.
func (a *Auth) acceptedWith(ctx context.Context, roles []string) (int64, error) {
	known, err := a.rolePermissions(ctx)
	if err != nil || len(a.holdsOperator(known, roles)) == 0 {
		return 0, err
	}
	return 1, nil
}

// addressSequence returns the sequence of the address that acceptance links go to.
func addressSequence(u User) int64 {
	if u.Email == "" {
		return u.PhoneSequence
	}
	return u.EmailSequence
}
