package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// patchUser changes the user's own row. $3 is true if the patch raises the credential
// revision in any case. A new identity ($24, $25) raises it, too. $4 deletes all
// credentials except those that the patch sets. $29 is true if the patch raises the
// sequence in any case. $28 is the sequence of the session that adds the credentials. $30
// accepts operator permissions, $31 ends an acceptance, $35 does so if there is no email
// address, and $32 and $33 set its end. $34 are the ids of the factors to keep. $36 sets the
// handle, which ” removes.
const patchUser = `update auth.users u set
		updated_at = $2::timestamptz,
		revision = u.revision + 1,
		credential_revision = u.credential_revision + case when $3::boolean or $24::text is not null and not exists (
			select from auth.identities i where i.user_id = u.id and i.provider = $24::text and i.subject = $25::text) then 1 else 0 end,
		sequence = u.sequence + case when $29::boolean or $24::text is not null and ($4::boolean or not exists (
			select from auth.identities i where i.user_id = u.id and i.provider = $24::text and i.subject = $25::text)) then 1 else 0 end,
		email = case when $5::boolean then $6::text when $4::boolean and not $8::boolean then null else u.email end,
		email_key = case when $5::boolean then $7::text when $4::boolean and not $8::boolean then null else u.email_key end,
		email_verified_at = case when $8::boolean then $9::timestamptz when $4::boolean and not $5::boolean then null else u.email_verified_at end,
		phone = case when $10::boolean then $11::text when $4::boolean and not $12::boolean then null else u.phone end,
		phone_verified_at = case when $12::boolean then $13::timestamptz when $4::boolean and not $10::boolean then null else u.phone_verified_at end,
		full_name = coalesce($14::text, u.full_name),
		name_key = case when $14::text is null then u.name_key else nullif($26::text, '') end,
		user_metadata = coalesce($15::jsonb, u.user_metadata),
		app_metadata = coalesce($16::jsonb, u.app_metadata),
		password_hash = case when $17::text is not null then $17::text when $4::boolean then '' else coalesce($18::text, u.password_hash) end,
		roles = coalesce($19::text[], u.roles),
		banned_until = case when $20::boolean then $21::timestamptz else u.banned_until end,
		mfa_enabled = u.mfa_enabled and (not $22::boolean or exists (
			select from auth.factors f where f.user_id = u.id and f.id = any ($34::uuid[]) and f.enabled and f.required)),
		linked = u.linked or $23::boolean,
		password_sequence = case when $17::text is not null then case when $17::text <> '' then u.sequence + 1 else 0 end when $4::boolean then 0 else u.password_sequence end,
		password_added_by = case when $17::text is not null then case when $17::text <> '' then $28::bigint else 0 end when $4::boolean then 0 else u.password_added_by end,
		email_sequence = case when $5::boolean then case when $6::text is not null then u.sequence + 1 else 0 end when $4::boolean and not $8::boolean then 0 else u.email_sequence end,
		email_added_by = case when $5::boolean then case when $6::text is not null then $28::bigint else 0 end when $4::boolean and not $8::boolean then 0 else u.email_added_by end,
		email_verified_sequence = case when $8::boolean then case when $9::timestamptz is not null then u.sequence + 1 else 0 end when $4::boolean and not $5::boolean then 0 else u.email_verified_sequence end,
		email_verified_added_by = case when $8::boolean then case when $9::timestamptz is not null then $28::bigint else 0 end when $4::boolean and not $5::boolean then 0 else u.email_verified_added_by end,
		phone_sequence = case when $10::boolean then case when $11::text is not null then u.sequence + 1 else 0 end when $4::boolean and not $12::boolean then 0 else u.phone_sequence end,
		phone_added_by = case when $10::boolean then case when $11::text is not null then $28::bigint else 0 end when $4::boolean and not $12::boolean then 0 else u.phone_added_by end,
		phone_verified_sequence = case when $12::boolean then case when $13::timestamptz is not null then u.sequence + 1 else 0 end when $4::boolean and not $10::boolean then 0 else u.phone_verified_sequence end,
		phone_verified_added_by = case when $12::boolean then case when $13::timestamptz is not null then $28::bigint else 0 end when $4::boolean and not $10::boolean then 0 else u.phone_verified_added_by end,
		recovery_sequence = case when $22::boolean and ($4::boolean or not exists (
			select from auth.factors f where f.user_id = u.id and f.id = any ($34::uuid[]) and f.enabled and f.required)) then 0 else u.recovery_sequence end,
		recovery_added_by = case when $22::boolean and ($4::boolean or not exists (
			select from auth.factors f where f.user_id = u.id and f.id = any ($34::uuid[]) and f.enabled and f.required)) then 0 else u.recovery_added_by end,
		accepted_sequence = case when $30::boolean then u.sequence + case when $29::boolean or $24::text is not null and ($4::boolean or not exists (
				select from auth.identities i where i.user_id = u.id and i.provider = $24::text and i.subject = $25::text)) then 1 else 0 end
			when $31::boolean or $35::boolean and (case when $5::boolean then $6::text else u.email end) is null then 0 else u.accepted_sequence end,
		accepted_until = case when $30::boolean then null when $32::boolean then $33::timestamptz else u.accepted_until end,
		notes = coalesce($27::text, u.notes),
		handle = case when $36::text is null then u.handle else nullif($36::text, '') end
	where u.id = $1::uuid`

