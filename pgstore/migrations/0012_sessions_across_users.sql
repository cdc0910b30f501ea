-- compatible from 1
-- Lists of the sessions of everybody, by age and by address. A refresh changes neither
-- column unless the address is another one, and updates its row in place.
create index sessions_live_idx on auth.sessions (created_at, id) where revoked_at is null;
create index sessions_live_ip_idx on auth.sessions (ip, created_at, id) where revoked_at is null;

-- Everybody's sessions may end at once: one row for the feed, in place of one for each.
alter table auth.revocations add column everybody_until timestamptz, add column spared uuid;
drop trigger session_revoked on auth.sessions;
create trigger session_revoked after update of revoked_at on auth.sessions for each row
	when (old.revoked_at is null and new.revoked_at is not null and coalesce(current_setting('authmount.quietly', true), '') = '')
	execute function auth.note_revocation();
