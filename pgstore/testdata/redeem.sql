with t as materialized (
		select * from auth.tokens t where t.purpose = $3::text and t.hash = $4::bytea and t.expires_at > $5::timestamptz for update skip locked
	), u as materialized (
		select u.* from auth.users u join t on u.id = coalesce($6::uuid, t.user_id)
	), used as (
		delete from auth.tokens c using t where c.purpose = t.purpose and c.hash = t.hash and (coalesce($6::uuid, t.user_id) is null or exists (select from u))
		returning c.hash
	), about as (
		select coalesce($6::uuid, t.user_id) as user_id, 0 as outcome from t join used on true
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
	select t.purpose, t.hash, t.subject, coalesce(t.user_id::text, ''), t.data, t.created_at, t.expires_at, t.max_tries, t.tries, t.code, t.code_expires_at, t.sequence, t.added_by, coalesce(u.id::text, ''), u.email, u.email_verified_at, u.phone, u.phone_verified_at,
	coalesce(u.full_name, ''), u.user_metadata, u.app_metadata, u.roles, coalesce(u.mfa_enabled, false), u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	coalesce(u.revision, 0), coalesce(u.credential_revision, 0), case when u.linked then auth.identities_of(u.id) end, u.handle,
	coalesce(u.sequence, 0), coalesce(u.password_sequence, 0), coalesce(u.password_added_by, 0), coalesce(u.email_sequence, 0), coalesce(u.email_added_by, 0),
	coalesce(u.email_verified_sequence, 0), coalesce(u.email_verified_added_by, 0), coalesce(u.phone_sequence, 0), coalesce(u.phone_added_by, 0), coalesce(u.phone_verified_sequence, 0), coalesce(u.phone_verified_added_by, 0),
	coalesce(u.accepted_sequence, 0), u.accepted_until, null::jsonb /* claims */, coalesce((select events.noted from events), true) from t join used on true left join u on true
