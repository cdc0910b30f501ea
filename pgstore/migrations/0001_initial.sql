-- Users, identities, sessions, single-use tokens, second factors, roles, API keys, rate
-- limits, and the records of their changes. Times come from the application's clock. A
-- copy of these tables does not allow a sign-in, because tokens are stored as hashes
-- and sessions as counters.

create table auth.users (
	id uuid primary key,
	email text,
	email_key text unique, -- the form in which email addresses are compared
	email_verified_at timestamptz,
	phone text unique,
	phone_verified_at timestamptz,
	full_name text not null default '',
	user_metadata jsonb not null default '{}',
	app_metadata jsonb not null default '{}',
	roles text[] not null default '{}',
	password_hash text not null default '',
	mfa_enabled boolean not null default false,
	linked boolean not null default false, -- false: the user has never had an identity, so queries need not look for any
	created_at timestamptz not null,
	updated_at timestamptz not null,
	last_sign_in_at timestamptz,
	banned_until timestamptz,
	revision bigint not null default 0,
	credential_revision bigint not null default 0,
	handle text unique, -- random; identifies the account to authenticators
	-- The order of changes of the account, and the sequence of the session or enrolment
	-- token that added each credential (0: none). Clocks cannot give this order.
	sequence bigint not null default 0,
	password_sequence bigint not null default 0,
	password_added_by bigint not null default 0,
	email_sequence bigint not null default 0,
	email_added_by bigint not null default 0,
	email_verified_sequence bigint not null default 0,
	email_verified_added_by bigint not null default 0,
	phone_sequence bigint not null default 0,
	phone_added_by bigint not null default 0,
	phone_verified_sequence bigint not null default 0,
	phone_verified_added_by bigint not null default 0,
	recovery_sequence bigint not null default 0,
	recovery_added_by bigint not null default 0,
	accepted_sequence bigint not null default 0, -- at which the holder accepted the permissions of an operator
	accepted_until timestamptz, -- null: the acceptance does not end
	name_key text, -- full_name in lower case, from the application because databases differ in it
	notes text not null default '', -- operators' notes
	sessions_at_most integer not null default 1 -- an upper bound of the user's unrevoked sessions: each sign-in adds one, a count corrects it
) with (fillfactor = 85); -- leaves space for updates in place, because each sign-in changes last_sign_in_at
-- Most users have no role, and a sign-up does not touch this index.
create index users_roles_idx on auth.users using gin (roles) with (fastupdate = off) where roles <> '{}';
-- Lists of accounts: one index for each order (the one by email also finds prefixes),
-- one for prefixes of names, one for domains, and one for each filter that few accounts
-- match.
create index users_created_at_idx on auth.users (created_at, id);
create index users_signed_in_idx on auth.users (coalesce(last_sign_in_at, '-infinity'), id);
create index users_email_order_idx on auth.users (coalesce(email_key, '') collate "C", id);
create index users_name_prefix_idx on auth.users (name_key text_pattern_ops) where name_key is not null;
create index users_domain_idx on auth.users ((split_part(email_key, '@', -1) collate "C")) where email_key is not null;
create index users_banned_idx on auth.users (banned_until) where banned_until is not null;
create index users_mfa_idx on auth.users (id) where mfa_enabled;
create index users_with_factor_idx on auth.users (created_at, id) where mfa_enabled;
create index users_app_metadata_idx on auth.users using gin (app_metadata jsonb_path_ops) with (fastupdate = off) where app_metadata <> '{}';
create index users_unproved_idx on auth.users (created_at, id) where email_verified_at is null and phone_verified_at is null;
create index users_invited_idx on auth.users (created_at, id) where email_verified_at is null and phone_verified_at is null and password_hash = '';

-- name_key from each later word on, by which lists find accounts (store.NameWords).
create table auth.user_words (
	user_id uuid not null references auth.users on delete cascade,
	word text not null
);
create index user_words_user_id_idx on auth.user_words (user_id);
create index user_words_word_idx on auth.user_words (word text_pattern_ops);

-- The ids of deleted users, which no other account may get: records and keys still name
-- them, also after the audit log has forgotten the account.
create table auth.deleted_users (
	id uuid primary key
);

