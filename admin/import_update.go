package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// conflicting decides a row that conflicts with an account. The error is an outage.
func (im *importing) conflicting(ctx context.Context, i int) error {
	r := &im.results[i]
	u, field, err := im.conflictingAccount(ctx, im.users[i].User)
	switch {
	case err != nil:
		return err
	case field == "": // the account is gone by now, or the audit log does not know that this row created it
		*r = r.withReason(im.fail(auth.CodeUserAlreadyExists, nil))
		return nil
	case im.params.OnConflict != OnConflictUpdate:
		*r = r.withReason(im.fail(auth.CodeUserAlreadyExists, nil))
		r.ID, r.Field = u.ID, field
		if im.params.OnConflict == OnConflictSkip {
			r.Result = resultSkipped
		}
		return nil
	}
	err = im.update(ctx, i, u)
	if outage(ctx, err) {
		return err
	}
	r.ID, r.Result = u.ID, resultDone
	if err != nil {
		*r = r.withReason(err)
	}
	return nil
}

// conflictingAccount returns the account that has a value of a row, and the field. It looks up the
// id first, then the email address, the phone number and the identities.
func (im *importing) conflictingAccount(ctx context.Context, r auth.User) (auth.User, string, error) {
	type value struct {
		field string
		key   store.UserKey
	}
	values := []value{{"id", store.ByID(r.ID)}}
	if r.Email != "" {
		values = append(values, value{"email", store.ByEmail(r.Email)})
	}
	if r.Phone != "" {
		values = append(values, value{"phone", store.ByPhone(r.Phone)})
	}
	for _, i := range r.Identities {
		values = append(values, value{"identity", store.ByIdentity(i.Provider, i.Subject)})
	}
	for _, v := range values {
		u, err := im.store.User(ctx, v.key)
		if !errors.Is(err, store.ErrNotFound) {
			return u, v.field, im.storeError(err)
		}
	}
	return auth.User{}, "", nil
}

// wasUpdated reports whether an earlier attempt updated an account with a row.
func (im *importing) wasUpdated(ctx context.Context, i int) (bool, error) {
	if im.params.OnConflict != OnConflictUpdate {
		return false, nil
	}
	var again *store.RepeatedError
	err := im.wasDoneInJob(im.onlyOnce(ctx, fmt.Sprint("row ", im.results[i].Row), false))
	if !errors.As(err, &again) {
		return false, im.storeError(err)
	}
	u, _, err := im.conflictingAccount(ctx, im.users[i].User)
	if err == nil {
		im.results[i].ID, im.results[i].Result = u.ID, resultDone
	}
	return true, err
}

// update updates an account with the values of a row. It keeps the fields that the row
// omits, and the times. Errors: CodeValidationFailed, CodeUserAlreadyExists, those of
// every operation.
func (im *importing) update(ctx context.Context, i int, there auth.User) error {
	row := im.rows[i]
	_, err := carryOut(im.onlyOnce(ctx, fmt.Sprint("row ", im.results[i].Row), false), im.Admin, im.who, opImportRows, there.ID, auth.EventUserUpdated, func(t *attempt) (auth.User, error) {
		t.changed("row", nil, im.results[i].Row)
		if err := im.hasPasskeys(ctx, t.target, i); err != nil {
			return auth.User{}, err
		}
		patch, err := im.patch(ctx, t, row)
		if err != nil {
			return auth.User{}, err
		}
		t.unchanged(len(t.record.Changes) == 1) // the number of the row
		u, err := im.updateTarget(ctx, t, patch)
		if errors.Is(err, store.ErrConflict) {
			err = im.fail(auth.CodeUserAlreadyExists, err)
		}
		if err == nil && patch.Roles != nil {
			im.kit.MarkStale(u)
		}
		return u, err
	})
	return err
}

// hasPasskeys refuses a row with a user handle or a passkey that the account does not have.
func (im *importing) hasPasskeys(ctx context.Context, there auth.User, i int) error {
	if h := im.rows[i].UserHandle; h != "" && h != there.Handle {
		return im.kit.Invalid("user_handle", "cannot be changed in an existing account")
	}
	if len(im.rows[i].Passkeys) == 0 {
		return nil
	}
	has, err := im.kit.Factors().Factors(ctx, there.ID)
	if err != nil {
		return im.storeError(err)
	}
	for _, f := range im.users[i].Factors {
		if len(f.Credential) > 0 && !slices.ContainsFunc(has.List, func(h auth.Factor) bool { return h.Enabled && bytes.Equal(h.Credential, f.Credential) }) {
			return im.kit.Invalid("passkeys", "cannot be added to an existing account")
		}
	}
	return nil
}

// patch returns the changes of a row to the target of an attempt.
func (im *importing) patch(ctx context.Context, t *attempt, r importRow) (store.UserPatch, error) {
	given := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	e := host.Edit{FullName: given(r.FullName), UserMetadata: r.UserMetadata, AppMetadata: r.AppMetadata, Email: given(r.Email), Phone: given(r.Phone)}
	if r.EmailVerified || !r.EmailVerifiedAt.IsZero() {
		e.EmailVerified = ptr(true)
	}
	if r.PhoneVerified || !r.PhoneVerifiedAt.IsZero() {
		e.PhoneVerified = ptr(true)
	}
	for _, i := range r.Identities {
		if !slices.ContainsFunc(t.target.Identities, func(o auth.Identity) bool { return o.Provider == i.Provider && o.Subject == i.Subject }) {
			return store.UserPatch{}, im.kit.Invalid("identities", "cannot be added to an existing account")
		}
	}
	if r.TOTPSecret != "" && !t.target.MFAEnabled {
		return store.UserPatch{}, im.kit.Invalid("totp_secret", "cannot be added to an existing account")
	}
	patch, err := im.kit.Edit(ctx, &t.change, t.target, e)
	if err != nil {
		return patch, err
	}
	t.recordPatch(patch)
	if r.PasswordHash != "" {
		if err := im.kit.AddPasswordHash(ctx, &t.change, t.target, r.PasswordHash, &patch); err != nil {
			return patch, err
		}
		if patch.PasswordHash != nil {
			t.changed("password", nil, true)
		}
	}
	if !r.BannedUntil.IsZero() && !r.BannedUntil.Equal(t.target.BannedUntil) {
		until, err := im.bannedUntil(r.BannedUntil)
		if err != nil {
			return patch, err
		}
		patch.BannedUntil, patch.Revoke = &until, &store.SessionFilter{}
		t.changed("banned_until", eventTime(t.target.BannedUntil), until)
	}
	if roles := slices.Compact(slices.Sorted(slices.Values(r.Roles))); len(roles) > 0 && !slices.Equal(roles, t.target.Roles) {
		im.kit.SetRoles(&patch, t.roles, t.target, roles)
		t.changed("roles", nonNil(t.target.Roles), roles)
	}
	return patch, im.mayWriteFields(t, fieldsOfPatch(patch))
}
