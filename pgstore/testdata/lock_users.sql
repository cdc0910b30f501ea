select u.id, coalesce(u.email_key, ''), coalesce(u.phone, ''), u.email_verified_at is not null, u.phone_verified_at is not null,
			u.password_hash, u.mfa_enabled, u.banned_until, u.revision, u.credential_revision, u.sequence
		from auth.users u
		where u.id = any ($1::uuid[]
			|| array(select s.user_id from auth.sessions s where s.id = any ($2::uuid[]))
			|| array(select t.user_id from unnest($3::text[], $4::bytea[]) r (purpose, hash) join auth.tokens t on t.purpose = r.purpose and t.hash = r.hash)
			|| array(select t.user_id from auth.tokens t where t.purpose = $5::text and t.subject = $6::text and t.subject <> '')
			|| array(select o.id from auth.users o where $7::boolean and o.roles <> '{}' and o.roles @> array['owner']))
		order by u.id for update
