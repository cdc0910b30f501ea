package admin

import (
	"context"
	"net/http"
	"slices"

	"github.com/authmount/auth"
)

// Auth returns the service of the operations.
func (m *Admin) Auth() *auth.Auth { return m.auth }

// OwnLogin reports whether the application has an admin login of its own
// (Options.Authorize).
func (m *Admin) OwnLogin() bool { return m.authenticate != nil }

// Authorize returns the sender of a request to a page: with Options.Authorize the person
// whom the application names, otherwise the user of the session. Errors: those of
// Options.Authorize.
func (m *Admin) Authorize(r *http.Request) (Actor, error) {
	if m.authenticate != nil {
		return m.identifyExternal(r)
	}
	if c := auth.ClaimsFrom(r.Context()); c != nil {
		return User(c.Caller()), nil
	}
	return Actor{}, nil
}

// Visitor is an actor as read for one page: the page shows only the operations that the
// visitor may use. Each operation checks its actor again.
type Visitor struct {
	Label string // for people: the email address, the phone number or the id
	Admin bool   // the visitor holds one of the permissions of operations

	m     *Admin
	actor Actor
	a     *acting
}

// Visitor reads an actor. Errors: CodeSessionEnded, CodeUserBanned, CodeMissingToken.
func (m *Admin) Visitor(ctx context.Context, who Actor) (Visitor, error) {
	at := m.kit.Now()
	a, err := m.resolve(ctx, who, opMe)
	if err != nil {
		return Visitor{}, err
	}
	if a.user != nil {
		who.seen = &seen{at: at, session: a.session, user: *a.user}
	}
	return Visitor{Label: a.label, Admin: m.permissions.admits(a.permissions), m: m, actor: who, a: a}, nil
}

// Reader returns the visitor as the actor of one page. For a second, operations that
// change nothing use the session as it was read.
func (v Visitor) Reader() Actor { return v.actor }

// Holds reports whether the visitor has a permission.
func (v Visitor) Holds(permission string) bool { return v.a.may(permission) }

// May checks the visitor against the rules of an operation, which is named by its method
// and path below /admin. The target is checked when the operation runs. Errors:
// CodeNotAdmin, CodeMissingPermission, CodeInsufficientAAL, CodeReauthNeeded;
// CodeNotFound if there is no such operation.
func (v Visitor) May(pattern string) error {
	op, err := v.op(pattern)
	if err == nil {
		err = v.m.allow(v.a, op)
	}
	return err
}

// Attempt is May for a visitor who sends a form: it records a refusal, as the operation
// does.
func (v Visitor) Attempt(ctx context.Context, pattern string) error {
	op, err := v.op(pattern)
	if err != nil {
		return err
	}
	if err := v.m.allow(v.a, op); err != nil {
		return v.m.denied(ctx, &attempt{acting: v.a, record: v.m.recordOf(ctx, v.a, op)}, err)
	}
	return nil
}

func (v Visitor) op(pattern string) (operation, error) {
	op, ok := operations()[pattern]
	if !ok {
		return op, v.m.fail(auth.CodeNotFound, nil)
	}
	return op, nil
}

// RoleScopes lists the names of roles that the visitor may give to a key as scopes.
func (v Visitor) RoleScopes() []string {
	var scopes []string
	for _, r := range v.a.roles.Roles {
		scope := rolePrefix + r.Name
		if v.m.forSomeKey(v.a.roles, r.Name) && covers(v.a.permissions, v.m.strengthOfScopes(v.a.roles, []string{scope})) {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// AllowedForKeys reports whether a secret key may have a permission.
func AllowedForKeys(permission string) bool { return !slices.Contains(notForKeys(), permission) }
