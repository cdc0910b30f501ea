package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var (
	opListRoles   = operation{pattern: "GET /roles", permission: PermRolesRead}
	opPermissions = operation{pattern: "GET /permissions", permission: PermRolesRead}
	opCreateRole  = operation{created: http.StatusCreated, pattern: "POST /roles", permission: PermRolesWrite, stepUp: true, fails: []auth.Code{auth.CodeTargetStronger, auth.CodePreconditionFailed}}
	opUpdateRole  = operation{pattern: "PATCH /roles/{role}", permission: PermRolesWrite, stepUp: true, fails: []auth.Code{auth.CodeTargetStronger, auth.CodePreconditionFailed, auth.CodeRoleNotFound}}
	opDeleteRole  = operation{pattern: "DELETE /roles/{role}", permission: PermRolesWrite, stepUp: true, fails: []auth.Code{auth.CodeTargetStronger, auth.CodePreconditionFailed, auth.CodeRoleNotFound, auth.CodeRoleInUse}}
	opSetRoles    = operation{pattern: "PUT /users/{id}/roles", permission: PermRolesAssign, against: atLeastAs, stepUp: true, fails: assigning}
	opGrant       = operation{bodyless: true, pattern: "POST /users/{id}/roles/{role}", permission: PermRolesAssign, against: atLeastAs, stepUp: true, fails: assigning}
	opWithdraw    = operation{pattern: "DELETE /users/{id}/roles/{role}", permission: PermRolesAssign, against: atLeastAs, stepUp: true, fails: assigning}
	opCheck       = operation{pattern: "POST /check", permission: PermRolesRead, fails: []auth.Code{auth.CodeUserNotFound}}

	assigning = []auth.Code{auth.CodeRoleNotFound, auth.CodeLastOwner, auth.CodePreconditionFailed}
)

var roleName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// maxRoles limits the number of roles, because every operation reads all of them.
const maxRoles = 500

// maxRolePermissions limits the permissions of a role.
const maxRolePermissions = 500

// Permissions lists every declared permission, by name.
func (m *Admin) Permissions(ctx context.Context, who Actor) ([]Permission, error) {
	if _, err := m.reader(ctx, who, opPermissions); err != nil {
		return nil, err
	}
	return slices.Clone(m.permissions), nil
}

// Roles lists the roles by name, and the revision of their table. auth.RoleOwner, which
// holds every permission and cannot be changed, is not in it.
func (m *Admin) Roles(ctx context.Context, who Actor) (store.RoleTable, error) {
	a, err := m.reader(ctx, who, opListRoles)
	if err != nil {
		return store.RoleTable{}, err
	}
	t := a.roles
	t.Roles = slices.Clone(t.Roles)
	for i := range t.Roles {
		t.Roles[i].Privileged = m.isPrivileged(t, t.Roles[i].Name)
	}
	return t, nil
}

// RoleChange is the result of a change of a role, or of its dry run.
type RoleChange struct {
	Role  store.RolePermissions // as it is now; a deleted one as it was
	Users store.Total           // accounts that have it, counted just before

	dry bool // nothing was changed
}

// CreateRoleParams describe a new role.
type CreateRoleParams struct {
	Name        string   `json:"name"` // up to 63 lower-case letters, digits, "_" and "-"; the first is a letter
	Description string   `json:"description"`
	Permissions []string `json:"permissions"` // declared ones, or patterns such as "notes.*"
	Privileged  *bool    `json:"privileged"`  // the mark of the name, which only "*" changes; nil keeps it
	Revision    *int64   `header:"If-Match"`  // of the table of roles that the caller saw; nil: any
	DryRun      bool     `json:"dry_run"`     // only check it
}

