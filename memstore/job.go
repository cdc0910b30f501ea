package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// job is a job with its chunks.
type job struct {
	store.Job
	chunks []store.JobChunk
}

// withJob calls f with a job, under the mutex. ErrNotFound if there is none.
func (s *Store) withJob(ctx context.Context, id string, f func(*job) error) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	j := s.jobs[id]
	if j == nil {
		return store.ErrNotFound
	}
	return f(j)
}

// PutJob adds a job.
func (s *Store) PutJob(ctx context.Context, j store.Job) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if s.jobs[j.ID] != nil {
		return &store.ConflictError{Field: "job"}
	}
	kept := copyJob(j)
	kept.State, kept.Chunks, kept.Next, kept.Rows, kept.Counts = store.JobReceiving, 0, 0, 0, store.JobCounts{}
	s.jobs[j.ID] = &job{Job: kept}
	return nil
}

// AddJobChunk adds the next chunks of a job.
func (s *Store) AddJobChunk(ctx context.Context, chunks ...store.JobChunk) error {
	if len(chunks) == 0 {
		return ctx.Err()
	}
	return s.withJob(ctx, chunks[0].JobID, func(j *job) error {
		for i, c := range chunks {
			if j.State != store.JobReceiving || c.JobID != j.ID || c.N != j.Chunks+i {
				return store.ErrStale
			}
		}
		for _, c := range chunks {
			c.Output = nil
			j.chunks = append(j.chunks, copyChunk(c))
			j.Chunks, j.Rows = j.Chunks+1, j.Rows+c.Rows
		}
		return nil
	})
}

// StartJob starts a job.
func (s *Store) StartJob(ctx context.Context, c store.StartJob) (started store.Job, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		j := s.jobs[c.ID]
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
			started = copyJob(j.Job)
			return nil
		}}, nil
	})
	return started, err
}

// Job reads a job.
func (s *Store) Job(ctx context.Context, id string, now time.Time) (read store.Job, err error) {
	err = s.withJob(ctx, id, func(j *job) error {
		if j.State != store.JobRunning && !now.Before(j.ExpiresAt) {
			return store.ErrNotFound
		}
		read = copyJob(j.Job)
		return nil
	})
	return read, err
}

// JobChunk reads a chunk of a job.
func (s *Store) JobChunk(ctx context.Context, id string, n int) (read store.JobChunk, err error) {
	err = s.withJob(ctx, id, func(j *job) error {
		if n < 0 || n >= len(j.chunks) {
			return store.ErrNotFound
		}
		read = copyChunk(j.chunks[n])
		return nil
	})
	return read, err
}

// ClaimJob returns a running job that no worker has claimed.
func (s *Store) ClaimJob(ctx context.Context, c store.ClaimJob) (store.Job, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.Job{}, err
	}
	defer unlock()
	var next *job
	for _, j := range s.jobs {
		if j.State == store.JobRunning && !j.LeaseUntil.After(c.Now) && (next == nil || byAge(j.LeaseUntil, j.ID, next.LeaseUntil, next.ID) < 0) {
			next = j
		}
	}
	if next == nil {
		return store.Job{}, store.ErrNotFound
	}
	next.LeaseUntil = utc(c.Until)
	return copyJob(next.Job), nil
}

// FinishJobChunk stores the result of a chunk.
func (s *Store) FinishJobChunk(ctx context.Context, f store.FinishJobChunk) (after store.Job, err error) {
	err = s.withJob(ctx, f.JobID, func(j *job) error {
		if j.State != store.JobRunning || f.N != j.Next {
			return store.ErrStale
		}
		c := &j.chunks[f.N]
		c.Input, c.Output = nil, slices.Clone(f.Output)
		j.Next, j.Counts, j.LeaseUntil = j.Next+1, j.Counts.Plus(f.Counts), utc(f.Until)
		if j.Next == j.Chunks {
			j.State, j.FinishedAt = store.JobDone, utc(f.Now)
		}
		after = copyJob(j.Job)
		return nil
	})
	return after, err
}

func copyJob(j store.Job) store.Job {
	j.Actor, j.Params = slices.Clone(j.Actor), slices.Clone(j.Params)
	allUTC(&j.CreatedAt, &j.LeaseUntil, &j.FinishedAt, &j.ExpiresAt)
	return j
}

func copyChunk(c store.JobChunk) store.JobChunk {
	c.Input, c.Output = slices.Clone(c.Input), slices.Clone(c.Output)
	return c
}
