-- Users, identities, sessions, single-use tokens, second factors, roles, API keys, rate
-- limits, and the records of their changes. Times come from the application's clock and
-- are microseconds since 1970; null is no time. A copy of these tables does not allow a
-- sign-in, because tokens are stored as hashes and sessions as counters.

create table auth_schema (
	version integer not null
) strict;
insert into auth_schema values (1);

-- Facts about the whole service, in one row.
create table auth_project (
	one integer primary key check (one = 1),
	roles_revision integer not null default 0, -- rises with every change of a role
	owned integer not null default 0 -- an owner has accepted at some time
) strict;
insert into auth_project (one) values (1);

create table auth_users (
	id text primary key,
	email text not null,
	email_key text unique, -- the form in which email addresses are compared
	email_verified_at integer,
	phone text unique,
	phone_verified_at integer,
	full_name text not null,
	name_key text not null, -- full_name in lower case, by the application's rules
	user_metadata text not null,
	app_metadata text not null,
	password_hash text not null,
	mfa_enabled integer not null,
	created_at integer not null,
	updated_at integer not null,
	last_sign_in_at integer,
	banned_until integer,
	revision integer not null,
	credential_revision integer not null,
	handle text unique, -- random; identifies the account to authenticators
	notes text not null, -- operators' notes
	-- The order of changes of the account, and the sequence of the session or enrolment
	-- token that added each credential (0: none). Clocks cannot give this order.
	sequence integer not null,
	password_sequence integer not null,
	password_added_by integer not null,
	email_sequence integer not null,
	email_added_by integer not null,
	email_verified_sequence integer not null,
	email_verified_added_by integer not null,
	phone_sequence integer not null,
	phone_added_by integer not null,
	phone_verified_sequence integer not null,
	phone_verified_added_by integer not null,
	recovery_sequence integer not null default 0,
	recovery_added_by integer not null default 0,
	accepted_sequence integer not null, -- at which the holder accepted the permissions of an operator
	accepted_until integer -- null: the acceptance does not end
) strict;
create index auth_users_created_at on auth_users (created_at, id);
create index auth_users_signed_in on auth_users (coalesce(last_sign_in_at, -62135596800000000), id);
create index auth_users_email_order on auth_users (coalesce(email_key, ''), id);
create index auth_users_name on auth_users (name_key) where name_key <> '';
create index auth_users_banned on auth_users (banned_until) where banned_until is not null;
create index auth_users_mfa on auth_users (created_at, id) where mfa_enabled = 1;

-- The ids of deleted users, which no other account may get.
create table auth_deleted_users (
	id text primary key
) strict, without rowid;

create table auth_user_roles (
	user_id text not null references auth_users on delete cascade,
	n integer not null,
	role text not null,
	primary key (user_id, n)
) strict, without rowid;
create index auth_user_roles_role on auth_user_roles (role, user_id);

create table auth_identities (
	id text primary key,
	user_id text not null references auth_users on delete cascade,
	provider text not null,
	subject text not null,
	email text not null,
	created_at integer not null,
	last_sign_in_at integer,
	sequence integer not null,
	added_by integer not null,
	unique (provider, subject)
) strict;
create index auth_identities_user on auth_identities (user_id);

create table auth_sessions (
	ordinal integer primary key autoincrement, -- the order of all sessions
	id text not null unique,
	user_id text not null references auth_users on delete cascade,
	counter integer not null,
	rotated_at integer not null,
	aal text not null,
	amr text not null, -- JSON
	created_at integer not null,
	last_active_at integer not null,
	idle_until integer not null,
	expires_at integer,
	ip text not null,
	user_agent text not null,
	device text not null,
	revoked integer not null default 0,
	rotated_device text not null, -- this and the next columns: store.Rotation
	replayed_at integer,
	replayed_counter integer not null default 0,
	strayed_counter integer not null default 0,
	strays integer not null default 0,
	sequence integer not null,
	added_by integer not null,
	ends_at integer not null generated always as (min(idle_until, coalesce(expires_at, idle_until))) stored
) strict;
create index auth_sessions_user on auth_sessions (user_id);
create index auth_sessions_ends_at on auth_sessions (ends_at);
create index auth_sessions_live on auth_sessions (created_at, id) where revoked = 0;
create index auth_sessions_live_ip on auth_sessions (ip, created_at, id) where revoked = 0;

