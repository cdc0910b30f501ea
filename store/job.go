package store

import (
	"context"
	"time"
)

// JobStore keeps work that goes on by itself, whatever becomes of who asked for it and
// of the process that is at it: chunks of what is to be done, in their order, and what
// came of each. Sweep deletes jobs that are over (ExpiresAt), but for running ones.
type JobStore interface {
	// PutJob adds a job without chunks. Job.State is JobReceiving. It changes nothing
	// else: work begins by StartJob. A *ConflictError of "job" if the id is taken.
	PutJob(ctx context.Context, j Job) error
	// AddJobChunk adds the next chunk (N is Job.Chunks) of a job that is received, or
	// several of one job that follow each other, all of them or none, and their rows to
	// those of the job. ErrNotFound if there is no such job; ErrStale if it is in
	// another state, or an N is not the next.
	AddJobChunk(ctx context.Context, chunks ...JobChunk) error
	// StartJob has a job that was received run: it can be claimed from Change.Now on.
	// ErrNotFound if there is none, or it is over; ErrStale if it is in another state.
	StartJob(ctx context.Context, c StartJob) (Job, error)
	// Job reads a job. ErrNotFound if there is none, or it is over at now.
	Job(ctx context.Context, id string, now time.Time) (Job, error)
	// JobChunk reads a chunk. ErrNotFound if there is none.
	JobChunk(ctx context.Context, id string, n int) (JobChunk, error)
	// ClaimJob picks a running job whose LeaseUntil has come, the longest ago first,
	// and moves that to Until, so that no other caller gets it before. ErrNotFound if
	// there is none.
	ClaimJob(ctx context.Context, c ClaimJob) (Job, error)
	// FinishJobChunk keeps what came of the chunk Job.Next, forgets what was to be
	// done, adds its counts to those of the job, and moves Next and LeaseUntil on;
	// after the last one the job is JobDone. ErrStale if N is not Next or the job does
	// not run; ErrNotFound if there is none. That a chunk is finished whose rows were
	// all done may be forgotten in a crash of the store while the job goes on, and so may
	// a claim: such a chunk is done once more, and what it did is told again. Whatever
	// else was returned is kept, and that the job is done.
	FinishJobChunk(ctx context.Context, f FinishJobChunk) (Job, error)
}

// JobState is how far a job is.
type JobState string

// The states.
const (
	JobReceiving JobState = "receiving" // chunks are added; nothing happens yet
	JobRunning   JobState = "running"
	JobDone      JobState = "done"
)

// Job is a piece of work in chunks.
type Job struct {
	ID     string // a UUID
	Kind   string
	State  JobState
	Actor  []byte // in whose name, as the package that made the job writes it
	Params []byte // likewise
	Chunks int    // how many there are
	Next   int    // the one that is to be done next, from 0
	Rows   int    // in all chunks
	Counts JobCounts

	CreatedAt  time.Time
	LeaseUntil time.Time // while it runs: until then somebody is at it
	FinishedAt time.Time // zero: it is not
	ExpiresAt  time.Time
}

// JobCounts is what came of rows.
type JobCounts struct{ Done, Skipped, Failed int }

// JobChunk is a part of a job.
type JobChunk struct {
	JobID  string
	N      int    // from 0
	Rows   int    // how many are in it
	Input  []byte // empty once it is done
	Output []byte // empty before
}

// StartJob is the parameter of JobStore.StartJob. The change is about no one user.
type StartJob struct {
	Change
	ID        string
	ExpiresAt time.Time
}

// ClaimJob is the parameter of JobStore.ClaimJob.
type ClaimJob struct{ Now, Until time.Time }

// FinishJobChunk is the parameter of JobStore.FinishJobChunk.
type FinishJobChunk struct {
	JobID      string
	N          int
	Output     []byte
	Counts     JobCounts
	Now, Until time.Time
}

// Plus adds counts.
func (c JobCounts) Plus(o JobCounts) JobCounts {
	return JobCounts{c.Done + o.Done, c.Skipped + o.Skipped, c.Failed + o.Failed}
}