// EnsureRole creates a role if there is none with the name, for the start of a program. It
// leaves an existing one as operators may have changed it, and ignores Revision and DryRun.
// It may run at several instances at once. Errors: those of CreateRole.
//
//	err := adm.EnsureRole(ctx, admin.System("setup"), admin.CreateRoleParams{Name: "editor", Permissions: []string{"notes.*"}})
func (m *Admin) EnsureRole(ctx context.Context, who Actor, p CreateRoleParams) error {
	p.Revision, p.DryRun = nil, false
	exists := func() (bool, error) {
		table, err := m.Roles(ctx, who)
		return find(table, p.Name).Name != "", err
	}
	if found, err := exists(); found || err != nil {
		return err
	}
	_, err := m.CreateRole(ctx, who, p)
	if errors.Is(err, auth.CodeValidationFailed) { // perhaps another instance was faster
		if found, again := exists(); found && again == nil {
			return nil
		}
	}
	return err
}

// CreateRole creates a role. The actor has to hold all of its permissions, and "*" if
// the name is privileged. A name stays privileged after its role is deleted. Accounts may
// have the role before it exists, see RoleChange.Users. Errors: CodeValidationFailed,
// also if the name is taken; CodeTargetStronger, CodePreconditionFailed.
func (m *Admin) CreateRole(ctx context.Context, who Actor, p CreateRoleParams) (RoleChange, error) {
	role := store.RolePermissions{Name: p.Name, Description: p.Description, Permissions: p.Permissions}
	if !roleName.MatchString(p.Name) || p.Name == roleMatrix {
		return RoleChange{}, m.kit.Invalid("name", "has to be up to 63 lower-case letters, digits, '_' and '-', begin with a letter, and not be "+roleMatrix)
	}
	if err := m.cleanRole(&role); err != nil {
		return RoleChange{}, err
	}
	return carryOut(ctx, m, who, opCreateRole, "", auth.EventRoleChanged, func(t *attempt) (RoleChange, error) {
		t.record.Target = role.Name
		if role.Name == auth.RoleOwner || find(t.roles, role.Name).Name != "" {
			return RoleChange{}, m.kit.Invalid("name", "is an existing role (owner, admin, support and auditor exist from the start); change it with PATCH or UpdateRole")
		}
		if len(t.roles.Roles) >= maxRoles {
			return RoleChange{}, m.kit.Invalid("name", fmt.Sprintf("cannot be added: there are already %d roles", maxRoles))
		}
		if err := m.atRoles(t, p.Revision); err != nil {
			return RoleChange{}, err
		}
		role.CreatedAt = t.change.Now
		before := store.RolePermissions{Privileged: m.isPrivileged(t.roles, role.Name)}
		if err := m.mayName(t, role.Name); err != nil {
			return RoleChange{}, err
		}
		return m.putRole(ctx, t, before, role, p.Privileged, p.DryRun)
	})
}

// UpdateRoleParams change a role.
type UpdateRoleParams struct {
	Name        string    `path:"role"`
	Description *string   `json:"description"` // nil keeps it
	Permissions *[]string `json:"permissions"` // the whole list; nil keeps it
	Privileged  *bool     `json:"privileged"`  // as for CreateRoleParams
	Revision    *int64    `header:"If-Match"`  // as for CreateRoleParams
	DryRun      bool      `json:"dry_run"`     // only check it
}

// UpdateRole changes a role. The actor has to hold every permission of the role, before
// and after; to change a privileged role, the actor has to have it, or "*". Errors: CodeRoleNotFound,
// CodeValidationFailed, CodeTargetStronger, CodePreconditionFailed.
func (m *Admin) UpdateRole(ctx context.Context, who Actor, p UpdateRoleParams) (RoleChange, error) {
	given := store.RolePermissions{}
	if p.Description != nil {
		given.Description = *p.Description
	}
	if p.Permissions != nil {
		given.Permissions = *p.Permissions
	}
	if err := m.cleanRole(&given); err != nil {
		return RoleChange{}, err
	}
	return carryOut(ctx, m, who, opUpdateRole, "", auth.EventRoleChanged, func(t *attempt) (RoleChange, error) {
		before, err := m.mayWrite(t, p.Name, p.Revision)
		if err != nil {
			return RoleChange{}, err
		}
		role := before
		if p.Description != nil {
			role.Description = given.Description
		}
		if p.Permissions != nil {
			role.Permissions = given.Permissions
		}
		return m.putRole(ctx, t, before, role, p.Privileged, p.DryRun)
	})
}

