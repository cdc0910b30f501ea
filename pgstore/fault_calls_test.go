package pgstore_test

import (
	"context"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/authmount/auth/store"
)

// The methods that change something.

func (f faulty) CreateUser(ctx context.Context, c store.CreateUser) (store.User, error) {
	return one1(f, ctx, c, f.Store.CreateUser)
}

func (f faulty) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	return one1(f, ctx, c, f.Store.UpdateUser)
}

func (f faulty) DeleteUser(ctx context.Context, c store.DeleteUser) error {
	return none1(f, ctx, c, f.Store.DeleteUser)
}

func (f faulty) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	return one1(f, ctx, c, f.Store.CreateSession)
}

func (f faulty) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	return one1(f, ctx, c, f.Store.RevokeSessions)
}

func (f faulty) PutToken(ctx context.Context, c store.PutToken) error {
	return none1(f, ctx, c, f.Store.PutToken)
}

func (f faulty) RedeemToken(ctx context.Context, c store.Redemption) (store.Token, store.User, error) {
	return two1(f, ctx, c, f.Store.RedeemToken)
}

func (f faulty) RedeemCode(ctx context.Context, c store.CodeAttempt) (store.Token, store.User, error) {
	return two1(f, ctx, c, f.Store.RedeemCode)
}

func (f faulty) AddAuthentication(ctx context.Context, c store.AddAuthentication) (store.Session, store.User, error) {
	return two1(f, ctx, c, f.Store.AddAuthentication)
}

func (f faulty) PutRole(ctx context.Context, c store.PutRole) (store.RoleTable, error) {
	return one1(f, ctx, c, f.Store.PutRole)
}

func (f faulty) DeleteRole(ctx context.Context, c store.DeleteRole) (store.RoleTable, error) {
	return one1(f, ctx, c, f.Store.DeleteRole)
}

func (f faulty) PutKey(ctx context.Context, c store.PutKey) (store.APIKey, error) {
	return one1(f, ctx, c, f.Store.PutKey)
}

func (f faulty) PutFactor(ctx context.Context, c store.PutFactor) error {
	return none1(f, ctx, c, f.Store.PutFactor)
}

func (f faulty) EnableFactor(ctx context.Context, c store.EnableFactor) (store.FactorResult, error) {
	return one1(f, ctx, c, f.Store.EnableFactor)
}

func (f faulty) UpdateFactor(ctx context.Context, c store.UpdateFactor) (store.Factor, error) {
	return one1(f, ctx, c, f.Store.UpdateFactor)
}

func (f faulty) UseFactor(ctx context.Context, c store.UseFactor) (store.FactorResult, error) {
	return one1(f, ctx, c, f.Store.UseFactor)
}

func (f faulty) UseRecoveryCode(ctx context.Context, c store.UseRecoveryCode) (store.FactorResult, error) {
	return one1(f, ctx, c, f.Store.UseRecoveryCode)
}

func (f faulty) PutRecoveryCodes(ctx context.Context, c store.PutRecoveryCodes) error {
	return none1(f, ctx, c, f.Store.PutRecoveryCodes)
}

func (f faulty) RemoveFactor(ctx context.Context, c store.RemoveFactor) (store.User, error) {
	return one1(f, ctx, c, f.Store.RemoveFactor)
}

func (f faulty) BeginImpersonation(ctx context.Context, c store.BeginImpersonation) error {
	return none1(f, ctx, c, f.Store.BeginImpersonation)
}

func (f faulty) EndImpersonation(ctx context.Context, c store.EndImpersonation) error {
	return none1(f, ctx, c, f.Store.EndImpersonation)
}

func (f faulty) CreateUsers(ctx context.Context, c store.CreateUsers) ([]error, error) {
	return one1(f, ctx, c, f.Store.CreateUsers)
}

func (f faulty) StartJob(ctx context.Context, c store.StartJob) (store.Job, error) {
	return one1(f, ctx, c, f.Store.StartJob)
}

func (f faulty) FinishJobChunk(ctx context.Context, c store.FinishJobChunk) (store.Job, error) {
	return one1(f, ctx, c, f.Store.FinishJobChunk)
}

func (f faulty) FillLimits(ctx context.Context, c store.FillLimits) error {
	return none1(f, ctx, c, f.Store.FillLimits)
}

func (f faulty) RetryMessage(ctx context.Context, c store.RetryMessage) error {
	return none1(f, ctx, c, f.Store.RetryMessage)
}

func (f faulty) AnonymizeUser(ctx context.Context, c store.AnonymizeUser) (store.User, error) {
	return one1(f, ctx, c, f.Store.AnonymizeUser)
}

func (f faulty) EndEverySession(ctx context.Context, c store.EndEverySession) (int, error) {
	return one1(f, ctx, c, f.Store.EndEverySession)
}

func (f faulty) PutSettings(ctx context.Context, c store.PutSettings) (store.StoredSettings, error) {
	return one1(f, ctx, c, f.Store.PutSettings)
}

func (f faulty) AdvanceSession(ctx context.Context, c store.Advance) (store.Session, store.User, error) {
	if c.Draw.Rate.Burst > 0 { // earlier draws stay drawn
		return f.Store.AdvanceSession(ctx, c)
	}
	return two1(f, ctx, c, f.Store.AdvanceSession)
}

// Every method that changes something is tried with faults: a new one has to be listed
// above.
func TestFaultsAtEveryChange(t *testing.T) {
	kind, tried := reflect.TypeFor[faulty](), 0
	for i := range kind.NumMethod() {
		m := kind.Method(i)
		changes := false
		for j := range m.Type.NumIn() {
			if in := m.Type.In(j); in.Kind() == reflect.Struct {
				f, ok := in.FieldByName("Change")
				changes = changes || ok && f.Type == reflect.TypeFor[store.Change]()
			}
		}
		if !changes {
			continue
		}
		tried++
		if file, _ := runtime.FuncForPC(m.Func.Pointer()).FileLine(m.Func.Pointer()); !strings.HasSuffix(file, "_test.go") {
			t.Errorf("%s is tried without faults", m.Name)
		}
	}
	if tried < 20 {
		t.Errorf("only %d methods make a change", tried)
	}
}
