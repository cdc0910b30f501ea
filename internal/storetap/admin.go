package storetap

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

func (s *admin) CreateUsers(ctx context.Context, c store.CreateUsers) (results []error, err error) {
	defer s.tap.enter(&ctx, "CreateUsers", &c.Change)(&err, &results)
	return s.inner.CreateUsers(ctx, c)
}

func (s *admin) KeyUses(ctx context.Context, now time.Time) (u store.KeyUses, err error) {
	defer s.tap.enter(&ctx, "KeyUses", nil)(&err, &u)
	return s.inner.KeyUses(ctx, now)
}

func (s *admin) FillLimits(ctx context.Context, c store.FillLimits) (err error) {
	defer s.tap.enter(&ctx, "FillLimits", &c.Change)(&err)
	return s.inner.FillLimits(ctx, c)
}

func (s *admin) ListUsers(ctx context.Context, q store.UserQuery) (list []store.User, err error) {
	defer s.tap.enter(&ctx, "ListUsers", nil)(&err, &list)
	return s.inner.ListUsers(ctx, q)
}

func (s *admin) ListUserRows(ctx context.Context, q store.UserQuery) (list []store.UserRow, err error) {
	defer s.tap.enter(&ctx, "ListUserRows", nil)(&err, &list)
	return s.inner.ListUserRows(ctx, q)
}

func (s *admin) Diagnose(ctx context.Context) (d store.StoreDiagnosis, err error) {
	defer s.tap.enter(&ctx, "Diagnose", nil)(&err, &d)
	return s.inner.Diagnose(ctx)
}

func (s *admin) CountUsers(ctx context.Context, q store.UserQuery) (n store.Total, err error) {
	defer s.tap.enter(&ctx, "CountUsers", nil)(&err, &n)
	return s.inner.CountUsers(ctx, q)
}

func (s *admin) UserDeleted(ctx context.Context, id string) (deleted bool, err error) {
	defer s.tap.enter(&ctx, "UserDeleted", nil)(&err, &deleted)
	return s.inner.UserDeleted(ctx, id)
}

func (s *admin) ListSessions(ctx context.Context, q store.SessionQuery) (list []store.Session, err error) {
	defer s.tap.enter(&ctx, "ListSessions", nil)(&err, &list)
	return s.inner.ListSessions(ctx, q)
}

func (s *admin) SessionOrder(ctx context.Context) (n int64, err error) {
	defer s.tap.enter(&ctx, "SessionOrder", nil)(&err, &n)
	return s.inner.SessionOrder(ctx)
}

func (s *admin) EndEverySession(ctx context.Context, c store.EndEverySession) (n int, err error) {
	defer s.tap.enter(&ctx, "EndEverySession", &c.Change)(&err, &n)
	return s.inner.EndEverySession(ctx, c)
}

func (s *admin) BeginImpersonation(ctx context.Context, c store.BeginImpersonation) (err error) {
	defer s.tap.enter(&ctx, "BeginImpersonation", &c.Change)(&err)
	return s.inner.BeginImpersonation(ctx, c)
}

func (s *admin) Impersonation(ctx context.Context, id string, now time.Time) (i store.Impersonation, u store.User, err error) {
	defer s.tap.enter(&ctx, "Impersonation", nil)(&err, &i, &u)
	return s.inner.Impersonation(ctx, id, now)
}

func (s *admin) Impersonations(ctx context.Context, userID string, now time.Time) (list []store.Impersonation, err error) {
	defer s.tap.enter(&ctx, "Impersonations", nil)(&err, &list)
	return s.inner.Impersonations(ctx, userID, now)
}

func (s *admin) EndImpersonation(ctx context.Context, c store.EndImpersonation) (err error) {
	defer s.tap.enter(&ctx, "EndImpersonation", &c.Change)(&err)
	return s.inner.EndImpersonation(ctx, c)
}

func (s *admin) PutJob(ctx context.Context, j store.Job) (err error) {
	defer s.tap.enter(&ctx, "PutJob", nil)(&err)
	return s.inner.PutJob(ctx, j)
}

func (s *admin) AddJobChunk(ctx context.Context, chunks ...store.JobChunk) (err error) {
	defer s.tap.enter(&ctx, "AddJobChunk", nil)(&err)
	return s.inner.AddJobChunk(ctx, chunks...)
}

func (s *admin) StartJob(ctx context.Context, c store.StartJob) (j store.Job, err error) {
	defer s.tap.enter(&ctx, "StartJob", &c.Change)(&err, &j)
	return s.inner.StartJob(ctx, c)
}

func (s *admin) Job(ctx context.Context, id string, now time.Time) (j store.Job, err error) {
	defer s.tap.enter(&ctx, "Job", nil)(&err, &j)
	return s.inner.Job(ctx, id, now)
}

func (s *admin) JobChunk(ctx context.Context, id string, n int) (c store.JobChunk, err error) {
	defer s.tap.enter(&ctx, "JobChunk", nil)(&err, &c)
	return s.inner.JobChunk(ctx, id, n)
}

func (s *admin) ClaimJob(ctx context.Context, c store.ClaimJob) (j store.Job, err error) {
	defer s.tap.enter(&ctx, "ClaimJob", nil)(&err, &j)
	return s.inner.ClaimJob(ctx, c)
}

func (s *admin) FinishJobChunk(ctx context.Context, f store.FinishJobChunk) (j store.Job, err error) {
	defer s.tap.enter(&ctx, "FinishJobChunk", nil)(&err, &j)
	return s.inner.FinishJobChunk(ctx, f)
}

func (s *admin) ListInvitations(ctx context.Context, q store.InvitationQuery) (list []store.Token, err error) {
	defer s.tap.enter(&ctx, "ListInvitations", nil)(&err, &list)
	return s.inner.ListInvitations(ctx, q)
}

func (s *admin) AnonymizeUser(ctx context.Context, c store.AnonymizeUser) (u store.User, err error) {
	defer s.tap.enter(&ctx, "AnonymizeUser", &c.Change)(&err, &u)
	return s.inner.AnonymizeUser(ctx, c)
}
