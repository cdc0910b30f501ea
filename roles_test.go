package auth_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// hangingRoles is a store that stops answering reads of the roles.
type hangingRoles struct {
	auth.Store
	store.ProjectStore
	hang atomic.Bool
}

func (h *hangingRoles) Roles(ctx context.Context) (store.RoleTable, error) {
	if h.hang.Load() {
		<-ctx.Done()
		return store.RoleTable{}, ctx.Err()
	}
	return h.ProjectStore.Roles(ctx)
}

// A read of the roles that hangs does not block other callers: they use the cached roles.
func TestHangingRolesHoldNobodyUp(t *testing.T) {
	inner := memstore.New()
	store := &hangingRoles{Store: inner, ProjectStore: inner}
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, store)}
	ada := w.LoginAs(t, "ada@example.com", authtest.Roles("editor"))
	store.hang.Store(true)
	auth.ForgetRoles(w.Auth)
	stuck, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = w.Login(stuck, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}) })
	for !auth.RolesAreRead(w.Auth) {
		runtime.Gosched()
	}
	// Operators are not shown such old roles.
	short, done := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer done()
	if table, err := host.Of(w).Roles(short); err == nil {
		t.Errorf("a table that is too old serves operators: %+v", table)
	}
	if _, err := w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: ada.RefreshToken}); err != nil {
		t.Errorf("refresh beside it: %v", err)
	}
	cancel()
	wg.Wait()
}
