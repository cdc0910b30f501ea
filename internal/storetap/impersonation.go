package storetap

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

type sessionLists struct {
	link
	tap   *Tap
	inner store.SessionListStore
}

func (s *sessionLists) ListSessions(ctx context.Context, q store.SessionQuery) (list []store.Session, err error) {
	defer s.tap.enter(&ctx, "ListSessions", nil)(&err, &list)
	return s.inner.ListSessions(ctx, q)
}

func (s *sessionLists) SessionOrder(ctx context.Context) (n int64, err error) {
	defer s.tap.enter(&ctx, "SessionOrder", nil)(&err, &n)
	return s.inner.SessionOrder(ctx)
}

func (s *sessionLists) EndEverySession(ctx context.Context, c store.EndEverySession) (n int, err error) {
	defer s.tap.enter(&ctx, "EndEverySession", &c.Change)(&err, &n)
	return s.inner.EndEverySession(ctx, c)
}

type impersonations struct {
	link
	tap   *Tap
	inner store.ImpersonationStore
}

func (s *impersonations) BeginImpersonation(ctx context.Context, c store.BeginImpersonation) (err error) {
	defer s.tap.enter(&ctx, "BeginImpersonation", &c.Change)(&err)
	return s.inner.BeginImpersonation(ctx, c)
}

func (s *impersonations) Impersonation(ctx context.Context, id string, now time.Time) (i store.Impersonation, u store.User, err error) {
	defer s.tap.enter(&ctx, "Impersonation", nil)(&err, &i, &u)
	return s.inner.Impersonation(ctx, id, now)
}

func (s *impersonations) Impersonations(ctx context.Context, userID string, now time.Time) (list []store.Impersonation, err error) {
	defer s.tap.enter(&ctx, "Impersonations", nil)(&err, &list)
	return s.inner.Impersonations(ctx, userID, now)
}

func (s *impersonations) EndImpersonation(ctx context.Context, c store.EndImpersonation) (err error) {
	defer s.tap.enter(&ctx, "EndImpersonation", &c.Change)(&err)
	return s.inner.EndImpersonation(ctx, c)
}
