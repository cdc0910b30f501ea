with u as (
		update auth.users u set last_sign_in_at = $5::timestamptz, sessions_at_most = u.sessions_at_most + 1, sequence = coalesce($27::bigint, u.sequence + 1)
		from (select b.last_sign_in_at as at from auth.users b where b.id = $4::uuid) before
		where u.id = $4::uuid and (u.banned_until is null or u.banned_until <= $5::timestamptz) and ($6::boolean or not u.mfa_enabled)
			and (not $26::boolean or u.last_sign_in_at is null or case when $2::text = '' then not exists (select from auth.devices d where d.user_id = u.id) else exists (select from auth.devices d where d.user_id = u.id and d.device = $2::text) end)
			and ($7::bigint is null or u.revision = $7::bigint) and ($8::bigint is null or u.credential_revision = $8::bigint)
			and ($9::text is null or u.password_hash = $9::text)
			and ($10::text is null or coalesce(u.email_key, '') = $10::text) and ($11::boolean is null or (u.email_verified_at is not null) = $11::boolean)
			and ($12::text is null or coalesce(u.phone, '') = $12::text) and ($13::boolean is null or (u.phone_verified_at is not null) = $13::boolean)
		returning u.*, before.at is not null as was_here
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
			then auth.end_least_active_sessions(u.id, $3::uuid, $14::integer, $15::timestamptz) else '{}' end as ended,
			coalesce(u.was_here and case when $2::text = '' then exists (select from auth.devices d where d.user_id = u.id) else (select d.inserted from devices d) end, false) as new_device
		from u
	), events as (
		select auth.note_events($1::jsonb, about.user_id, array[0] || case when about.ended <> '{}' then array[3] else '{}' end || case when about.new_device then array[5] else '{}' end, about.ended) as noted from about
	), post as materialized (
		select m.* from about, jsonb_to_recordset($29::jsonb || case when about.new_device then $30::jsonb else '[]' end) as m (id uuid, user_id uuid, purpose text, hash bytea, body bytea,
			created_at timestamptz, next_at timestamptz, expires_at timestamptz, attempts integer, recipient text,
			kind text, channel text, shown text, about uuid)
	), messages as (
		insert into auth.messages (id, user_id, purpose, hash, body, created_at, next_at, expires_at, attempts, recipient)
		select m.id, m.user_id, m.purpose, m.hash, m.body, m.created_at, m.next_at, m.expires_at, m.attempts, m.recipient from post m
		on conflict (id) do nothing
	), logged as (
		insert into auth.message_log (id, kind, channel, shown, user_id, recipient, created_at, updated_at)
		select m.id, m.kind, m.channel, m.shown, m.about, m.recipient, m.created_at, m.created_at from post m
		on conflict (id) do nothing
	), tokens as (
		insert into auth.tokens (purpose, hash, subject, user_id, data, created_at, expires_at, max_tries, tries, code, code_expires_at, sequence, added_by)
		select t.purpose, t.hash, t.subject, t.user_id, t.data, t.created_at, t.expires_at, t.max_tries, t.tries, t.code, t.code_expires_at,
			case when t.user_id is null then 0 else coalesce(t.sequence, (select u.sequence from u), 0) end, t.added_by from about, jsonb_to_recordset($31::jsonb) as t (purpose text, hash bytea, subject text, user_id uuid, data bytea,
			created_at timestamptz, expires_at timestamptz, max_tries integer, tries integer, code bytea, code_expires_at timestamptz, sequence bigint, added_by bigint) where about.new_device
		on conflict (purpose, subject) where subject <> '' do update set hash = excluded.hash, user_id = excluded.user_id, data = excluded.data,
			created_at = excluded.created_at, expires_at = excluded.expires_at, max_tries = excluded.max_tries, tries = excluded.tries,
			code = excluded.code, code_expires_at = excluded.code_expires_at, sequence = excluded.sequence, added_by = excluded.added_by
	)
	select u.id, u.email, u.email_verified_at, u.phone, u.phone_verified_at,
	u.full_name, u.user_metadata, u.app_metadata, u.roles, u.mfa_enabled, u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	u.revision, u.credential_revision, case when u.linked then auth.identities_of(u.id) end, u.handle,
	u.sequence, u.password_sequence, u.password_added_by, u.email_sequence, u.email_added_by,
	u.email_verified_sequence, u.email_verified_added_by, u.phone_sequence, u.phone_added_by, u.phone_verified_sequence, u.phone_verified_added_by,
	u.accepted_sequence, u.accepted_until, about.ended, (select auth.forget_least_seen_devices(d.user_id, d.device, $16::integer) from devices d where d.is_new), about.new_device, coalesce((select events.noted from events), true) from u, about
