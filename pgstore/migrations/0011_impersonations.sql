-- compatible from 1
-- Sessions in which somebody acts as somebody else. They are apart from sessions, so
-- that nothing that knows those takes one for one. Each keeps the revisions that it
-- rests on, and is live only while those are so.
create table auth.impersonations (
	id uuid primary key,
	user_id uuid not null references auth.users on delete cascade,
	actor_id uuid not null references auth.users on delete cascade,
	actor_session uuid not null references auth.sessions on delete cascade,
	reason text not null default '',
	created_at timestamptz not null,
	expires_at timestamptz not null,
	ended_at timestamptz,
	ip text not null default '',
	user_agent text not null default '',
	user_revision bigint not null,
	actor_revision bigint not null,
	roles_revision bigint not null
);
create index impersonations_user_id_idx on auth.impersonations (user_id);
create index impersonations_actor_id_idx on auth.impersonations (actor_id);
create index impersonations_actor_session_idx on auth.impersonations (actor_session);
create index impersonations_created_at_idx on auth.impersonations (created_at, id);
create index impersonations_expires_at_idx on auth.impersonations (expires_at);

create function auth.note_impersonation_end() returns trigger language plpgsql security definer set search_path = '' as $$
begin
	insert into auth.revocations (session_id, user_id) values (old.id, old.user_id);
	perform pg_notify('auth_revoked', 's' || old.id::text);
	return null;
end $$;
create trigger impersonation_ended after update of ended_at on auth.impersonations for each row
	when (old.ended_at is null and new.ended_at is not null) execute function auth.note_impersonation_end();

revoke all on function auth.note_impersonation_end() from public;
