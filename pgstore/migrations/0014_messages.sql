-- compatible from 1
-- What became of messages, without what was in them. A decoy has a row until it is over,
-- which differs from others in what it says only, and is in the same indexes. There is
-- no reference to users, which would cost those without one less.
create table auth.message_log (
	id uuid primary key, -- the message's
	kind text not null, -- empty: a decoy
	channel text not null,
	shown text not null, -- to whom, masked
	user_id uuid,
	recipient text not null, -- as messages have it
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

-- A message that failed stays for a while, and is not claimed.
alter table auth.messages add column failed boolean not null default false;
