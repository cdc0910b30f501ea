package store

import (
	"time"
)

// JobState is the progress of a job.
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
	Actor  []byte // the authority, in a form of the package that created the job
	Params []byte // in a form of that package
	Chunks int    // number of chunks
	Next   int    // the next chunk to do, from 0
	Rows   int    // in all chunks
	Counts JobCounts

	CreatedAt  time.Time
	LeaseUntil time.Time // while the job runs: no other worker may claim it before
	FinishedAt time.Time // zero: not finished
	ExpiresAt  time.Time
}

// JobCounts counts rows by result.
type JobCounts struct{ Done, Skipped, Failed int }

// JobChunk is a part of a job.
type JobChunk struct {
	JobID  string
	N      int    // from 0
	Rows   int    // number of rows
	Input  []byte // empty after the chunk is finished
	Output []byte // empty until the chunk is finished
}

// StartJob is the parameter of AdminStore.StartJob. The change is about no single user.
type StartJob struct {
	Change
	ID        string
	ExpiresAt time.Time
}

// ClaimJob is the parameter of AdminStore.ClaimJob.
type ClaimJob struct{ Now, Until time.Time }

// FinishJobChunk is the parameter of AdminStore.FinishJobChunk.
type FinishJobChunk struct {
	JobID      string
	N          int
	Output     []byte
	Counts     JobCounts
	Now, Until time.Time
}

// Plus returns the sums of c and o.
func (c JobCounts) Plus(o JobCounts) JobCounts {
	return JobCounts{c.Done + o.Done, c.Skipped + o.Skipped, c.Failed + o.Failed}
}