// mayName checks whether the actor may create or delete a role of a name.
func (m *Admin) mayName(t *attempt, name string) error {
	if m.isPrivileged(t.roles, name) && !t.may(permAll) {
		return auth.Reject(auth.CodeTargetStronger, "The name of this role is privileged: only an owner can create or delete it.")
	}
	return nil
}

// setPrivileged sets whether a role's name is privileged; was is the present value. Only "*" changes it, and
// nobody changes the mark of a name that the options or this package make privileged.
func (m *Admin) setPrivileged(t *attempt, role *store.RolePermissions, was bool, set *bool) error {
	role.Privileged = was
	if set == nil || *set == was {
		return nil
	}
	if !t.may(permAll) {
		return auth.Reject(auth.CodeTargetStronger, "Only an owner can change whether the name of a role is privileged.")
	}
	if slices.Contains(m.privileged, role.Name) {
		return m.kit.Invalid("privileged", "cannot be false for admin, or for a name of WithPrivilegedRoles")
	}
	role.Privileged = *set
	t.changed("privileged", was, *set)
	return nil
}

// putRole stores a role in place of before, which is zero for a new one. The actor must
// be allowed to give its permissions and to set its mark.
func (m *Admin) putRole(ctx context.Context, t *attempt, before, role store.RolePermissions, privileged *bool, dry bool) (RoleChange, error) {
	if err := m.setPrivileged(t, &role, before.Privileged, privileged); err != nil {
		return RoleChange{}, err
	}
	if err := m.mayGive(t.acting, role.Permissions); err != nil {
		return RoleChange{}, err
	}
	role.UpdatedAt = t.change.Now
	done := RoleChange{Role: role}
	var err error
	if done.Users, err = m.having(ctx, role.Name); err != nil {
		return done, err
	}
	if dry {
		t.dry, done.dry = true, true
		return done, nil
	}
	t.changed("permissions", nonNil(before.Permissions), role.Permissions)
	if before.Description != role.Description {
		t.changed("description", before.Description, role.Description)
	}
	if t.unchanged(before.Name != "" && before.Description == role.Description && before.Privileged == role.Privileged && slices.Equal(before.Permissions, role.Permissions)) {
		done.Role = before
		return done, nil
	}
	if err := t.keep(done); err != nil {
		return done, err
	}
	table, err := m.project.PutRole(ctx, store.PutRole{Change: t.change, Role: role})
	if err != nil {
		return done, err
	}
	m.kit.MarkRoleStale(role.Name, table)
	done.Role = find(table, role.Name)
	return done, nil
}

// having counts the accounts that have a role.
func (m *Admin) having(ctx context.Context, role string) (store.Total, error) {
	n, err := m.admin.CountUsers(ctx, store.UserQuery{Role: role, Limit: 1, Now: m.kit.Now()})
	return n, m.kit.StoreError(err)
}

// DeleteRoleParams delete a role.
type DeleteRoleParams struct {
	Name     string `path:"role"`
	Revision *int64 `header:"If-Match"` // as for CreateRoleParams
	DryRun   bool   `query:"dry_run"`   // only check it
}

