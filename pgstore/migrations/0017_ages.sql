-- compatible from 1
-- Accounts that nobody can enter yet but by a link that is mailed, for lists.
create index users_invited_idx on auth.users (created_at, id) where email_verified_at is null and phone_verified_at is null and password_hash = '';

-- Since when an API key has the text that it has; null: since it was made.
alter table auth.api_keys add column rotated_at timestamptz;
