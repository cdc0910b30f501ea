package pgstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

// insertUser creates a user with sessions ($3), tokens ($4) and identities ($5).
var insertUser = `with u as (
		insert into auth.users (id, email, email_key, email_verified_at, phone, phone_verified_at, full_name, user_metadata, app_metadata, roles,
			password_hash, created_at, updated_at, last_sign_in_at, banned_until, linked, name_key, notes,
			handle, sequence, password_sequence, email_sequence, email_verified_sequence, phone_sequence, phone_verified_sequence, accepted_sequence)
		values ($6::uuid, $7::text, $8::text, $9::timestamptz, $10::text, $11::timestamptz, $12::text, $13::jsonb, $14::jsonb, $15::text[],
			$16::text, $17::timestamptz, $18::timestamptz, $19::timestamptz, $20::timestamptz, $21::boolean, $22::text, $23::text,
			$24::text, 1, ($16::text <> '')::integer, ($7::text is not null)::integer, ($9::timestamptz is not null)::integer, ($10::text is not null)::integer, ($11::timestamptz is not null)::integer, $25::bigint)
		returning id
	), s as materialized (
		select u.id as user_id, s.*, 1 as sequence, 0 as added_by from u, jsonb_to_recordset($3::jsonb) as ` + sessionRecord + `
	), sessions as (
		` + insertSessions + `
	), devices as (
		` + insertDevices + `
	), tokens as (
		` + insertTokens(sequenceOfUser) + ` from u, jsonb_to_recordset($4::jsonb) as ` + tokenRecord + supersede + `
	), identities as (
		insert into auth.identities (id, user_id, provider, subject, email, created_at, last_sign_in_at, sequence)
		select i.id, u.id, i.provider, i.subject, i.email, i.created_at, i.last_sign_in_at, 1 from u, jsonb_to_recordset($5::jsonb) as ` + identityRecord + `
	), words as (
		insert into auth.user_words (user_id, word) select u.id, w.word from u, unnest($26::text[]) as w (word)
	), about as (
		select u.id as user_id, 0 as outcome from u
	), ` + recorded + `
	select ` + noted + ` from u`

