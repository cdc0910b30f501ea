-- compatible from 1
-- The settings that are changed while the service runs: one document, as JSON in
-- the very bytes that it was given. Before it is first written there is no row.
create table auth.settings (
	one boolean primary key default true check (one),
	revision bigint not null,
	document text not null,
	updated_at timestamptz not null
);
