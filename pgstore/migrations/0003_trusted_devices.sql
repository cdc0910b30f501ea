-- compatible from 1
-- Until when a device may go without the second factor, and the revision of the
-- user's credentials when that was said: it is over once that rises.
alter table auth.devices add column trusted_until timestamptz, add column trusted_revision bigint;
