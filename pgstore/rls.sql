-- The roles that policies are written for. They cannot log in, and see no table
-- here: they may call the functions that tell what a token says.
do $$
begin
	if not exists (select from pg_roles where rolname = 'anon') then
		create role anon nologin noinherit;
	end if;
	if not exists (select from pg_roles where rolname = 'authenticated') then
		create role authenticated nologin noinherit;
	end if;
exception
	when duplicate_object or unique_violation then null; -- made meanwhile by another
	when insufficient_privilege then
		raise exception 'the roles anon and authenticated do not exist, and this user may not create them'
			using hint = 'Have an administrator run: create role anon nologin noinherit; create role authenticated nologin noinherit;';
end $$;
grant usage on schema auth to anon, authenticated;
grant execute on function auth.jwt(), auth.uid(), auth.role(), auth.email(), auth.authorize(text) to anon, authenticated;
