package admin

import (
	"context"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var (
	opListUsers  = operation{pattern: "GET /users", permission: PermUsersRead, fails: []auth.Code{auth.CodeQueryTooBroad}}
	opBanUser    = operation{spends: true, pattern: "POST /users/{id}/ban", permission: PermUsersBan, against: managing, fails: []auth.Code{auth.CodeLastOwner, auth.CodePreconditionFailed}}
	opUnbanUser  = operation{bodyless: true, pattern: "POST /users/{id}/unban", permission: PermUsersBan, against: managing, fails: []auth.Code{auth.CodePreconditionFailed}}
	opDeleteUser = operation{spends: true, byName: true, bodyless: true, pattern: "POST /users/{id}/delete", permission: PermUsersDelete, against: managing, stepUp: true, fails: []auth.Code{auth.CodeLastOwner, auth.CodePreconditionFailed}}

	userEndpoints = []endpoint{
		op(opListUsers, (*Admin).ListUsers),
		export(opExportUsers, "users", func(p ExportUsersParams) string { return p.Format }, (*Admin).ExportUsers),
		op(opLookupUser, (*Admin).lookupUser),
		op(opUser, byID((*Admin).User)),
		op(opCreateUser, (*Admin).CreateUser),
		op(opUpdateUser, (*Admin).updateUser),
		op(opSetPassword, (*Admin).setPassword),
		op(opFactors, (*Admin).factors),
		op(opRemoveFactors, (*Admin).RemoveFactor),
		op(opRemoveFactor, (*Admin).RemoveFactor),
		op(opUnlink, (*Admin).Unlink),
		op(opUnlock, (*Admin).Unlock),
		op(opBanUser, (*Admin).BanUser),
		op(opUnbanUser, (*Admin).UnbanUser),
		op(opDeleteUser, silent((*Admin).DeleteUser)),
	}
)

// reader resolves an actor for an operation that changes nothing, and checks its
// requirements.
func (m *Admin) reader(ctx context.Context, who Actor, op operation) (*acting, error) {
	a, err := m.resolve(ctx, who, op)
	if err != nil {
		return a, err
	}
	if err = m.allow(a, op); err != nil && op.pattern != opMe.pattern { // every caller may read its own identity
		err = m.denied(ctx, &attempt{acting: a, record: m.recordOf(ctx, a, op)}, err)
	}
	if err == nil {
		noteAllowed(ctx)
	}
	return a, err
}

// forever is the end of a permanent ban.
var forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// bannedUntil checks and returns the end of a ban.
func (m *Admin) bannedUntil(until time.Time) (time.Time, error) {
	switch {
	case until.IsZero() || until.After(forever): // a later time marks anonymized accounts
		return forever, nil
	case !until.After(m.kit.Now()):
		return until, m.kit.Invalid("until", "has to be in the future")
	}
	return until.UTC(), nil
}

// eventTime returns a time for the audit log; nil if it is zero.
func eventTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

// BanUserParams ban an account.
type BanUserParams struct {
	UserID   string    `path:"id"`
	Until    time.Time `json:"until"`      // zero: for ever
	Reason   string    `json:"reason"`     // for the audit log; required
	Revision *int64    `header:"If-Match"` // of the account that the caller saw; nil: any
}

// BanUser bans an account and revokes its sessions. A ban that the account has already is
// not recorded again. Errors: CodeValidationFailed,
// CodeUserNotFound, CodeTargetStronger, CodeLastOwner, CodePreconditionFailed.
func (m *Admin) BanUser(ctx context.Context, who Actor, p BanUserParams) (auth.User, error) {
	if err := m.reason(p.Reason); err != nil {
		return auth.User{}, err
	}
	to, err := m.bannedUntil(p.Until)
	if err != nil {
		return auth.User{}, err
	}
	return carryOut(ctx, m, who, opBanUser, p.UserID, auth.EventUserBanned, func(t *attempt) (auth.User, error) {
		if err := m.at(t, p.Revision); err != nil {
			return auth.User{}, err
		}
		t.keepReason(p.Reason)
		t.changed("banned_until", eventTime(t.target.BannedUntil), to)
		if t.unchanged(t.target.BannedUntil.Equal(to.Truncate(time.Microsecond))) { // as stores keep it
			return t.target, nil
		}
		return m.updateTarget(ctx, t, store.UserPatch{BannedUntil: &to, Revoke: &store.SessionFilter{}})
	})
}

// UnbanUserParams lift a ban.
type UnbanUserParams struct {
	UserID   string `path:"id"`
	Reason   string `json:"reason"`
	Revision *int64 `header:"If-Match"`
}

// UnbanUser lifts a ban; an account without a ban is no error, and nothing is recorded.
// Errors: CodeValidationFailed, CodeUserNotFound, CodeTargetStronger,
// CodePreconditionFailed.
func (m *Admin) UnbanUser(ctx context.Context, who Actor, p UnbanUserParams) (auth.User, error) {
	return carryOut(ctx, m, who, opUnbanUser, p.UserID, auth.EventUserUnbanned, func(t *attempt) (auth.User, error) {
		if err := m.at(t, p.Revision); err != nil {
			return auth.User{}, err
		}
		if err := m.setReason(t, p.Reason); err != nil {
			return auth.User{}, err
		}
		t.changed("banned_until", eventTime(t.target.BannedUntil), nil)
		if t.unchanged(t.target.BannedUntil.IsZero()) {
			return t.target, nil
		}
		return m.updateTarget(ctx, t, store.UserPatch{BannedUntil: &time.Time{}})
	})
}

// DeleteUserParams delete an account.
type DeleteUserParams struct {
	UserID   string `path:"id"`
	Reason   string `json:"reason"` // required
	Revision *int64 `header:"If-Match"`
}

// DeleteUser deletes an account and all its data, except its rows of the audit log.
// Errors as for BanUser, and those of Hooks.BeforeDelete.
func (m *Admin) DeleteUser(ctx context.Context, who Actor, p DeleteUserParams) error {
	if err := m.reason(p.Reason); err != nil {
		return err
	}
	_, err := carryOut(ctx, m, who, opDeleteUser, p.UserID, auth.EventUserDeleted, func(t *attempt) (struct{}, error) {
		if err := m.at(t, p.Revision); err != nil {
			return struct{}{}, err
		}
		t.keepReason(p.Reason)
		return struct{}{}, m.kit.DeleteUser(ctx, t.target, store.DeleteUser{Change: t.change, UserID: t.target.ID})
	})
	return err
}

const maxReason = 500 // bytes

// reason checks a required reason.
func (m *Admin) reason(s string) error {
	switch {
	case s == "":
		return m.kit.Invalid("reason", "is required")
	case len(s) > maxReason:
		return m.kit.Invalid("reason", "is too long")
	case !isText(s):
		return m.kit.Invalid("reason", "has characters that cannot be stored")
	}
	return nil
}
