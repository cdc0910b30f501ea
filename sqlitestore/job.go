package sqlitestore

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

const selectJobs = `select id, kind, state, actor, params, chunks, next, rows_in, done, skipped, failed, created_at, lease_until, finished_at, expires_at from auth_jobs`

func scanJob(scan row) (j store.Job) {
	scan(&j.ID, &j.Kind, &j.State, &j.Actor, &j.Params, &j.Chunks, &j.Next, &j.Rows, &j.Counts.Done, &j.Counts.Skipped, &j.Counts.Failed, at{&j.CreatedAt}, at{&j.LeaseUntil}, at{&j.FinishedAt}, at{&j.ExpiresAt})
	return j
}

// job returns nil if there is no such job.
func (t *tx) job(id string) *store.Job { return first(t, scanJob, selectJobs+` where id = ?`, id) }

// saveJob stores the progress of a job.
func (t *tx) saveJob(j *store.Job) {
	t.exec(`update auth_jobs set state = ?, chunks = ?, next = ?, rows_in = ?, done = ?, skipped = ?, failed = ?, lease_until = ?, finished_at = ?, expires_at = ? where id = ?`,
		j.State, j.Chunks, j.Next, j.Rows, j.Counts.Done, j.Counts.Skipped, j.Counts.Failed, maybe(j.LeaseUntil), maybe(j.FinishedAt), micros(j.ExpiresAt), j.ID)
}

// PutJob adds a job.
func (s *Store) PutJob(ctx context.Context, j store.Job) error {
	return s.write(ctx, func(t *tx) error {
		if t.job(j.ID) != nil {
			return &store.ConflictError{Field: "job"}
		}
		t.exec(`insert into auth_jobs (id, kind, state, actor, params, created_at, lease_until, finished_at, expires_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			j.ID, j.Kind, store.JobReceiving, blob(j.Actor), blob(j.Params), micros(j.CreatedAt), maybe(j.LeaseUntil), maybe(j.FinishedAt), micros(j.ExpiresAt))
		return nil
	})
}

// AddJobChunk adds the next chunks of a job.
func (s *Store) AddJobChunk(ctx context.Context, chunks ...store.JobChunk) error {
	if len(chunks) == 0 {
		return ctx.Err()
	}
	return s.write(ctx, func(t *tx) error {
		j := t.job(chunks[0].JobID)
		if j == nil {
			return store.ErrNotFound
		}
		for _, c := range chunks {
			if j.State != store.JobReceiving || c.JobID != j.ID || c.N != j.Chunks {
				return store.ErrStale
			}
			t.exec(`insert into auth_job_chunks (job_id, n, rows_in, input, output) values (?, ?, ?, ?, x'')`, j.ID, c.N, c.Rows, blob(c.Input))
			j.Chunks, j.Rows = j.Chunks+1, j.Rows+c.Rows
		}
		t.saveJob(j)
		return nil
	})
}

// StartJob starts a job.
func (s *Store) StartJob(ctx context.Context, c store.StartJob) (started store.Job, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		j := t.job(c.ID)
		switch {
		case j == nil || !c.Now.Before(j.ExpiresAt):
			return nil, store.ErrNotFound
		case j.State != store.JobReceiving:
			return nil, store.ErrStale
		}
		return &effect{apply: func() error {
			j.State, j.LeaseUntil, j.ExpiresAt = store.JobRunning, c.Now, utc(c.ExpiresAt)
			if j.Chunks == 0 {
				j.State, j.FinishedAt = store.JobDone, c.Now
			}
			t.saveJob(j)
			started = *j
			return nil
		}}, nil
	})
	if err != nil {
		return store.Job{}, err
	}
	return started, nil
}

// Job reads a job.
func (s *Store) Job(ctx context.Context, id string, now time.Time) (found store.Job, err error) {
	err = s.read(ctx, func(t *tx) error {
		j := t.job(id)
		if j == nil || j.State != store.JobRunning && !now.Before(j.ExpiresAt) {
			return store.ErrNotFound
		}
		found = *j
		return nil
	})
	return found, err
}

// JobChunk reads a chunk of a job.
func (s *Store) JobChunk(ctx context.Context, id string, n int) (found store.JobChunk, err error) {
	err = s.read(ctx, func(t *tx) error {
		c := first(t, func(scan row) (c store.JobChunk) {
			scan(&c.JobID, &c.N, &c.Rows, &c.Input, &c.Output)
			return c
		}, `select job_id, n, rows_in, input, output from auth_job_chunks where job_id = ? and n = ?`, id, n)
		if c == nil {
			return store.ErrNotFound
		}
		found = *c
		return nil
	})
	return found, err
}

// ClaimJob returns a running job that no worker has claimed. It reads before it takes the
// write lock, because every instance asks often, and mostly for nothing.
func (s *Store) ClaimJob(ctx context.Context, c store.ClaimJob) (claimed store.Job, err error) {
	due := func(t *tx) *store.Job {
		return first(t, scanJob, selectJobs+` where state = 'running' and lease_until <= ? order by lease_until, id limit 1`, micros(c.Now))
	}
	err = s.read(ctx, func(t *tx) error {
		if due(t) == nil {
			return store.ErrNotFound
		}
		return nil
	})
	if err != nil {
		return store.Job{}, err
	}
	err = s.write(ctx, func(t *tx) error {
		j := due(t)
		if j == nil {
			return store.ErrNotFound
		}
		j.LeaseUntil = utc(c.Until)
		t.saveJob(j)
		claimed = *j
		return nil
	})
	if err != nil {
		return store.Job{}, err
	}
	return claimed, nil
}

// FinishJobChunk stores the result of a chunk.
func (s *Store) FinishJobChunk(ctx context.Context, f store.FinishJobChunk) (after store.Job, err error) {
	err = s.write(ctx, func(t *tx) error {
		j := t.job(f.JobID)
		switch {
		case j == nil:
			return store.ErrNotFound
		case j.State != store.JobRunning || f.N != j.Next:
			return store.ErrStale
		}
		t.exec(`update auth_job_chunks set input = x'', output = ? where job_id = ? and n = ?`, blob(f.Output), j.ID, f.N)
		j.Next, j.Counts, j.LeaseUntil = j.Next+1, j.Counts.Plus(f.Counts), utc(f.Until)
		if j.Next == j.Chunks {
			j.State, j.FinishedAt = store.JobDone, utc(f.Now)
		}
		t.saveJob(j)
		after = *j
		return nil
	})
	if err != nil {
		return store.Job{}, err
	}
	return after, nil
}
