-- compatible from 1
-- What made access tokens stale, for instances that watch: a change of a user's roles,
-- or of what a role permits, with the revision that tokens rest on from then on. These
-- columns are apart from those of what has ended, which older processes read.
alter table auth.revocations add column stale_user uuid, add column stale_role text, add column revision bigint;

create function auth.note_stale() returns trigger language plpgsql security definer set search_path = '' as $$
begin
	if tg_table_name = 'users' then
		insert into auth.revocations (stale_user, revision) values (new.id, new.credential_revision);
	else
		insert into auth.revocations (stale_role, revision)
		select coalesce(new.name, old.name), r.revision from auth.role_revision r;
	end if;
	perform pg_notify('auth_revoked', 'r');
	return null;
end $$;

create trigger user_stale after update of roles on auth.users for each row
	when (new.roles is distinct from old.roles) execute function auth.note_stale();
create trigger role_added after insert or delete on auth.roles for each row execute function auth.note_stale();
create trigger role_stale after update of permissions on auth.roles for each row
	when (new.permissions is distinct from old.permissions) execute function auth.note_stale();

revoke all on function auth.note_stale() from public;