// DeleteRole deletes a role that no account has. Errors: CodeRoleNotFound, CodeRoleInUse
// (its message has the number of accounts), CodeTargetStronger, CodePreconditionFailed.
func (m *Admin) DeleteRole(ctx context.Context, who Actor, p DeleteRoleParams) (RoleChange, error) {
	return carryOut(ctx, m, who, opDeleteRole, "", auth.EventRoleDeleted, func(t *attempt) (RoleChange, error) {
		before, err := m.mayWrite(t, p.Name, p.Revision)
		if err == nil {
			err = m.mayName(t, p.Name)
		}
		if err != nil {
			return RoleChange{}, err
		}
		done := RoleChange{Role: before}
		if done.Users, err = m.having(ctx, p.Name); err != nil {
			return done, err
		}
		if done.Users.N > 0 {
			return done, auth.Reject(auth.CodeRoleInUse, "Accounts have this role. Remove it from them first.")
		}
		if t.dry = p.DryRun; t.dry {
			done.dry = true
			return done, nil
		}
		t.changed("permissions", nonNil(before.Permissions), nil)
		table, err := m.project.DeleteRole(ctx, store.DeleteRole{Change: t.change, Name: p.Name})
		switch {
		case errors.Is(err, store.ErrNotFound):
			err = m.fail(auth.CodeRoleNotFound, err)
		case errors.Is(err, store.ErrConflict):
			err = m.fail(auth.CodeRoleInUse, err)
		case err == nil:
			m.kit.MarkRoleStale(p.Name, table)
		}
		return done, err
	})
}

// cleanRole checks the fields of a role, except its name, and sorts its permissions.
func (m *Admin) cleanRole(r *store.RolePermissions) error {
	r.Permissions = nonNil(slices.Compact(slices.Sorted(slices.Values(r.Permissions))))
	switch {
	case len(r.Description) > maxReason:
		return m.kit.Invalid("description", "is too long")
	case !isText(r.Description):
		return m.kit.Invalid("description", "has characters that cannot be stored")
	case len(r.Permissions) > maxRolePermissions:
		return m.kit.Invalid("permissions", fmt.Sprintf("are more than %d", maxRolePermissions))
	}
	for _, q := range r.Permissions {
		if !m.permissions.known(q) {
			return m.kit.Invalid("permissions", fmt.Sprintf("%.64q is not declared", q))
		}
	}
	return nil
}

// mayWrite checks whether the actor may change a role, and returns the present role.
func (m *Admin) mayWrite(t *attempt, name string, revision *int64) (store.RolePermissions, error) {
	if roleName.MatchString(name) {
		t.record.Target = name
	}
	before := find(t.roles, name)
	switch {
	case name == auth.RoleOwner:
		return before, auth.Reject(auth.CodeTargetStronger, "The role owner cannot be changed.")
	case before.Name == "":
		return before, noRole(name)
	}
	if err := m.atRoles(t, revision); err != nil {
		return before, err
	}
	before.Privileged = m.isPrivileged(t.roles, name)
	return before, m.mayGive(t.acting, m.strengthIn(t.roles, []string{name}))
}

// atRoles checks that the table of roles still has the revision that the caller saw.
func (m *Admin) atRoles(t *attempt, revision *int64) error {
	if revision != nil && *revision != t.roles.Revision {
		return m.fail(auth.CodePreconditionFailed, nil)
	}
	return nil
}

// mayGive checks whether the actor may give or remove permissions. An actor may do so
// only with permissions that the actor has. The names of privileged roles count as such.
func (m *Admin) mayGive(a *acting, permissions []string) error {
	if !covers(a.permissions, permissions) {
		return auth.Reject(auth.CodeTargetStronger, "You can only give and take permissions that you have.")
	}
	return nil
}

// SetRolesParams set the roles of a user.
type SetRolesParams struct {
	UserID   string
	Roles    []string // the whole list
	Reason   string
	Revision *int64

	// Address is the account's email address, or its phone number if it has none; any other
	// is refused. The link to accept is sent to it if the account waits afterwards. It is
	// required of all actors but System if the account waits for the new roles.
	Address string
}

// SetRoles replaces the roles of a user. The actor has to hold the permissions of the
// former and of the new roles, and to have the privileged ones among them, or "*". An actor
// cannot set the actor's own roles.
//
// Permissions of an operator take effect once the account's holder has accepted them,
// through the link of Address or of Send. Until then the account waits: it lacks them
// whenever it acts. An account whose holder accepted before gets later ones at once, unless
// its email address has changed since. See [Actor.Accepting]. Errors: CodeUserNotFound,
// CodeRoleNotFound, CodeTargetStronger, CodeLastOwner, CodePreconditionFailed,
// CodeValidationFailed (Address).
func (m *Admin) SetRoles(ctx context.Context, who Actor, p SetRolesParams) (auth.User, error) {
	a, err := m.setRoles(ctx, who, setRolesBody(p))
	return a.user, err
}

