package auth_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
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

// An acceptance of permissions of an operator computes one password hash, also with a
// second factor, and none before the factor is right.
func TestAcceptanceHashesOnce(t *testing.T) {
	env := authtest.New(t)
	adm, err := admin.New(t.Context(), env.Auth, admin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ada := env.LoginAs(t, "ada@example.com")
	by := auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}
	set, err := env.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: by})
	if err != nil {
		t.Fatal(err)
	}
	code := func() string {
		env.Clock.Advance(time.Minute)
		c, err := totp.GenerateCode(set.Secret, env.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if _, err := env.EnableTOTP(t.Context(), auth.EnableTOTPParams{Caller: by, TOTPCode: code()}); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.Invite(t.Context(), admin.System("test"), admin.InviteParams{Email: "ada@example.com", Roles: []string{admin.RoleSupport}}); err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(env.Mail(t, "ada@example.com", auth.KindInvitation).Link, "token=")
	for _, c := range []struct {
		code   string
		hashes uint64
	}{{"000000", 0}, {code(), 1}} {
		before := auth.HashCount(env.Auth)
		_, err := env.AcceptInvitation(t.Context(), auth.AcceptInvitationParams{Token: token, Password: "a password of the holder", TOTPCode: c.code})
		if n := auth.HashCount(env.Auth) - before; n != c.hashes || (err == nil) != (c.hashes == 1) {
			t.Errorf("code %s: %d hashes, %v", c.code, n, err)
		}
	}
}
