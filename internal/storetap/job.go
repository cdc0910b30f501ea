package storetap

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

type jobs struct {
	link
	tap   *Tap
	inner store.JobStore
}

func (s *jobs) PutJob(ctx context.Context, j store.Job) (err error) {
	defer s.tap.enter(&ctx, "PutJob", nil)(&err)
	return s.inner.PutJob(ctx, j)
}

func (s *jobs) AddJobChunk(ctx context.Context, chunks ...store.JobChunk) (err error) {
	defer s.tap.enter(&ctx, "AddJobChunk", nil)(&err)
	return s.inner.AddJobChunk(ctx, chunks...)
}

func (s *jobs) StartJob(ctx context.Context, c store.StartJob) (j store.Job, err error) {
	defer s.tap.enter(&ctx, "StartJob", &c.Change)(&err, &j)
	return s.inner.StartJob(ctx, c)
}

func (s *jobs) Job(ctx context.Context, id string, now time.Time) (j store.Job, err error) {
	defer s.tap.enter(&ctx, "Job", nil)(&err, &j)
	return s.inner.Job(ctx, id, now)
}

func (s *jobs) JobChunk(ctx context.Context, id string, n int) (c store.JobChunk, err error) {
	defer s.tap.enter(&ctx, "JobChunk", nil)(&err, &c)
	return s.inner.JobChunk(ctx, id, n)
}

func (s *jobs) ClaimJob(ctx context.Context, c store.ClaimJob) (j store.Job, err error) {
	defer s.tap.enter(&ctx, "ClaimJob", nil)(&err, &j)
	return s.inner.ClaimJob(ctx, c)
}

func (s *jobs) FinishJobChunk(ctx context.Context, f store.FinishJobChunk) (j store.Job, err error) {
	defer s.tap.enter(&ctx, "FinishJobChunk", nil)(&err, &j)
	return s.inner.FinishJobChunk(ctx, f)
}
