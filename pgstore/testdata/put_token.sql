with who as materialized (
		select u.id from auth.users u where u.id = $3::uuid for key share
	), token as (
		insert into auth.tokens (purpose, hash, subject, user_id, data, created_at, expires_at, max_tries, tries, code, code_expires_at)
		select t.purpose, t.hash, t.subject, t.user_id, t.data, t.created_at, t.expires_at, t.max_tries, t.tries, t.code, t.code_expires_at from jsonb_to_recordset($4::jsonb) as t (purpose text, hash bytea, subject text, user_id uuid, data bytea,
			created_at timestamptz, expires_at timestamptz, max_tries integer, tries integer, code bytea, code_expires_at timestamptz)
		where $3::uuid is null or exists (select from who)
		on conflict (purpose, subject) where subject <> '' do update set hash = excluded.hash, user_id = excluded.user_id, data = excluded.data,
			created_at = excluded.created_at, expires_at = excluded.expires_at, max_tries = excluded.max_tries, tries = excluded.tries,
			code = excluded.code, code_expires_at = excluded.code_expires_at
		returning user_id
	), about as (
		select user_id, 0 as outcome from token
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
	select coalesce((select events.noted from events), true) from token
