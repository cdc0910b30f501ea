-- Users, identities, sessions, single-use tokens, second factors, roles, API keys,
-- rate limits, and what is recorded with changes of them.
-- Times come from the application's clock. Nothing here can sign anybody in:
-- tokens are hashes, sessions are counters.

create table auth.users (
	id uuid primary key,
	email text,
	email_key text unique, -- what addresses are compared by
	email_verified_at timestamptz,
	phone text unique,
	phone_verified_at timestamptz,
	full_name text not null default '',
	user_metadata jsonb not null default '{}',
	app_metadata jsonb not null default '{}',
	roles text[] not null default '{}',
	password_hash text not null default '',
	mfa_enabled boolean not null default false,
	linked boolean not null default false, -- false: never had an identity, so that none need be looked for
	created_at timestamptz not null,
	updated_at timestamptz not null,
	last_sign_in_at timestamptz,
	banned_until timestamptz,
	revision bigint not null default 0,
	credential_revision bigint not null default 0,
	sessions_at_most integer not null default 1 -- no fewer than have not been ended: every sign-in adds one, a count corrects it
) with (fillfactor = 85); -- room for updates in place: last_sign_in_at changes at every sign-in
-- Who has a role. Most users have none, and a sign-up does not touch it.
create index users_roles_idx on auth.users using gin (roles) with (fastupdate = off) where roles <> '{}';

create table auth.identities (
	id uuid primary key,
	user_id uuid not null references auth.users on delete cascade,
	provider text not null,
	subject text not null,
	email text not null default '',
	created_at timestamptz not null,
	last_sign_in_at timestamptz,
	constraint identities_provider_subject_key unique (provider, subject)
);
create index identities_user_id_idx on auth.identities (user_id);

-- A function costs nothing unless it is called; a sub-select of most statements
-- would be set up each time, also for users without identities.
create function auth.identities_of(one uuid) returns jsonb language sql stable as $$
	select jsonb_agg(to_jsonb(i) - 'user_id' order by i.created_at, i.id) from auth.identities i where i.user_id = one
$$;

create table auth.sessions (
	id uuid primary key,
	user_id uuid not null references auth.users on delete cascade,
	counter bigint not null,
	rotated_at timestamptz not null,
	aal text not null,
	amr jsonb not null default '[]',
	created_at timestamptz not null,
	last_active_at timestamptz not null,
	idle_until timestamptz not null,
	expires_at timestamptz,
	ip text not null default '',
	user_agent text not null default '',
	device text not null default '',
	revoked_at timestamptz,
	-- The day of the end, for sweeps. It changes once a day at most, so that a
	-- refresh updates its row in place and touches no index.
	ends_on date not null generated always as ((least(idle_until, expires_at) at time zone 'UTC')::date) stored
) with (fillfactor = 75);
create index sessions_user_id_idx on auth.sessions (user_id, revoked_at); -- those that ended pile up until they are swept
create index sessions_ends_on_idx on auth.sessions (ends_on);

-- The devices on which somebody has signed in, by hashes of what they say they
-- are.
create table auth.devices (
	user_id uuid not null references auth.users on delete cascade,
	device text not null,
	first_seen_at timestamptz not null,
	last_seen_at timestamptz not null,
	seen_on date not null generated always as ((last_seen_at at time zone 'UTC')::date) stored, -- for sweeps, as ends_on
	primary key (user_id, device)
) with (fillfactor = 85);
create index devices_seen_on_idx on auth.devices (seen_on);

create table auth.tokens (
	purpose text not null,
	hash bytea not null,
	subject text not null default '',
	user_id uuid references auth.users on delete cascade,
	data bytea not null default '',
	created_at timestamptz not null,
	expires_at timestamptz not null,
	max_tries integer not null default 0,
	tries integer not null default 0,
	primary key (purpose, hash)
);
create unique index tokens_subject_key on auth.tokens (purpose, subject) where subject <> '';
create index tokens_user_id_idx on auth.tokens (user_id) where user_id is not null;
create index tokens_expires_at_idx on auth.tokens (expires_at);

create table auth.factors (
	id uuid primary key,
	user_id uuid not null references auth.users on delete cascade,
	kind text not null,
	label text not null default '',
	secret bytea not null, -- sealed by the application
	enabled boolean not null default false,
	created_at timestamptz not null,
	last_used_at timestamptz,
	last_step bigint not null default 0
);
create index factors_user_id_idx on auth.factors (user_id);
create unique index factors_enabled_key on auth.factors (user_id, kind) where enabled;
create unique index factors_pending_key on auth.factors (user_id, kind) where not enabled;

