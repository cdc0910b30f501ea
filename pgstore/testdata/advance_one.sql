with asked as materialized (
		select 1 as n, $1::uuid as id, $2::bigint as counter, $3::timestamptz as now, $4::timestamptz as graced, $5::timestamptz as idle_until,
			$6::text as ip, $7::text as user_agent, $8::jsonb as events
	), free as materialized (
		select a.*, s.user_id, case
			when s.counter = a.counter then 0
			when s.counter < a.counter then -2
			when s.counter = a.counter + 1 and a.graced < s.rotated_at then -1
			else 2 end as outcome
		from asked a join auth.sessions s on s.id = a.id
		where s.revoked_at is null and least(s.idle_until, s.expires_at) > a.now
		for no key update of s skip locked
	), moved as (
		update auth.sessions s set
			counter = case when f.outcome = 0 then s.counter + 1 else s.counter end,
			rotated_at = case when f.outcome = 0 then f.now else s.rotated_at end,
			last_active_at = case when f.outcome = 0 then f.now else s.last_active_at end,
			idle_until = case when f.outcome = 0 then f.idle_until else s.idle_until end,
			ip = case when f.outcome = 0 and f.ip <> '' then f.ip else s.ip end,
			user_agent = case when f.outcome = 0 and f.user_agent <> '' then f.user_agent else s.user_agent end,
			revoked_at = case when f.outcome = 2 then f.now end
		from free f, auth.users u
		where s.id = f.id and u.id = f.user_id and (u.banned_until is null or u.banned_until <= f.now)
		returning f.n, f.outcome, s.id, s.user_id, s.counter, s.rotated_at, s.aal, s.amr, s.created_at, s.last_active_at, s.idle_until, s.expires_at,
	s.ip, s.user_agent, s.revoked_at, coalesce(u.email, ''), u.email_verified_at, coalesce(u.phone, ''), u.phone_verified_at,
	u.full_name, u.user_metadata, u.app_metadata, u.roles, u.mfa_enabled, u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	u.revision, u.credential_revision, case when u.linked then auth.identities_of(u.id) end, case when f.outcome <> 2 then null::jsonb /* claims */ end
	), events as (
		insert into auth.events (id, type, at, user_id, session_id, data)
		select e.id, e.type, e.at, coalesce(e.user_id, f.user_id), e.session_id, e.data
		from moved m join free f on f.n = m.n, jsonb_to_recordset(f.events) as e ("on" integer, id uuid, type text, at timestamptz, user_id uuid, session_id uuid, data jsonb) where e."on" = f.outcome
		on conflict (id) do nothing
	)
	select * from moved