// putWords replaces the words of a name. The rows that stay are not touched.
const putWords = `with gone as (delete from auth.user_words w where w.user_id = $1::uuid and w.word <> all ($2::text[]))
	insert into auth.user_words (user_id, word) select $1::uuid, n.word from unnest($2::text[]) as n (word)
	where not exists (select from auth.user_words w where w.user_id = $1::uuid and w.word = n.word)`

const dropIdentities = `delete from auth.identities i where i.user_id = $1::uuid`

const dropDevices = `delete from auth.devices d where d.user_id = $1::uuid`

const unlink = `delete from auth.identities i where i.user_id = $1::uuid and i.provider = $2::text and i.subject = $3::text`

// link adds an identity, or renews the user's own. It changes no row if the identity is
// another user's.
const link = `insert into auth.identities as i (id, user_id, provider, subject, email, created_at, last_sign_in_at, sequence, added_by)
	values ($2::uuid, $1::uuid, $3::text, $4::text, $5::text, $6::timestamptz, $7::timestamptz, (select u.sequence from auth.users u where u.id = $1::uuid), $8::bigint)
	on conflict (provider, subject) do update set id = excluded.id, email = excluded.email, created_at = excluded.created_at, last_sign_in_at = excluded.last_sign_in_at
		where i.user_id = excluded.user_id`

// dropFactors deletes the factors that are not among $2, and the recovery codes if $3 is true
// or no second factor is among $2.
const dropFactors = `with codes as (delete from auth.recovery_codes where user_id = $1::uuid and ($3::boolean or not exists (
		select from auth.factors f where f.user_id = $1::uuid and f.id = any ($2::uuid[]) and f.enabled and f.required)))
	delete from auth.factors where user_id = $1::uuid and id <> all ($2::uuid[])`

const revokeKeys = `update auth.api_keys k set revoked_at = $2::timestamptz, revision = k.revision + 1
	where k.revoked_at is null and ($3::boolean and k.created_by = $1::uuid and not k.adopted
		or $4::bigint > 0 and k.text_user = $1::uuid and k.text_sequence >= $4::bigint)`

//nolint:gosec // no credentials
const dropTokens = `delete from auth.tokens t where t.user_id = $1::uuid and ($3::boolean or t.purpose = any ($2::text[]))`

// patch applies a patch, which may be nil, to a locked user, and reads the user
// afterwards. Errors: ErrNotFound if of is nil.
func (s *Store) patch(ctx context.Context, tx pgx.Tx, of *lockedUser, p *store.UserPatch, now time.Time, addedBy int64, u *store.User) (*result, error) {
	if of == nil {
		return nil, store.ErrNotFound
	}
	r := &result{about: of.id}
	b := &pgx.Batch{}
	read := selectUser
	if p != nil && !p.Empty() {
		if err := s.queuePatch(b, of.id, p, now, addedBy); err != nil {
			return nil, err
		}
		s.queueReach(b, of.id, p, now, addedBy, r)
		if p.BannedUntil != nil { // issues no token, and must not fail because of claims
			read = selectUserAsKept
		}
	}
	s.queueUser(b, read, of.id, u)
	return r, send(ctx, tx, b)
}

