-- Credentials, by the address
select u.password_hash, u.notes, d.device is not null, case when d.trusted_revision = u.credential_revision then d.trusted_until end,
	u.id, u.email, u.email_verified_at, u.phone, u.phone_verified_at,
	u.full_name, u.user_metadata, u.app_metadata, u.roles, u.mfa_enabled, u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	u.revision, u.credential_revision, case when u.linked then auth.identities_of(u.id) end, u.handle,
	u.sequence, u.password_sequence, u.password_added_by, u.email_sequence, u.email_added_by,
	u.email_verified_sequence, u.email_verified_added_by, u.phone_sequence, u.phone_added_by, u.phone_verified_sequence, u.phone_verified_added_by,
	u.accepted_sequence, u.accepted_until, null::jsonb /* claims */ from auth.users u left join auth.devices d on d.user_id = u.id and d.device = $1::text where u.email_key = $2::text;

-- CreateSession, after the password was right
with u as (
		update auth.users u set last_sign_in_at = $5::timestamptz, sessions_at_most = u.sessions_at_most + 1, sequence = coalesce($27::bigint, u.sequence + 1)
		where u.id = $4::uuid and (u.banned_until is null or u.banned_until <= $5::timestamptz) and ($6::boolean or not u.mfa_enabled)
			and (not $26::boolean or u.last_sign_in_at is null or exists (select from auth.devices d where d.user_id = u.id and d.device = $2::text))
			and ($7::bigint is null or u.revision = $7::bigint) and ($8::bigint is null or u.credential_revision = $8::bigint)
			and ($9::text is null or u.password_hash = $9::text)
			and ($10::text is null or coalesce(u.email_key, '') = $10::text) and ($11::boolean is null or (u.email_verified_at is not null) = $11::boolean)
			and ($12::text is null or coalesce(u.phone, '') = $12::text) and ($13::boolean is null or (u.phone_verified_at is not null) = $13::boolean)
		returning u.*
	), s as materialized (
		select $3::uuid as id, u.id as user_id, $17::bigint as counter, $18::timestamptz as rotated_at, $19::text as aal, $20::jsonb as amr, $5::timestamptz as created_at,
			$21::timestamptz as last_active_at, $22::timestamptz as idle_until, $23::timestamptz as expires_at, $24::text as ip, $25::text as user_agent, $2::text as device, u.sequence, $28::bigint as added_by
		from u
	), sessions as (
		insert into auth.sessions (id, user_id, counter, rotated_at, aal, amr, created_at, last_active_at, idle_until, expires_at, ip, user_agent, device, rotated_device, sequence, added_by)
		select s.id, s.user_id, s.counter, s.rotated_at, s.aal, s.amr, s.created_at, s.last_active_at, s.idle_until, s.expires_at, s.ip, s.user_agent, s.device, s.device, s.sequence, s.added_by
		from s
	), devices as (
		insert into auth.devices as d (user_id, device, first_seen_at, last_seen_at, sequence, added_by)
		select s.user_id, s.device, s.created_at, s.created_at, s.sequence, s.added_by from s where s.device <> ''
		on conflict (user_id, device) do update set last_seen_at = greatest(d.last_seen_at, excluded.last_seen_at)
		returning d.user_id, d.device, d.first_seen_at = d.last_seen_at as is_new, d.xmax = 0 as inserted
	), about as materialized (
		select u.id as user_id, case when $14::integer > 0 and u.sessions_at_most > $14::integer
			then auth.end_least_active_sessions(u.id, $3::uuid, $14::integer, $15::timestamptz) else '{}' end as ended
		from u
	), events as (
		select auth.note_events($1::jsonb, about.user_id, array[0] || case when about.ended <> '{}' then array[3] else '{}' end, about.ended) as noted from about
	)
	select u.id, u.email, u.email_verified_at, u.phone, u.phone_verified_at,
	u.full_name, u.user_metadata, u.app_metadata, u.roles, u.mfa_enabled, u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	u.revision, u.credential_revision, case when u.linked then auth.identities_of(u.id) end, u.handle,
	u.sequence, u.password_sequence, u.password_added_by, u.email_sequence, u.email_added_by,
	u.email_verified_sequence, u.email_verified_added_by, u.phone_sequence, u.phone_added_by, u.phone_verified_sequence, u.phone_verified_added_by,
	u.accepted_sequence, u.accepted_until, about.ended, (select auth.forget_least_seen_devices(d.user_id, d.device, $16::integer) from devices d where d.is_new), false, coalesce((select events.noted from events), true) from u, about;
