package admin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// Permission is a permission that roles may hold.
type Permission struct {
	Name        string `json:"name"`        // "notes.write" or "notes:write": lower-case letters, digits, "_", "-", ":" and "."
	Description string `json:"description"` // for people

	// Privileged permissions protect their holders: only an actor who also has them may
	// ban, sign out, edit or delete a holder.
	Privileged bool `json:"privileged"`
}

// The permissions of Authmount's own operations. "auth.*" stands for all of them, and "*"
// also for all of the application's.
const (
	PermUsersRead       = "auth.users.read"
	PermUsersWrite      = "auth.users.write"
	PermUsersDelete     = "auth.users.delete"
	PermUsersBan        = "auth.users.ban"
	PermUsersExport     = "auth.users.export"
	PermUsersImport     = "auth.users.import"
	PermCredentials     = "auth.credentials" // change of credentials: set a password, verify an email address, remove a factor
	PermSessionsRead    = "auth.sessions.read"
	PermSessionsRevoke  = "auth.sessions.revoke"
	PermRolesRead       = "auth.roles.read"
	PermRolesWrite      = "auth.roles.write"
	PermRolesAssign     = "auth.roles.assign"
	PermImpersonate     = "auth.impersonate"
	PermAuditRead       = "auth.audit.read"
	PermAuditExport     = "auth.audit.export"
	PermStatsRead       = "auth.stats.read"
	PermMessagesRead    = "auth.messages.read"
	PermMessagesSend    = "auth.messages.send"
	PermKeysRead        = "auth.keys.read"
	PermKeysWrite       = "auth.keys.write"
	PermKeysVerify      = "auth.keys.verify"
	PermRevocationsRead = "auth.revocations.read"
	PermSettingsRead    = "auth.settings.read"
	PermSettingsWrite   = "auth.settings.write"

	permAll   = "*"
	ownPrefix = "auth."
)

var ownPermissions = []Permission{
	{Name: PermUsersRead, Description: "See accounts."},
	{Name: PermUsersWrite, Description: "Create and edit accounts, and invite people."},
	{Name: PermUsersDelete, Description: "Delete and anonymise accounts."},
	{Name: PermUsersBan, Description: "Ban accounts, lift bans, and clear limits."},
	{Name: PermUsersExport, Description: "Export accounts."},
	{Name: PermUsersImport, Description: "Import accounts."},
	{Name: PermCredentials, Description: "Change sign-in methods: passwords, addresses, factors, identities, links."},
	{Name: PermSessionsRead, Description: "See sessions."},
	{Name: PermSessionsRevoke, Description: "End sessions."},
	{Name: PermRolesRead, Description: "See roles and who has them."},
	{Name: PermRolesWrite, Description: "Create, edit and delete roles."},
	{Name: PermRolesAssign, Description: "Give and take roles."},
	{Name: PermImpersonate, Description: "Act as another user."},
	{Name: PermAuditRead, Description: "Read the audit log."},
	{Name: PermAuditExport, Description: "Export the audit log."},
	{Name: PermStatsRead, Description: "See figures."},
	{Name: PermMessagesRead, Description: "See sent messages."},
	{Name: PermMessagesSend, Description: "Send messages to users."},
	{Name: PermKeysRead, Description: "See API keys."},
	{Name: PermKeysWrite, Description: "Create, rotate and revoke API keys."},
	{Name: PermKeysVerify, Description: "Check the secret keys that programs send to other services."},
	{Name: PermRevocationsRead, Description: "Follow the revocations of sessions and tokens, as other services do."},
	{Name: PermSettingsRead, Description: "See settings."},
	{Name: PermSettingsWrite, Description: "Change settings."},
}

// The roles that exist from the start, in addition to auth.RoleOwner.
const (
	RoleAdmin   = "admin"
	RoleSupport = "support"
	RoleAuditor = "auditor"
)

