package sqlitestore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// user is a row of auth_users with its roles and identities.
type user struct {
	store.User

	hash     string
	notes    string
	recovery store.Origin

	userMetadata, appMetadata string // JSON
}

const selectUsers = `select u.id, u.email, u.email_verified_at, coalesce(u.phone, ''), u.phone_verified_at, u.full_name, u.user_metadata, u.app_metadata,
	(select json_group_array(r.role order by r.n) from auth_user_roles r where r.user_id = u.id),
	(select json_group_array(json_object('id', i.id, 'provider', i.provider, 'subject', i.subject, 'email', i.email, 'created', i.created_at, 'signed_in', i.last_sign_in_at, 'sequence', i.sequence, 'added_by', i.added_by) order by i.created_at, i.id)
		from auth_identities i where i.user_id = u.id),
	u.mfa_enabled, u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until, u.revision, u.credential_revision, coalesce(u.handle, ''), u.password_hash, u.notes,
	u.sequence, u.password_sequence, u.password_added_by, u.email_sequence, u.email_added_by, u.email_verified_sequence, u.email_verified_added_by,
	u.phone_sequence, u.phone_added_by, u.phone_verified_sequence, u.phone_verified_added_by, u.recovery_sequence, u.recovery_added_by, u.accepted_sequence, u.accepted_until
	from auth_users u`

// identityJSON is an identity in the result of selectUsers.
type identityJSON struct {
	store.Origin

	ID       string `json:"id"`
	Provider string `json:"provider"`
	Subject  string `json:"subject"`
	Email    string `json:"email"`
	Created  int64  `json:"created"`
	SignedIn *int64 `json:"signed_in"`
}

// scanRow reads a row of selectUsers and leaves the metadata as JSON.
func scanRow(scan row) (u user) {
	var identities []identityJSON
	scan(&u.ID, &u.Email, at{&u.EmailVerifiedAt}, &u.Phone, at{&u.PhoneVerifiedAt}, &u.FullName, &u.userMetadata, &u.appMetadata, parsed{&u.Roles}, parsed{&identities},
		&u.MFAEnabled, at{&u.CreatedAt}, at{&u.UpdatedAt}, at{&u.LastSignInAt}, at{&u.BannedUntil}, &u.Revision, &u.CredentialRevision, &u.Handle, &u.hash, &u.notes,
		&u.Sequence, &u.PasswordSequence, &u.PasswordAddedBy, &u.EmailSequence, &u.EmailAddedBy, &u.EmailVerifiedSequence, &u.EmailVerifiedAddedBy,
		&u.PhoneSequence, &u.PhoneAddedBy, &u.PhoneVerifiedSequence, &u.PhoneVerifiedAddedBy, &u.recovery.Sequence, &u.recovery.AddedBy, &u.AcceptedSequence, at{&u.AcceptedUntil})
	for _, i := range identities {
		identity := store.Identity{ID: i.ID, Provider: i.Provider, Subject: i.Subject, Email: i.Email, CreatedAt: time.UnixMicro(i.Created).UTC(), Origin: i.Origin}
		if i.SignedIn != nil {
			identity.LastSignInAt = time.UnixMicro(*i.SignedIn).UTC()
		}
		u.Identities = append(u.Identities, identity)
	}
	return u
}

// users returns the users that a condition picks.
func (t *tx) users(where string, args ...any) []user {
	all := list(t, scanRow, selectUsers+where, args...)
	for i := range all {
		if err := all[i].parse(); err != nil && t.err == nil {
			t.err = err
		}
	}
	return all
}

// parse reads the metadata of a row of selectUsers.
func (u *user) parse() error {
	return errors.Join(json.Unmarshal([]byte(u.userMetadata), &u.UserMetadata), json.Unmarshal([]byte(u.appMetadata), &u.AppMetadata))
}

// user returns nil if there is no such user.
func (t *tx) user(id string) *user { return t.find(store.ByID(id)) }

// find returns nil if there is no such user.
func (t *tx) find(k store.UserKey) *user {
	var found []user
	switch {
	case k.ID != "":
		found = t.users(` where u.id = ?`, k.ID)
	case k.Email != "":
		found = t.users(` where u.email_key = ?`, store.EmailKey(k.Email))
	case k.Phone != "":
		found = t.users(` where u.phone = ?`, k.Phone)
	case k.Handle != "":
		found = t.users(` where u.handle = ?`, k.Handle)
	default:
		found = t.users(` where u.id = (select i.user_id from auth_identities i where i.provider = ? and i.subject = ?)`, k.Provider, k.Subject)
	}
	if len(found) == 0 {
		return nil
	}
	return &found[0]
}

