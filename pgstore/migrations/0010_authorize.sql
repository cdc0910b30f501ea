-- compatible from 1
-- For row-level security: whether the access token of the request has a permission, by
-- its name or by one that covers it ("*", or "notes.*" for "notes.write"), as
-- Claims.HasPermission has it. Where the token left its permissions out, they are those
-- of its roles, as the table has them now; that table is nobody's to read otherwise.
create function auth.authorize(permission text) returns boolean language sql stable security definer set search_path = '' as $$
	select exists (
		select from (select nullif(current_setting('request.jwt.claims', true), '')::jsonb as said) c,
			lateral (
				select jsonb_array_elements_text(case when jsonb_typeof(c.said -> 'permissions') = 'array' then c.said -> 'permissions' else '[]' end)
				union all
				select unnest(r.permissions) from auth.roles r where (c.said -> 'omitted') ? 'permissions' and (c.said -> 'roles') ? r.name
				union all
				select '*' where (c.said -> 'omitted') ? 'permissions' and (c.said -> 'roles') ? 'owner'
			) h (held)
		where h.held in (permission, '*') or h.held like '%.*' and starts_with(permission, left(h.held, -1))
	)
$$;
revoke all on function auth.authorize(text) from public;
