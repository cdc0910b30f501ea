package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// worker carries out jobs, chunk by chunk.
type worker struct {
	*Admin
	next []*ahead // chunks of one job that are planned ahead, in order
}

// workAhead is how many chunks are planned while the current ones run.
const workAhead = 3

// ahead is a chunk that is planned ahead.
type ahead struct {
	jobID   string
	n       int
	until   time.Time     // until then it waits for the job to come up again
	planned chan struct{} // closed once planning is done

	plannedChunk
	err error // planning failed and has to be repeated
}

// plannedChunk is a chunk with its work.
type plannedChunk struct {
	store.JobChunk
	chunkWork
}

// runJobs carries out jobs until ctx ends.
func (m *Admin) runJobs(ctx context.Context) {
	w := &worker{Admin: m}
	defer w.close()
	tick := time.NewTicker(jobPoll)
	defer tick.Stop()
	for {
		for w.workOne(ctx) {
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.wake:
		}
	}
}

// close waits for the chunks that are being planned.
func (w *worker) close() {
	for _, a := range w.next {
		<-a.planned
	}
	w.next = nil
}

// workOne carries out one or two chunks of an unclaimed job, and reports whether there
// was one. Jobs take turns.
func (w *worker) workOne(ctx context.Context) bool {
	now := w.kit.Now()
	j, err := w.admin.ClaimJob(ctx, store.ClaimJob{Now: now, Until: now.Add(jobLease)})
	claimed := err == nil
	if claimed {
		err = w.takeTurn(ctx, j)
	}
	switch {
	case ctx.Err() != nil, errors.Is(err, store.ErrNotFound):
		return false
	case err != nil && !claimed:
		w.kit.Log().WarnContext(ctx, "auth: the jobs cannot be read", "error", err)
		return false
	case err != nil && !errors.Is(err, store.ErrStale): // another worker has it
		w.kit.Log().WarnContext(ctx, "auth: a job waits for another try", "job", j.ID, "error", err)
		return false
	}
	return true
}

// takeTurn carries out the next chunk of a job, and at the same time the one after it, if
// they share nothing. Rows that were done before a process died are not done again
// (store.Idempotency), and are reported as done.
func (w *worker) takeTurn(ctx context.Context, j store.Job) error {
	c, err := w.planned(ctx, j)
	if err != nil {
		return err
	}
	w.planNext(ctx, j)
	also := w.startNext(ctx, j, c)
	defer also.wait()
	results, err := w.resultsOf(ctx, j, c)
	two := also.runsNow()
	if two {
		w.next = w.next[1:] // a planned chunk is used once
	}
	switch {
	case err != nil:
		return err
	case !two:
		return w.finish(ctx, j, c, results, 0)
	}
	if err := w.finish(ctx, j, c, results, jobLease); err != nil {
		return err
	}
	if also.wait(); also.err != nil {
		return also.err
	}
	return w.finish(ctx, j, also.plannedChunk, also.results, 0)
}

// finish stores the results of a chunk, and keeps the claim on the job for a time, or
// releases it.
func (w *worker) finish(ctx context.Context, j store.Job, c plannedChunk, results []rowResult, keep time.Duration) error {
	var output []byte
	for _, r := range results {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		output = append(append(output, line...), '\n')
	}
	now := w.kit.Now()
	_, err := w.admin.FinishJobChunk(ctx, store.FinishJobChunk{JobID: j.ID, N: c.N, Output: output, Counts: tally(results), Now: now, Until: now.Add(keep)})
	return err
}

// background is a chunk that is carried out at the same time as the one before it, if they
// share nothing.
type background struct {
	plannedChunk
	independent bool
	decided     chan struct{} // closed once independent is known
	done        chan struct{} // closed once no work on it is left
	results     []rowResult
	err         error
}

// startNext carries out the chunk after c as soon as it is planned, if they share nothing;
// nil: there is none.
func (w *worker) startNext(ctx context.Context, j store.Job, c plannedChunk) *background {
	if len(w.next) == 0 || w.next[0].jobID != j.ID || w.next[0].n != j.Next+1 {
		return nil
	}
	a, b := w.next[0], &background{decided: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(b.done)
		<-a.planned
		b.plannedChunk, b.independent = a.plannedChunk, a.err == nil && a.independentOf(c.chunkWork)
		close(b.decided)
		if b.independent {
			j.Next = a.n
			b.results, b.err = w.resultsOf(ctx, j, a.plannedChunk)
		}
	}()
	return b
}

