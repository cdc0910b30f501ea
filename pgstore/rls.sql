-- The roles that policies are written for. They cannot log in and cannot read any table
-- of this schema. They may only call the functions that return the data of the access
-- token.
do $$
begin
	if not exists (select from pg_roles where rolname = 'anon') then
		create role anon nologin noinherit;
	end if;
	if not exists (select from pg_roles where rolname = 'authenticated') then
		create role authenticated nologin noinherit;
	end if;
exception
	when duplicate_object or unique_violation then null; -- another session created it meanwhile
	when insufficient_privilege then
		raise exception 'the roles anon and authenticated do not exist, and this user may not create them'
			using hint = 'Have an administrator run: create role anon nologin noinherit; create role authenticated nologin noinherit;';
end $$;
grant usage on schema auth to anon, authenticated;
grant execute on function auth.jwt(), auth.uid(), auth.role(), auth.email(), auth.authorize(text) to anon, authenticated;
