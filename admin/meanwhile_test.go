package admin_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// A concurrent change right before or right after an operation's own is reported as such,
// and not as a fault of the store or as success.
func TestWhatOthersWereFasterAtIsTold(t *testing.T) {
	t.Parallel()
	system := admin.System("test").Accepting()
	type scene struct {
		*office
		owner, ada *authtest.SignedIn
		id         string
	}
	begin := func(s *scene) error {
		res, err := s.adm.Impersonate(s.t.Context(), actor(s.owner), admin.ImpersonateParams{UserID: s.ada.User.ID, Reason: "help"})
		s.id = res.SessionID
		return err
	}
	for name, c := range map[string]struct {
		prepare   func(s *scene) error
		before    string // the call of the store to run before
		after     string // like before, after the change
		meanwhile func(ctx context.Context, s *scene) error
		do        func(s *scene) error
		want      auth.Code
	}{
		"somebody is given the role": {nil, "DeleteRole", "", func(ctx context.Context, s *scene) error {
			_, err := s.adm.Grant(ctx, system, admin.GrantParams{UserID: s.ada.User.ID, Role: role})
			return err
		}, func(s *scene) error {
			_, err := s.adm.DeleteRole(s.t.Context(), system, admin.DeleteRoleParams{Name: role})
			return err
		}, auth.CodeRoleInUse},
		"the role is deleted": {nil, "DeleteRole", "", func(ctx context.Context, s *scene) error {
			_, err := s.adm.DeleteRole(ctx, system, admin.DeleteRoleParams{Name: role})
			return err
		}, func(s *scene) error {
			_, err := s.adm.DeleteRole(s.t.Context(), system, admin.DeleteRoleParams{Name: role})
			return err
		}, auth.CodeRoleNotFound},
		"the invitation is withdrawn": {func(s *scene) error {
			i, err := s.adm.Invite(s.t.Context(), system, admin.InviteParams{Email: "new@example.com"})
			s.id = i.ID
			return err
		}, "RedeemToken", "", func(ctx context.Context, s *scene) error {
			return s.adm.WithdrawInvitation(ctx, system, s.id)
		}, func(s *scene) error { return s.adm.WithdrawInvitation(s.t.Context(), system, s.id) }, auth.CodeNotFound},
		"the impersonation is over before it has a token": {nil, "", "BeginImpersonation", func(ctx context.Context, s *scene) error {
			list, err := s.adm.Impersonations(ctx, system)
			if err != nil || len(list) != 1 {
				return errors.Join(err, errors.New("there is none"))
			}
			return s.adm.EndImpersonation(ctx, system, list[0].ID, "")
		}, begin, auth.CodeSessionEnded},
		"whom it is of is deleted": {begin, "EndImpersonation", "", func(ctx context.Context, s *scene) error {
			return s.adm.DeleteUser(ctx, system, admin.DeleteUserParams{UserID: s.ada.User.ID, Reason: "left"})
		}, func(s *scene) error { return s.adm.EndImpersonation(s.t.Context(), system, s.id, "") }, auth.CodeSessionNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tap := storetap.New(memstore.New())
			o, _ := newScene(t, tap)
			s := &scene{office: o, owner: o.owner(), ada: o.LoginAs(t, "ada@example.com")}
			if c.prepare != nil {
				if err := c.prepare(s); err != nil {
					t.Fatal(err)
				}
			}
			happened := false
			faster := func(ctx context.Context, method, at string) {
				if method != at || happened {
					return
				}
				happened = true
				if err := c.meanwhile(ctx, s); err != nil {
					t.Error(err)
				}
			}
			tap.Reset(storetap.Hooks{
				Before: func(ctx context.Context, method string, _ int) { faster(ctx, method, c.before) },
				After:  func(ctx context.Context, method string, _ int, _ error) { faster(ctx, method, c.after) },
			})
			if err := c.do(s); !errors.Is(err, c.want) || !happened {
				t.Errorf("%v, want %s; somebody was faster: %t", err, c.want, happened)
			}
		})
	}
}

