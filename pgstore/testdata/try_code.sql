with t as materialized (
		select * from auth.tokens t where t.purpose = $3::text and t.subject = $4::text and t.subject <> '' and t.expires_at > $2::timestamptz
			and (t.code_expires_at is null or t.code_expires_at > $2::timestamptz)
		for update skip locked
	), u as materialized (
		select u.* from auth.users u join t on t.user_id = u.id for no key update of u skip locked
	), judged as materialized (
		select t.user_id, case
			when t.tries >= t.max_tries then 'exhausted'
			when coalesce(t.code, t.hash) <> $5::bytea then 'wrong'
			when t.user_id is not null and u.id is null then 'refused'
			when $6::boolean and (u.id is null or not (($7::bigint is null or u.revision = $7::bigint) and ($8::bigint is null or u.credential_revision = $8::bigint)
			and ($9::text is null or u.password_hash = $9::text)
			and ($10::text is null or coalesce(u.email_key, '') = $10::text) and ($11::boolean is null or (u.email_verified_at is not null) = $11::boolean)
			and ($12::text is null or coalesce(u.phone, '') = $12::text) and ($13::boolean is null or (u.phone_verified_at is not null) = $13::boolean)
				and ($14::boolean is null or coalesce(u.banned_until > $2::timestamptz, false) = $14::boolean))) then 'refused'
			else 'right' end as verdict
		from t left join u on true
	), wrong as (
		update auth.tokens c set tries = c.tries + 1 from judged j
		where j.verdict = 'wrong' and c.purpose = $3::text and c.subject = $4::text and c.subject <> ''
	), used as (
		delete from auth.tokens c using judged j
		where j.verdict = 'right' and c.purpose = $3::text and c.subject = $4::text and c.subject <> ''
	), events as (
		select auth.note_events($1::jsonb, j.user_id, array[case j.verdict when 'right' then 0 else 1 end], '{}') as noted
		from judged j where j.verdict in ('right', 'wrong')
	)
	select j.verdict, coalesce((select events.noted from events), true), t.purpose, t.hash, t.subject, coalesce(t.user_id::text, ''), t.data, t.created_at, t.expires_at, t.max_tries, t.tries, t.code, t.code_expires_at, t.sequence, t.added_by, coalesce(u.id::text, ''), u.email, u.email_verified_at, u.phone, u.phone_verified_at,
	coalesce(u.full_name, ''), u.user_metadata, u.app_metadata, u.roles, coalesce(u.mfa_enabled, false), u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	coalesce(u.revision, 0), coalesce(u.credential_revision, 0), case when u.linked then auth.identities_of(u.id) end, u.handle,
	coalesce(u.sequence, 0), coalesce(u.password_sequence, 0), coalesce(u.password_added_by, 0), coalesce(u.email_sequence, 0), coalesce(u.email_added_by, 0),
	coalesce(u.email_verified_sequence, 0), coalesce(u.email_verified_added_by, 0), coalesce(u.phone_sequence, 0), coalesce(u.phone_added_by, 0), coalesce(u.phone_verified_sequence, 0), coalesce(u.phone_verified_added_by, 0),
	coalesce(u.accepted_sequence, 0), u.accepted_until, case when j.verdict = 'right' then null::jsonb /* claims */ end
	from judged j join t on true left join u on true