create table auth.recovery_codes (
	user_id uuid not null references auth.users on delete cascade,
	hash bytea not null,
	primary key (user_id, hash)
);

-- What has happened. Events outlive whom they are about.
create table auth.events (
	id uuid primary key,
	type text not null,
	at timestamptz not null,
	user_id uuid,
	session_id uuid,
	data jsonb not null default '{}'
);
create index events_at_idx on auth.events (at, id);
create index events_user_id_idx on auth.events (user_id, at, id) where user_id is not null;

-- The outbox: messages that come with changes, until they are sent.
create table auth.messages (
	id uuid primary key,
	user_id uuid references auth.users on delete cascade,
	purpose text not null default '', -- with one: of no use once this token is not live any more
	hash bytea not null default '',
	body bytea not null, -- sealed by the application
	created_at timestamptz not null,
	next_at timestamptz not null,
	expires_at timestamptz not null,
	attempts integer not null default 0
);
create index messages_next_at_idx on auth.messages (next_at);
create index messages_expires_at_idx on auth.messages (expires_at);
create index messages_user_id_idx on auth.messages (user_id) where user_id is not null;

-- What was done under an idempotency key.
create table auth.idempotency (
	actor text not null,
	route text not null,
	key text not null,
	request_hash bytea not null,
	result bytea not null,
	expires_at timestamptz not null,
	primary key (actor, route, key)
);
create index idempotency_expires_at_idx on auth.idempotency (expires_at);

create table auth.roles (
	name text primary key,
	description text not null default '',
	permissions text[] not null default '{}',
	created_at timestamptz not null,
	updated_at timestamptz not null
);
-- The revision of that table, in one row, which is locked by whoever changes a
-- role and by whatever rests on what roles permit.
create table auth.role_revision (
	one boolean primary key default true check (one),
	revision bigint not null default 0
);
insert into auth.role_revision default values;

create table auth.api_keys (
	id uuid primary key,
	name text not null default '',
	hash bytea not null,
	scopes text[] not null default '{}',
	created_by uuid,
	revision bigint not null default 0,
	created_at timestamptz not null,
	expires_at timestamptz,
	revoked_at timestamptz,
	constraint api_keys_hash_key unique (hash)
);

-- A bucket is the instant at which it will be full again, in nanoseconds since
-- 1970. One that is full is no different from none. A limit that starts anew
-- after a crash is not worth a write to the disk for each request.
create unlogged table auth.limits (
	key text primary key,
	tat bigint not null
) with (fillfactor = 50);

-- Who sweeps: one instance at a time.
create table auth.leases (
	name text primary key,
	holder uuid not null,
	until timestamptz not null
);

-- What ended before its access tokens did, for instances that watch: a session
-- (of this user), or without one all of a user's.
create table auth.revocations (
	id uuid primary key default gen_random_uuid(),
	at timestamptz not null default clock_timestamp(),
	session_id uuid,
	user_id uuid
);
create index revocations_at_idx on auth.revocations (at);

-- take judges calls one after the other, in the order of their draws: each draws
-- from every bucket that it names or from none. It answers, for each draw, what the
-- bucket was before its call. Rows are locked in the order of their keys, so that
-- statements cannot deadlock, and a bucket that comes in several calls is read and
-- written once. The arithmetic is that of GCRA; the caller repeats it on what is
-- answered.
create function auth.take(keys text[], steps bigint[], fulls bigint[], costs integer[], calls integer[], nows bigint[])
returns bigint[] language plpgsql as $$
declare
	k text;
	first bigint[] := '{}'; -- what was found
	before bigint[]; -- what the present call finds
	after bigint[];
	answer bigint[] := '{}';
	one bigint;
	distinct_keys text[] := array(select distinct u from unnest(keys) u order by u);
	allowed boolean := true;
