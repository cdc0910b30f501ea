package pgstore

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

const jobColumns = `j.id, j.kind, j.state, j.actor, j.params, j.chunks, j.next, j.rows_in, j.done, j.skipped, j.failed,
	j.created_at, j.lease_until, j.finished_at, j.expires_at`

func jobOf(row pgx.Row) (store.Job, error) {
	var j store.Job
	var created, lease, finished, expires pgtype.Timestamptz
	err := row.Scan(&j.ID, &j.Kind, &j.State, &j.Actor, &j.Params, &j.Chunks, &j.Next, &j.Rows, &j.Counts.Done, &j.Counts.Skipped, &j.Counts.Failed,
		&created, &lease, &finished, &expires)
	if err != nil {
		return store.Job{}, err
	}
	j.CreatedAt, j.LeaseUntil, j.FinishedAt, j.ExpiresAt = at(created), at(lease), at(finished), at(expires)
	return j, nil
}

const (
	insertJob = `insert into auth.jobs (id, kind, state, actor, params, created_at, expires_at)
	values ($1::uuid, $2::text, 'receiving', $3::bytea, $4::bytea, $5::timestamptz, $6::timestamptz) on conflict (id) do nothing`

	// If two calls add the same chunk, the second waits for the first, and then finds
	// another number of chunks.
	addJobChunks = `with j as (
		update auth.jobs j set chunks = j.chunks + cardinality($3::integer[]), rows_in = j.rows_in + (select sum(r) from unnest($3::integer[]) r)
		where j.id = $1::uuid and j.state = 'receiving' and j.chunks = $2::integer
		returning j.id
	)
	insert into auth.job_chunks (job_id, n, rows_in, input)
		select j.id, $2::integer + c.i - 1, c.rows_in, c.input from j, unnest($3::integer[], $4::bytea[]) with ordinality c (rows_in, input, i)`

	jobExists = `select exists (select from auth.jobs j where j.id = $1::uuid)`

	lockJob = `select ` + jobColumns + ` from auth.jobs j where j.id = $1::uuid and j.expires_at > $2::timestamptz for update`

	startJob = `update auth.jobs j set state = case when j.chunks = 0 then 'done' else 'running' end, lease_until = $2::timestamptz, expires_at = $3::timestamptz,
		finished_at = case when j.chunks = 0 then $2::timestamptz end
	where j.id = $1::uuid returning ` + jobColumns

	selectJob = `select ` + jobColumns + ` from auth.jobs j where j.id = $1::uuid and (j.state = 'running' or j.expires_at > $2::timestamptz)`

	selectJobChunk = `select c.n, c.rows_in, c.input, c.output from auth.job_chunks c where c.job_id = $1::uuid and c.n = $2::integer`

	claimJob = `with next as (
		select n.id from auth.jobs n where n.state = 'running' and n.lease_until <= $1::timestamptz
		order by n.lease_until, n.id limit 1 for update skip locked
	)
	update auth.jobs j set lease_until = $2::timestamptz from next where j.id = next.id returning ` + jobColumns

	finishJobChunk = `with j as (
		update auth.jobs j set next = j.next + 1, done = j.done + $4::integer, skipped = j.skipped + $5::integer, failed = j.failed + $6::integer,
			lease_until = $8::timestamptz, state = case when j.next + 1 = j.chunks then 'done' else j.state end,
			finished_at = case when j.next + 1 = j.chunks then $7::timestamptz end
		where j.id = $1::uuid and j.state = 'running' and j.next = $2::integer
		returning ` + jobColumns + `
	), c as (
		update auth.job_chunks c set input = '', output = $3::bytea from j where c.job_id = j.id and c.n = $2::integer
	)
	select ` + jobColumns + ` from j`
)

// onJob runs a statement about a job. If that finds no row, the error is ErrStale if
// the job exists, and otherwise ErrNotFound.
func (s *Store) onJob(ctx context.Context, id string, f func(ctx context.Context, q querier, id string) error) error {
	id, ok := canonical(id)
	if !ok {
		return cmp.Or(ctx.Err(), store.ErrNotFound)
	}
	return s.do(ctx, func(ctx context.Context, q querier) error {
		err := f(ctx, q, id)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		var there bool
		if err := q.QueryRow(ctx, s.sql(jobExists), id).Scan(&there); err != nil {
			return err
		}
		if there {
			return store.ErrStale
		}
		return store.ErrNotFound
	})
}

// PutJob adds a job.
func (s *Store) PutJob(ctx context.Context, j store.Job) error {
	return s.do(ctx, func(ctx context.Context, q querier) error {
		tag, err := q.Exec(ctx, s.sql(insertJob), j.ID, j.Kind, nonNil(j.Actor), nonNil(j.Params), micro(j.CreatedAt), micro(j.ExpiresAt))
		if err == nil && tag.RowsAffected() == 0 {
			err = &store.ConflictError{Field: "job"}
		}
		return err
	})
}

