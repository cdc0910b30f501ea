update auth.users u set
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
	where u.id = $1::uuid
