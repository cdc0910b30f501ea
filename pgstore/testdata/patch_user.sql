update auth.users u set
		updated_at = $2::timestamptz,
		revision = u.revision + 1,
		credential_revision = u.credential_revision + case when $3::boolean or $24::text is not null and not exists (
			select from auth.identities i where i.user_id = u.id and i.provider = $24::text and i.subject = $25::text) then 1 else 0 end,
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
		mfa_enabled = u.mfa_enabled and not $22::boolean,
		linked = u.linked or $23::boolean,
		notes = coalesce($27::text, u.notes)
	where u.id = $1::uuid