create table auth.identities (
	id uuid primary key,
	user_id uuid not null references auth.users on delete cascade,
	provider text not null,
	subject text not null,
	email text not null default '',
	created_at timestamptz not null,
	last_sign_in_at timestamptz,
	sequence bigint not null default 0,
	added_by bigint not null default 0,
	constraint identities_provider_subject_key unique (provider, subject)
);
create index identities_user_id_idx on auth.identities (user_id);

-- A function costs nothing unless it is called. Most statements would set up a
-- sub-select each time, also for users without identities.
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
	rotated_device text not null default '', -- this and the next columns: store.Rotation
	replayed_at timestamptz,
	replayed_counter bigint not null default 0,
	strayed_counter bigint not null default 0,
	strays integer not null default 0,
	sequence bigint not null default 0,
	added_by bigint not null default 0,
	ordinal bigint not null generated always as identity, -- the order of all sessions
	-- The day on which the session ends, for sweeps. It changes once a day at most, so
	-- that a refresh updates its row in place and changes no index.
	ends_on date not null generated always as ((least(idle_until, expires_at) at time zone 'UTC')::date) stored
) with (fillfactor = 75);
create index sessions_user_id_idx on auth.sessions (user_id, revoked_at); -- revoked sessions accumulate until the sweep
create index sessions_ends_on_idx on auth.sessions (ends_on);
-- Lists of the sessions of all users, by age and by IP address. A refresh changes
-- neither column unless the IP address has changed, and so updates its row in place.
create index sessions_live_idx on auth.sessions (created_at, id) where revoked_at is null;
create index sessions_live_ip_idx on auth.sessions (ip, created_at, id) where revoked_at is null;

-- The devices on which each user has signed in, by hashes of their device ids.
create table auth.devices (
	user_id uuid not null references auth.users on delete cascade,
	device text not null,
	first_seen_at timestamptz not null,
	last_seen_at timestamptz not null,
	-- Until trusted_until the device may sign in without the second factor, while the
	-- user's credential revision is still trusted_revision.
	trusted_until timestamptz,
	trusted_revision bigint,
	sequence bigint not null default 0,
	added_by bigint not null default 0,
	seen_on date not null generated always as ((last_seen_at at time zone 'UTC')::date) stored, -- for sweeps, as sessions.ends_on
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
	code bytea, -- the hash of the code, for a token that is both a link and a code
	code_expires_at timestamptz,
	sequence bigint not null default 0,
	added_by bigint not null default 0,
	primary key (purpose, hash)
);
create unique index tokens_subject_key on auth.tokens (purpose, subject) where subject <> '';
create index tokens_user_id_idx on auth.tokens (user_id) where user_id is not null;
create index tokens_expires_at_idx on auth.tokens (expires_at);
create index tokens_invitations_idx on auth.tokens (created_at, subject collate "C") where purpose = 'invitation' and subject <> '';

create table auth.factors (
	id uuid primary key,
	user_id uuid not null references auth.users on delete cascade,
	kind text not null,
	several boolean not null default false, -- a user may have several of this kind
	required boolean not null default false, -- while it is enabled, a sign-in requires a second factor
	label text not null default '',
	credential bytea, -- for instance a passkey's credential id
	secret bytea not null, -- sealed by the application
	state bytea not null default '', -- changes with every use
	enabled boolean not null default false,
	created_at timestamptz not null,
	last_used_at timestamptz,
	sequence bigint not null default 0,
	added_by bigint not null default 0
);
create index factors_user_id_idx on auth.factors (user_id);
create unique index factors_credential_key on auth.factors (credential) where credential is not null;
create unique index factors_enabled_key on auth.factors (user_id, kind) where enabled and not several;
create unique index factors_pending_key on auth.factors (user_id, kind) where not enabled;

create table auth.recovery_codes (
	user_id uuid not null references auth.users on delete cascade,
	hash bytea not null,
	primary key (user_id, hash)
);

-- The audit log. Events remain after their user is deleted.
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
-- The filters of the audit log. Events that users caused for themselves are found as
-- events about them, so that most rows are in only one of the two indexes.
create index events_type_idx on auth.events (type text_pattern_ops, at, id);
create index events_ip_idx on auth.events ((data -> 'client' ->> 'ip'), at, id);
create index events_actor_idx on auth.events ((data -> 'actor' ->> 'id'), at, id)
	where (data -> 'actor' ->> 'id') is distinct from user_id::text and (data -> 'actor' ->> 'id') is not null;
