package auth

import (
	"context"
	"slices"
	"strings"
	"sync"
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

// rolesAskedFor are the names that HasRole was asked for, in the whole process, because a
// Requirement and Claims belong to no Auth.
var rolesAskedFor namesAsked

// namesAsked is a set of names of roles. It is safe for concurrent use.
type namesAsked struct {
	names sync.Map
	n     atomic.Int64
}

// maxNamesAsked limits the set, because an application may ask for names of strangers.
const maxNamesAsked = 500

func (s *namesAsked) add(name string) {
	if _, known := s.names.Load(name); known || !isRole(name) || s.n.Load() >= maxNamesAsked {
		return
	}
	if _, known := s.names.LoadOrStore(name, nil); !known {
		s.n.Add(1)
	}
}

func (s *namesAsked) list() []string {
	list := []string{}
	s.names.Range(func(name, _ any) bool {
		list = append(list, name.(string))
		return true
	})
	slices.Sort(list)
	return list
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

// permissionsOf returns the permissions of roles, sorted and without duplicates.
func (k *knownRoles) permissionsOf(roles []string) []string {
	list := []string{}
	for _, role := range roles {
		if role == RoleOwner {
			list = append(list, permissionAll)
		}
		list = append(list, k.perms[role]...)
	}
	slices.Sort(list)
	return slices.Compact(list)
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
	k = rolesOf(table)
	k.at = time.Now() // the real time: the age of a cached table does not follow the service's clock
	t.known.Store(k)
	return k, nil
}

// currentRoles reads the table of roles, for a change that depends on it.
func (a *Auth) currentRoles(ctx context.Context) (*knownRoles, error) {
	if a.project == nil {
		return &knownRoles{}, nil
	}
	table, err := a.project.Roles(ctx)
	return rolesOf(table), storeFailed(err)
}

func rolesOf(t store.RoleTable) *knownRoles {
	k := &knownRoles{revision: t.Revision, perms: make(map[string][]string, len(t.Roles)), table: t}
	for _, r := range t.Roles {
		k.perms[r.Name] = r.Permissions
	}
	return k
}