// AddJobChunk adds the next chunks of a job.
func (s *Store) AddJobChunk(ctx context.Context, chunks ...store.JobChunk) error {
	if len(chunks) == 0 {
		return ctx.Err()
	}
	first := chunks[0]
	rows, inputs := make([]int, len(chunks)), make([][]byte, len(chunks))
	follow := true
	for i, c := range chunks {
		follow = follow && c.N == first.N+i && strings.EqualFold(c.JobID, first.JobID)
		rows[i], inputs[i] = c.Rows, nonNil(c.Input)
	}
	return s.onJob(ctx, first.JobID, func(ctx context.Context, q querier, id string) error {
		if !follow {
			return pgx.ErrNoRows
		}
		tag, err := q.Exec(ctx, s.sql(addJobChunks), id, first.N, rows, inputs)
		if err == nil && tag.RowsAffected() == 0 {
			err = pgx.ErrNoRows
		}
		return err
	})
}

// StartJob starts a job.
func (s *Store) StartJob(ctx context.Context, c store.StartJob) (store.Job, error) {
	id, ok := canonical(c.ID)
	if !ok {
		return store.Job{}, cmp.Or(ctx.Err(), store.ErrNotFound)
	}
	var started store.Job
	err := s.change(ctx, &c.Change, target{}, func(ctx context.Context, tx pgx.Tx, _ *held) (*result, error) {
		j, err := jobOf(tx.QueryRow(ctx, s.sql(lockJob), id, c.Now))
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil, store.ErrNotFound
		case err != nil:
			return nil, err
		case j.State != store.JobReceiving:
			return nil, store.ErrStale
		}
		started, err = jobOf(tx.QueryRow(ctx, s.sql(startJob), id, c.Now, micro(c.ExpiresAt)))
		return &result{}, err
	})
	if err != nil {
		return store.Job{}, err
	}
	return started, nil
}

// Job reads a job.
func (s *Store) Job(ctx context.Context, id string, now time.Time) (store.Job, error) {
	id, ok := canonical(id)
	if !ok {
		return store.Job{}, cmp.Or(ctx.Err(), store.ErrNotFound)
	}
	return s.oneJob(ctx, selectJob, id, now)
}

// notYet, in the same transaction as the statement before it, lets the commit return
// before the disk has it while the job ($1; null: any) is running.
const notYet = `select set_config('synchronous_commit', 'off', true)
	where $1::uuid is null or exists (select from auth.jobs j where j.id = $1::uuid and j.state = 'running')`

// soon runs a statement about the work on a job. While the job is running, a crash of
// the database within a second may undo the statement, unless a later commit has waited
// for the disk. A lease is then free again. A chunk that was done is done once more,
// and the idempotency keys of its changes return their first results.
func (s *Store) soon(ctx context.Context, q querier, id *string, sql string, args ...any) (store.Job, error) {
	var j store.Job
	b := &pgx.Batch{}
	b.Queue(s.sql(sql), args...).QueryRow(func(row pgx.Row) (err error) {
		j, err = jobOf(row)
		return err
	})
	if Tx(ctx) == nil { // otherwise the setting would apply to the rest of the application's transaction
		b.Queue(s.sql(notYet), id)
	}
	err := q.SendBatch(ctx, b).Close()
	return j, err
}

// ClaimJob claims a running job with an expired lease.
func (s *Store) ClaimJob(ctx context.Context, c store.ClaimJob) (store.Job, error) {
	var j store.Job
	err := s.do(ctx, func(ctx context.Context, q querier) (err error) {
		j, err = s.soon(ctx, q, nil, claimJob, micro(c.Now), micro(c.Until))
		if errors.Is(err, pgx.ErrNoRows) {
			err = store.ErrNotFound
		}
		return err
	})
	return j, err
}

func (s *Store) oneJob(ctx context.Context, sql string, args ...any) (j store.Job, err error) {
	err = s.do(ctx, func(ctx context.Context, q querier) error {
		j, err = jobOf(q.QueryRow(ctx, s.sql(sql), args...))
		if errors.Is(err, pgx.ErrNoRows) {
			err = store.ErrNotFound
		}
		return err
	})
	return j, err
}

// JobChunk reads a chunk of a job.
func (s *Store) JobChunk(ctx context.Context, id string, n int) (store.JobChunk, error) {
	id, ok := canonical(id)
	if !ok {
		return store.JobChunk{}, cmp.Or(ctx.Err(), store.ErrNotFound)
	}
	c := store.JobChunk{JobID: id}
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		err := q.QueryRow(ctx, s.sql(selectJobChunk), id, n).Scan(&c.N, &c.Rows, &c.Input, &c.Output)
		if errors.Is(err, pgx.ErrNoRows) {
			err = store.ErrNotFound
		}
		return err
	})
	if err != nil {
		return store.JobChunk{}, err
	}
	return c, nil
}

// FinishJobChunk stores the result of a chunk. Its commit waits for the disk if rows
// were skipped or failed, because they could have another result the second time. The
// commit of the last chunk waits, too.
func (s *Store) FinishJobChunk(ctx context.Context, f store.FinishJobChunk) (j store.Job, err error) {
	err = s.onJob(ctx, f.JobID, func(ctx context.Context, q querier, id string) error {
		args := []any{id, f.N, nonNil(f.Output), f.Counts.Done, f.Counts.Skipped, f.Counts.Failed, micro(f.Now), micro(f.Until)}
		if f.Counts.Skipped+f.Counts.Failed > 0 {
			j, err = jobOf(q.QueryRow(ctx, s.sql(finishJobChunk), args...))
		} else {
			j, err = s.soon(ctx, q, &id, finishJobChunk, args...)
		}
		return err
	})
	return j, err
}