create index events_target_idx on auth.events ((data -> 'record' ->> 'target'), at, id) where (data -> 'record' ->> 'target') is not null;
create index events_request_idx on auth.events ((data -> 'record' ->> 'request_id'), at, id) where (data -> 'record' ->> 'request_id') is not null;
create index events_denied_idx on auth.events (at, id) where (data -> 'record' ->> 'denied') = 'true';

-- The outbox: messages of changes, until they are sent.
create table auth.messages (
	id uuid primary key,
	user_id uuid references auth.users on delete cascade,
	purpose text not null default '', -- if set, the message is invalid once this token is no longer live
	hash bytea not null default '',
	body bytea not null, -- sealed by the application
	created_at timestamptz not null,
	next_at timestamptz not null,
	expires_at timestamptz not null,
	attempts integer not null default 0,
	recipient text not null default '', -- a hash that finds all messages to a recipient
	failed boolean not null default false -- kept for a while, but not claimed
);
create index messages_recipient_idx on auth.messages (recipient) where recipient <> '';
create index messages_next_at_idx on auth.messages (next_at);
create index messages_expires_at_idx on auth.messages (expires_at);
create index messages_user_id_idx on auth.messages (user_id) where user_id is not null;

-- The outcome of each message, without its content. A decoy, which is never sent, has a
-- row and the same index entries. There is no foreign key to users, because the row of
-- a decoy would cost one check less.
create table auth.message_log (
	id uuid primary key, -- the message's id
	kind text not null, -- empty: a decoy
	channel text not null,
	shown text not null, -- the recipient, masked
	user_id uuid,
	recipient text not null, -- as in messages
	state text not null default 'queued',
	attempts integer not null default 0,
	created_at timestamptz not null,
	updated_at timestamptz not null,
	error text not null default ''
);
create index message_log_created_at_idx on auth.message_log (created_at, id);
create index message_log_state_idx on auth.message_log (state, created_at, id);
create index message_log_kind_idx on auth.message_log (kind, created_at, id);
create index message_log_user_id_idx on auth.message_log (user_id, created_at, id);
create index message_log_recipient_idx on auth.message_log (recipient);

-- The results of changes with an idempotency key.
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
-- The revision of the table of roles, in one row. A change of a role locks it, and so
-- does a change that depends on the permissions of roles. A name stays privileged when its
-- role is deleted.
create table auth.role_revision (
	one boolean primary key default true check (one),
	revision bigint not null default 0,
	privileged text[] not null default '{}'
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
	rotated_at timestamptz, -- since when the key has its current text; null: since it was created
	text_user uuid, -- the session that created the current text, if any: its user and its sequence
	text_sequence bigint not null default 0,
	is_public boolean not null default false,
	environment text not null default '',
	networks text[] not null default '{}',
	adopted boolean not null default false,
	hourly_limit integer not null default 0, -- 0: the default
	last_used_at timestamptz,
	previous_hash bytea, -- the hash before a rotation, and until when it is valid
	previous_until timestamptz,
	constraint api_keys_hash_key unique (hash)
);
create index api_keys_created_at_idx on auth.api_keys (created_at, id);
create index api_keys_public_idx on auth.api_keys (created_at, id) where is_public and revoked_at is null; -- every instance polls these

-- The settings that can change while the service runs: one document, stored as the
-- exact JSON text that was written. There is no row before the first write.
create table auth.settings (
	one boolean primary key default true check (one),
	revision bigint not null,
	document text not null,
	updated_at timestamptz not null
);