// CreateUser adds a user with its session, tokens, identities and factors. It is one
// statement, or a transaction if there are factors, roles, a NewUser.Creating or a
// claims function.
func (s *Store) CreateUser(ctx context.Context, c store.CreateUser) (store.User, error) {
	if err := c.Check(); err != nil {
		return store.User{}, err
	}
	u := created(c.NewUser)
	var err error
	if plain(&c.Change) && len(c.IfUsers) == 0 && c.Creating == nil && s.claims == "" && len(u.Roles) == 0 && len(c.Factors) == 0 && areAbout(c.Messages, u.ID) {
		events, tried := s.noting(&c.Change)
		var ok bool
		err = s.do(ctx, func(ctx context.Context, q querier) (err error) {
			ok, err = s.insertUser(ctx, q, c.NewUser, events, messagesInput(c.Messages))
			return err
		})
		if err == nil && (!ok || !tried) {
			s.unrecorded(&c.Change, &result{about: u.ID}, tried)
		}
	} else {
		err = s.change(ctx, &c.Change, target{roles: rolesOf(u.Roles)}, func(ctx context.Context, tx pgx.Tx, _ *held) (*result, error) {
			return s.create(ctx, tx, c.NewUser, &u)
		})
	}
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

// create creates a user in a transaction.
func (s *Store) create(ctx context.Context, tx pgx.Tx, nu store.NewUser, u *store.User) (*result, error) {
	*u = created(nu)
	if u.MFAEnabled && nu.Session != nil && nu.Session.AAL != store.LevelAAL2 {
		return nil, store.ErrMFARequired
	}
	r := &result{about: u.ID, last: func() error { return s.finishCreating(ctx, tx, nu, u) }}
	if _, err := s.insertUser(ctx, tx, nu, none, none); err != nil || len(nu.Factors) == 0 {
		return r, err
	}
	_, err := tx.Exec(ctx, s.sql(armUser), u.ID, factorsInput(u.ID, nu.Factors...))
	return r, err
}

// finishCreating calls the hook and the claims function for a new user, in the
// transaction that creates the user.
func (s *Store) finishCreating(ctx context.Context, tx pgx.Tx, nu store.NewUser, u *store.User) error {
	if nu.Creating != nil {
		if err := nu.Creating(ctx, *u); err != nil {
			return hookFailed{err}
		}
	}
	if s.claims == "" {
		return nil
	}
	return tx.QueryRow(ctx, "select "+s.claims+"($1::uuid)", u.ID).Scan(&u.Claims)
}

// insertUser runs the statement. ok reports whether the events were recorded.
func (s *Store) insertUser(ctx context.Context, q querier, nu store.NewUser, events, messages string) (ok bool, err error) {
	u := created(nu)
	userMetadata, err := object(u.UserMetadata)
	if err != nil {
		return false, err
	}
	appMetadata, err := object(u.AppMetadata)
	if err != nil {
		return false, err
	}
	sessions := none
	if nu.Session != nil {
		sessions = sessionsInput(*nu.Session)
	}
	err = q.QueryRow(ctx, s.sql(insertUser), events, messages, sessions, tokensInput(firstTokens(u.ID, nu.Tokens)...), identitiesInput(u.Identities...),
		u.ID, orNull(u.Email), orNull(store.EmailKey(u.Email)), moment(u.EmailVerifiedAt), orNull(u.Phone), moment(u.PhoneVerifiedAt), u.FullName, userMetadata, appMetadata, nonNil(u.Roles),
		nu.PasswordHash, u.CreatedAt, u.UpdatedAt, moment(u.LastSignInAt), moment(u.BannedUntil), len(u.Identities) > 0, orNull(store.NameKey(u.FullName)), nu.Notes, orNull(u.Handle), u.AcceptedSequence, words(u.FullName)).Scan(&ok)
	return ok, err
}

// words returns the later words of a name, by which lists find it.
func words(name string) []string { return nonNil(store.NameWords(name)) }

// firstTokens returns the tokens of a new user with their origin.
func firstTokens(userID string, list []store.Token) []store.Token {
	list = withOrigin(list, store.Origin{})
	for i := range list {
		if list[i].UserID == userID {
			list[i].Sequence = 1
		}
	}
	return list
}

// created returns the user that CreateUser stores.
func created(nu store.NewUser) store.User {
	u := nu.User
	u.MFAEnabled = slices.ContainsFunc(nu.Factors, func(f store.Factor) bool { return f.Required })
	u.Revision, u.CredentialRevision, u.Claims = 0, 0, nil
	if nu.Session != nil {
		u.LastSignInAt = nu.Session.CreatedAt
	}
	for _, at := range []*time.Time{&u.CreatedAt, &u.UpdatedAt, &u.LastSignInAt, &u.BannedUntil, &u.EmailVerifiedAt, &u.PhoneVerifiedAt} {
		*at = micro(*at)
	}
	u.Roles, u.Identities = slices.Clone(u.Roles), slices.Clone(u.Identities)
	for i := range u.Identities {
		id := &u.Identities[i]
		id.CreatedAt, id.LastSignInAt = micro(id.CreatedAt), micro(id.LastSignInAt)
	}
	u.Begin(nu.PasswordHash != "")
	slices.SortFunc(u.Identities, func(a, b store.Identity) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return u
}

// areAbout reports whether all messages are for this user or for no user.
func areAbout(messages []store.SealedMessage, userID string) bool {
	return !slices.ContainsFunc(messages, func(m store.SealedMessage) bool { return m.UserID != "" && m.UserID != userID })
}

// rolesOf returns the lock that keeps a user's new roles from being deleted meanwhile.
func rolesOf(roles []string) roleLock {
	if len(roles) > 0 {
		return rolesStay
	}
	return rolesAreNotAsked
}

// Reads of one user by each unique value ($2, and $3), and whether a device ($1) is
// known and trusted. A request without a device also looks for one, and finds none: a
// condition that depends on a parameter's value would be planned anew each time.
const (
	byID       = `u.id = $2::uuid`
	byEmail    = `u.email_key = $2::text`
	byPhone    = `u.phone = $2::text`
	byHandle   = `u.handle = $2::text`
	byIdentity = `u.id = (select i.user_id from auth.identities i where i.provider = $2::text and i.subject = $3::text)`

	credentials = `select u.password_hash, u.notes, d.device is not null, case when d.trusted_revision = u.credential_revision then d.trusted_until end,
	` + userColumns + `, ` + claimsColumn + ` from auth.users u left join auth.devices d on d.user_id = u.id and d.device = $1::text where `
)

// User finds one user.
func (s *Store) User(ctx context.Context, key store.UserKey) (store.User, error) {
	c, err := s.Credentials(ctx, key)
	return c.User, err
}

// Credentials finds one user with the password hash.
func (s *Store) Credentials(ctx context.Context, key store.UserKey) (store.Credentials, error) {
	condition, args := where(key)
	if condition == "" {
		return store.Credentials{}, cmp.Or(ctx.Err(), store.ErrNotFound)
	}
	var c store.Credentials
	err := s.do(ctx, func(ctx context.Context, q querier) (err error) {
		c, err = credentialsOf(q.QueryRow(ctx, s.sql(credentials+condition), args...))
		return err
	})
	if err != nil {
		return store.Credentials{}, err
	}
	return c, nil
}

// where returns the condition that finds a user and its arguments, or "" if the key
// cannot match any user.
func where(key store.UserKey) (condition string, args []any) {
	if !isText(key.Email + key.Phone + key.Handle + key.Provider + key.Subject) {
		return "", nil
	}
	device := key.Device
	if !isText(device) || device == forgotten {
		device = ""
	}
	switch id, ok := canonical(key.ID); {
	case key.ID != "" && !ok:
		return "", nil
	case key.ID != "":
		return byID, []any{device, id}
	case key.Email != "":
		return byEmail, []any{device, store.EmailKey(key.Email)}
	case key.Phone != "":
		return byPhone, []any{device, key.Phone}
	case key.Handle != "":
		return byHandle, []any{device, key.Handle}
	}
	return byIdentity, []any{device, key.Provider, key.Subject}
}

func credentialsOf(row pgx.Row) (c store.Credentials, err error) {
	var r userRow
	var trusted pgtype.Timestamptz
	if err = row.Scan(append(append([]any{&c.PasswordHash, &c.Notes, &c.KnownDevice, &trusted}, r.into()...), &r.claims)...); err == nil {
		c.TrustedUntil = at(trusted)
		c.User, err = r.user()
	}
	return c, err
}

// isText reports whether Postgres can store a text.
func isText(s string) bool { return !strings.ContainsRune(s, 0) && utf8.ValidString(s) }

// UpdateUser applies a patch.
func (s *Store) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	var u store.User
	err := s.change(ctx, &c.Change, target{users: []string{c.UserID}, roles: rolesOfPatch(&c.Patch)}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		return s.patch(ctx, tx, h.user(c.UserID), &c.Patch, c.Now, h.addedBy(&c.By, c.UserID, nil), &u)
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}

const (
	deleteUser = `with d as (delete from auth.users where id = $1::uuid returning id)
		insert into auth.deleted_users (id) select d.id from d on conflict do nothing`

	selectDeletedUser = `select exists (select from auth.deleted_users d where d.id = $1::uuid)`
)

// DeleteUser deletes the user. Rows without a foreign key are deleted first.
func (s *Store) DeleteUser(ctx context.Context, c store.DeleteUser) error {
	return s.change(ctx, &c.Change, target{users: []string{c.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		u := h.user(c.UserID)
		if u == nil {
			return nil, store.ErrNotFound
		}
		b := &pgx.Batch{}
		b.Queue(s.sql(deleteLogOf), u.id, []string{})
		b.Queue(s.sql(deleteUser), u.id)
		return &result{about: u.id}, send(ctx, tx, b)
	})
}

// UserDeleted reports whether a user was deleted.
func (s *Store) UserDeleted(ctx context.Context, id string) (deleted bool, err error) {
	id, ok := canonical(id)
	if !ok {
		return false, nil
	}
	err = s.do(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, s.sql(selectDeletedUser), id).Scan(&deleted)
	})
	return deleted, err
}

const (
	selectUser       = `select ` + userColumns + `, ` + claimsColumn + ` from auth.users u where u.id = $1::uuid`
	selectUserAsKept = `select ` + userColumns + `, null::jsonb from auth.users u where u.id = $1::uuid`
)

// queueUser adds to a batch the statement that reads a user after the others.
func (s *Store) queueUser(b *pgx.Batch, sql, id string, u *store.User) {
	b.Queue(s.sql(sql), id).QueryRow(func(row pgx.Row) error {
		var r userRow
		err := row.Scan(append(r.into(), &r.claims)...)
		if err == nil {
			*u, err = r.user()
		}
		return err
	})
}

//nolint:gosec // no credentials
const touchCredentials = `update auth.users u set updated_at = $2::timestamptz, revision = u.revision + 1, credential_revision = u.credential_revision + 1,
		mfa_enabled = $3::boolean, sequence = coalesce($4::bigint, u.sequence)
	where u.id = $1::uuid`

// queueMFA adds to a batch the update of the user's row for a change of second factors.
// sequence is nil if nothing is added.
func (s *Store) queueMFA(b *pgx.Batch, id string, now time.Time, enabled bool, sequence *int64) {
	b.Queue(s.sql(touchCredentials), id, now, enabled, sequence)
}
