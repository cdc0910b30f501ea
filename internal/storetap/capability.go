package storetap

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// The capabilities, each with the store beside it, so that store.Capability finds
// them along Tap.Unwrap and finds none that the store behind lacks.
type (
	factors struct {
		link
		tap   *Tap
		inner store.FactorStore
	}
	events struct {
		link
		tap   *Tap
		inner store.EventStore
	}
	outbox struct {
		link
		tap   *Tap
		inner store.OutboxStore
	}
	roles struct {
		link
		tap   *Tap
		inner store.RoleStore
	}
	proofs struct {
		link
		tap   *Tap
		inner store.ProofStore
	}
	exports struct {
		link
		tap   *Tap
		inner store.ExportStore
	}
	accounts struct {
		link
		tap   *Tap
		inner store.AccountStore
	}
	keys struct {
		link
		tap   *Tap
		inner store.KeyStore
	}
	imports struct {
		link
		tap   *Tap
		inner store.ImportStore
	}
	directory struct {
		link
		tap   *Tap
		inner store.DirectoryStore
	}
	settings struct {
		link
		tap   *Tap
		inner store.SettingsStore
	}
	diagnosis struct {
		link
		tap   *Tap
		inner store.DiagnosticStore
	}
	limits struct {
		link
		tap   *Tap
		inner store.LimitStore
	}
	stats struct {
		link
		tap   *Tap
		inner store.StatsStore
	}
	rotation struct {
		link
		tap   *Tap
		inner store.RotationStore
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

func (s *proofs) AddProof(ctx context.Context, c store.AddProof) (sess store.Session, u store.User, err error) {
	defer s.tap.enter(&ctx, "AddProof", &c.Change)(&err, &sess, &u)
	return s.inner.AddProof(ctx, c)
}

func (s *exports) Held(ctx context.Context, userID string, now time.Time) (h store.Held, err error) {
	defer s.tap.enter(&ctx, "Held", nil)(&err, &h)
	return s.inner.Held(ctx, userID, now)
}

func (s *accounts) Account(ctx context.Context, key store.UserKey, now time.Time) (c store.Credentials, h store.Held, err error) {
	defer s.tap.enter(&ctx, "Account", nil)(&err, &c, &h)
	return s.inner.Account(ctx, key, now)
}

func (s *events) Events(ctx context.Context, q store.EventQuery) (list []store.Event, err error) {
	defer s.tap.enter(&ctx, "Events", nil)(&err, &list)
	return s.inner.Events(ctx, q)
}

func (s *events) AddEvents(ctx context.Context, list []store.Event) (err error) {
	defer s.tap.enter(&ctx, "AddEvents", nil)(&err)
	return s.inner.AddEvents(ctx, list)
}

func (s *events) SweepEvents(ctx context.Context, before, now time.Time, limit int) (n int, err error) {
	defer s.tap.enter(&ctx, "SweepEvents", nil)(&err, &n)
	return s.inner.SweepEvents(ctx, before, now, limit)
}

func (s *stats) AddCounts(ctx context.Context, c store.AddCounts) (err error) {
	defer s.tap.enter(&ctx, "AddCounts", nil)(&err)
	return s.inner.AddCounts(ctx, c)
}

func (s *stats) Counts(ctx context.Context, q store.CountQuery) (list []store.Count, err error) {
	defer s.tap.enter(&ctx, "Counts", nil)(&err, &list)
	return s.inner.Counts(ctx, q)
}

func (s *stats) Totals(ctx context.Context, now time.Time) (t store.Totals, err error) {
	defer s.tap.enter(&ctx, "Totals", nil)(&err, &t)
	return s.inner.Totals(ctx, now)
}

func (s *outbox) ClaimMessages(ctx context.Context, c store.ClaimMessages) (list []store.SealedMessage, err error) {
	defer s.tap.enter(&ctx, "ClaimMessages", nil)(&err, &list)
	return s.inner.ClaimMessages(ctx, c)
}

func (s *outbox) FinishMessage(ctx context.Context, f store.FinishMessage) (err error) {
	defer s.tap.enter(&ctx, "FinishMessage", nil)(&err)
	return s.inner.FinishMessage(ctx, f)
}

func (s *roles) Roles(ctx context.Context) (t store.RoleTable, err error) {
	defer s.tap.enter(&ctx, "Roles", nil)(&err, &t)
	return s.inner.Roles(ctx)
}

func (s *roles) PutRole(ctx context.Context, c store.PutRole) (t store.RoleTable, err error) {
	defer s.tap.enter(&ctx, "PutRole", &c.Change)(&err, &t)
	return s.inner.PutRole(ctx, c)
}

func (s *roles) DeleteRole(ctx context.Context, c store.DeleteRole) (t store.RoleTable, err error) {
	defer s.tap.enter(&ctx, "DeleteRole", &c.Change)(&err, &t)
	return s.inner.DeleteRole(ctx, c)
}

func (s *keys) Key(ctx context.Context, id string) (k store.APIKey, err error) {
	defer s.tap.enter(&ctx, "Key", nil)(&err, &k)
	return s.inner.Key(ctx, id)
}

func (s *keys) Keys(ctx context.Context, q store.KeyQuery) (list []store.APIKey, err error) {
	defer s.tap.enter(&ctx, "Keys", nil)(&err, &list)
	return s.inner.Keys(ctx, q)
}

func (s *keys) UseKey(ctx context.Context, id string, at time.Time) (err error) {
	defer s.tap.enter(&ctx, "UseKey", nil)(&err)
	return s.inner.UseKey(ctx, id, at)
}

func (s *keys) PutKey(ctx context.Context, c store.PutKey) (k store.APIKey, err error) {
	defer s.tap.enter(&ctx, "PutKey", &c.Change)(&err, &k)
	return s.inner.PutKey(ctx, c)
}

func (s *imports) CreateUsers(ctx context.Context, c store.CreateUsers) (results []error, err error) {
	defer s.tap.enter(&ctx, "CreateUsers", &c.Change)(&err, &results)
	return s.inner.CreateUsers(ctx, c)
}

func (s *rotation) KeyUses(ctx context.Context, now time.Time) (u store.KeyUses, err error) {
	defer s.tap.enter(&ctx, "KeyUses", nil)(&err, &u)
	return s.inner.KeyUses(ctx, now)
}

func (s *limits) ClearLimits(ctx context.Context, c store.ClearLimits) (err error) {
	defer s.tap.enter(&ctx, "ClearLimits", &c.Change)(&err)
	return s.inner.ClearLimits(ctx, c)
}

func (s *directory) ListUsers(ctx context.Context, q store.UserQuery) (list []store.User, err error) {
	defer s.tap.enter(&ctx, "ListUsers", nil)(&err, &list)
	return s.inner.ListUsers(ctx, q)
}

func (s *directory) ListUserRows(ctx context.Context, q store.UserQuery) (list []store.UserRow, err error) {
	defer s.tap.enter(&ctx, "ListUserRows", nil)(&err, &list)
	return s.inner.ListUserRows(ctx, q)
}

func (s *settings) Settings(ctx context.Context) (d store.StoredSettings, err error) {
	defer s.tap.enter(&ctx, "Settings", nil)(&err, &d)
	return s.inner.Settings(ctx)
}

func (s *settings) PutSettings(ctx context.Context, c store.PutSettings) (d store.StoredSettings, err error) {
	defer s.tap.enter(&ctx, "PutSettings", &c.Change)(&err, &d)
	return s.inner.PutSettings(ctx, c)
}

func (s *diagnosis) Diagnose(ctx context.Context) (d store.StoreDiagnosis, err error) {
	defer s.tap.enter(&ctx, "Diagnose", nil)(&err, &d)
	return s.inner.Diagnose(ctx)
}

func (s *directory) CountUsers(ctx context.Context, q store.UserQuery) (n store.UserCount, err error) {
	defer s.tap.enter(&ctx, "CountUsers", nil)(&err, &n)
	return s.inner.CountUsers(ctx, q)
}
