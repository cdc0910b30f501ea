with who as materialized (
		select u.id, u.sequence from auth.users u where u.id = $3::uuid for key share
	), token as (
		insert into auth.tokens (purpose, hash, subject, user_id, data, created_at, expires_at, max_tries, tries, code, code_expires_at, sequence, added_by)
		select t.purpose, t.hash, t.subject, t.user_id, t.data, t.created_at, t.expires_at, t.max_tries, t.tries, t.code, t.code_expires_at,
			case when t.user_id is null then 0 else coalesce(t.sequence, (select who.sequence from who), 0) end, t.added_by from jsonb_to_recordset($4::jsonb) as t (purpose text, hash bytea, subject text, user_id uuid, data bytea,
			created_at timestamptz, expires_at timestamptz, max_tries integer, tries integer, code bytea, code_expires_at timestamptz, sequence bigint, added_by bigint)
		where $3::uuid is null or exists (select from who)
		on conflict (purpose, subject) where subject <> '' do update set hash = case when tokens.expires_at > $5::timestamptz then tokens.hash else excluded.hash end,
			user_id = case when tokens.expires_at > $5::timestamptz then tokens.user_id else excluded.user_id end,
			data = case when tokens.expires_at > $5::timestamptz then tokens.data else excluded.data end,
			created_at = case when tokens.expires_at > $5::timestamptz then tokens.created_at else excluded.created_at end,
			expires_at = case when tokens.expires_at > $5::timestamptz then tokens.expires_at else excluded.expires_at end,
			max_tries = case when tokens.expires_at > $5::timestamptz then tokens.max_tries else excluded.max_tries end,
			tries = case when tokens.expires_at > $5::timestamptz then tokens.tries else excluded.tries end,
			code = case when tokens.expires_at > $5::timestamptz then tokens.code else excluded.code end,
			code_expires_at = case when tokens.expires_at > $5::timestamptz then tokens.code_expires_at else excluded.code_expires_at end,
			sequence = case when tokens.expires_at > $5::timestamptz then tokens.sequence else excluded.sequence end,
			added_by = case when tokens.expires_at > $5::timestamptz then tokens.added_by else excluded.added_by end
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
