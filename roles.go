package auth

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"
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
	at    time.Time
	perms map[string][]string // by role
}

// younger tells whether it was read less than d ago.
func (k *knownRoles) younger(d time.Duration) bool { return k != nil && time.Since(k.at) < d }

// permissionsOf are the permissions of roles, sorted, each once. Without a
// RoleStore only the owner's role permits anything.
func (a *Auth) permissionsOf(ctx context.Context, roles []string) ([]string, error) {
	if len(roles) == 0 {
		return []string{}, nil
	}
	perms, err := a.rolePermissions(ctx)
	if err != nil {
		return nil, err
	}
	list := []string{}
	for _, role := range roles {
		if role == RoleOwner {
			list = append(list, permissionAll)
		}
		list = append(list, perms[role]...)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// rolePermissions is what each role permits, not older than rolesFor if it can be
// read. One caller reads; the others take what is known, and wait only if nothing
// is.
func (a *Auth) rolePermissions(ctx context.Context) (map[string][]string, error) {
	if a.roleStore == nil {
		return nil, nil
	}
	t := a.roleTable
	if k := t.known.Load(); k.younger(rolesFor) {
		return k.perms, nil
	}
	select {
	case t.reading <- struct{}{}:
	default:
		if k := t.known.Load(); k.younger(rolesAtAll) {
			return k.perms, nil
		}
		select {
		case t.reading <- struct{}{}:
		case <-ctx.Done():
			return nil, storeFailed(ctx.Err())
		}
	}
	defer func() { <-t.reading }()
	k := t.known.Load()
	if k.younger(rolesFor) { // read while this waited
		return k.perms, nil
	}
	table, err := a.roleStore.Roles(ctx)
	switch {
	case err != nil && k.younger(rolesAtAll):
		return k.perms, nil //nolint:nilerr // see rolesAtAll
	case err != nil:
		return nil, storeFailed(err)
	}
	k = &knownRoles{at: time.Now(), perms: make(map[string][]string, len(table.Roles))} // of the process: how old something read is, no fake clock tells
	for _, r := range table.Roles {
		k.perms[r.Name] = r.Permissions
	}
	t.known.Store(k)
	return k.perms, nil
}
