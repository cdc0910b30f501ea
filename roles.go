package auth

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/authmount/auth/store"
)

// isOwner reports whether a user has the role that permits everything. A change that
// removes the role, or its holder, must leave another owner (Change.KeepOwner).
func isOwner(u User) bool { return slices.Contains(u.Roles, RoleOwner) }

// permissionAll is the permission that covers all others.
const permissionAll = "*"

// grants reports whether the permission held covers wanted: the same, "*" for all, or
// "notes.*" for all that begin with "notes.".
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

// How long the permissions of roles are cached, and for how long they are used while
// the table cannot be read. Without that, a failed refresh would have consumed its
// token.
const (
	rolesFor   = time.Second
	rolesAtAll = time.Minute
)

// roleTable caches the permissions of roles, so that a sign-in or refresh need not read
// them each time.
type roleTable struct {
	known   atomic.Pointer[knownRoles]
	reading chan struct{} // held by the caller that reads
}

type knownRoles struct {
	at       time.Time
	revision int64
	perms    map[string][]string // by role
	table    store.RoleTable
}

// younger reports whether k was read less than d ago.
func (k *knownRoles) younger(d time.Duration) bool { return k != nil && time.Since(k.at) < d }

// permissionsOf returns the permissions of roles, sorted and without duplicates, and
// the revision of their table. Without a ProjectStore only the owner's role permits
// anything.
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

// rolePermissions returns the permissions of each role. If the table can be read, they
// are not older than rolesFor, nor than a change that Revoke has reported, so that a
// token issued after a change is not stale. One caller reads at a time. The others use
// the cached table, and wait only if there is none.
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
	k = &knownRoles{at: time.Now(), revision: table.Revision, perms: make(map[string][]string, len(table.Roles)), table: table} // the real time: the age of a cached table does not follow the service's clock
	for _, r := range table.Roles {
		k.perms[r.Name] = r.Permissions
	}
	t.known.Store(k)
	return k, nil
}