// readyRoles returns the first roles of an empty table, in the order in which New adds
// them.
func readyRoles() []store.RolePermissions {
	all := func(keep func(string) bool) (list []string) {
		for _, p := range ownPermissions {
			if keep(p.Name) {
				list = append(list, p.Name)
			}
		}
		return list
	}
	return []store.RolePermissions{
		{Name: RoleAdmin, Description: "Runs the service day by day.", Permissions: all(func(p string) bool {
			return p != PermKeysWrite && p != PermSettingsWrite && p != PermRolesWrite
		})},
		{Name: RoleSupport, Description: "Helps people with their accounts.", Permissions: all(func(p string) bool {
			return slices.Contains([]string{PermUsersRead, PermSessionsRead, PermSessionsRevoke, PermUsersBan, PermMessagesSend, PermAuditRead}, p)
		})},
		{Name: RoleAuditor, Description: "Sees everything and changes nothing.", Permissions: all(func(p string) bool {
			return strings.HasSuffix(p, ".read")
		})},
	}
}

var permissionName = regexp.MustCompile(`^[a-z][a-z0-9_-]*([.:][a-z0-9_-]+)*$`)

const maxPermissionName = 64

// catalog is the list of declared permissions, sorted by name.
type catalog []Permission

func newCatalog(own []Permission) (catalog, error) {
	list := slices.Clone(ownPermissions)
	var faults []error
	for _, p := range own {
		switch {
		case len(p.Name) > maxPermissionName || !permissionName.MatchString(p.Name):
			faults = append(faults, fmt.Errorf("permission %q: use up to %d lower-case letters, digits, '_', '-', '.' and ':', such as notes.write", p.Name, maxPermissionName))
		case strings.HasPrefix(p.Name, ownPrefix) || strings.HasPrefix(p.Name, "auth:"):
			faults = append(faults, fmt.Errorf("permission %q: names that begin with auth are Authmount's own", p.Name))
		case slices.ContainsFunc(list, func(q Permission) bool { return q.Name == p.Name }):
			faults = append(faults, fmt.Errorf("permission %q is declared twice", p.Name))
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Permission) int { return strings.Compare(a.Name, b.Name) })
	return list, errors.Join(faults...)
}

// known reports whether a role may hold p: a declared permission, or a pattern that
// covers at least one.
func (c catalog) known(p string) bool {
	return slices.ContainsFunc(c, func(d Permission) bool { return grants([]string{p}, d.Name) })
}

// managing returns the permissions that protect their holders against operators:
// Authmount's own, privileged ones, the names of privileged roles, and every pattern that
// covers any of them.
func (c catalog) managing(permissions []string) []string {
	var list []string
	for _, p := range permissions {
		if strings.HasPrefix(p, rolePrefix) || slices.ContainsFunc(c, func(d Permission) bool {
			return (d.Privileged || strings.HasPrefix(d.Name, ownPrefix)) && grants([]string{p}, d.Name)
		}) {
			list = append(list, p)
		}
	}
	return list
}

// admits reports whether permissions include one of Authmount's own, which makes their
// holder an admin.
func (c catalog) admits(permissions []string) bool {
	return slices.ContainsFunc(c, func(d Permission) bool { return strings.HasPrefix(d.Name, ownPrefix) && grants(permissions, d.Name) })
}

// rolePrefix begins the permission that the name of a privileged role counts as, and the
// scope of a key that names a role. No permission can be declared with a slash, and only
// "*" covers it.
const rolePrefix = "role/"

// isPrivileged reports whether the name of a role is privileged, by the options or by the
// mark in the store, which outlives the role.
func (m *Admin) isPrivileged(t store.RoleTable, role string) bool {
	return slices.Contains(m.privileged, role) || slices.Contains(t.Privileged, role)
}

