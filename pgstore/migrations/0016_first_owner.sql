-- compatible from 1
-- Who was the first owner ever, whatever became of them; null: there was none. There is
-- one row, which every door that makes an owner passes.
create table auth.first_owner (
	one boolean primary key default true check (one),
	user_id uuid
);
insert into auth.first_owner (user_id) values ((select u.id from auth.users u where u.roles <> '{}' and u.roles @> array['owner'] order by u.created_at, u.id limit 1));

create function auth.note_owner() returns trigger language plpgsql security definer set search_path = '' as $$
begin
	update auth.first_owner set user_id = new.id where user_id is null;
	return null;
end $$;

create trigger user_owner after insert or update of roles on auth.users for each row
	when (new.roles @> array['owner']) execute function auth.note_owner();

revoke all on function auth.note_owner() from public;
