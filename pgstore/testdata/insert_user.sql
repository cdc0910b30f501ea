with u as (
		insert into auth.users (id, email, email_key, email_verified_at, phone, phone_verified_at, full_name, user_metadata, app_metadata, roles,
			password_hash, created_at, updated_at, last_sign_in_at, banned_until, linked, name_key, notes,
			handle, sequence, password_sequence, email_sequence, email_verified_sequence, phone_sequence, phone_verified_sequence, accepted_sequence)
		values ($6::uuid, $7::text, $8::text, $9::timestamptz, $10::text, $11::timestamptz, $12::text, $13::jsonb, $14::jsonb, $15::text[],
			$16::text, $17::timestamptz, $18::timestamptz, $19::timestamptz, $20::timestamptz, $21::boolean, $22::text, $23::text,
			$24::text, 1, ($16::text <> '')::integer, ($7::text is not null)::integer, ($9::timestamptz is not null)::integer, ($10::text is not null)::integer, ($11::timestamptz is not null)::integer, $25::bigint)
		returning id
	), s as materialized (
		select u.id as user_id, s.*, 1 as sequence, 0 as added_by from u, jsonb_to_recordset($3::jsonb) as s (id uuid, counter bigint, rotated_at timestamptz, aal text, amr jsonb, created_at timestamptz,
			last_active_at timestamptz, idle_until timestamptz, expires_at timestamptz, ip text, user_agent text, device text)
	), sessions as (
		insert into auth.sessions (id, user_id, counter, rotated_at, aal, amr, created_at, last_active_at, idle_until, expires_at, ip, user_agent, device, rotated_device, sequence, added_by)
		select s.id, s.user_id, s.counter, s.rotated_at, s.aal, s.amr, s.created_at, s.last_active_at, s.idle_until, s.expires_at, s.ip, s.user_agent, s.device, s.device, s.sequence, s.added_by
		from s
	), devices as (
		insert into auth.devices as d (user_id, device, first_seen_at, last_seen_at, sequence, added_by)
		select s.user_id, s.device, s.created_at, s.created_at, s.sequence, s.added_by from s where s.device <> ''
	), tokens as (
		insert into auth.tokens (purpose, hash, subject, user_id, data, created_at, expires_at, max_tries, tries, code, code_expires_at, sequence, added_by)
		select t.purpose, t.hash, t.subject, t.user_id, t.data, t.created_at, t.expires_at, t.max_tries, t.tries, t.code, t.code_expires_at,
			case when t.user_id is null then 0 else coalesce(t.sequence, (select u.sequence from auth.users u where u.id = t.user_id), 0) end, t.added_by from u, jsonb_to_recordset($4::jsonb) as t (purpose text, hash bytea, subject text, user_id uuid, data bytea,
			created_at timestamptz, expires_at timestamptz, max_tries integer, tries integer, code bytea, code_expires_at timestamptz, sequence bigint, added_by bigint)
		on conflict (purpose, subject) where subject <> '' do update set hash = excluded.hash, user_id = excluded.user_id, data = excluded.data,
			created_at = excluded.created_at, expires_at = excluded.expires_at, max_tries = excluded.max_tries, tries = excluded.tries,
			code = excluded.code, code_expires_at = excluded.code_expires_at, sequence = excluded.sequence, added_by = excluded.added_by
	), identities as (
		insert into auth.identities (id, user_id, provider, subject, email, created_at, last_sign_in_at, sequence)
		select i.id, u.id, i.provider, i.subject, i.email, i.created_at, i.last_sign_in_at, 1 from u, jsonb_to_recordset($5::jsonb) as i (id uuid, provider text, subject text, email text, created_at timestamptz, last_sign_in_at timestamptz)
	), words as (
		insert into auth.user_words (user_id, word) select u.id, w.word from u, unnest($26::text[]) as w (word)
	), about as (
		select u.id as user_id, 0 as outcome from u
	), events as (
		select auth.note_events($1::jsonb, about.user_id, array[about.outcome], '{}') as noted from about
	), post as materialized (
		select m.* from about, jsonb_to_recordset($2::jsonb) as m (id uuid, user_id uuid, purpose text, hash bytea, body bytea,
			created_at timestamptz, next_at timestamptz, expires_at timestamptz, attempts integer, recipient text,
			kind text, channel text, shown text, about uuid) where about.outcome = 0
	), messages as (
		insert into auth.messages (id, user_id, purpose, hash, body, created_at, next_at, expires_at, attempts, recipient)
		select m.id, m.user_id, m.purpose, m.hash, m.body, m.created_at, m.next_at, m.expires_at, m.attempts, m.recipient from post m
		on conflict (id) do nothing
	), logged as (
		insert into auth.message_log (id, kind, channel, shown, user_id, recipient, created_at, updated_at)
		select m.id, m.kind, m.channel, m.shown, m.about, m.recipient, m.created_at, m.created_at from post m
		on conflict (id) do nothing
	)
	select coalesce((select events.noted from events), true) from u
