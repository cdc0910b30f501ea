select r.n, s.id, s.user_id, s.counter, s.rotated_at, s.aal, s.amr, s.created_at, s.last_active_at, s.idle_until, s.expires_at,
	s.ip, s.user_agent, s.device, s.revoked_at, s.sequence, s.added_by, u.email, u.email_verified_at, u.phone, u.phone_verified_at,
	u.full_name, u.user_metadata, u.app_metadata, u.roles, u.mfa_enabled, u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	u.revision, u.credential_revision, case when u.linked then auth.identities_of(u.id) end, u.handle,
	u.sequence, u.password_sequence, u.password_added_by, u.email_sequence, u.email_added_by,
	u.email_verified_sequence, u.email_verified_added_by, u.phone_sequence, u.phone_added_by, u.phone_verified_sequence, u.phone_verified_added_by,
	u.accepted_sequence, u.accepted_until from unnest((select $1::uuid[])) with ordinality r (id, n)
		join auth.sessions s on s.id = r.id join auth.users u on u.id = s.user_id
