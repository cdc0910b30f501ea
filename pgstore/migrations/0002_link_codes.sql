-- compatible from 1
-- A token may be a link and a code at once: what guesses are compared with, and
-- until when.
alter table auth.tokens add column code bytea, add column code_expires_at timestamptz;

-- When an outdated refresh token of a session was let pass, and the counter then.
alter table auth.sessions add column replayed_at timestamptz, add column replayed_counter bigint;
