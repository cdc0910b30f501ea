-- Credentials, by the address
select u.password_hash, exists (select from auth.devices d where d.user_id = u.id and d.device = $1::text),
	u.id, u.email, u.email_verified_at, u.phone, u.phone_verified_at,
	u.full_name, u.user_metadata, u.app_metadata, u.roles, u.mfa_enabled, u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	u.revision, u.credential_revision, case when u.linked then auth.identities_of(u.id) end, null::jsonb /* claims */ from auth.users u where u.email_key = $2::text;

-- CreateSession, after the password was right
with u as (
		update auth.users u set last_sign_in_at = $5::timestamptz
		where u.id = $4::uuid and (u.banned_until is null or u.banned_until <= $5::timestamptz) and ($6::boolean or not u.mfa_enabled)
			and ($7::bigint is null or u.revision = $7::bigint) and ($8::bigint is null or u.credential_revision = $8::bigint)
			and ($9::text is null or u.password_hash = $9::text)
			and ($10::text is null or coalesce(u.email_key, '') = $10::text) and ($11::boolean is null or (u.email_verified_at is not null) = $11::boolean)
			and ($12::text is null or coalesce(u.phone, '') = $12::text) and ($13::boolean is null or (u.phone_verified_at is not null) = $13::boolean)
		returning u.*
	), sessions as (
		insert into auth.sessions (id, user_id, counter, rotated_at, aal, amr, created_at, last_active_at, idle_until, expires_at, ip, user_agent, device)
		select s.id, u.id, s.counter, s.rotated_at, s.aal, s.amr, s.created_at, s.last_active_at, s.idle_until, s.expires_at, s.ip, s.user_agent, s.device
		from u, jsonb_to_recordset($3::jsonb) as s (id uuid, counter bigint, rotated_at timestamptz, aal text, amr jsonb, created_at timestamptz,
			last_active_at timestamptz, idle_until timestamptz, expires_at timestamptz, ip text, user_agent text, device text)
	), settled as materialized (
		select u.id as user_id, auth.settle(u.id, s.id, s.device, s.created_at, $14::integer, $15::timestamptz) as ended
		from u, jsonb_to_recordset($3::jsonb) as s (id uuid, counter bigint, rotated_at timestamptz, aal text, amr jsonb, created_at timestamptz,
			last_active_at timestamptz, idle_until timestamptz, expires_at timestamptz, ip text, user_agent text, device text)
	), about as (
		select settled.user_id, 0 as outcome from settled
	), events as (
		insert into auth.events (id, type, at, user_id, session_id, data)
		select e.id, e.type, e.at, coalesce(e.user_id, about.user_id), e.session_id, e.data
		from about, jsonb_to_recordset($1::jsonb) as e ("on" integer, id uuid, type text, at timestamptz, user_id uuid, session_id uuid, data jsonb) where e."on" = about.outcome
		on conflict (id) do nothing
	), messages as (
		insert into auth.messages (id, user_id, purpose, hash, body, created_at, next_at, expires_at, attempts)
		select m.id, m.user_id, m.purpose, m.hash, m.body, m.created_at, m.next_at, m.expires_at, m.attempts from about, jsonb_to_recordset($2::jsonb) as m (id uuid, user_id uuid, purpose text, hash bytea, body bytea,
			created_at timestamptz, next_at timestamptz, expires_at timestamptz, attempts integer) where about.outcome = 0
		on conflict (id) do nothing
	), endings as (
		insert into auth.events (id, type, at, user_id, session_id, data)
		select e.id, e.type, e.at, coalesce(e.user_id, settled.user_id), e.session_id, e.data || jsonb_build_object('session_ids', settled.ended)
		from settled, jsonb_to_recordset($1::jsonb) as e ("on" integer, id uuid, type text, at timestamptz, user_id uuid, session_id uuid, data jsonb) where e."on" = 3 and settled.ended <> '{}'
		on conflict (id) do nothing
	)
	select u.id, u.email, u.email_verified_at, u.phone, u.phone_verified_at,
	u.full_name, u.user_metadata, u.app_metadata, u.roles, u.mfa_enabled, u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	u.revision, u.credential_revision, case when u.linked then auth.identities_of(u.id) end, settled.ended from u, settled;