-- The devices on which each user has signed in, by hashes of their device ids.
create table auth_devices (
	user_id text not null references auth_users on delete cascade,
	device text not null,
	first_seen_at integer not null,
	last_seen_at integer not null,
	-- Until trusted_until the device may sign in without the second factor, while the
	-- user's credential revision is still trusted_revision.
	trusted_until integer,
	trusted_revision integer not null default 0,
	sequence integer not null,
	added_by integer not null,
	primary key (user_id, device)
) strict, without rowid;
create index auth_devices_last_seen_at on auth_devices (last_seen_at);

create table auth_tokens (
	purpose text not null,
	hash blob not null,
	subject text not null,
	user_id text references auth_users on delete cascade,
	data blob not null,
	created_at integer not null,
	expires_at integer not null,
	max_attempts integer not null,
	attempts integer not null,
	code blob, -- the hash of the code, for a token that is both a link and a code
	code_expires_at integer,
	sequence integer not null,
	added_by integer not null,
	primary key (purpose, hash)
) strict, without rowid;
create unique index auth_tokens_subject on auth_tokens (purpose, subject) where subject <> '';
create index auth_tokens_user on auth_tokens (user_id) where user_id is not null;
create index auth_tokens_expires_at on auth_tokens (expires_at);
create index auth_tokens_invitations on auth_tokens (created_at, subject) where purpose = 'invitation' and subject <> '';
-- Of invitations and anonymised users: a subject of any purpose.
create index auth_tokens_any_subject on auth_tokens (subject) where subject <> '';

create table auth_factors (
	id text primary key,
	user_id text not null references auth_users on delete cascade,
	kind text not null,
	several integer not null, -- a user may have several of this kind
	required integer not null, -- while it is enabled, a sign-in requires a second factor
	label text not null,
	credential blob unique, -- for instance a passkey's credential id
	secret blob not null, -- sealed by the application
	state blob not null, -- changes with every use
	enabled integer not null,
	created_at integer not null,
	last_used_at integer,
	sequence integer not null,
	added_by integer not null
) strict;
create index auth_factors_user on auth_factors (user_id);

create table auth_recovery_codes (
	user_id text not null references auth_users on delete cascade,
	hash blob not null,
	primary key (user_id, hash)
) strict, without rowid;

-- The audit log. Events remain after their user is deleted. The columns beside the JSON
-- are those that lists filter by; UUIDs in them have one form.
create table auth_events (
	id text primary key,
	at integer not null,
	type text not null,
	user_id text not null,
	actor_id text not null,
	ip text not null,
	target text not null,
	request_id text not null,
	outcome text not null,
	event text not null
) strict;
create index auth_events_at on auth_events (at, id);
create index auth_events_type on auth_events (type, at, id);
create index auth_events_user on auth_events (user_id, at, id) where user_id <> '';
create index auth_events_actor on auth_events (actor_id, at, id) where actor_id <> '';
create index auth_events_ip on auth_events (ip, at, id) where ip <> '';
create index auth_events_target on auth_events (target, at, id) where target <> '';
create index auth_events_request on auth_events (request_id, at, id) where request_id <> '';
create index auth_events_outcome on auth_events (outcome, at, id) where outcome <> 'done';

-- The outbox: messages of changes, until they are sent.
create table auth_messages (
	id text primary key,
	user_id text references auth_users on delete cascade,
	recipient text not null, -- a hash that finds all messages to a recipient
	purpose text not null, -- if set, the message is invalid once this token is no longer live
	hash blob not null,
	body blob not null, -- sealed by the application
	created_at integer not null,
	next_at integer not null,
	expires_at integer not null,
	attempts integer not null,
	failed integer not null default 0 -- kept for a while, but not claimed
) strict;
create index auth_messages_next_at on auth_messages (next_at);
create index auth_messages_expires_at on auth_messages (expires_at);
create index auth_messages_user on auth_messages (user_id) where user_id is not null;
create index auth_messages_recipient on auth_messages (recipient) where recipient <> '';

