package store

import (
	"time"
)

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

// StartJob is the parameter of AdminStore.StartJob. The change is about no one user.
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

// Plus adds counts.
func (c JobCounts) Plus(o JobCounts) JobCounts {
	return JobCounts{c.Done + o.Done, c.Skipped + o.Skipped, c.Failed + o.Failed}
}
