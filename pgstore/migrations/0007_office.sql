-- compatible from 1
-- Invitations are listed in this order.
create index tokens_invitations_idx on auth.tokens (created_at, subject collate "C") where purpose = 'invitation' and subject <> '';

-- By whom messages are found that wait to be sent to somebody, without telling who.
alter table auth.messages add column recipient text not null default '';
create index messages_recipient_idx on auth.messages (recipient) where recipient <> '';

-- What somebody did to others than themselves, and what is told of whom by name.
create index if not exists events_actor_idx on auth.events ((data -> 'actor' ->> 'id'), at, id)
	where (data -> 'actor' ->> 'id') is distinct from user_id::text and (data -> 'actor' ->> 'id') is not null;
create index if not exists events_target_idx on auth.events ((data -> 'record' ->> 'target'), at, id) where (data -> 'record' ->> 'target') is not null;
