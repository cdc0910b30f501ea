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

// Actor is the caller of an operation: a signed-in user ([User]), a program with a secret
// key ([Key]), a person whom the application's own admin login knows ([External]), or
// code of the application ([System]). The zero Actor may do nothing.
type Actor struct {
	caller auth.Caller
	system string
	key    Secret

	external *Identity

	accepting bool

	// The actor of a job. Recent authentication was checked when the job started. A key
	// is known by its id, or by its name in the options.
	inJob          bool
	keyID, keyName string
	keyAt          int64

	seen *seen // of an actor who looks at a page
}

// seen caches an actor's session for the reads of one page. It is valid for seenFor;
// operations that change something read the session again.
type seen struct {
	at      time.Time
	session auth.Session
	user    auth.User
}

const seenFor = time.Second

// User returns the actor for a signed-in user, see Claims.Caller. The user's roles are
// read for every operation; those of the token do not count.
func User(c auth.Caller) Actor { return Actor{caller: c} }

// System returns the actor for code of the application. name is for the audit log. It may
// do everything, because the application is responsible for it.
func System(name string) Actor { return Actor{system: name} }

// Accepting returns code of the application whose changes of roles, and new accounts, take
// effect without the acceptance of the account's holder. A password, phone number or
// session that somebody else set up for the account before then keeps working, with the
// new permissions. Use it for accounts that the application itself has just created, such
// as the first owner of a new service, and in tests. It has no effect on other actors.
func (a Actor) Accepting() Actor {
	a.accepting = a.system != ""
	return a
}

func (a Actor) authority() auth.Authority {
	switch {
	case a.system != "":
		return auth.Authority{System: a.system}
	case a.external != nil:
		return auth.Authority{External: a.external.ID}
	}
	return auth.Authority{Session: &auth.SessionRef{ID: a.caller.SessionID, UserID: a.caller.UserID}}
}

// acting is an actor as it was read for one operation.
type acting struct {
	by          auth.Authority
	label       string     // for the audit log
	user        *auth.User // nil: no user
	session     auth.Session
	key         *store.APIKey // nil: no key
	creator     *auth.User    // the user who answers for the key; nil: none
	external    *Identity     // nil: not an external actor
	permissions []string      // the result of strengthIn
	roles       store.RoleTable
	inJob       bool // see Actor
	accepting   bool // see Actor.Accepting
}

func (a *acting) system() bool { return a.user == nil && a.key == nil && a.external == nil }

// is reports whether the actor is a user.
func (a *acting) is(userID string) bool { return a.user != nil && a.user.ID == userID }

// accepted returns AcceptedSequence of a user; 0 for other actors.
func (a *acting) accepted() int64 {
	if a.user == nil {
		return 0
	}
	return a.user.AcceptedSequence
}

// own reports whether an account is the actor's own: the user's account, or that of the
// user who answers for the key.
func (a *acting) own(userID string) bool {
	return a.is(userID) || a.creator != nil && a.creator.ID == userID
}

// may reports whether the actor has a permission.
func (a *acting) may(permission string) bool { return grants(a.permissions, permission) }

// resolve reads the actor and the actor's permissions. Errors: CodeSessionEnded,
// CodeUserBanned, CodeInvalidAPIKey, CodeMissingToken.
func (m *Admin) resolve(ctx context.Context, who Actor, op operation) (*acting, error) {
	table, err := m.rolesFor(ctx, op)
	if err != nil {
		return nil, m.kit.StoreError(err)
	}
	a := &acting{by: who.authority(), roles: table, inJob: who.inJob, accepting: who.accepting}
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
		return a, m.signedIn(ctx, a, who.seen.session, who.seen.user)
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
	return a, m.signedIn(ctx, a, s, u)
}

// signedIn sets an actor to the user of a session. As in its tokens, roles that require a
// second factor do not count without one.
func (m *Admin) signedIn(ctx context.Context, a *acting, s auth.Session, u auth.User) (err error) {
	counting := u
	if counting.Roles, err = m.kit.RolesIn(ctx, u, s); err != nil {
		return err
	}
	a.user, a.session, a.label = &u, s, labelOf(u)
	a.permissions = m.strengthOf(a.roles, counting)
	return nil
}

// rolesFor returns the table of roles for an operation. Changes and reads of roles use the
// table in the store, because a change is conditional on it. Other reads use the process's
// copy, as tokens do.
func (m *Admin) rolesFor(ctx context.Context, op operation) (store.RoleTable, error) {
	if op.reads() && op.permission != PermRolesRead {
		return m.kit.Roles(ctx)
	}
	return m.project.Roles(ctx)
}

// permissionsIn returns the permissions that roles have in a table, sorted, without
// duplicates. A role that is not in the table permits nothing.
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

// labelOf returns the label of a user. The audit log stores a copy, because the log
// outlives the account. It is never the user's name: people choose their names, and could
// choose another user's email address.
func labelOf(u auth.User) string { return cmp.Or(u.Email, u.Phone, u.ID) }
