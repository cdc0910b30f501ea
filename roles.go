package auth

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/authmount/auth/store"
)

// isOwner tells whether a user has the role that may do everything. Whatever
// takes it away, or its holder, must leave another one (Change.KeepOwner).
func isOwner(u User) bool { return slices.Contains(u.Roles, RoleOwner) }

// permissionAll stands for every permission.
const permissionAll = "*"

// grants tells whether a permission that somebody holds covers another: the same,
// "*" for all, or "notes.*" for all that begin with "notes.".
func grants(held, wanted string) bool {
	prefix, all := strings.CutSuffix(held, permissionAll)
	switch {
	case held == wanted, held == permissionAll:
		return true
	case all && strings.HasSuffix(prefix, "."):
		return strings.HasPrefix(wanted, prefix)
	}
	return false
}

// How long what roles permit is remembered, and for how long it serves while the
// table cannot be read: a refresh that failed for it would have used its token up.
const (
	rolesFor   = time.Second
	rolesAtAll = time.Minute
)

// roleTable remembers what roles permit, so that a sign-in or refresh need not
// read it each time.
type roleTable struct {
	known   atomic.Pointer[knownRoles]
	reading chan struct{} // has room for the one who reads
}

type knownRoles struct {
	at       time.Time
	revision int64
	perms    map[string][]string // by role
	table    store.RoleTable
}

// younger tells whether it was read less than d ago.
func (k *knownRoles) younger(d time.Duration) bool { return k != nil && time.Since(k.at) < d }

// permissionsOf are the permissions of roles, sorted, each once, and the revision of
// the table that says so. Without a ProjectStore only the owner's role permits anything.
func (a *Auth) permissionsOf(ctx context.Context, roles []string) ([]string, int64, error) {
	if len(roles) == 0 {
		return []string{}, 0, nil
	}
	known, err := a.rolePermissions(ctx)
	if err != nil {
		return nil, 0, err
	}
	list := []string{}
	for _, role := range roles {
		if role == RoleOwner {
			list = append(list, permissionAll)
		}
		list = append(list, known.perms[role]...)
	}
	slices.Sort(list)
	return slices.Compact(list), known.revision, nil
}

// rolePermissions is what each role permits, not older than rolesFor, nor than a
// change that Revoke told of, if it can be read: the token that follows a change is
// not stale. One caller reads; the others take what is known, and wait only if
// nothing is.
func (a *Auth) rolePermissions(ctx context.Context) (*knownRoles, error) {
	if a.project == nil {
		return &knownRoles{}, nil
	}
	t := a.roleTable
	current := func(k *knownRoles, age time.Duration) bool {
		return k.younger(age) && k.revision >= a.revoked.RolesRevision()
	}
	if k := t.known.Load(); current(k, rolesFor) {
		return k, nil
	}
	select {
	case t.reading <- struct{}{}:
	default:
		if k := t.known.Load(); current(k, rolesAtAll) {
			return k, nil
		}
		select {
		case t.reading <- struct{}{}:
		case <-ctx.Done():
			return nil, storeFailed(ctx.Err())
		}
	}
	defer func() { <-t.reading }()
	k := t.known.Load()
	if current(k, rolesFor) { // read while this waited
		return k, nil
	}
	table, err := a.project.Roles(ctx)
	switch {
	case err != nil && k.younger(rolesAtAll):
		return k, nil //nolint:nilerr // see rolesAtAll
	case err != nil:
		return nil, storeFailed(err)
	}
	k = &knownRoles{at: time.Now(), revision: table.Revision, perms: make(map[string][]string, len(table.Roles)), table: table} // of the process: how old something read is, no fake clock tells
	for _, r := range table.Roles {
		k.perms[r.Name] = r.Permissions
	}
	t.known.Store(k)
	return k, nil
}
