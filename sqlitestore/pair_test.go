package sqlitestore

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

// pair has one file open twice, as two processes have. Calls alternate between the two
// stores; calls within a transaction belong to its store.
type pair struct {
	stores [2]*Store
	calls  atomic.Int64
}

func (p *pair) next(ctx context.Context) *Store {
	for _, s := range p.stores {
		if s.InTransaction(ctx) {
			return s
		}
	}
	return p.stores[p.calls.Add(1)%2]
}

// Two stores on one file keep the contract: neither remembers rows that the other changes.
func TestTwoStoresOnOneFile(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		p, path := &pair{}, file(t)
		for i := range p.stores {
			s, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if _, err := s.writer.ExecContext(t.Context(), "pragma synchronous = off"); err != nil { // no machine fails here
				t.Fatal(err)
			}
			p.stores[i] = s
		}
		return p
	})
}

func (p *pair) Account(ctx context.Context, a store.UserKey, b time.Time) (store.Credentials, store.UserRecords, error) {
	return p.next(ctx).Account(ctx, a, b)
}

func (p *pair) AddAuthentication(ctx context.Context, a store.AddAuthentication) (store.Session, store.User, error) {
	return p.next(ctx).AddAuthentication(ctx, a)
}

func (p *pair) AdvanceSession(ctx context.Context, a store.Advance) (store.Session, store.User, error) {
	return p.next(ctx).AdvanceSession(ctx, a)
}

func (p *pair) Contract() int {
	return p.stores[0].Contract()
}

func (p *pair) CreateSession(ctx context.Context, a store.CreateSession) (store.User, error) {
	return p.next(ctx).CreateSession(ctx, a)
}

func (p *pair) CreateUser(ctx context.Context, a store.CreateUser) (store.User, error) {
	return p.next(ctx).CreateUser(ctx, a)
}

func (p *pair) Credentials(ctx context.Context, a store.UserKey) (store.Credentials, error) {
	return p.next(ctx).Credentials(ctx, a)
}

func (p *pair) DeleteUser(ctx context.Context, a store.DeleteUser) error {
	return p.next(ctx).DeleteUser(ctx, a)
}

func (p *pair) EverOwned(ctx context.Context) (bool, error) {
	return p.next(ctx).EverOwned(ctx)
}

func (p *pair) PeekToken(ctx context.Context, a store.Purpose, b []byte, c time.Time) (store.Token, error) {
	return p.next(ctx).PeekToken(ctx, a, b, c)
}

func (p *pair) Ping(ctx context.Context) error {
	return p.next(ctx).Ping(ctx)
}

func (p *pair) PutToken(ctx context.Context, a store.PutToken) error {
	return p.next(ctx).PutToken(ctx, a)
}

func (p *pair) RedeemCode(ctx context.Context, a store.CodeAttempt) (store.Token, store.User, error) {
	return p.next(ctx).RedeemCode(ctx, a)
}

func (p *pair) RedeemToken(ctx context.Context, a store.Redemption) (store.Token, store.User, error) {
	return p.next(ctx).RedeemToken(ctx, a)
}

func (p *pair) RevokeSessions(ctx context.Context, a store.RevokeSessions) ([]string, error) {
	return p.next(ctx).RevokeSessions(ctx, a)
}

func (p *pair) Session(ctx context.Context, a string, b time.Time) (store.Session, store.User, error) {
	return p.next(ctx).Session(ctx, a, b)
}

func (p *pair) Sessions(ctx context.Context, a string, b time.Time) ([]store.Session, error) {
	return p.next(ctx).Sessions(ctx, a, b)
}

func (p *pair) Sweep(ctx context.Context, a time.Time, b int) (int, error) {
	return p.next(ctx).Sweep(ctx, a, b)
}

func (p *pair) Take(ctx context.Context, a []store.Draw, b time.Time) (store.Decision, error) {
	return p.next(ctx).Take(ctx, a, b)
}

func (p *pair) UpdateUser(ctx context.Context, a store.UpdateUser) (store.User, error) {
	return p.next(ctx).UpdateUser(ctx, a)
}

func (p *pair) User(ctx context.Context, a store.UserKey) (store.User, error) {
	return p.next(ctx).User(ctx, a)
}

func (p *pair) UserRecords(ctx context.Context, a string, b time.Time) (store.UserRecords, error) {
	return p.next(ctx).UserRecords(ctx, a, b)
}