// roleChange describes a change of an account's roles.
type roleChange struct {
	reason   string
	revision *int64 // of the account that the caller saw; nil: any
	address  string // see SetRolesParams.Address
	many     bool   // the account is one of many, which get their links later
}

// changeRoles carries out an operation that replaces an account's roles, and sends the link
// to accept them.
func (m *Admin) changeRoles(ctx context.Context, who Actor, op operation, userID string, c roleChange, change func(auth.User) ([]string, error)) (assignedUser, error) {
	var a assignedUser
	var err error
	a.user, err = carryOut(ctx, m, who, op, userID, auth.EventRolesChanged, func(t *attempt) (auth.User, error) {
		if err := m.at(t, c.revision); err != nil {
			return auth.User{}, err
		}
		roles, err := change(t.target)
		if err != nil {
			return auth.User{}, err
		}
		u, err := m.assign(ctx, t, roles, c)
		a.waits = err == nil && m.kit.Standing(t.roles, u).Waits
		return u, err
	})
	if err == nil && c.address != "" {
		m.askToAccept(ctx, who, a.user)
	}
	return a, err
}

// GrantParams give a role to a user.
type GrantParams struct {
	UserID   string `path:"id"`
	Role     string `path:"role"`
	Address  string `json:"address"` // as for SetRolesParams
	Revision *int64 `header:"If-Match"`
}

// Grant gives a role to a user; see SetRoles.
func (m *Admin) Grant(ctx context.Context, who Actor, p GrantParams) (auth.User, error) {
	a, err := m.grant(ctx, who, p.UserID, p.Role, roleChange{revision: p.Revision, address: p.Address})
	return a.user, err
}

func (m *Admin) grant(ctx context.Context, who Actor, userID, role string, c roleChange) (assignedUser, error) {
	return m.changeRoles(ctx, who, opGrant, userID, c, func(u auth.User) ([]string, error) { return with(u.Roles, role), nil })
}

func with(roles []string, role string) []string { return append(slices.Clone(roles), role) }

func without(roles []string, role string) []string {
	return slices.DeleteFunc(slices.Clone(roles), func(r string) bool { return r == role })
}

// GrantByAddress is Grant for the account with an email address, which has to be
// verified. It can create a service's first owner:
//
//	adm.GrantByAddress(ctx, admin.System("setup").Accepting(), "ada@example.com", auth.RoleOwner)
//
// It sends the link to accept unless the actor is System. Errors as for SetRoles, and
// CodeEmailNotVerified, because anybody can create an account with an unverified email
// address.
func (m *Admin) GrantByAddress(ctx context.Context, who Actor, email, role string) (auth.User, error) {
	u, err := m.store.User(ctx, store.ByEmail(email))
	if err != nil {
		return u, m.notFound(err)
	}
	c := roleChange{address: email}
	if who.system != "" {
		c.address = ""
	}
	a, err := m.changeRoles(ctx, who, opGrant, u.ID, c, func(u auth.User) ([]string, error) {
		if !u.EmailVerified() || store.EmailKey(u.Email) != store.EmailKey(email) {
			return nil, auth.Reject(auth.CodeEmailNotVerified, "The e-mail address "+email+" is not verified: its owner has to open the link that was sent to it first.")
		}
		return with(u.Roles, role), nil
	})
	return a.user, err
}

// Withdraw removes a role from a user; a role that the user does not have is no error.
// See SetRoles.
func (m *Admin) Withdraw(ctx context.Context, who Actor, userID, role string) (auth.User, error) {
	a, err := m.withdraw(ctx, who, userID, role, "", nil)
	return a.user, err
}