// User finds one user.
func (s *Store) User(ctx context.Context, k store.UserKey) (found store.User, err error) {
	err = s.read(ctx, func(t *tx) error {
		u := t.find(k)
		if u == nil {
			return store.ErrNotFound
		}
		found = u.User
		return nil
	})
	return found, err
}

// Credentials returns a user with the password hash.
func (s *Store) Credentials(ctx context.Context, k store.UserKey) (c store.Credentials, err error) {
	err = s.snapshot(ctx, func(t *tx) error {
		u := t.find(k)
		if u == nil {
			return store.ErrNotFound
		}
		c = t.credentials(u, k.Device)
		return nil
	})
	return c, err
}

func (t *tx) credentials(u *user, hash string) store.Credentials {
	c := store.Credentials{User: u.User, PasswordHash: u.hash, Notes: u.notes}
	if hash != "" {
		c.TrustedUntil = t.trustedUntil(u, hash)
		c.KnownDevice = hash != forgotten && t.exists(`select 1 from auth_devices where user_id = ? and device = ?`, u.ID, hash)
	}
	return c
}

// CreateUser adds a user with everything in NewUser.
func (s *Store) CreateUser(ctx context.Context, c store.CreateUser) (u store.User, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) { return t.planCreate(s, c.NewUser, &u) })
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

// planCreate plans to add a user. The effect sets created.
func (t *tx) planCreate(s *Store, nu store.NewUser, created *store.User) (*effect, error) {
	u := newUser(nu.User, nu.Factors)
	u.hash, u.notes = nu.PasswordHash, nu.Notes
	u.Begin(u.hash != "")
	if factorsClash(nu.Factors) {
		return nil, &store.ConflictError{Field: "factor"}
	}
	if u.MFAEnabled && nu.Session != nil && nu.Session.AAL != store.LevelAAL2 {
		return nil, store.ErrMFARequired
	}
	if t.factorsTaken(nu.Factors) {
		return nil, &store.ConflictError{Field: "factor"}
	}
	if t.exists(`select 1 from auth_users where id = ?`, u.ID) || nu.Session != nil && t.exists(`select 1 from auth_sessions where id = ?`, nu.Session.ID) {
		return nil, &store.ConflictError{Field: "id"}
	}
	if field := t.taken(&u.User); field != "" {
		return nil, &store.ConflictError{Field: field}
	}
	for _, token := range nu.Tokens {
		if token.UserID != "" && token.UserID != u.ID && !t.exists(`select 1 from auth_users where id = ?`, token.UserID) {
			return nil, store.ErrNotFound
		}
	}
	if nu.Session != nil {
		u.LastSignInAt = nu.Session.CreatedAt
	}
	e := &effect{about: u.ID}
	e.setOrigin(u.ID, store.Origin{Sequence: u.Sequence})
	e.apply = func() error {
		t.insertUser(u, nu.Factors)
		if nu.Session != nil {
			t.addSession(u, *nu.Session, e)
		}
		for _, token := range nu.Tokens {
			t.addToken(token, e)
		}
		if kept := t.user(u.ID); kept != nil {
			*created = kept.User
		}
		return nil
	}
	if nu.Creating != nil {
		e.finish = func() error {
			// If something within undoes the whole transaction, the savepoint is missing.
			t.exec(`savepoint creating`)
			if t.err != nil {
				return nil // reported by run
			}
			err := s.call(t, func(ctx context.Context) error { return nu.Creating(ctx, *created) })
			if err == nil {
				t.exec(`release creating`)
			}
			return err
		}
	}
	return e, nil
}

// newUser returns a user as it is before it is stored.
func newUser(u store.User, factors []store.Factor) *user {
	u.Identities = slices.Clone(u.Identities)
	u.Revision, u.CredentialRevision = 0, 0
	u.MFAEnabled = slices.ContainsFunc(factors, func(f store.Factor) bool { return f.Required })
	return &user{User: u}
}

