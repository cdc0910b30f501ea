-- compatible from 1
-- Lists of accounts, for the admin side: an order each, which finds prefixes of
-- addresses, too, and prefixes of names.
create index users_created_at_idx on auth.users (created_at, id);
create index users_signed_in_idx on auth.users (coalesce(last_sign_in_at, '-infinity'), id);
create index users_email_order_idx on auth.users (coalesce(email_key, '') collate "C", id);
alter table auth.users add column name_key text; -- the name in lower case, which databases do not agree on
update auth.users set name_key = lower(full_name) where full_name <> '';
create index users_name_prefix_idx on auth.users (name_key text_pattern_ops) where name_key is not null;
create index users_banned_idx on auth.users (banned_until) where banned_until is not null;