-- The outcome of each message, without its content. A decoy, which is never sent, has a
-- row without a kind.
create table auth_message_log (
	id text primary key, -- the message's id
	kind text not null,
	channel text not null,
	shown text not null, -- the recipient, masked
	user_id text not null,
	recipient text not null, -- as in auth_messages
	state text not null,
	attempts integer not null default 0,
	created_at integer not null,
	updated_at integer not null,
	error text not null default ''
) strict;
create index auth_message_log_created_at on auth_message_log (created_at, id);
create index auth_message_log_state on auth_message_log (state, created_at, id);
create index auth_message_log_kind on auth_message_log (kind, created_at, id);
create index auth_message_log_user on auth_message_log (user_id, created_at, id);
create index auth_message_log_recipient on auth_message_log (recipient) where recipient <> '';

-- The results of changes with an idempotency key.
create table auth_idempotency (
	actor text not null,
	route text not null,
	key text not null,
	request_hash blob not null,
	result blob not null,
	expires_at integer not null,
	primary key (actor, route, key)
) strict, without rowid;
create index auth_idempotency_expires_at on auth_idempotency (expires_at);

create table auth_roles (
	name text primary key,
	description text not null,
	permissions text not null, -- JSON
	created_at integer not null,
	updated_at integer not null
) strict, without rowid;

-- A name stays privileged when its role is deleted.
create table auth_privileged_roles (
	name text primary key
) strict, without rowid;

create table auth_api_keys (
	id text primary key,
	name text not null,
	public integer not null,
	environment text not null,
	hash blob not null unique,
	scopes text not null, -- JSON
	networks text not null, -- JSON
	created_by text not null,
	adopted integer not null,
	hourly_limit integer not null,
	revision integer not null,
	created_at integer not null,
	expires_at integer,
	revoked_at integer,
	last_used_at integer,
	rotated_at integer,
	text_user text not null, -- the session that created the current text: its user and its sequence
	text_sequence integer not null,
	previous_hash blob, -- the hash before a rotation, and until when it is valid
	previous_until integer
) strict;
create index auth_api_keys_created_at on auth_api_keys (created_at, id);
create index auth_api_keys_public on auth_api_keys (created_at, id) where public = 1 and revoked_at is null; -- every instance polls these
create index auth_api_keys_created_by on auth_api_keys (created_by) where created_by <> '';
create index auth_api_keys_text_user on auth_api_keys (text_user) where text_user <> '';

-- One document, stored as the exact bytes that were written. There is no row before the
-- first write.
create table auth_settings (
	one integer primary key check (one = 1),
	revision integer not null,
	document blob not null,
	updated_at integer not null
) strict;

-- Sessions in which one user acts as another, with the revisions that they depend on.
create table auth_impersonations (
	id text primary key,
	user_id text not null references auth_users on delete cascade,
	actor_id text not null references auth_users on delete cascade,
	actor_session text not null,
	reason text not null,
	created_at integer not null,
	expires_at integer not null,
	ended integer not null default 0,
	ip text not null,
	user_agent text not null,
	sequence integer not null, -- the user's
	user_revision integer not null,
	actor_revision integer not null,
	roles_revision integer not null
) strict;
create index auth_impersonations_user on auth_impersonations (user_id);
create index auth_impersonations_actor on auth_impersonations (actor_id);
create index auth_impersonations_created_at on auth_impersonations (created_at, id);
create index auth_impersonations_expires_at on auth_impersonations (expires_at);