-- Sessions in which one user acts as another. They have a table of their own, so that
-- no query for sessions takes them for ordinary sessions. Each stores the revisions
-- that it depends on, and is live only while these are current.
create table auth.impersonations (
	id uuid primary key,
	user_id uuid not null references auth.users on delete cascade,
	actor_id uuid not null references auth.users on delete cascade,
	actor_session uuid not null references auth.sessions on delete cascade,
	reason text not null default '',
	created_at timestamptz not null,
	expires_at timestamptz not null,
	ended_at timestamptz,
	ip text not null default '',
	user_agent text not null default '',
	sequence bigint not null, -- the user's
	user_revision bigint not null,
	actor_revision bigint not null,
	roles_revision bigint not null
);
create index impersonations_user_id_idx on auth.impersonations (user_id);
create index impersonations_actor_id_idx on auth.impersonations (actor_id);
create index impersonations_actor_session_idx on auth.impersonations (actor_session);
create index impersonations_created_at_idx on auth.impersonations (created_at, id);
create index impersonations_expires_at_idx on auth.impersonations (expires_at);

-- Background work, in chunks. The input of a chunk is sealed, and deleted once it is
-- done.
create table auth.jobs (
	id uuid primary key,
	kind text not null,
	state text not null,
	actor bytea not null,
	params bytea not null,
	chunks integer not null default 0,
	next integer not null default 0,
	rows_in integer not null default 0,
	done integer not null default 0,
	skipped integer not null default 0,
	failed integer not null default 0,
	created_at timestamptz not null,
	lease_until timestamptz,
	finished_at timestamptz,
	expires_at timestamptz not null
);
create index jobs_running_idx on auth.jobs (lease_until, id) where state = 'running';
create index jobs_expires_at_idx on auth.jobs (expires_at) where state <> 'running';

create table auth.job_chunks (
	job_id uuid not null references auth.jobs on delete cascade,
	n integer not null,
	rows_in integer not null,
	input bytea not null,
	output bytea not null default '',
	primary key (job_id, n)
);

-- The first owner ever, even if deleted since; null: there was none. Every change that
-- makes a user an owner goes through this one row.
create table auth.first_owner (
	one boolean primary key default true check (one),
	user_id uuid
);
insert into auth.first_owner default values;

-- How often something happened in each hour. Every instance adds its counts every few
-- seconds.
create table auth.counts (
	metric text not null,
	label text not null,
	at timestamptz not null,
	n bigint not null,
	primary key (at, metric, label)
);

-- The users who were active in a day, week or month, once each, for the number of
-- active users in auth.counts.
create table auth.active (
	since date not null,
	period text not null,
	user_id uuid not null,
	primary key (since, period, user_id)
);

-- A row stores the time at which the limit is fully refunded, and the latest time of a
-- caller, both in nanoseconds since 1970. The clocks of callers may differ, and the limit
-- goes by the one that is ahead. A full limit is the same as no row. Limits may start anew after a crash, so
-- that requests do not cost a write to the disk.
create unlogged table auth.limits (
	key text primary key,
	tat bigint not null,
	seen bigint not null
) with (fillfactor = 50);

-- The instance that sweeps; there is one at a time.
create table auth.leases (
	name text primary key,
	holder uuid not null,
	until timestamptz not null
);

-- Revocations that take effect before access tokens expire, for instances that watch. A
-- row is about one session (of this user); without a session about all sessions of a
-- user; about all sessions created until a time, except one; or about the tokens of a
-- user, or of the holders of a role, with an older revision.
create table auth.revocations (
	id uuid primary key default gen_random_uuid(),
	at timestamptz not null default clock_timestamp(),
	session_id uuid,
	user_id uuid,
	everybody_until timestamptz,
	spared uuid,
	stale_user uuid,
	stale_role text,
	revision bigint
);
create index revocations_at_idx on auth.revocations (at);

-- notify wakes the instances that watch. It does nothing in a database without
-- notifications, where they poll.
create function auth.notify() returns void language plpgsql as $$
begin
	perform pg_catalog.pg_notify('auth_revoked', '');
end $$;
do $$
begin
	perform auth.notify();
exception when undefined_function or feature_not_supported then
	create or replace function auth.notify() returns void language plpgsql as $f$ begin end $f$;
end $$;

-- take counts draws against all their limits, or against none if one refuses, and
-- returns the earlier states: for each draw the column tat, then for each the column seen.
-- Rows are locked in the order of their keys, so that calls
-- cannot deadlock. The arithmetic is that of GCRA; the caller repeats it on the
-- returned states.
create function auth.take(keys text[], steps bigint[], fulls bigint[], costs integer[], now_ns bigint)
returns bigint[] language plpgsql as $$
declare
	k text;
	before bigint[] := '{}';
	after bigint[] := '{}';
	latest bigint[] := '{}';
	one bigint;
	last bigint;
	distinct_keys text[] := array(select distinct u from unnest(keys) u order by u);
	counted boolean[] := array_fill(false, array[cardinality(distinct_keys)]);
	allowed boolean := true;
