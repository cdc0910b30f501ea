-- compatible from 1
-- Work that goes on by itself, in chunks. What is to be done is sealed, and goes once it
-- is done.
create table auth.jobs (
	id uuid primary key,
	kind text not null,
	state text not null,
	actor bytea not null,
	params bytea not null,
	chunks integer not null default 0,
	next integer not null default 0,
	rows_in integer not null default 0,
	done integer not null default 0,
	skipped integer not null default 0,
	failed integer not null default 0,
	created_at timestamptz not null,
	lease_until timestamptz,
	finished_at timestamptz,
	expires_at timestamptz not null
);
create index jobs_running_idx on auth.jobs (lease_until, id) where state = 'running';
create index jobs_expires_at_idx on auth.jobs (expires_at) where state <> 'running';

create table auth.job_chunks (
	job_id uuid not null references auth.jobs on delete cascade,
	n integer not null,
	rows_in integer not null,
	input bytea not null,
	output bytea not null default '',
	primary key (job_id, n)
);