func (p *pair) EnableFactor(ctx context.Context, a store.EnableFactor) (store.FactorResult, error) {
	return p.next(ctx).EnableFactor(ctx, a)
}

func (p *pair) Factors(ctx context.Context, a string) (store.Factors, error) {
	return p.next(ctx).Factors(ctx, a)
}

func (p *pair) PutFactor(ctx context.Context, a store.PutFactor) error {
	return p.next(ctx).PutFactor(ctx, a)
}

func (p *pair) PutRecoveryCodes(ctx context.Context, a store.PutRecoveryCodes) error {
	return p.next(ctx).PutRecoveryCodes(ctx, a)
}

func (p *pair) RemoveFactor(ctx context.Context, a store.RemoveFactor) (store.User, error) {
	return p.next(ctx).RemoveFactor(ctx, a)
}

func (p *pair) UpdateFactor(ctx context.Context, a store.UpdateFactor) (store.Factor, error) {
	return p.next(ctx).UpdateFactor(ctx, a)
}

func (p *pair) UseFactor(ctx context.Context, a store.UseFactor) (store.FactorResult, error) {
	return p.next(ctx).UseFactor(ctx, a)
}

func (p *pair) UseRecoveryCode(ctx context.Context, a store.UseRecoveryCode) (store.FactorResult, error) {
	return p.next(ctx).UseRecoveryCode(ctx, a)
}

func (p *pair) AddEvents(ctx context.Context, a []store.Event) error {
	return p.next(ctx).AddEvents(ctx, a)
}

func (p *pair) ClaimMessages(ctx context.Context, a store.ClaimMessages) ([]store.SealedMessage, error) {
	return p.next(ctx).ClaimMessages(ctx, a)
}

func (p *pair) Events(ctx context.Context, a store.EventQuery) ([]store.Event, error) {
	return p.next(ctx).Events(ctx, a)
}

func (p *pair) FailedMessage(ctx context.Context, a string, b time.Time) (store.SealedMessage, error) {
	return p.next(ctx).FailedMessage(ctx, a, b)
}

func (p *pair) FinishMessage(ctx context.Context, a store.FinishMessage) error {
	return p.next(ctx).FinishMessage(ctx, a)
}

func (p *pair) ListMessages(ctx context.Context, a store.MessageQuery) ([]store.MessageRecord, error) {
	return p.next(ctx).ListMessages(ctx, a)
}

func (p *pair) RetryMessage(ctx context.Context, a store.RetryMessage) error {
	return p.next(ctx).RetryMessage(ctx, a)
}

func (p *pair) SweepEvents(ctx context.Context, a time.Time, b time.Time, c int) (int, error) {
	return p.next(ctx).SweepEvents(ctx, a, b, c)
}

func (p *pair) AddCounts(ctx context.Context, a store.AddCounts) error {
	return p.next(ctx).AddCounts(ctx, a)
}

func (p *pair) Counts(ctx context.Context, a store.CountQuery) ([]store.Count, error) {
	return p.next(ctx).Counts(ctx, a)
}

func (p *pair) DeleteRole(ctx context.Context, a store.DeleteRole) (store.RoleTable, error) {
	return p.next(ctx).DeleteRole(ctx, a)
}

func (p *pair) Key(ctx context.Context, a string) (store.APIKey, error) {
	return p.next(ctx).Key(ctx, a)
}

func (p *pair) Keys(ctx context.Context, a store.KeyQuery) ([]store.APIKey, error) {
	return p.next(ctx).Keys(ctx, a)
}

func (p *pair) PutKey(ctx context.Context, a store.PutKey) (store.APIKey, error) {
	return p.next(ctx).PutKey(ctx, a)
}

func (p *pair) PutRole(ctx context.Context, a store.PutRole) (store.RoleTable, error) {
	return p.next(ctx).PutRole(ctx, a)
}

func (p *pair) PutSettings(ctx context.Context, a store.PutSettings) (store.StoredSettings, error) {
	return p.next(ctx).PutSettings(ctx, a)
}

func (p *pair) Roles(ctx context.Context) (store.RoleTable, error) {
	return p.next(ctx).Roles(ctx)
}

func (p *pair) Settings(ctx context.Context) (store.StoredSettings, error) {
	return p.next(ctx).Settings(ctx)
}

