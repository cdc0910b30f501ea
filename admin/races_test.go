package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
)

// Two owners who demote, ban or delete each other at once leave one.
func TestOwnersAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		ends := map[string]func(ctx context.Context, who admin.Actor, id string) error{
			"demote": func(ctx context.Context, who admin.Actor, id string) error {
				_, err := o.adm.Withdraw(ctx, who, id, auth.RoleOwner)
				return err
			},
			"ban": func(ctx context.Context, who admin.Actor, id string) error {
				_, err := o.adm.BanUser(ctx, who, admin.BanUserParams{UserID: id, Reason: "race"})
				return err
			},
			"anonymize": func(ctx context.Context, who admin.Actor, id string) error {
				_, err := o.adm.AnonymizeUser(ctx, who, admin.AnonymizeUserParams{UserID: id, Reason: "race"})
				return err
			},
			"delete": func(ctx context.Context, who admin.Actor, id string) error {
				return o.adm.DeleteUser(ctx, who, admin.DeleteUserParams{UserID: id, Reason: "race"})
			},
		}
		for name, end := range ends {
			for round := range 3 {
				pair := [2]*authtest.SignedIn{}
				for i := range pair {
					pair[i] = o.LoginAs(t, fmt.Sprintf("%s%d-%d@example.com", name, round, i), authtest.Roles(auth.RoleOwner), authtest.AAL2())
				}
				o.onlyOwners(pair[0].User.ID, pair[1].User.ID)
				var wg sync.WaitGroup
				for i := range pair {
					wg.Go(func() { _ = end(t.Context(), actor(pair[i]), pair[1-i].User.ID) })
				}
				wg.Wait()
				if n := len(o.owners()); n != 1 {
					t.Errorf("%s, round %d: %d owners are left", name, round, n)
				}
			}
		}
	})
}

// owners are the unbanned owners.
func (o *office) owners() []auth.User {
	o.t.Helper()
	p, err := o.adm.ListUsers(o.t.Context(), admin.System("test").Accepting(), admin.ListUsersParams{UserFilter: admin.UserFilter{Role: auth.RoleOwner, Status: "active"}})
	if err != nil {
		o.t.Fatal(err)
	}
	return p.Users
}

// onlyOwners takes the role from all others.
func (o *office) onlyOwners(ids ...string) {
	o.t.Helper()
	for _, u := range o.owners() {
		if !slices.Contains(ids, u.ID) {
			if _, err := o.adm.Withdraw(o.t.Context(), admin.System("test").Accepting(), u.ID, auth.RoleOwner); err != nil {
				o.t.Fatal(err)
			}
		}
	}
}

// The application's own code cannot remove the last owner either.
func TestLastOwner(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		id := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner)).User.ID
		code := admin.System("test").Accepting()
		_, err := o.adm.Withdraw(t.Context(), code, id, auth.RoleOwner)
		wantCode(t, err, auth.CodeLastOwner)
		_, err = o.adm.SetRoles(t.Context(), code, admin.SetRolesParams{UserID: id})
		wantCode(t, err, auth.CodeLastOwner)
		_, err = o.adm.BanUser(t.Context(), code, admin.BanUserParams{UserID: id, Reason: "x"})
		wantCode(t, err, auth.CodeLastOwner)
		wantCode(t, o.adm.DeleteUser(t.Context(), code, admin.DeleteUserParams{UserID: id, Reason: "x"}), auth.CodeLastOwner)
		_, err = o.adm.AnonymizeUser(t.Context(), code, admin.AnonymizeUserParams{UserID: id, Reason: "x"})
		wantCode(t, err, auth.CodeLastOwner)
	})
}

func wantCode(t *testing.T, err error, code auth.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("%v, want %s", err, code)
	}
}

// An operation's conditions may change between its read and its change: then the change
// does not happen. The test covers every operation that compares.
func TestChangedMeanwhile(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		o := newOffice(t, tap)
		code := admin.System("test").Accepting()
		meanwhile := map[string]struct {
			happens func(ctx context.Context, actor, target *authtest.SignedIn) error
			want    []auth.Code
		}{
			"the actor is signed out": {func(ctx context.Context, a, _ *authtest.SignedIn) error {
				_, err := o.adm.EndSessions(ctx, code, a.User.ID, "")
				return err
			}, []auth.Code{auth.CodeSessionEnded}},
			"the actor is banned": {func(ctx context.Context, a, _ *authtest.SignedIn) error {
				_, err := o.adm.BanUser(ctx, code, admin.BanUserParams{UserID: a.User.ID, Reason: "x"})
				return err
			}, []auth.Code{auth.CodeSessionEnded, auth.CodeUserBanned}},
			"the actor is demoted": {func(ctx context.Context, a, _ *authtest.SignedIn) error {
				_, err := o.adm.SetRoles(ctx, code, admin.SetRolesParams{UserID: a.User.ID})
				return err
			}, []auth.Code{auth.CodeNotAdmin}},
			"the target is promoted": {func(ctx context.Context, _, b *authtest.SignedIn) error {
				_, err := o.adm.Grant(ctx, code, admin.GrantParams{UserID: b.User.ID, Role: auth.RoleOwner})
				return err
			}, []auth.Code{auth.CodeTargetStronger}},
			"a role of the target's grows": {func(ctx context.Context, _, b *authtest.SignedIn) error {
				return o.permitIn(ctx, b.User.Roles[0], "money.send", "auth.*")
			}, []auth.Code{auth.CodeTargetStronger}},
		}
		o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner))
		o.permit(role)
		n := 0
		for name, m := range meanwhile {
			for _, row := range admin.Table() {
				if !row.Targets {
					continue
				}
				n++
				own := fmt.Sprintf("own%d", n)
				o.permit(own)
				a := o.operator(fmt.Sprintf("actor%d@example.com", n), row.Permission)
				b := o.LoginAs(t, fmt.Sprintf("target%d@example.com", n), authtest.Roles(own))
				b.User.Roles = []string{own}
				o.invited(row, b)
				o.changeable(row, b)
				var once sync.Once
				tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
					if !mutates(method) {
						return
					}
					once.Do(func() {
						if err := m.happens(ctx, a, b); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					})
				}})
				got := o.try(a, row, b)
				tap.Reset(storetap.Hooks{})
				ok := false
				for _, c := range m.want {
					ok = ok || got.body["code"] == string(c)
				}
				if !ok {
					t.Errorf("%s, %s: %d %v, want %v", row.Pattern, name, got.status, got.body, m.want)
				}
			}
		}
	})
}

// mutates reports whether a method of the store is the effect of an operation about an
// account.
func mutates(method string) bool {
	return slices.Contains([]string{"UpdateUser", "DeleteUser", "RevokeSessions", "RemoveFactor", "FillLimits", "BeginImpersonation", "PutToken", "AnonymizeUser", "RetryMessage"}, method)
}