-- Background work, in chunks.
create table auth_jobs (
	id text primary key,
	kind text not null,
	state text not null,
	actor blob not null,
	params blob not null,
	chunks integer not null default 0,
	next integer not null default 0,
	rows_in integer not null default 0,
	done integer not null default 0,
	skipped integer not null default 0,
	failed integer not null default 0,
	created_at integer not null,
	lease_until integer,
	finished_at integer,
	expires_at integer not null
) strict;
create index auth_jobs_running on auth_jobs (lease_until, id) where state = 'running';
create index auth_jobs_expires_at on auth_jobs (expires_at);

create table auth_job_chunks (
	job_id text not null references auth_jobs on delete cascade,
	n integer not null,
	rows_in integer not null,
	input blob not null,
	output blob not null,
	primary key (job_id, n)
) strict;

-- How often something happened in each hour.
create table auth_counts (
	at integer not null,
	metric text not null,
	label text not null,
	n integer not null,
	primary key (at, metric, label)
) strict, without rowid;

-- The users who were active in a day, week or month, once each.
create table auth_active (
	since integer not null,
	period text not null,
	user_id text not null,
	primary key (since, period, user_id)
) strict, without rowid;

-- The state of each rate limit (store.Bucket), in nanoseconds since 1970. A full limit is
-- the same as no row.
create table auth_limits (
	key text primary key,
	full_at integer not null,
	seen_at integer not null
) strict, without rowid;
create index auth_limits_full_at on auth_limits (full_at);

-- Revocations that take effect before access tokens expire, for the processes that watch,
-- in the order of their commits. A row is about one session (of this user); without a
-- session about all sessions of a user; about the tokens of a user, or of the holders of a
-- role, with an older revision than stale; or about all sessions created until a time,
-- except one.
create table auth_revocations (
	n integer primary key autoincrement,
	at integer not null default (cast(unixepoch('subsec') * 1000000 as integer)), -- by the machine's clock
	session_id text not null default '',
	user_id text not null default '',
	role text not null default '',
	stale integer not null default 0,
	everybody_until integer,
	spared text not null default ''
) strict;
create index auth_revocations_at on auth_revocations (at);
create trigger auth_session_revoked after update of revoked on auth_sessions when old.revoked = 0 and new.revoked = 1
	begin insert into auth_revocations (session_id, user_id) values (old.id, old.user_id); end;
create trigger auth_impersonation_ended after update of ended on auth_impersonations when old.ended = 0 and new.ended = 1
	begin insert into auth_revocations (session_id, user_id) values (old.id, old.user_id); end;
create trigger auth_user_deleted after delete on auth_users
	begin insert into auth_revocations (user_id) values (old.id); end;
-- The tokens from before a ban are outdated, so that those from after its end are not. A ban
-- by hand may not raise the revision; then the time decides.
create trigger auth_user_banned after update of banned_until on auth_users when new.banned_until is not null and new.banned_until is not old.banned_until
	begin insert into auth_revocations (user_id, stale) values (new.id, iif(new.credential_revision > old.credential_revision, new.credential_revision, 0)); end;
create trigger auth_user_accepted after update of accepted_sequence, accepted_until on auth_users
	when new.credential_revision > 0 and (new.accepted_sequence <> old.accepted_sequence or new.accepted_until is not old.accepted_until)
	begin insert into auth_revocations (user_id, stale) values (new.id, new.credential_revision); end;
-- A new user has revision 0, and a deleted one no row.
create trigger auth_user_role_added after insert on auth_user_roles
	begin insert into auth_revocations (user_id, stale) select id, credential_revision from auth_users where id = new.user_id and credential_revision > 0; end;
create trigger auth_user_role_removed after delete on auth_user_roles
	begin insert into auth_revocations (user_id, stale) select id, credential_revision from auth_users where id = old.user_id and credential_revision > 0; end;
create trigger auth_role_added after insert on auth_roles
	begin insert into auth_revocations (role, stale) select new.name, roles_revision from auth_project; end;
create trigger auth_role_changed after update of permissions on auth_roles when new.permissions <> old.permissions
	begin insert into auth_revocations (role, stale) select new.name, roles_revision from auth_project; end;
create trigger auth_role_removed after delete on auth_roles
	begin insert into auth_revocations (role, stale) select old.name, roles_revision from auth_project; end;
