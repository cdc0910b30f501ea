-- What the owner of the tables applies, after the migration of Authmount's own
-- schema: the notes, their policies, and a role that the server connects as.

create table if not exists notes (
	id bigint generated always as identity primary key,
	owner uuid not null default auth.uid() references auth.users on delete cascade,
	text text not null
);
create index if not exists notes_owner_idx on notes (owner);

-- Grants say which statements, policies say which rows. With security on and no
-- policy for anon, it may ask and finds nothing. The select around auth.uid()
-- has it worked out once per statement, not once per row.
alter table notes enable row level security;
drop policy if exists own on notes;
create policy own on notes to authenticated
	using (owner = (select auth.uid())) with check (owner = (select auth.uid()));
-- Whoever has the permission notes.write, by a role, sees and changes others' notes, and
-- deletes none of them. Policies of one command are alternatives.
drop policy if exists editors_see on notes;
drop policy if exists editors_change on notes;
create policy editors_see on notes for select to authenticated using ((select auth.authorize('notes.write')));
create policy editors_change on notes for update to authenticated
	using ((select auth.authorize('notes.write'))) with check ((select auth.authorize('notes.write')));
grant select on notes to anon;
grant select, insert, update, delete on notes to authenticated;

-- The server's role is no superuser and owns nothing, so that policies hold for
-- it. On the notes it has no privileges but those of the roles it may become.
do $$
begin
	if not exists (select from pg_roles where rolname = 'notes_app') then
		create role notes_app login password 'notes'; -- choose your own
	end if;
end $$;
grant anon, authenticated to notes_app;
grant usage on schema auth to notes_app;
grant select, insert, update, delete on all tables in schema auth to notes_app;
grant execute on all functions in schema auth to notes_app;
