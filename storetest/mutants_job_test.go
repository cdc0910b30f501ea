package storetest_test

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// jobMutants are stores with faulty jobs.
func jobMutants() map[string]mutant {
	const (
		received = "jobs/a job is received chunk by chunk, and nobody gets it before it is started"
		started  = "jobs/a job is started once, and in time"
		leased   = "jobs/a running job is had by one caller at a time, the one that waits longest first"
		ordered  = "jobs/chunks are done in their order, and once"
		several  = "jobs/several chunks are received at once, or none of them"
		swept    = "jobs/jobs that are over go, but for running ones"
	)
	on := func(edit func(*jobMutant)) func(base) store.Store {
		return func(b base) store.Store {
			m := &jobMutant{base: b, AdminStore: capability[store.AdminStore](b)}
			edit(m)
			return m
		}
	}
	return map[string]mutant{
		"chunks are taken at any place":       caught(received, on(func(m *jobMutant) { m.anyPlace = true })),
		"chunks are taken until one is wrong": caught(several, on(func(m *jobMutant) { m.oneByOne = true })),
		"the first chunk of several is taken": caught(several, on(func(m *jobMutant) { m.onlyOne = true })),
		"jobs start late":                     caught(started, on(func(m *jobMutant) { m.late = true })),
		"jobs are leased to everybody":        caught(leased, on(func(m *jobMutant) { m.noLease = true })),
		"chunks finish in any order":          caught(ordered, on(func(m *jobMutant) { m.anyOrder = true })),
		"the output of chunks is lost":        caught(ordered, on(func(m *jobMutant) { m.noOutput = true })),
		"jobs are never swept":                caught(swept, on(func(m *jobMutant) { m.unswept = true })),
		"the start of a job is anybody's":     caught("conditions/StartJob/a session that was revoked", on(func(m *jobMutant) { m.byAnybody = true })),
	}
}

type jobMutant struct {
	base
	store.AdminStore
	anyPlace, late, noLease, anyOrder, noOutput, unswept, byAnybody bool

	oneByOne, onlyOne bool
}

func (m *jobMutant) AddJobChunk(ctx context.Context, chunks ...store.JobChunk) error {
	if len(chunks) == 0 {
		return m.AdminStore.AddJobChunk(ctx)
	}
	if j, err := m.Job(ctx, chunks[0].JobID, time.Time{}); m.anyPlace && err == nil {
		for i := range chunks {
			chunks[i].N = j.Chunks + i
		}
	}
	if m.oneByOne {
		for _, c := range chunks {
			if err := m.AdminStore.AddJobChunk(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}
	if m.onlyOne {
		chunks = chunks[:1]
	}
	return m.AdminStore.AddJobChunk(ctx, chunks...)
}

func (m *jobMutant) StartJob(ctx context.Context, c store.StartJob) (store.Job, error) {
	if m.late {
		c.Now = c.Now.Add(-24 * time.Hour)
	}
	if m.byAnybody {
		c.By = system
	}
	return m.AdminStore.StartJob(ctx, c)
}

func (m *jobMutant) ClaimJob(ctx context.Context, c store.ClaimJob) (store.Job, error) {
	if m.noLease {
		c.Until = c.Now
	}
	return m.AdminStore.ClaimJob(ctx, c)
}

func (m *jobMutant) FinishJobChunk(ctx context.Context, f store.FinishJobChunk) (store.Job, error) {
	if j, err := m.Job(ctx, f.JobID, time.Time{}); m.anyOrder && err == nil {
		f.N = j.Next
	}
	if m.noOutput {
		f.Output = nil
	}
	return m.AdminStore.FinishJobChunk(ctx, f)
}

func (m *jobMutant) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	if m.unswept {
		now = now.Add(-24 * time.Hour)
	}
	return m.base.Sweep(ctx, now, limit)
}
