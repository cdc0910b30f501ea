with free as materialized (
		select a.n, a.now, a.idle_until, a.ip, a.user_agent, a.device, a.key, a.at, s as was, s.user_id, s.counter = a.counter as moves,
		$13::bool is not null and s.counter = a.counter and s.aal <> 'aal2' as below
		from unnest((select $1::uuid[]), (select $2::bigint[]), (select $3::timestamptz[]), (select $4::timestamptz[]), (select $5::timestamptz[]),
			(select $6::text[]), (select $7::text[]), (select $12::text[]), (select $8::text[]), (select $9::bigint[])) with ordinality a (id, counter, now, graced, idle_until, ip, user_agent, device, key, at, n) join auth.sessions s on s.id = a.id
		where s.revoked_at is null and least(s.idle_until, s.expires_at) > a.now
			and (s.counter = a.counter or s.counter = a.counter + 1 and s.rotated_at > a.graced
				and ((a.ip, a.user_agent, a.device) = (s.ip, s.user_agent, s.rotated_device) or (a.ip, a.user_agent, a.device) = ('', '', '')))
		for no key update of s skip locked
	), drawn as (
		insert into auth.limits as l (key, tat, seen) select distinct on (f.key) f.key, f.at + $10::bigint, f.at from free f
			where f.key <> '' and exists (select from auth.sessions v where v.id = (f.was).id and v = f.was offset 0)
				and exists (select from auth.users u where u.id = f.user_id and (u.banned_until is null or u.banned_until <= f.now)
		and not (f.below and ($13::bool or u.roles && $14::text[] or u.app_metadata @> '{"mfa_required": true}')) offset 0)
			order by f.key
		on conflict (key) do update set tat = greatest(l.tat, excluded.seen) + $10::bigint, seen = greatest(l.seen, excluded.seen)
			where greatest(l.tat, excluded.seen) + $10::bigint - greatest(l.seen, excluded.seen) <= $11::bigint
		returning key
	)
	update auth.sessions s set
		counter = case when f.moves then s.counter + 1 else s.counter end,
		rotated_at = case when f.moves then f.now else s.rotated_at end,
		last_active_at = case when f.moves then f.now else s.last_active_at end,
		idle_until = case when f.moves then f.idle_until else s.idle_until end,
		ip = case when f.moves and f.ip <> '' then f.ip else s.ip end,
		user_agent = case when f.moves and f.user_agent <> '' then f.user_agent else s.user_agent end,
		rotated_device = case when f.moves and (f.ip, f.user_agent, f.device) <> ('', '', '') then f.device else s.rotated_device end
	from free f join auth.users u on u.id = f.user_id
	where s.id = (f.was).id and s = f.was and (u.banned_until is null or u.banned_until <= f.now)
		and not (f.below and ($13::bool or u.roles && $14::text[] or u.app_metadata @> '{"mfa_required": true}'))
		and (f.key = '' or exists (select from drawn d where d.key = f.key))
	returning f.n, s.id, s.user_id, s.counter, s.rotated_at, s.aal, s.amr, s.created_at, s.last_active_at, s.idle_until, s.expires_at,
	s.ip, s.user_agent, s.device, s.revoked_at, s.sequence, s.added_by, u.email, u.email_verified_at, u.phone, u.phone_verified_at,
	u.full_name, u.user_metadata, u.app_metadata, u.roles, u.mfa_enabled, u.created_at, u.updated_at, u.last_sign_in_at, u.banned_until,
	u.revision, u.credential_revision, case when u.linked then auth.identities_of(u.id) end, u.handle,
	u.sequence, u.password_sequence, u.password_added_by, u.email_sequence, u.email_added_by,
	u.email_verified_sequence, u.email_verified_added_by, u.phone_sequence, u.phone_added_by, u.phone_verified_sequence, u.phone_verified_added_by,
	u.accepted_sequence, u.accepted_until, null::jsonb /* claims */