begin
	if 0 = all (costs) then -- only asking: nothing to lock or to write
		return array(select coalesce(l.tat, 0) from unnest(keys) with ordinality as d (key, i) left join auth.limits l using (key) order by d.i);
	end if;
	foreach k in array distinct_keys loop
		select tat into one from auth.limits where key = k for update;
		if not found then
			insert into auth.limits as l (key, tat) values (k, 0) on conflict (key) do update set key = excluded.key returning tat into one;
		end if;
		first := first || one;
	end loop;
	before := first;
	after := first;
	for i in 1 .. cardinality(keys) loop
		declare
			at integer := array_position(distinct_keys, keys[i]);
			tat bigint;
			need integer := case when costs[i] = 0 then 1 else costs[i] end;
		begin
			if i > 1 and calls[i] <> calls[i - 1] then
				if allowed then
					before := after;
				else
					after := before;
				end if;
				allowed := true;
			end if;
			answer := answer || before[at];
			tat := greatest(after[at], nows[i]);
			if steps[i] > 0 then
				if need > 0 and tat + steps[i] * need - nows[i] > fulls[i] then
					allowed := false;
				elsif costs[i] <> 0 then
					after[at] := greatest(tat + steps[i] * need, nows[i]);
				end if;
			end if;
		end;
	end loop;
	if not allowed then
		after := before;
	end if;
	for i in 1 .. cardinality(distinct_keys) loop
		if after[i] <> first[i] then
			update auth.limits set tat = after[i] where key = distinct_keys[i];
		end if;
	end loop;
	return answer;
end $$;

-- What follows is for a sign-in, while it holds its user's row. These are functions
-- because each statement of one sees what was committed while the sign-in waited
-- for that row. The parts of its own statement do not, and sign-ins at once would
-- leave more than are kept.

-- end_least_active_sessions ends of a user's live sessions, beside the one that
-- was just made, all but the keep - 1 that were active last, and answers which. It
-- counts those that are left, expired ones as well, whatever the clock.
create function auth.end_least_active_sessions(who uuid, made uuid, keep integer, now_at timestamptz)
returns text[] language plpgsql as $$
declare
	ended text[];
	others integer;
begin
	select count(*) into others from auth.sessions s where s.user_id = who and s.id <> made and s.revoked_at is null;
	if others >= keep then
		with over as (
			select s.id from auth.sessions s
			where s.user_id = who and s.id <> made and s.revoked_at is null and least(s.idle_until, s.expires_at) > now_at
			order by s.last_active_at desc, s.id desc offset keep - 1
		), revoked as (
			update auth.sessions s set revoked_at = now_at from over where s.id = over.id returning s.id
		)
		select array_agg(r.id::text order by r.id) into ended from revoked r;
	end if;
	update auth.users u set sessions_at_most = others + 1 - coalesce(cardinality(ended), 0) where u.id = who;
	return coalesce(ended, '{}');
end $$;

-- forget_least_seen_devices forgets of a user's devices, beside the one that was
-- just seen, all but the keep - 1 that were seen last.
create function auth.forget_least_seen_devices(who uuid, seen text, keep integer) returns void language plpgsql as $$
begin
	if exists (select from auth.devices d where d.user_id = who offset keep) then
		delete from auth.devices d using (
			select o.device from auth.devices o where o.user_id = who and o.device <> seen order by o.last_seen_at desc, o.device offset keep - 1
		) over where d.user_id = who and d.device = over.device;
	end if;
end $$;

create function auth.note_revocation() returns trigger language plpgsql security definer set search_path = '' as $$
declare
	sid uuid;
	uid uuid;
begin
	if tg_table_name = 'sessions' then
		sid := old.id;
		uid := old.user_id;
	else
		uid := old.id;
	end if;
	insert into auth.revocations (session_id, user_id) values (sid, uid);
	perform pg_notify('auth_revoked', concat_ws(' ', 's' || sid::text, 'u' || uid::text));
	return null;
end $$;

create trigger session_revoked after update of revoked_at on auth.sessions for each row
	when (old.revoked_at is null and new.revoked_at is not null) execute function auth.note_revocation();
create trigger user_banned after update of banned_until on auth.users for each row
	when (new.banned_until is not null and new.banned_until is distinct from old.banned_until) execute function auth.note_revocation();
create trigger user_deleted after delete on auth.users for each row execute function auth.note_revocation();

-- For row-level security: what the access token of the request says.
create function auth.jwt() returns jsonb language sql stable as $$
	select nullif(current_setting('request.jwt.claims', true), '')::jsonb
$$;
create function auth.uid() returns uuid language sql stable as $$
	select nullif(nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub', '')::uuid
$$;
create function auth.role() returns text language sql stable as $$
	select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role'
$$;
create function auth.email() returns text language sql stable as $$
	select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'email'
$$;

revoke all on all functions in schema auth from public;
