select u.password_hash, u.id, u.email, u.email_verified_at, u.phone, u.phone_verified_at,
	u.full_name, u.user_metadata, u.app_metadata, u.roles, u.mfa_enabled, u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	u.revision, u.credential_revision, case when u.linked then auth.identities_of(u.id) end, null::jsonb /* claims */ from auth.users u where u.email_key = $1::text
