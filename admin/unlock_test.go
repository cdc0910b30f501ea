package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
)

// checked returns how many wrong passwords an account takes before it is locked.
func (o *office) checked(email string) (n int) {
	o.t.Helper()
	for ; n < 200; n++ {
		_, err := o.Login(o.t.Context(), auth.LoginParams{Email: email, Password: fmt.Sprint("wrong ", n)})
		switch {
		case errors.Is(err, auth.CodeRateLimited):
			return n
		case !errors.Is(err, auth.CodeInvalidCredentials):
			o.t.Fatal(err)
		}
	}
	return n
}

// An unlock lets ten more attempts through, three times a day, whoever unlocks. It notifies
// the owner, and the notice of many failures comes nevertheless.
func TestUnlockLetsTenAttemptsThrough(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, auth.WithRateLimits(auth.RateLimits{LoginPerIP: auth.Rate{Burst: -1}}))
		one, two := o.operator("one@example.com", admin.PermUsersBan), o.operator("two@example.com", admin.PermUsersBan)
		ada := o.LoginAs(t, "ada@example.com")
		unlock := "POST /users/" + ada.User.ID + "/unlock"
		o.checked("ada@example.com")
		for i, who := range []*authtest.SignedIn{one, two, one} {
			o.do(who, unlock, "").want(200)
			if n := o.checked("ada@example.com"); n != 10 {
				t.Errorf("unlock %d let %d attempts through", i+1, n)
			}
		}
		o.do(two, unlock, "").want(429, auth.CodeRateLimited)
		if n := o.checked("ada@example.com"); n != 0 {
			t.Errorf("a refused unlock let %d attempts through", n)
		}
		o.Mail(t, "ada@example.com", auth.KindAccountUnlocked)
		o.Mail(t, "ada@example.com", auth.KindManyFailedSignIns)
	})
}

// The owner signs in after an unlock, as they asked for it.
func TestUnlockedOwnerSignsIn(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, auth.WithRateLimits(auth.RateLimits{LoginPerIP: auth.Rate{Burst: -1}}))
		support := o.operator("support@example.com", admin.PermUsersBan)
		ada := o.LoginAs(t, "ada@example.com")
		login := auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}
		o.checked("ada@example.com")
		_, err := o.Login(t.Context(), login)
		wantCode(t, err, auth.CodeRateLimited)
		o.do(support, "POST /users/"+ada.User.ID+"/unlock", `{"reason":"called us"}`).want(200)
		if _, err := o.Login(t.Context(), login); err != nil {
			t.Error(err)
		}
	})
}

// Parallel unlocks do not let more through than the limit.
func TestParallelUnlocks(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		support := o.operator("support@example.com", admin.PermUsersBan)
		ada := o.LoginAs(t, "ada@example.com")
		var done atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := o.adm.Unlock(t.Context(), actor(support), admin.UnlockParams{UserID: ada.User.ID}); err == nil {
					done.Add(1)
				} else if !errors.Is(err, auth.CodeRateLimited) && !errors.Is(err, auth.CodeUnavailable) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := done.Load(); n > 3 {
			t.Errorf("%d of 8 unlocks", n)
		}
	})
}

// To delete, to unlock and to give roles, a key needs the permission by name: the creator of
// a key with a pattern may not have meant it.
func TestKeysNeedTheName(t *testing.T) {
	var named []string
	for _, row := range admin.Table() {
		if row.ByName {
			named = append(named, row.Pattern)
		}
	}
	if want := []string{"DELETE /users/{id}/roles/{role}", "POST /users/{id}/anonymize", "POST /users/{id}/delete", "POST /users/{id}/roles/{role}", "POST /users/{id}/unlock", "PUT /users/{id}/roles"}; !slices.Equal(slices.Sorted(slices.Values(named)), want) {
		t.Errorf("by name: %q, want %q", named, want)
	}
	for _, row := range admin.Table() {
		if row.Permission == "" || examples[row.Pattern].media != "" {
			continue
		}
		t.Run(row.Pattern, func(t *testing.T) {
			t.Parallel()
			o, target := newScene(t, memstore.New())
			for _, c := range []struct {
				scope   string
				refused bool
			}{{row.Permission, false}, {"auth.*", row.ByName}} {
				k, err := o.adm.CreateKey(t.Context(), admin.System("test").Accepting(), admin.CreateKeyParams{Name: "a key", Scopes: []string{c.scope, "role/" + role}})
				if err != nil {
					return // no key may do it
				}
				a := o.try(program(k), row, target)
				if missing := a.status == 403 && a.body["code"] == string(auth.CodeMissingPermission); missing != c.refused {
					t.Errorf("a key with %s: %d %.200s", c.scope, a.status, a.text)
				}
			}
		})
	}
}

// No operation lets more guesses at a password through than the unlocks of a day, however
// often it is repeated. Operations that replace the password are not listed: the guesses
// are at another one each time.
func TestNoOperationOpensAnAccountToGuesses(t *testing.T) {
	for _, row := range admin.Table() {
		if row.Pattern == "POST /users/{id}/password" {
			continue
		}
		t.Run(row.Pattern, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, memstore.New(), auth.WithRateLimits(auth.RateLimits{LoginPerIP: auth.Rate{Burst: -1}}))
			target := o.fill()
			owner := o.operator("owner@example.com", "*")
			n := 0
			for range 5 {
				n += o.checked("target@example.com")
				o.try(owner, row, target)
			}
			if n += o.checked("target@example.com"); n > 40 {
				t.Errorf("%d wrong passwords were checked", n)
			}
		})
	}
}

// An unlock needs recent authentication, and of a key the scope by its name. One that is
// refused does not count against the three of a day.
func TestUnlockIsRefused(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		tap := storetap.New(st)
		o := newOffice(t, tap)
		ada := o.LoginAs(t, "ada@example.com")
		unlock := "POST /users/" + ada.User.ID + "/unlock"
		code := admin.System("test").Accepting()
		o.do(program(o.key(code, "auth.users.*")), unlock, "").want(403, auth.CodeMissingPermission)
		support := o.later(o.operator("support@example.com", admin.PermUsersBan))
		o.do(support, unlock, "").want(403, auth.CodeReauthNeeded)
		support = o.operator("fresh@example.com", admin.PermUsersBan)
		for range 4 {
			o.do(support, unlock, "", `If-Match: "99"`).want(412, auth.CodePreconditionFailed)
			tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
				if method == "FillLimits" {
					return storetap.FailsBefore
				}
				return storetap.NoFault
			}})
			o.do(support, unlock, "").want(503, auth.CodeUnavailable)
			tap.Reset(storetap.Hooks{})
		}
		for range 2 {
			o.do(support, unlock, "").want(200)
		}
		o.do(program(o.key(code, admin.PermUsersBan)), unlock, "").want(200)
		o.do(support, unlock, "").want(429, auth.CodeRateLimited)
	})
}
