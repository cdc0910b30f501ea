-- compatible from 1
-- API keys: public ones, where they may be used from, who answers for them, when they
-- were used last, and the one before a rotation.
alter table auth.api_keys
	add column is_public boolean not null default false,
	add column environment text not null default '',
	add column networks text[] not null default '{}',
	add column adopted boolean not null default false,
	add column last_used_at timestamptz,
	add column previous_hash bytea,
	add column previous_until timestamptz;
create index api_keys_created_at_idx on auth.api_keys (created_at, id);
create index api_keys_public_idx on auth.api_keys (created_at, id) where is_public and revoked_at is null; -- which every instance reads anew all the time
