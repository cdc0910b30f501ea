package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/authmount/auth/store"
)

// aJob adds a job and chunks of two rows each.
func (b *bench) aJob(chunks int) store.Job {
	b.Helper()
	j := store.Job{ID: b.id(), Kind: "kind", Actor: []byte("who"), Params: []byte("what"), CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	b.ok(b.admin.PutJob(b.ctx(), j))
	for n := range chunks {
		b.ok(b.admin.AddJobChunk(b.ctx(), store.JobChunk{JobID: j.ID, N: n, Rows: 2, Input: fmt.Append(nil, "in ", n)}))
	}
	return j
}

// running adds a running job.
func (b *bench) running(chunks int) store.Job {
	b.Helper()
	j, err := b.admin.StartJob(b.ctx(), store.StartJob{Change: by(now), ID: b.aJob(chunks).ID, ExpiresAt: now.Add(2 * time.Hour)})
	b.ok(err)
	return j
}

func (b *bench) finishChunk(id string, n int, at time.Time) (store.Job, error) {
	return b.admin.FinishJobChunk(b.ctx(), store.FinishJobChunk{JobID: id, N: n, Output: fmt.Append(nil, "out ", n), Counts: store.JobCounts{Done: 1, Skipped: 2, Failed: 3}, Now: at, Until: at.Add(minute)})
}

func (b *bench) claimJob(at time.Time) (store.Job, error) {
	return b.admin.ClaimJob(b.ctx(), store.ClaimJob{Now: at, Until: at.Add(minute)})
}

// jobs checks AdminStore.
func jobs() checks {
	return checks{
		"a job is received chunk by chunk, and nobody gets it before it is started": func(b *bench) {
			want := b.aJob(2)
			want.State, want.Chunks, want.Rows = store.JobReceiving, 2, 4
			b.conflict(b.admin.PutJob(b.ctx(), want), "job")
			b.of("a chunk that is there").is(b.admin.AddJobChunk(b.ctx(), store.JobChunk{JobID: want.ID, N: 1, Rows: 1}), store.ErrStale)
			b.of("a chunk after a gap").is(b.admin.AddJobChunk(b.ctx(), store.JobChunk{JobID: want.ID, N: 3, Rows: 1}), store.ErrStale)
			b.of("a chunk of an unknown job").is(b.admin.AddJobChunk(b.ctx(), store.JobChunk{JobID: b.id(), Rows: 1}), store.ErrNotFound)
			_, err := b.claimJob(now)
			b.is(err, store.ErrNotFound)
			_, err = b.finishChunk(want.ID, 0, now)
			b.is(err, store.ErrStale)
			got, err := b.admin.Job(b.ctx(), want.ID, now)
			b.ok(err)
			equal(b, "job", got, want)
			c, err := b.admin.JobChunk(b.ctx(), want.ID, 1)
			b.ok(err)
			equal(b, "input", string(c.Input), "in 1")
			_, err = b.admin.JobChunk(b.ctx(), want.ID, 2)
			b.is(err, store.ErrNotFound)
		},
		"several chunks are received at once, or none of them": func(b *bench) {
			j := b.aJob(1)
			chunk := func(id string, n int) store.JobChunk {
				return store.JobChunk{JobID: id, N: n, Rows: n, Input: fmt.Append(nil, "in ", n), Output: []byte("out")}
			}
			b.ok(b.admin.AddJobChunk(b.ctx(), chunk(j.ID, 1), chunk(j.ID, 2), chunk(j.ID, 3)))
			b.of("chunks with a gap").is(b.admin.AddJobChunk(b.ctx(), chunk(j.ID, 4), chunk(j.ID, 6)), store.ErrStale)
			b.of("one chunk twice").is(b.admin.AddJobChunk(b.ctx(), chunk(j.ID, 4), chunk(j.ID, 4)), store.ErrStale)
			b.of("chunks of different jobs").is(b.admin.AddJobChunk(b.ctx(), chunk(j.ID, 4), chunk(b.aJob(5).ID, 5)), store.ErrStale)
			b.of("no chunks").ok(b.admin.AddJobChunk(b.ctx()))
			got, err := b.admin.Job(b.ctx(), j.ID, now)
			b.ok(err)
			j.State, j.Chunks, j.Rows = store.JobReceiving, 4, 2+1+2+3
			equal(b, "job", got, j)
			for n := 1; n < 4; n++ {
				c, err := b.admin.JobChunk(b.ctx(), j.ID, n)
				b.ok(err)
				equal(b, "chunk", fmt.Sprintf("%d %d %s %s", c.N, c.Rows, c.Input, c.Output), fmt.Sprintf("%d %d in %d ", n, n, n))
			}
			_, err = b.admin.JobChunk(b.ctx(), j.ID, 4)
			b.is(err, store.ErrNotFound)
		},
		"a job is started once, and in time": func(b *bench) {
			j := b.aJob(1)
			start := store.StartJob{Change: by(now), ID: j.ID, ExpiresAt: now.Add(2 * time.Hour)}
			got, err := b.admin.StartJob(b.ctx(), start)
			b.ok(err)
			j.State, j.Chunks, j.Rows, j.LeaseUntil, j.ExpiresAt = store.JobRunning, 1, 2, now, now.Add(2*time.Hour)
			equal(b, "job", got, j)
			_, err = b.admin.StartJob(b.ctx(), start)
			b.is(err, store.ErrStale)
			b.of("a chunk of a running job").is(b.admin.AddJobChunk(b.ctx(), store.JobChunk{JobID: j.ID, N: 1, Rows: 1}), store.ErrStale)
			late := store.StartJob{Change: by(now.Add(time.Hour)), ID: b.aJob(1).ID, ExpiresAt: now.Add(2 * time.Hour)}
			_, err = b.admin.StartJob(b.ctx(), late)
			b.is(err, store.ErrNotFound)
			late.ID = b.id()
			_, err = b.admin.StartJob(b.ctx(), late)
			b.is(err, store.ErrNotFound)
			none := b.running(0)
			equal(b, "state of a job of nothing", none.State, store.JobDone)
		},
		"a running job is had by one caller at a time, the one that waits longest first": func(b *bench) {
			first := b.running(2)
			second, err := b.admin.StartJob(b.ctx(), store.StartJob{Change: by(now.Add(us)), ID: b.aJob(1).ID, ExpiresAt: now.Add(2 * time.Hour)})
			b.ok(err)
			for _, id := range []string{first.ID, second.ID} {
				j, err := b.claimJob(now.Add(us))
				b.ok(err)
				equal(b, "id", j.ID, id)
				equal(b, "lease", j.LeaseUntil, now.Add(us+minute))
			}
			_, err = b.claimJob(now.Add(minute))
			b.is(err, store.ErrNotFound)
			j, err := b.finishChunk(first.ID, 0, now.Add(minute))
			b.ok(err)
			equal(b, "lease once a chunk is done", j.LeaseUntil, now.Add(2*minute))
			j, err = b.claimJob(now.Add(us + minute))
			b.ok(err)
			equal(b, "whose lease is over", j.ID, second.ID)
		},
		"chunks are done in their order, and once": func(b *bench) {
			j := b.running(2)
			_, err := b.finishChunk(j.ID, 1, now)
			b.is(err, store.ErrStale)
			got, err := b.finishChunk(j.ID, 0, now)
			b.ok(err)
			j.Next, j.LeaseUntil, j.Counts = 1, now.Add(minute), store.JobCounts{Done: 1, Skipped: 2, Failed: 3}
			equal(b, "job", got, j)
			_, err = b.finishChunk(j.ID, 0, now)
			b.is(err, store.ErrStale)
			c, err := b.admin.JobChunk(b.ctx(), j.ID, 0)
			b.ok(err)
			equal(b, "output", string(c.Output), "out 0")
			equal(b, "what is left of the input", len(c.Input), 0)
			got, err = b.finishChunk(j.ID, 1, now.Add(us))
			b.ok(err)
			j.Next, j.State, j.LeaseUntil, j.FinishedAt, j.Counts = 2, store.JobDone, now.Add(us+minute), now.Add(us), store.JobCounts{Done: 2, Skipped: 4, Failed: 6}
			equal(b, "job", got, j)
			_, err = b.claimJob(now.Add(time.Hour))
			b.is(err, store.ErrNotFound)
			_, err = b.finishChunk(b.id(), 0, now)
			b.is(err, store.ErrNotFound)
		},
		"of parallel callers one gets a job": func(b *bench) {
			b.running(1)
			won, lost := b.race(func(int) error { _, err := b.claimJob(now); return err }, store.ErrNotFound)
			b.oneWon(won, lost, store.ErrNotFound)
		},
		"jobs that are over go, but for running ones": func(b *bench) {
			received, run, done := b.aJob(1), b.running(1), b.running(0)
			_, err := b.Sweep(b.ctx(), now.Add(2*time.Hour), 100)
			b.ok(err)
			for _, id := range []string{received.ID, done.ID} {
				_, err := b.admin.Job(b.ctx(), id, now)
				b.is(err, store.ErrNotFound)
			}
			_, err = b.admin.Job(b.ctx(), run.ID, now.Add(3*time.Hour))
			b.ok(err)
		},
		"what is over is not read, swept or not": func(b *bench) {
			j := b.aJob(1)
			_, err := b.admin.Job(b.ctx(), j.ID, now.Add(time.Hour))
			b.is(err, store.ErrNotFound)
		},
		"a caller who has gone gets no job": func(b *bench) {
			j := b.running(1)
			_, err := b.admin.Job(cancelled(), j.ID, now)
			b.gone(err)
			_, err = b.admin.ClaimJob(cancelled(), store.ClaimJob{Now: now, Until: now})
			b.gone(err)
			_, err = b.admin.FinishJobChunk(cancelled(), store.FinishJobChunk{JobID: j.ID, Now: now, Until: now})
			b.gone(err)
		},
	}
}

func startJob(w *world) attempt {
	j := w.aJob(1)
	w.jobs = append(w.jobs, j.ID)
	return attempt{user: w.person(), call: func(ctx context.Context, c store.Change) error {
		_, err := w.admin.StartJob(ctx, store.StartJob{Change: c, ID: j.ID, ExpiresAt: now.Add(time.Hour)})
		return err
	}}
}
