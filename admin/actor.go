package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// Actor is in whose name an operation happens: somebody who is signed in ([User]), a
// program with a secret key ([Key]), somebody whom the application's own admin login
// knows ([External]), or code of the application ([System]). The zero Actor may do
// nothing.
type Actor struct {
	caller auth.Caller
	system string
	key    Secret

	external *Identity

	// Of who goes on with a job: that they had proved lately who they are was judged
	// when it began, and by what a key is known is its id, or its name in the options.
	begun          bool
	keyID, keyName string
	keyAt          int64

	seen *seen // of who looks at a page
}

// seen is an actor's session as it was read for a page, whose other reads go by it: a page
// is judged once, when it is asked for, and by itself when it is a slow one. What changes
// something reads it anew.
type seen struct {
	at      time.Time
	session auth.Session
	user    auth.User
}

// seenFor is how long that holds.
const seenFor = time.Second

// User is a person who is signed in to a session, see Claims.Caller. Their roles are
// read anew for every operation; the token's do not count.
func User(c auth.Caller) Actor { return Actor{caller: c} }

// System is code of the application, by a name for the audit log. It may do
// everything: the application answers for it.
func System(name string) Actor { return Actor{system: name} }

func (a Actor) authority() auth.Authority {
	switch {
	case a.system != "":
		return auth.Authority{System: a.system}
	case a.external != nil:
		return auth.Authority{External: a.external.ID}
	}
	return auth.Authority{Session: &auth.SessionRef{ID: a.caller.SessionID, UserID: a.caller.UserID}}
}

// acting is an actor as read for one operation.
type acting struct {
	by          auth.Authority
	label       string     // for the audit log
	user        *auth.User // nil: no person
	session     auth.Session
	key         *store.APIKey // nil: no key
	creator     *auth.User    // who answers for the key; nil: nobody
	external    *Identity     // nil: nobody whom the application alone knows
	permissions []string
	roles       store.RoleTable
	begun       bool // see Actor
}

func (a *acting) system() bool { return a.user == nil && a.key == nil && a.external == nil }

// is tells whether the actor is a user.
func (a *acting) is(userID string) bool { return a.user != nil && a.user.ID == userID }

// own tells whether an account is the actor's own: the user's, or that of whoever
// answers for the key.
func (a *acting) own(userID string) bool {
	return a.is(userID) || a.creator != nil && a.creator.ID == userID
}

// may tells whether the actor has a permission.
func (a *acting) may(permission string) bool { return grants(a.permissions, permission) }

// resolve reads who acts and what they may. Errors: CodeSessionEnded, CodeUserBanned,
// CodeInvalidAPIKey, CodeMissingToken.
func (m *Admin) resolve(ctx context.Context, who Actor, op operation) (*acting, error) {
	table, err := m.rolesFor(ctx, op)
	if err != nil {
		return nil, m.kit.StoreError(err)
	}
	a := &acting{by: who.authority(), roles: table, begun: who.begun}
	if who.system != "" {
		a.label, a.permissions = who.system, []string{permAll}
		return a, nil
	}
	if who.key.text != nil || who.keyID != "" || who.keyName != "" {
		return a, m.resolveKey(ctx, who, a)
	}
	if who.external != nil {
		return a, m.resolveExternal(*who.external, a)
	}
	if now := m.kit.Now(); who.seen != nil && op.reads() && now.Sub(who.seen.at) < seenFor {
		a.signedIn(who.seen.session, who.seen.user)
		return a, nil
	}
	s, u, err := m.store.Session(ctx, who.caller.SessionID, m.kit.Now())
	switch {
	case errors.Is(err, store.ErrBanned):
		return nil, m.fail(auth.CodeUserBanned, err)
	case errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrSessionEnded) || err == nil && u.ID != who.caller.UserID:
		return nil, m.fail(auth.CodeSessionEnded, err)
	case err != nil:
		return nil, m.kit.StoreError(err)
	}
	a.signedIn(s, u)
	return a, nil
}

// signedIn makes the actor somebody with a session.
func (a *acting) signedIn(s auth.Session, u auth.User) {
	a.user, a.session, a.label = &u, s, labelOf(u)
	a.permissions = permissionsIn(a.roles, u.Roles)
}

// rolesFor is the table that an operation goes by: as it is now for one that changes
// something, which holds it as a condition, or that shows roles; otherwise as the
// process knows it, as it does for tokens.
func (m *Admin) rolesFor(ctx context.Context, op operation) (store.RoleTable, error) {
	if op.reads() && op.permission != PermRolesRead {
		return m.kit.Roles(ctx)
	}
	return m.project.Roles(ctx)
}

// permissionsIn are what roles permit by a table, sorted, each once. A role that is
// not in it permits nothing.
func permissionsIn(t store.RoleTable, roles []string) []string {
	list := []string{}
	for _, name := range roles {
		if name == auth.RoleOwner {
			list = append(list, permAll)
		}
		for _, r := range t.Roles {
			if r.Name == name {
				list = append(list, r.Permissions...)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// labelOf is what somebody is told from others by. It is copied into the audit log, whose
// rows outlive the account. A name is none: people choose it, and could choose another's
// address.
func labelOf(u auth.User) string { return cmp.Or(u.Email, u.Phone, u.ID) }