// strengthIn returns the permissions that count when the strengths of two accounts are
// compared (covers): those of their roles, and the names of the privileged ones, because
// application code may ask for a role by name.
func (m *Admin) strengthIn(t store.RoleTable, roles []string) []string {
	list := permissionsIn(t, roles)
	for _, r := range roles {
		if m.isPrivileged(t, r) && r != auth.RoleOwner { // owner is "*"
			list = append(list, rolePrefix+r)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// strengthOf is strengthIn for an account that acts: without operator permissions that it
// has not accepted.
func (m *Admin) strengthOf(t store.RoleTable, u auth.User) []string {
	if s := m.kit.Standing(t, u); s.Waits {
		return s.Permissions
	}
	return m.strengthIn(t, u.Roles)
}

// withoutNames returns permissions without the names of roles among them, to be shown.
func withoutNames(permissions []string) []string {
	return slices.DeleteFunc(slices.Clone(permissions), func(p string) bool { return strings.HasPrefix(p, rolePrefix) })
}

// covers reports whether the permissions held include all permissions wanted. It is the
// comparison of strengths.
func covers(held, wanted []string) bool {
	for _, p := range wanted {
		if !grants(held, p) {
			return false
		}
	}
	return true
}

// grants reports whether the permissions held include one, by the rule of access tokens.
func grants(held []string, wanted string) bool {
	c := auth.Claims{Permissions: held}
	return c.HasPermission(wanted)
}

// givenRoles are the roles that an operation gives to an account or takes from it, and
// those that the account keeps.
type givenRoles struct{ changed, kept []string }

func (g givenRoles) none() bool { return len(g.changed)+len(g.kept) == 0 }

// mayGiveRoles is the check of every operation that gives or takes roles. The actor needs
// the strength of all of them. The scopes of a key also have to name the changed ones.
// Errors: CodeTargetStronger; CodeMissingPermission for a key.
func (m *Admin) mayGiveRoles(a *acting, given givenRoles) error {
	needs := m.strengthIn(a.roles, slices.Concat(given.changed, given.kept))
	if a.key == nil {
		return m.mayGive(a, needs)
	}
	for _, r := range given.changed {
		if !slices.Contains(a.key.Scopes, rolePrefix+r) {
			return m.missing(a, rolePrefix+r)
		}
	}
	for _, p := range needs {
		if !a.may(p) {
			return m.missing(a, p)
		}
	}
	return nil
}

// holdsNow returns an earlier actor with its present permissions, by the present table of
// roles, and the conditions for them. Errors: CodeInvalidToken if the user is gone or
// banned, or the key has ended. accepted is AcceptedSequence of a user at that time: an
// acceptance ends everything that the account started before, because somebody else may
// have done so. sequence is that of the user's session, which the user may have reported
// since.
func (m *Admin) holdsNow(ctx context.Context, by auth.Actor, accepted, sequence int64) (a *acting, terms host.Terms, err error) {
	over := func(why string) error { return m.fail(auth.CodeInvalidToken, errors.New(why)) }
	table, err := m.project.Roles(ctx)
	if err != nil {
		return nil, terms, m.kit.StoreError(err)
	}
	a, terms.IfRoles = &acting{roles: table}, &table.Revision
	answers := func(u auth.User) {
		terms.IfUsers = []auth.UserAt{{ID: u.ID, CredentialRevision: &u.CredentialRevision, Banned: new(bool)}}
	}
	switch by.Kind {
	case store.ActorSystem:
		switch k, named, there := m.kit.SecretKeyNamed(by.ID); {
		case there:
			a.key = &k
			a.permissions, _, err = m.keyMay(ctx, k, table)
			return a, terms, err
		case named:
			return nil, terms, over("the creating key is no longer in the options")
		}
		a.permissions = []string{permAll}
		return a, terms, nil
	case store.ActorExternal: // only the application knows the permissions
		a.permissions = []string{permAll}
		return a, terms, nil
	case store.ActorUser:
		u, err := m.store.User(ctx, store.ByID(by.ID))
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, terms, over("its creator was deleted")
		case err != nil:
			return nil, terms, m.kit.StoreError(err)
		case u.Banned(m.kit.Now()):
			return nil, terms, over("its creator is banned")
		case u.AcceptedSequence != accepted:
			return nil, terms, over("its creator has accepted permissions since")
		}
		switch reported, err := m.kit.SessionReported(ctx, u.ID, sequence); {
		case err != nil:
			return nil, terms, err
		case reported:
			return nil, terms, over("its creator has reported the session that created it")
		}
		answers(u)
		a.user, a.permissions = &u, m.strengthOf(table, u)
		return a, terms, nil
	case store.ActorKey:
		k, err := m.project.Key(ctx, by.ID)
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && !k.Live(m.kit.Now()):
			return nil, terms, over("the creating key was revoked or has expired")
		case err != nil:
			return nil, terms, m.kit.StoreError(err)
		}
		terms.IfKey = &auth.KeyRef{ID: k.ID, Revision: k.Revision}
		a.key = &k
		a.permissions, a.creator, err = m.keyMay(ctx, k, table)
		switch {
		case errors.Is(err, auth.CodeInvalidAPIKey):
			return nil, terms, over("the owner of the creating key is banned or was deleted")
		case err != nil:
			return nil, terms, err
		case a.creator != nil:
			answers(*a.creator)
		}
		return a, terms, nil
	}
	return nil, terms, over("its creator is of an unknown kind")
}
