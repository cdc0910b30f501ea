package storetap

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// The optional interfaces, each embedded next to a store, so that store.Capability finds
// them through Tap.Unwrap, and finds only those of the inner store.
type (
	factors struct {
		link
		tap   *Tap
		inner store.FactorStore
	}
	journal struct {
		link
		tap   *Tap
		inner store.Journal
	}
	project struct {
		link
		tap   *Tap
		inner store.ProjectStore
	}
	admin struct {
		link
		tap   *Tap
		inner store.AdminStore
	}
)

func (s *factors) Factors(ctx context.Context, userID string) (f store.Factors, err error) {
	defer s.tap.enter(&ctx, "Factors", nil)(&err, &f)
	return s.inner.Factors(ctx, userID)
}

func (s *factors) PutFactor(ctx context.Context, c store.PutFactor) (err error) {
	defer s.tap.enter(&ctx, "PutFactor", &c.Change)(&err)
	return s.inner.PutFactor(ctx, c)
}

func (s *factors) EnableFactor(ctx context.Context, c store.EnableFactor) (r store.FactorResult, err error) {
	defer s.tap.enter(&ctx, "EnableFactor", &c.Change)(&err, &r)
	return s.inner.EnableFactor(ctx, c)
}

func (s *factors) UpdateFactor(ctx context.Context, c store.UpdateFactor) (f store.Factor, err error) {
	defer s.tap.enter(&ctx, "UpdateFactor", &c.Change)(&err, &f)
	return s.inner.UpdateFactor(ctx, c)
}

func (s *factors) UseFactor(ctx context.Context, c store.UseFactor) (r store.FactorResult, err error) {
	defer s.tap.enter(&ctx, "UseFactor", &c.Change)(&err, &r)
	return s.inner.UseFactor(ctx, c)
}

func (s *factors) UseRecoveryCode(ctx context.Context, c store.UseRecoveryCode) (r store.FactorResult, err error) {
	defer s.tap.enter(&ctx, "UseRecoveryCode", &c.Change)(&err, &r)
	return s.inner.UseRecoveryCode(ctx, c)
}

func (s *factors) PutRecoveryCodes(ctx context.Context, c store.PutRecoveryCodes) (err error) {
	defer s.tap.enter(&ctx, "PutRecoveryCodes", &c.Change)(&err)
	return s.inner.PutRecoveryCodes(ctx, c)
}

func (s *factors) RemoveFactor(ctx context.Context, c store.RemoveFactor) (u store.User, err error) {
	defer s.tap.enter(&ctx, "RemoveFactor", &c.Change)(&err, &u)
	return s.inner.RemoveFactor(ctx, c)
}

func (s *journal) Events(ctx context.Context, q store.EventQuery) (list []store.Event, err error) {
	defer s.tap.enter(&ctx, "Events", nil)(&err, &list)
	return s.inner.Events(ctx, q)
}

func (s *journal) AddEvents(ctx context.Context, list []store.Event) (err error) {
	defer s.tap.enter(&ctx, "AddEvents", nil)(&err)
	return s.inner.AddEvents(ctx, list)
}

func (s *journal) SweepEvents(ctx context.Context, before, now time.Time, limit int) (n int, err error) {
	defer s.tap.enter(&ctx, "SweepEvents", nil)(&err, &n)
	return s.inner.SweepEvents(ctx, before, now, limit)
}

func (s *journal) ClaimMessages(ctx context.Context, c store.ClaimMessages) (list []store.SealedMessage, err error) {
	defer s.tap.enter(&ctx, "ClaimMessages", nil)(&err, &list)
	return s.inner.ClaimMessages(ctx, c)
}

func (s *journal) FinishMessage(ctx context.Context, f store.FinishMessage) (err error) {
	defer s.tap.enter(&ctx, "FinishMessage", nil)(&err)
	return s.inner.FinishMessage(ctx, f)
}

func (s *journal) ListMessages(ctx context.Context, q store.MessageQuery) (list []store.MessageRecord, err error) {
	defer s.tap.enter(&ctx, "ListMessages", nil)(&err, &list)
	return s.inner.ListMessages(ctx, q)
}

func (s *journal) FailedMessage(ctx context.Context, id string, now time.Time) (m store.SealedMessage, err error) {
	defer s.tap.enter(&ctx, "FailedMessage", nil)(&err, &m)
	return s.inner.FailedMessage(ctx, id, now)
}

func (s *journal) RetryMessage(ctx context.Context, c store.RetryMessage) (err error) {
	defer s.tap.enter(&ctx, "RetryMessage", &c.Change)(&err)
	return s.inner.RetryMessage(ctx, c)
}

func (s *project) AddCounts(ctx context.Context, c store.AddCounts) (err error) {
	defer s.tap.enter(&ctx, "AddCounts", nil)(&err)
	return s.inner.AddCounts(ctx, c)
}

func (s *project) Counts(ctx context.Context, q store.CountQuery) (list []store.Count, err error) {
	defer s.tap.enter(&ctx, "Counts", nil)(&err, &list)
	return s.inner.Counts(ctx, q)
}

func (s *project) Totals(ctx context.Context, now time.Time) (t store.Totals, err error) {
	defer s.tap.enter(&ctx, "Totals", nil)(&err, &t)
	return s.inner.Totals(ctx, now)
}

func (s *project) Roles(ctx context.Context) (t store.RoleTable, err error) {
	defer s.tap.enter(&ctx, "Roles", nil)(&err, &t)
	return s.inner.Roles(ctx)
}

func (s *project) PutRole(ctx context.Context, c store.PutRole) (t store.RoleTable, err error) {
	defer s.tap.enter(&ctx, "PutRole", &c.Change)(&err, &t)
	return s.inner.PutRole(ctx, c)
}

func (s *project) DeleteRole(ctx context.Context, c store.DeleteRole) (t store.RoleTable, err error) {
	defer s.tap.enter(&ctx, "DeleteRole", &c.Change)(&err, &t)
	return s.inner.DeleteRole(ctx, c)
}

func (s *project) Key(ctx context.Context, id string) (k store.APIKey, err error) {
	defer s.tap.enter(&ctx, "Key", nil)(&err, &k)
	return s.inner.Key(ctx, id)
}

func (s *project) Keys(ctx context.Context, q store.KeyQuery) (list []store.APIKey, err error) {
	defer s.tap.enter(&ctx, "Keys", nil)(&err, &list)
	return s.inner.Keys(ctx, q)
}

func (s *project) UseKey(ctx context.Context, id string, at time.Time) (err error) {
	defer s.tap.enter(&ctx, "UseKey", nil)(&err)
	return s.inner.UseKey(ctx, id, at)
}

func (s *project) PutKey(ctx context.Context, c store.PutKey) (k store.APIKey, err error) {
	defer s.tap.enter(&ctx, "PutKey", &c.Change)(&err, &k)
	return s.inner.PutKey(ctx, c)
}

func (s *project) Settings(ctx context.Context) (d store.StoredSettings, err error) {
	defer s.tap.enter(&ctx, "Settings", nil)(&err, &d)
	return s.inner.Settings(ctx)
}

func (s *project) PutSettings(ctx context.Context, c store.PutSettings) (d store.StoredSettings, err error) {
	defer s.tap.enter(&ctx, "PutSettings", &c.Change)(&err, &d)
	return s.inner.PutSettings(ctx, c)
}