func (p *pair) Totals(ctx context.Context, a time.Time) (store.Totals, error) {
	return p.next(ctx).Totals(ctx, a)
}

func (p *pair) UseKey(ctx context.Context, a string, b time.Time) error {
	return p.next(ctx).UseKey(ctx, a, b)
}

func (p *pair) AddJobChunk(ctx context.Context, a ...store.JobChunk) error {
	return p.next(ctx).AddJobChunk(ctx, a...)
}

func (p *pair) AnonymizeUser(ctx context.Context, a store.AnonymizeUser) (store.User, error) {
	return p.next(ctx).AnonymizeUser(ctx, a)
}

func (p *pair) BeginImpersonation(ctx context.Context, a store.BeginImpersonation) error {
	return p.next(ctx).BeginImpersonation(ctx, a)
}

func (p *pair) ClaimJob(ctx context.Context, a store.ClaimJob) (store.Job, error) {
	return p.next(ctx).ClaimJob(ctx, a)
}

func (p *pair) CountUsers(ctx context.Context, a store.UserQuery) (store.Total, error) {
	return p.next(ctx).CountUsers(ctx, a)
}

func (p *pair) CreateUsers(ctx context.Context, a store.CreateUsers) ([]error, error) {
	return p.next(ctx).CreateUsers(ctx, a)
}

func (p *pair) Diagnose(ctx context.Context) (store.StoreDiagnosis, error) {
	return p.next(ctx).Diagnose(ctx)
}

func (p *pair) EndEverySession(ctx context.Context, a store.EndEverySession) (int, error) {
	return p.next(ctx).EndEverySession(ctx, a)
}

func (p *pair) EndImpersonation(ctx context.Context, a store.EndImpersonation) error {
	return p.next(ctx).EndImpersonation(ctx, a)
}

func (p *pair) FillLimits(ctx context.Context, a store.FillLimits) error {
	return p.next(ctx).FillLimits(ctx, a)
}

func (p *pair) FinishJobChunk(ctx context.Context, a store.FinishJobChunk) (store.Job, error) {
	return p.next(ctx).FinishJobChunk(ctx, a)
}

func (p *pair) Impersonation(ctx context.Context, a string, b time.Time) (store.Impersonation, store.User, error) {
	return p.next(ctx).Impersonation(ctx, a, b)
}

func (p *pair) Impersonations(ctx context.Context, a string, b time.Time) ([]store.Impersonation, error) {
	return p.next(ctx).Impersonations(ctx, a, b)
}

func (p *pair) Job(ctx context.Context, a string, b time.Time) (store.Job, error) {
	return p.next(ctx).Job(ctx, a, b)
}

func (p *pair) JobChunk(ctx context.Context, a string, b int) (store.JobChunk, error) {
	return p.next(ctx).JobChunk(ctx, a, b)
}

func (p *pair) KeyUses(ctx context.Context, a time.Time) (store.KeyUses, error) {
	return p.next(ctx).KeyUses(ctx, a)
}

func (p *pair) ListInvitations(ctx context.Context, a store.InvitationQuery) ([]store.Token, error) {
	return p.next(ctx).ListInvitations(ctx, a)
}

func (p *pair) ListSessions(ctx context.Context, a store.SessionQuery) ([]store.Session, error) {
	return p.next(ctx).ListSessions(ctx, a)
}

func (p *pair) ListUserRows(ctx context.Context, a store.UserQuery) ([]store.UserRow, error) {
	return p.next(ctx).ListUserRows(ctx, a)
}

func (p *pair) ListUsers(ctx context.Context, a store.UserQuery) ([]store.User, error) {
	return p.next(ctx).ListUsers(ctx, a)
}

func (p *pair) PutJob(ctx context.Context, a store.Job) error {
	return p.next(ctx).PutJob(ctx, a)
}

func (p *pair) SessionOrder(ctx context.Context) (int64, error) {
	return p.next(ctx).SessionOrder(ctx)
}

func (p *pair) StartJob(ctx context.Context, a store.StartJob) (store.Job, error) {
	return p.next(ctx).StartJob(ctx, a)
}

func (p *pair) UserDeleted(ctx context.Context, a string) (bool, error) {
	return p.next(ctx).UserDeleted(ctx, a)
}