// runsNow reports whether the chunk is carried out now, and not in its own turn.
func (b *background) runsNow() bool {
	if b == nil {
		return false
	}
	<-b.decided
	return b.independent
}

func (b *background) wait() {
	if b != nil {
		<-b.done
	}
}

// planned returns the next chunk of a job. It plans the chunk again if that failed
// before.
func (w *worker) planned(ctx context.Context, j store.Job) (plannedChunk, error) {
	for len(w.next) > 0 && w.next[0].jobID == j.ID && w.next[0].n <= j.Next {
		a := w.next[0]
		<-a.planned
		w.next = w.next[1:]
		if a.n == j.Next && a.err == nil {
			return a.plannedChunk, nil
		}
	}
	return w.plan(ctx, j, j.Next)
}

// planNext plans the following chunks of a job in the background, unless chunks of
// another job are planned: jobs take turns, and that job will come up.
func (w *worker) planNext(ctx context.Context, j store.Job) {
	now := w.kit.Now()
	if len(w.next) > 0 && (w.next[0].jobID != j.ID || w.next[0].n != j.Next+1) {
		if now.Before(w.next[0].until) {
			return
		}
		w.close()
	}
	for n := j.Next + 1 + len(w.next); n < min(j.Next+1+workAhead, j.Chunks); n++ {
		a := &ahead{jobID: j.ID, n: n, until: now.Add(jobLease), planned: make(chan struct{})}
		w.next = append(w.next, a)
		go func() {
			defer close(a.planned)
			a.plannedChunk, a.err = w.plan(ctx, j, n)
		}()
	}
}

// plan reads a chunk of a job and plans its work.
func (m *Admin) plan(ctx context.Context, j store.Job, n int) (p plannedChunk, err error) {
	if p.JobChunk, err = m.admin.JobChunk(ctx, j.ID, n); err != nil {
		return p, err
	}
	k, known := kindOf(j)
	switch {
	case len(p.Input) == 0: // another worker was faster; its result may still be lost, so do not build on it
		return p, store.ErrStale
	case !known && m.kit.Now().Before(j.ExpiresAt):
		return p, errors.New("the kind of the job is unknown: another version of the service created it")
	case !known:
		p.chunkWork = failingChunk(p.Rows, errors.New("the kind of the job is unknown"))
		return p, nil
	}
	input, err := m.kit.OpenJob(j.ID, p.Input)
	if err != nil { // the secret that sealed it is gone: another attempt will not help
		p.chunkWork = failingChunk(p.Rows, err)
		return p, nil
	}
	p.chunkWork, err = careful(m, func() (chunkWork, error) { return k.plan(m.kit.JobContext(ctx, j.ID), m, j, input) })
	if err != nil && !outage(ctx, err) {
		p.chunkWork, err = failingChunk(p.Rows, err), nil
	}
	return p, err
}

// resultsOf carries out the work of a chunk.
func (m *Admin) resultsOf(ctx context.Context, j store.Job, c plannedChunk) ([]rowResult, error) {
	var who jobActor
	if err := json.Unmarshal(j.Actor, &who); err != nil {
		return failedRows(c.Rows, err), nil
	}
	results, err := careful(m, func() ([]rowResult, error) { return c.do(m.kit.JobContext(ctx, j.ID), who.actor(), j) })
	if err != nil && !outage(ctx, err) {
		return failedRows(c.Rows, err), nil
	}
	return results, err
}

// careful turns a panic, for example of a hook of the application, into an error. A job
// has no caller to receive the panic, and of many accounts it concerns only one.
func careful[T any](m *Admin, do func() (T, error)) (v T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = m.fail(auth.CodeInternal, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
			m.kit.Log().Error("auth: what is done to many accounts, or by a job, panicked", "error", err)
		}
	}()
	return do()
}

// failingChunk is the work of a chunk in which every row fails with the same error.
func failingChunk(rows int, err error) chunkWork {
	return chunkWork{do: func(context.Context, Actor, store.Job) ([]rowResult, error) { return failedRows(rows, err), nil }}
}

// failedRows returns the same error for each row.
func failedRows(rows int, err error) []rowResult {
	list := make([]rowResult, rows)
	for i := range list {
		list[i] = rowResult{}.withReason(err)
	}
	return list
}
