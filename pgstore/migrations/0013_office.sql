-- compatible from 1
-- Invitations are listed in this order.
create index tokens_invitations_idx on auth.tokens (created_at, subject collate "C") where purpose = 'invitation' and subject <> '';

-- By whom messages are found that wait to be sent to somebody, without telling who.
alter table auth.messages add column recipient text not null default '';
create index messages_recipient_idx on auth.messages (recipient) where recipient <> '';