begin
	if 0 = all (costs) then -- only asking: nothing to lock or to write
		return array(select coalesce(l.tat, 0) from unnest(keys) with ordinality as d (key, i) left join auth.limits l using (key) order by d.i)
			|| array(select coalesce(l.seen, 0) from unnest(keys) with ordinality as d (key, i) left join auth.limits l using (key) order by d.i);
	end if;
	foreach k in array distinct_keys loop
		select tat, seen into one, last from auth.limits where key = k for update;
		if not found then
			insert into auth.limits as l (key, tat, seen) values (k, 0, 0) on conflict (key) do update set key = excluded.key returning tat, seen into one, last;
		end if;
		before := before || one;
		latest := latest || last;
	end loop;
	after := before;
	for i in 1 .. cardinality(keys) loop
		declare
			at integer := array_position(distinct_keys, keys[i]);
			moment bigint := greatest(latest[at], now_ns);
			tat bigint := greatest(after[at], moment);
			need integer := case when costs[i] = 0 then 1 else costs[i] end;
		begin
			if steps[i] > 0 then
				if need > 0 and tat + steps[i] * need - moment > fulls[i] then
					allowed := false;
				elsif costs[i] <> 0 then
					after[at] := greatest(tat + steps[i] * need, moment);
					counted[at] := true;
				end if;
			end if;
		end;
	end loop;
	if allowed then
		for i in 1 .. cardinality(distinct_keys) loop
			if counted[i] then
				update auth.limits set tat = after[i], seen = greatest(latest[i], now_ns) where key = distinct_keys[i];
			end if;
		end loop;
	end if;
	return array(select before[array_position(distinct_keys, d.key)] from unnest(keys) with ordinality as d (key, i) order by d.i)
		|| array(select latest[array_position(distinct_keys, d.key)] from unnest(keys) with ordinality as d (key, i) order by d.i);
end $$;

-- The next functions run during a sign-in, while it holds the lock of its user's row.
-- They are functions because each statement in one sees the changes that were committed
-- while the sign-in waited for that lock. The parts of the sign-in's own statement do
-- not see them, so simultaneous sign-ins would leave too many sessions.

-- end_least_active_sessions revokes a user's live sessions, except the new one and the
-- keep - 1 that were active last, and returns the revoked ones. It also counts the
-- sessions that are left, including expired ones.
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

-- forget_least_seen_devices deletes a user's devices, except the one just seen and the
-- keep - 1 others that were seen last.
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
	perform auth.notify();
	return null;
end $$;

create trigger session_revoked after update of revoked_at on auth.sessions for each row
	when (old.revoked_at is null and new.revoked_at is not null and coalesce(current_setting('authmount.quietly', true), '') = '')
	execute function auth.note_revocation();
create trigger user_deleted after delete on auth.users for each row execute function auth.note_revocation();

create function auth.note_stale() returns trigger language plpgsql security definer set search_path = '' as $$
begin
	if tg_table_name = 'users' then
		insert into auth.revocations (stale_user, revision) values (new.id, new.credential_revision);
	else
		insert into auth.revocations (stale_role, revision)
		select coalesce(new.name, old.name), r.revision from auth.role_revision r;
	end if;
	perform auth.notify();
	return null;
end $$;

-- The tokens from before a ban are outdated, so that those from after its end are not: times
-- of two clocks would refuse them, too. A ban by hand may not raise the revision.
create trigger user_banned after update of banned_until on auth.users for each row
	when (new.banned_until is not null and new.banned_until is distinct from old.banned_until and new.credential_revision > old.credential_revision)
	execute function auth.note_stale();
create trigger user_banned_by_hand after update of banned_until on auth.users for each row
	when (new.banned_until is not null and new.banned_until is distinct from old.banned_until and new.credential_revision = old.credential_revision)
	execute function auth.note_revocation();