// queuePatch adds the change of the user's own row to a batch.
func (s *Store) queuePatch(b *pgx.Batch, id string, p *store.UserPatch, now time.Time, addedBy int64) error {
	userMetadata, err := objectOrNull(p.UserMetadata)
	if err != nil {
		return err
	}
	appMetadata, err := objectOrNull(p.AppMetadata)
	if err != nil {
		return err
	}
	var roles []string
	if p.Roles != nil {
		roles = nonNil(*p.Roles)
	}
	var provider, subject *string
	if p.Link != nil {
		provider, subject = &p.Link.Provider, &p.Link.Subject
	}
	raises := p.Email != nil || p.EmailVerifiedAt != nil || p.Phone != nil || p.PhoneVerifiedAt != nil ||
		p.PasswordHash != nil || p.Unlink != nil || p.Roles != nil || p.BannedUntil != nil || p.DropFactors || p.DropCredentials || p.Accept || p.AcceptedUntil != nil
	ends := !p.Accept && (p.DropCredentials || addedBy == 0 && value(p.Email) != "")
	endsByPhone := !p.Accept && addedBy == 0 && value(p.Phone) != ""
	alone := *p
	alone.Link = nil // the statement checks whether the identity is new
	b.Queue(s.sql(patchUser), id, now, raises, p.DropCredentials,
		p.Email != nil, orNull(value(p.Email)), orNull(store.EmailKey(value(p.Email))), p.EmailVerifiedAt != nil, moment(value(p.EmailVerifiedAt)),
		p.Phone != nil, orNull(value(p.Phone)), p.PhoneVerifiedAt != nil, moment(value(p.PhoneVerifiedAt)),
		p.FullName, userMetadata, appMetadata, p.PasswordHash, p.Rehash, roles, p.BannedUntil != nil, moment(value(p.BannedUntil)),
		p.DropFactors || p.DropCredentials, p.Link != nil, provider, subject, store.NameKey(value(p.FullName)), p.Notes, addedBy, alone.Adds(store.User{}),
		p.Accept, ends, p.AcceptedUntil != nil, moment(value(p.AcceptedUntil)), keptFactors(p), endsByPhone, p.Handle)
	return nil
}

// queueReach adds a patch's changes to other tables to a batch. No session, token,
// identity or factor of the user can be added meanwhile, because that locks the user's
// row, too.
func (s *Store) queueReach(b *pgx.Batch, id string, p *store.UserPatch, now time.Time, addedBy int64, r *result) {
	if p.FullName != nil {
		b.Queue(s.sql(putWords), id, words(*p.FullName))
	}
	switch {
	case p.DropCredentials:
		s.queueRevoke(b, id, store.SessionFilter{Except: p.KeepSession}, now, &r.ended)
		b.Queue(s.sql(dropIdentities), id)
	case p.Revoke != nil:
		s.queueRevoke(b, id, *p.Revoke, now, &r.ended)
	}
	if p.Unlink != nil && !p.DropCredentials {
		b.Queue(s.sql(unlink), id, p.Unlink.Provider, p.Unlink.Subject)
	}
	if l := p.Link; l != nil {
		b.Queue(s.sql(link), id, l.ID, l.Provider, l.Subject, l.Email, l.CreatedAt, moment(l.LastSignInAt), addedBy).Exec(func(tag commandTag) error {
			if tag.RowsAffected() == 0 {
				return &store.ConflictError{Field: "identity"}
			}
			return nil
		})
	}
	switch {
	case p.DropCredentials:
		b.Queue(s.sql(dropDevices), id) // devices of the account's previous holder
	case p.DropDevices:
		s.queueForget(b, id, value(p.Revoke))
	}
	if p.DropFactors || p.DropCredentials {
		b.Queue(s.sql(dropFactors), id, keptFactors(p), p.DropCredentials)
	}
	if p.Accept || p.RevokeKeys > 0 {
		b.Queue(s.sql(revokeKeys), id, now, p.Accept, p.RevokeKeys)
	}
	if len(p.DropTokens) > 0 || p.DropCredentials {
		b.Queue(s.sql(dropTokens), id, purposes(p.DropTokens), p.DropCredentials)
	}
}

// keptFactors returns the ids of the factors that a patch keeps although it drops all.
func keptFactors(p *store.UserPatch) []string {
	if !p.DropFactors && !p.DropCredentials {
		return []string{}
	}
	return canonicalAll(p.KeepFactors...)
}

func purposes(list []store.Purpose) []string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = string(p)
	}
	return names
}

func rolesOfPatch(p *store.UserPatch) roleLock {
	if p == nil || p.Roles == nil {
		return rolesAreNotAsked
	}
	return rolesOf(*p.Roles)
}

// objectOrNull returns a map as JSON, or nil, which leaves the column unchanged.
func objectOrNull(m map[string]any) (*string, error) {
	if m == nil {
		return nil, nil //nolint:nilnil // null
	}
	o, err := object(m)
	return &o, err
}

// value returns *p, or the zero value for nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