// insertUser adds the rows of a new user and its factors.
func (t *tx) insertUser(u *user, factors []store.Factor) {
	t.exec(`insert into auth_users (email, email_key, email_verified_at, phone, phone_verified_at, full_name, name_key, user_metadata, app_metadata,
		password_hash, mfa_enabled, created_at, updated_at, last_sign_in_at, banned_until, revision, credential_revision, handle, notes,
		sequence, password_sequence, password_added_by, email_sequence, email_added_by, email_verified_sequence, email_verified_added_by,
		phone_sequence, phone_added_by, phone_verified_sequence, phone_verified_added_by, accepted_sequence, accepted_until, id)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, t.userValues(u)...)
	t.putRoles(&u.User)
	t.putIdentities(&u.User)
	t.noteOwner(&u.User)
	for _, f := range factors {
		f.UserID, f.Enabled, f.Origin = u.ID, true, store.Origin{Sequence: u.Sequence}
		t.insertFactor(&f)
	}
}

// userValues returns the columns of a user that a patch can change, and at last the id.
func (t *tx) userValues(u *user) []any {
	var key any
	if u.Email != "" {
		key = store.EmailKey(u.Email)
	}
	return []any{
		u.Email, key, maybe(u.EmailVerifiedAt), orNull(u.Phone), maybe(u.PhoneVerifiedAt), u.FullName, store.NameKey(u.FullName), t.object(u.UserMetadata), t.object(u.AppMetadata),
		u.hash, u.MFAEnabled, micros(u.CreatedAt), micros(u.UpdatedAt), maybe(u.LastSignInAt), maybe(u.BannedUntil), u.Revision, u.CredentialRevision, orNull(u.Handle), u.notes,
		u.Sequence, u.PasswordSequence, u.PasswordAddedBy, u.EmailSequence, u.EmailAddedBy, u.EmailVerifiedSequence, u.EmailVerifiedAddedBy,
		u.PhoneSequence, u.PhoneAddedBy, u.PhoneVerifiedSequence, u.PhoneVerifiedAddedBy, u.AcceptedSequence, maybe(u.AcceptedUntil), u.ID,
	}
}

// putRoles replaces a user's roles.
func (t *tx) putRoles(u *store.User) {
	t.exec(`delete from auth_user_roles where user_id = ?`, u.ID)
	for n, role := range u.Roles {
		t.exec(`insert into auth_user_roles (user_id, n, role) values (?, ?, ?)`, u.ID, n, role)
	}
}

// putIdentities replaces a user's identities.
func (t *tx) putIdentities(u *store.User) {
	t.exec(`delete from auth_identities where user_id = ?`, u.ID)
	for _, i := range u.Identities {
		t.exec(`insert into auth_identities (id, user_id, provider, subject, email, created_at, last_sign_in_at, sequence, added_by) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			i.ID, u.ID, i.Provider, i.Subject, i.Email, micros(i.CreatedAt), maybe(i.LastSignInAt), i.Sequence, i.AddedBy)
	}
}

// taken names the unique value of u that another user has, or that its identities have
// twice; empty: none.
func (t *tx) taken(u *store.User) string {
	if u.Email != "" && t.exists(`select 1 from auth_users where email_key = ? and id <> ?`, store.EmailKey(u.Email), u.ID) {
		return "email"
	}
	if u.Phone != "" && t.exists(`select 1 from auth_users where phone = ? and id <> ?`, u.Phone, u.ID) {
		return "phone"
	}
	if u.Handle != "" && t.exists(`select 1 from auth_users where handle = ? and id <> ?`, u.Handle, u.ID) {
		return "handle"
	}
	for n, i := range u.Identities {
		earlier := u.Identities[:n]
		if slices.ContainsFunc(earlier, func(o store.Identity) bool { return o.ID == i.ID }) || t.exists(`select 1 from auth_identities where id = ? and user_id <> ?`, i.ID, u.ID) {
			return "id"
		}
		if slices.ContainsFunc(earlier, func(o store.Identity) bool { return o.Provider == i.Provider && o.Subject == i.Subject }) ||
			t.exists(`select 1 from auth_identities where provider = ? and subject = ? and user_id <> ?`, i.Provider, i.Subject, u.ID) {
			return "identity"
		}
	}
	return ""
}

// DeleteUser deletes the user and everything that belongs to it, except its events.
func (s *Store) DeleteUser(ctx context.Context, c store.DeleteUser) error {
	return s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		u := t.user(c.UserID)
		if u == nil {
			return nil, store.ErrNotFound
		}
		e := &effect{about: u.ID}
		e.apply = func() error {
			e.ended = t.revoke(u.ID, store.SessionFilter{}, c.Now)
			t.dropLog(u.ID)
			t.exec(`delete from auth_users where id = ?`, u.ID) // the rest by foreign keys
			t.exec(`insert into auth_deleted_users (id) values (?) on conflict do nothing`, u.ID)
			return nil
		}
		return e, nil
	})
}

// noteOwner records that there has been an owner.
func (t *tx) noteOwner(u *store.User) {
	if u.AcceptedSequence > 0 && slices.Contains(u.Roles, store.RoleOwner) {
		t.exec(`update auth_project set owned = 1 where owned = 0`)
	}
}

// EverOwned reports whether there has been an owner at some time.
func (s *Store) EverOwned(ctx context.Context) (owned bool, err error) {
	err = s.read(ctx, func(t *tx) error {
		owned = t.everOwned()
		return nil
	})
	return owned, err
}

func (t *tx) everOwned() bool { return value[bool](t, `select owned from auth_project`) }