create trigger user_stale after update of roles, accepted_sequence, accepted_until on auth.users for each row
	when (new.roles is distinct from old.roles or new.accepted_sequence <> old.accepted_sequence or new.accepted_until is distinct from old.accepted_until) execute function auth.note_stale();
create trigger role_added after insert or delete on auth.roles for each row execute function auth.note_stale();
create trigger role_stale after update of permissions on auth.roles for each row
	when (new.permissions is distinct from old.permissions) execute function auth.note_stale();

create function auth.note_impersonation_end() returns trigger language plpgsql security definer set search_path = '' as $$
begin
	insert into auth.revocations (session_id, user_id) values (old.id, old.user_id);
	perform auth.notify();
	return null;
end $$;
create trigger impersonation_ended after update of ended_at on auth.impersonations for each row
	when (old.ended_at is null and new.ended_at is not null) execute function auth.note_impersonation_end();

create function auth.note_owner() returns trigger language plpgsql security definer set search_path = '' as $$
begin
	update auth.first_owner set user_id = new.id where user_id is null;
	return null;
end $$;

create trigger user_owner after insert or update of roles, accepted_sequence on auth.users for each row
	when (new.roles @> array['owner'] and new.accepted_sequence > 0) execute function auth.note_owner();

-- note_events records the events for one of the change's outcomes (null: all events).
-- Recording fails if there is an error, or if another transaction locks the table for
-- longer than a second. Then the change fails, too, if one of the events must be
-- recorded. Otherwise the change is made without the events, and the function returns
-- false.
create function auth.note_events(list jsonb, who uuid, outcomes integer[], ended text[]) returns boolean
language plpgsql set lock_timeout = '1s' as $$
begin
	if list = '[]' then
		return true;
	end if;
	begin
		insert into auth.events (id, type, at, user_id, session_id, data)
			select e.id, e.type, e.at, coalesce(e.user_id, who), e.session_id,
				case when e."on" = 3 and ended <> '{}' then e.data || jsonb_build_object('session_ids', ended) else e.data end
			from jsonb_to_recordset(list) as e ("on" integer, id uuid, type text, at timestamptz, user_id uuid, session_id uuid, data jsonb)
			where outcomes is null or e."on" = any (outcomes)
			on conflict (id) do nothing;
	exception when others then
		if list @? '$[*] ? (@.must == true)' then
			raise;
		end if;
		return false;
	end;
	return true;
end $$;

-- note_rows records events from columns, which takes a fraction of the time that
-- note_events takes for JSON, for changes with hundreds of events. The change fails if
-- there is an error, or if another transaction locks the table for longer than a
-- second.
create function auth.note_rows(ids uuid[], types text[], ats timestamptz[], users uuid[], sessions uuid[], datas text[]) returns void
language sql set lock_timeout = '1s' as $$
	insert into auth.events (id, type, at, user_id, session_id, data)
		select e.id, e.type, e.at, e.user_id, e.session_id, e.data::jsonb
		from unnest(ids, types, ats, users, sessions, datas) as e (id, type, at, user_id, session_id, data)
		on conflict (id) do nothing
$$;

-- For row-level security: the claims of the request's access token.
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

-- For row-level security: whether the request's access token has a permission, by its
-- name or by one that covers it ("*", or "notes.*" for "notes.write"), as
-- Claims.HasPermission does. If the token omits its permissions, they are read from the
-- table of roles, which is not readable otherwise.
create function auth.authorize(permission text) returns boolean language sql stable security definer set search_path = '' as $$
	select exists (
		select from (select nullif(current_setting('request.jwt.claims', true), '')::jsonb as said) c,
			lateral (
				select jsonb_array_elements_text(case when jsonb_typeof(c.said -> 'permissions') = 'array' then c.said -> 'permissions' else '[]' end)
				union all
				select unnest(r.permissions) from auth.roles r where (c.said -> 'omitted') ? 'permissions' and (c.said -> 'roles') ? r.name
				union all
				select '*' where (c.said -> 'omitted') ? 'permissions' and (c.said -> 'roles') ? 'owner'
			) h (held)
		where h.held in (permission, '*') or h.held like '%.*' and starts_with(permission, left(h.held, -1))
	)
$$;

revoke all on all functions in schema auth from public;