func (m *Admin) withdraw(ctx context.Context, who Actor, userID, role, why string, revision *int64) (assignedUser, error) {
	return m.changeRoles(ctx, who, opWithdraw, userID, roleChange{reason: why, revision: revision}, func(u auth.User) ([]string, error) { return without(u.Roles, role), nil })
}

// assign replaces the roles of an attempt's target.
func (m *Admin) assign(ctx context.Context, t *attempt, roles []string, c roleChange) (u auth.User, err error) {
	roles = slices.Sorted(slices.Values(roles))
	roles = nonNil(slices.Compact(roles))
	if err := m.mayAssign(t, roles); err != nil {
		return u, err
	}
	if err := m.setReason(t, c.reason); err != nil {
		return u, err
	}
	patch := store.UserPatch{Accept: t.accepting}
	asks := m.kit.SetRoles(&patch, t.roles, t.target, roles)
	if err := m.checkAddress(t.target, c.address, asks && !c.many && !t.system()); err != nil {
		return u, err
	}
	t.changed("roles", nonNil(t.target.Roles), roles)
	accepts := t.accepting && m.kit.Standing(t.roles, t.target).Waits
	if t.unchanged(!accepts && slices.Equal(slices.Sorted(slices.Values(t.target.Roles)), roles)) {
		return t.target, nil
	}
	u, err = m.updateTarget(ctx, t, patch)
	if err == nil {
		m.kit.MarkStale(u)
	}
	return u, err
}

// mayAssign checks whether the actor may set these roles on the target of an attempt, or on a
// new account. Each role has to exist, unless the target already has it.
func (m *Admin) mayAssign(t *attempt, roles []string) error {
	for _, r := range roles {
		if r != auth.RoleOwner && find(t.roles, r).Name == "" && !slices.Contains(t.target.Roles, r) {
			return noRole(r)
		}
	}
	var given givenRoles
	for _, r := range slices.Concat(t.target.Roles, roles) {
		if slices.Contains(t.target.Roles, r) && slices.Contains(roles, r) {
			given.kept = append(given.kept, r)
		} else {
			given.changed = append(given.changed, r)
		}
	}
	return m.mayGiveRoles(t.acting, given)
}

// CheckResult reports whether a user has a permission, and through which roles.
type CheckResult struct {
	Allowed bool     `json:"allowed"`
	Via     []string `json:"via"` // the roles that permit it

	// NeedsFactor means that all of these roles need a second factor: sessions without one
	// lack the permission.
	NeedsFactor bool `json:"needs_second_factor"`
}

// Check reports whether a user has a permission by the present roles: not if it is an
// operator permission that the user has not accepted. It does not know the user's sessions: see
// CheckResult.NeedsFactor. Errors:
// CodeUserNotFound.
func (m *Admin) Check(ctx context.Context, who Actor, userID, permission string) (CheckResult, error) {
	a, err := m.reader(ctx, who, opCheck)
	if err != nil {
		return CheckResult{}, err
	}
	u, err := m.store.User(ctx, store.ByID(userID))
	if err != nil {
		return CheckResult{}, m.notFound(err)
	}
	r := CheckResult{Via: []string{}}
	for _, role := range u.Roles {
		alone := u
		alone.Roles = []string{role}
		if grants(m.kit.Standing(a.roles, alone).Permissions, permission) {
			r.Via = append(r.Via, role)
		}
	}
	r.Allowed = len(r.Via) > 0
	factor := m.auth.Settings(ctx).MFARequiredFor
	r.NeedsFactor = r.Allowed && !slices.ContainsFunc(r.Via, func(role string) bool { return !slices.Contains(factor, role) })
	return r, nil
}

// noRole is the error for a role that does not exist. It names the role, because a request may
// have several.
func noRole(name string) error {
	return auth.Reject(auth.CodeRoleNotFound, fmt.Sprintf("There is no role %.64q.", name))
}

// find returns a role of a table, or the zero role.
func find(t store.RoleTable, name string) store.RolePermissions {
	for _, r := range t.Roles {
		if r.Name == name {
			return r
		}
	}
	return store.RolePermissions{}
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
