-- compatible from 1
-- What operators note about accounts, and what they look for accounts by: members of
-- the metadata, accounts that nobody has proved to be theirs, and second factors.
alter table auth.users add column notes text not null default '';
create index users_app_metadata_idx on auth.users using gin (app_metadata jsonb_path_ops) with (fastupdate = off) where app_metadata <> '{}';
create index users_unproved_idx on auth.users (created_at, id) where email_verified_at is null and phone_verified_at is null;
create index users_with_factor_idx on auth.users (created_at, id) where mfa_enabled;
