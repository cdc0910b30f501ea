-- compatible from 1
-- The audit log by what it is asked for. What somebody did themselves is found as
-- what is about them, so that most rows are in one index of the two.
create index events_type_idx on auth.events (type text_pattern_ops, at, id);
create index events_ip_idx on auth.events ((data -> 'client' ->> 'ip'), at, id);
create index events_actor_idx on auth.events ((data -> 'actor' ->> 'id'), at, id)
	where (data -> 'actor' ->> 'id') is distinct from user_id::text and (data -> 'actor' ->> 'id') is not null;
create index events_target_idx on auth.events ((data -> 'record' ->> 'target'), at, id) where (data -> 'record' ->> 'target') is not null;
create index events_request_idx on auth.events ((data -> 'record' ->> 'request_id'), at, id) where (data -> 'record' ->> 'request_id') is not null;
create index events_denied_idx on auth.events (at, id) where (data -> 'record' ->> 'denied') = 'true';

-- note_events records, of the events of a change, those that name one of its
-- outcomes (null: all). If that fails, or takes longer than a second because
-- somebody holds the table, so does the change, if one of them must be recorded;
-- otherwise it comes about without them, and the answer is false.
create function auth.note_events(list jsonb, who uuid, outcomes integer[], ended text[]) returns boolean
language plpgsql set lock_timeout = '1s' as $$
begin
	if list = '[]' then
		return true;
	end if;
	begin
		insert into auth.events (id, type, at, user_id, session_id, data)
			select e.id, e.type, e.at, coalesce(e.user_id, who), e.session_id,
				case when e."on" = 3 and ended <> '{}' then e.data || jsonb_build_object('session_ids', ended) else e.data end
			from jsonb_to_recordset(list) as e ("on" integer, id uuid, type text, at timestamptz, user_id uuid, session_id uuid, data jsonb)
			where outcomes is null or e."on" = any (outcomes)
			on conflict (id) do nothing;
	exception when others then
		if list @? '$[*] ? (@.must == true)' then
			raise;
		end if;
		return false;
	end;
	return true;
end $$;

-- How often something happened, by the hour. Every instance adds what it counted,
-- every few seconds.
create table auth.counts (
	metric text not null,
	label text not null,
	at timestamptz not null,
	n bigint not null,
	primary key (at, metric, label)
);

-- Who was active in a day, week or month, once each, so that auth.counts can say how
-- many.
create table auth.active (
	since date not null,
	period text not null,
	user_id uuid not null,
	primary key (since, period, user_id)
);

create index users_mfa_idx on auth.users (id) where mfa_enabled;

revoke all on function auth.note_events(jsonb, uuid, integer[], text[]) from public;
