package admin

import (
	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// Requirements for fields that belong to another operation.
var (
	fieldOfCredentials = operation{permission: PermCredentials, against: stronger, adds: true, stepUp: true}
	fieldOfRoles       = operation{permission: PermRolesAssign, against: atLeastAs, stepUp: true}
	fieldOfBan         = operation{permission: PermUsersBan, against: managing}
	fieldOfProfile     = operation{permission: PermUsersWrite, against: managing}
)

// writtenFields are the fields of a change to an account that may belong to another
// operation. They require the permission of that operation in every place: in POST and
// PATCH of an account, and in a row of an import.
type writtenFields struct {
	profile     bool // name and metadata
	credentials bool // email address, phone number, their verification, password, factor, passkey, identity
	ban         bool
	roles       *[]string // exactly these; nil: unchanged
}

// fieldsOfNew returns the fields of a new account.
func fieldsOfNew(p host.ImportUser) writtenFields {
	f := writtenFields{
		credentials: p.PasswordHash != "" || p.TOTPSecret != "" || p.UserHandle != "" || len(p.Passkeys) > 0 || len(p.Identities) > 0 ||
			p.EmailVerified || !p.EmailVerifiedAt.IsZero() || p.PhoneVerified || !p.PhoneVerifiedAt.IsZero(),
		ban: !p.BannedUntil.IsZero(),
	}
	if len(p.Roles) > 0 {
		f.roles = &p.Roles
	}
	return f
}

// fieldsOfPatch returns the fields that a patch changes.
func fieldsOfPatch(p store.UserPatch) writtenFields {
	return writtenFields{
		profile:     p.FullName != nil || p.UserMetadata != nil || p.AppMetadata != nil,
		credentials: p.Email != nil || p.EmailVerifiedAt != nil || p.Phone != nil || p.PhoneVerifiedAt != nil || p.PasswordHash != nil,
		ban:         p.BannedUntil != nil,
		roles:       p.Roles,
	}
}

// mayAccept checks whether the actor may give roles that take effect without the holder's
// acceptance: people with "*", and no keys. Errors: CodeMissingPermission.
func (m *Admin) mayAccept(t *attempt, accepted bool) error {
	if accepted && !t.system() && (t.key != nil || !t.may(permAll)) {
		return m.missing(t.acting, permAll)
	}
	return nil
}

// mayWriteFields checks the fields of the attempt's target, or of a new account. Errors: those
// of allow and outranks, CodeRoleNotFound.
func (m *Admin) mayWriteFields(t *attempt, f writtenFields) error {
	for _, field := range []struct {
		written bool
		op      operation
	}{
		{f.profile, fieldOfProfile},
		{f.credentials, fieldOfCredentials},
		{f.ban, fieldOfBan},
		{f.roles != nil, fieldOfRoles},
	} {
		if !field.written {
			continue
		}
		if err := m.allow(t.acting, field.op); err != nil {
			return err
		}
		if t.target.ID == "" {
			continue
		}
		if t.own(t.target.ID) {
			return auth.Reject(auth.CodeTargetStronger, "You cannot do this to your own account.")
		}
		if err := m.outranks(t.acting, t.target, field.op.against); err != nil {
			return err
		}
		if err := m.mayAdd(t.acting, t.target, field.op); err != nil {
			return err
		}
	}
	if f.roles == nil {
		return nil
	}
	return m.mayAssign(t, *f.roles)
}