// An account that is gone when its secrets are read is left out of an export.
func TestExportLeavesOutWhoIsGone(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap)
	ada := o.imported("ada@example.com")
	o.imported("bob@example.com")
	gone := false
	tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
		if method == "Credentials" && !gone {
			gone = true
			if err := o.adm.DeleteUser(ctx, admin.System("test").Accepting(), admin.DeleteUserParams{UserID: ada.User.ID, Reason: "left"}); err != nil {
				t.Error(err)
			}
		}
	}})
	var out bytes.Buffer
	err := o.adm.ExportUsers(t.Context(), admin.System("test").Accepting(), admin.ExportUsersParams{Fields: []string{"id", admin.FieldPasswordHash}}, &out)
	if err != nil || !gone || strings.Contains(out.String(), ada.User.ID) || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%v: %s", err, out.String())
	}
}

// A row that conflicted with an account that is gone at the next read has a result with
// the reason.
func TestRowsOfWhomIsGoneHaveAResult(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap)
	ada := o.imported("ada@example.com")
	gone := false
	w := ownWork{before: func(method string) {
		if method == "User" && !gone {
			gone = true
			if err := o.adm.DeleteUser(t.Context(), admin.System("test").Accepting(), admin.DeleteUserParams{UserID: ada.User.ID, Reason: "left"}); err != nil {
				t.Error(err)
			}
		}
	}}
	tap.Reset(w.hooks())
	id, err := o.adm.ImportUsers(t.Context(), admin.System("test").Accepting(), admin.ImportUsersParams{OnConflict: admin.OnConflictSkip}, strings.NewReader(`{"email":"ada@example.com"}`))
	if err != nil {
		t.Fatal(err)
	}
	wantResults(t, w.works(o, id), "failed user_already_exists")
}

// An actor who loses the permission of an action between any two calls of the store does
// not start a selection, and the answer says so.
func TestSelectionIsNotStartedByWhoeverMayNotAnyMore(t *testing.T) {
	t.Parallel()
	for k := 1; ; k++ {
		tap := storetap.New(memstore.New())
		o := newOffice(t, tap)
		o.crowd("many", 2)
		clerk := o.operator("clerk@example.com", admin.PermUsersRead, admin.PermUsersBan)
		o.permit("reader", admin.PermUsersRead)
		id := o.selected(actor(clerk), admin.BulkBan, "many")
		started, happened := false, false
		own := context.WithValue(t.Context(), ledgerKey{}, true)
		tap.Reset(storetap.Hooks{Skip: func(ctx context.Context, _ string) bool { return ctx.Value(ledgerKey{}) == nil }, Before: func(_ context.Context, _ string, n int) {
			if happened = happened || n == k; n == k {
				o.patch(clerk.User.ID, store.UserPatch{Roles: &[]string{"reader"}})
			}
		}, After: func(_ context.Context, method string, _ int, err error) {
			started = started || method == "StartJob" && err == nil
		}})
		res, err := o.adm.Bulk(own, actor(clerk), admin.BulkParams{Action: admin.BulkBan, SelectionID: id})
		tap.Reset(storetap.Hooks{})
		if !happened {
			if err != nil || !started {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, auth.CodeMissingPermission) || res.JobID != "" || started {
			t.Errorf("demoted before call %d: %+v %v", k, res, err)
		}
	}
}

// A request that is repeated after its account is gone does not get an empty answer.
func TestRepeatedRequestAboutWhomIsGone(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	owner, ada := o.owner(), o.LoginAs(t, "ada@example.com")
	ban := func() *answer {
		return o.do(owner, "POST /users/"+ada.User.ID+"/ban", `{"reason":"x"}`, "Idempotency-Key: once")
	}
	ban().want(200)
	if err := o.adm.DeleteUser(t.Context(), admin.System("test").Accepting(), admin.DeleteUserParams{UserID: ada.User.ID, Reason: "left"}); err != nil {
		t.Fatal(err)
	}
	ban().want(404, auth.CodeUserNotFound)
}
