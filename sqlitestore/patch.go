package sqlitestore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// UpdateUser applies a patch.
func (s *Store) UpdateUser(ctx context.Context, c store.UpdateUser) (u store.User, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) { return t.planUpdate(&c.Change, c.UserID, &c.Patch, nil, &u) })
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

// planUpdate plans to apply a patch, which may be nil. The effect sets updated. redeems, if
// set, is the token that the change redeems.
func (t *tx) planUpdate(c *store.Change, id string, p *store.UserPatch, redeems *store.Token, updated *store.User) (*effect, error) {
	u := t.user(id)
	if u == nil {
		return nil, store.ErrNotFound
	}
	e := &effect{about: id}
	if p == nil || p.Empty() {
		*updated = u.User
		return e, nil
	}
	after := p.Apply(store.Credentials{User: u.User, PasswordHash: u.hash, Notes: u.notes}, c.Now, t.addedBy(c.By, id, redeems))
	next := &user{User: after.User, hash: after.PasswordHash, notes: after.Notes}
	if field := t.taken(&next.User); field != "" {
		return nil, &store.ConflictError{Field: field}
	}
	if p.DropFactors || p.DropCredentials {
		next.MFAEnabled = slices.ContainsFunc(p.KeepFactors, func(factor string) bool {
			return t.exists(`select 1 from auth_factors where id = ? and user_id = ? and enabled = 1 and required = 1`, factor, id)
		})
	}
	e.apply = func() error {
		t.updateUser(u, next)
		t.dropFactors(id, p)
		switch {
		case p.DropCredentials:
			t.exec(`delete from auth_devices where user_id = ?`, id) // the previous owner's
		case p.DropDevices && p.Revoke != nil:
			t.dropDevices(id, *p.Revoke)
		case p.DropDevices:
			t.dropDevices(id, store.SessionFilter{})
		}
		e.ended = t.dropProofs(id, p, c.Now)
		t.revokeKeysOf(id, p, c.Now)
		if kept := t.user(id); kept != nil {
			*updated = kept.User
		}
		return nil
	}
	return e, nil
}

// updateUser replaces the rows of a user.
func (t *tx) updateUser(before, after *user) {
	t.exec(`update auth_users set email = ?, email_key = ?, email_domain = ?, email_verified_at = ?, phone = ?, phone_verified_at = ?, full_name = ?, name_key = ?, user_metadata = ?, app_metadata = ?,
		password_hash = ?, mfa_enabled = ?, created_at = ?, updated_at = ?, last_sign_in_at = ?, banned_until = ?, revision = ?, credential_revision = ?, handle = ?, notes = ?,
		sequence = ?, password_sequence = ?, password_added_by = ?, email_sequence = ?, email_added_by = ?, email_verified_sequence = ?, email_verified_added_by = ?,
		phone_sequence = ?, phone_added_by = ?, phone_verified_sequence = ?, phone_verified_added_by = ?, accepted_sequence = ?, accepted_until = ? where id = ?`, t.userValues(after)...)
	if before.FullName != after.FullName {
		t.exec(`delete from auth_user_words where user_id = ?`, after.ID)
		t.putWords(&after.User)
	}
	if fields := searchable(after.AppMetadata); !maps.Equal(searchable(before.AppMetadata), fields) {
		t.exec(`delete from auth_user_fields where user_id = ?`, after.ID)
		t.putFields(after.ID, fields)
	}
	if !slices.Equal(before.Roles, after.Roles) {
		t.putRoles(&after.User)
	}
	if !slices.Equal(before.Identities, after.Identities) {
		t.putIdentities(&after.User)
	}
	t.noteOwner(&after.User)
}

// dropFactors deletes the factors and recovery codes that a patch drops.
func (t *tx) dropFactors(userID string, p *store.UserPatch) {
	if !p.DropFactors && !p.DropCredentials {
		return
	}
	t.exec(`delete from auth_factors where user_id = ? and id not in (select value from json_each(?))`, userID, t.text(append([]string{}, p.KeepFactors...)))
	if !p.DropCredentials && t.exists(`select 1 from auth_factors where user_id = ? and enabled = 1 and required = 1`, userID) {
		return
	}
	t.exec(`delete from auth_recovery_codes where user_id = ?`, userID)
	t.exec(`update auth_users set recovery_sequence = 0, recovery_added_by = 0 where id = ?`, userID)
}

// dropProofs ends the sessions and deletes the tokens that a patch names. It returns the
// sorted ids of the ended sessions.
func (t *tx) dropProofs(userID string, p *store.UserPatch, now time.Time) (ended []string) {
	switch {
	case p.DropCredentials:
		ended = t.revoke(userID, store.SessionFilter{Except: p.KeepSession}, now)
	case p.Revoke != nil:
		ended = t.revoke(userID, *p.Revoke, now)
	}
	if p.DropCredentials {
		t.exec(`delete from auth_tokens where user_id = ?`, userID)
	}
	t.dropTokens(userID, p.DropTokens)
	return ended
}

// revokeKeysOf revokes the keys of a user that a patch names.
func (t *tx) revokeKeysOf(userID string, p *store.UserPatch, now time.Time) {
	if p.Accept {
		t.exec(`update auth_api_keys set revoked_at = ?, revision = revision + 1 where created_by = ? and adopted = 0 and revoked_at is null`, micros(now), userID)
	}
	if p.RevokeKeys > 0 {
		t.exec(`update auth_api_keys set revoked_at = ?, revision = revision + 1 where text_user = ? and text_sequence >= ? and revoked_at is null`, micros(now), userID, p.RevokeKeys)
	}
}
