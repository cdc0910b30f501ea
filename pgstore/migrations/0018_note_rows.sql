-- compatible from 1
-- note_rows records events that are given as columns, which it reads in a fraction of the
-- time that note_events takes for the same in JSON: a change that has hundreds of them
-- fails if one cannot be recorded, or if that takes longer than a second because somebody
-- holds the table.
create function auth.note_rows(ids uuid[], types text[], ats timestamptz[], users uuid[], sessions uuid[], datas text[]) returns void
language sql set lock_timeout = '1s' as $$
	insert into auth.events (id, type, at, user_id, session_id, data)
		select e.id, e.type, e.at, e.user_id, e.session_id, e.data::jsonb
		from unnest(ids, types, ats, users, sessions, datas) as e (id, type, at, user_id, session_id, data)
		on conflict (id) do nothing
$$;

revoke all on function auth.note_rows(uuid[], text[], timestamptz[], uuid[], uuid[], text[]) from public;
