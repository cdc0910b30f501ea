package storetap

import (
	"context"
	"time"

	"github.com/authmount/auth"
)

type jobs struct {
	link
	tap   *Tap
	inner auth.JobStore
}

func (s *jobs) PutJob(ctx context.Context, j auth.Job) (err error) {
	defer s.tap.enter(&ctx, "PutJob", nil)(&err)
	return s.inner.PutJob(ctx, j)
}

func (s *jobs) AddJobChunk(ctx context.Context, chunks ...auth.JobChunk) (err error) {
	defer s.tap.enter(&ctx, "AddJobChunk", nil)(&err)
	return s.inner.AddJobChunk(ctx, chunks...)
}

func (s *jobs) StartJob(ctx context.Context, c auth.StartJob) (j auth.Job, err error) {
	defer s.tap.enter(&ctx, "StartJob", &c.Change)(&err, &j)
	return s.inner.StartJob(ctx, c)
}

func (s *jobs) Job(ctx context.Context, id string, now time.Time) (j auth.Job, err error) {
	defer s.tap.enter(&ctx, "Job", nil)(&err, &j)
	return s.inner.Job(ctx, id, now)
}

func (s *jobs) JobChunk(ctx context.Context, id string, n int) (c auth.JobChunk, err error) {
	defer s.tap.enter(&ctx, "JobChunk", nil)(&err, &c)
	return s.inner.JobChunk(ctx, id, n)
}

func (s *jobs) ClaimJob(ctx context.Context, c auth.ClaimJob) (j auth.Job, err error) {
	defer s.tap.enter(&ctx, "ClaimJob", nil)(&err, &j)
	return s.inner.ClaimJob(ctx, c)
}

func (s *jobs) FinishJobChunk(ctx context.Context, f auth.FinishJobChunk) (j auth.Job, err error) {
	defer s.tap.enter(&ctx, "FinishJobChunk", nil)(&err, &j)
	return s.inner.FinishJobChunk(ctx, f)
}
