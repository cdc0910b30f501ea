package admin_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// changeable gives an operation's example something to change.
func (o *office) changeable(row admin.Row, target *authtest.SignedIn) {
	o.t.Helper()
	system, id := admin.System("test").Accepting(), target.User.ID
	var err error
	switch row.Pattern {
	case "POST /users/{id}/unban":
		_, err = o.adm.BanUser(o.t.Context(), system, admin.BanUserParams{UserID: id, Reason: "x"})
	case "PUT /users/{id}/roles", "DELETE /users/{id}/roles/{role}":
		_, err = o.adm.Grant(o.t.Context(), system, admin.GrantParams{UserID: id, Role: role})
	case "PATCH /roles/{role}":
		_, err = o.adm.UpdateRole(o.t.Context(), system, admin.UpdateRoleParams{Name: role, Permissions: &[]string{notes}})
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

// effective are operations that do the same again when they are repeated. Unlocking has a
// limit of its own.
var effective = []string{
	"POST /users/{id}/unlock",
	"POST /users/{id}/password", "POST /users/{id}/impersonate", "POST /keys", "POST /keys/{id}/rotate",
	"POST /invitations", "POST /links", "POST /settings/test-mail", "POST /settings/test-sms", "POST /settings/test-provider/{name}",
	"POST /users/import", "GET /users/export", "GET /users/{id}/export", "GET /audit-logs/export",
}

// A repetition that changes nothing leaves no row, so that an operator cannot fill the
// audit log with it. Each operation either leaves none, or has an effect again, or counts
// against a budget, as the end of all sessions does.
func TestRepetitionsThatChangeNothing(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.hasPhone(owner, "+4930123456")
		for _, row := range admin.Table() {
			if row.Reads {
				continue
			}
			t.Run(row.Pattern, func(t *testing.T) {
				o.permit(role)
				target := o.LoginAs(t, strings.NewReplacer(" ", "-", "/", "", "{", "", "}", "").Replace(strings.ToLower(row.Pattern))+"@example.com")
				o.newDeploy()
				o.aJob()
				o.invited(row, target)
				o.changeable(row, target)
				var pattern, body string
				var headers []string
				o.alter = func(p, b string, h []string) (string, string, []string) {
					pattern, body, headers = p, b, h
					return p, b, h
				}
				o.try(owner, row, target).want(examples[row.Pattern].status)
				o.alter = nil
				before := len(o.audit())
				a := o.do(owner, pattern, body, headers...)
				if n := len(o.audit()) - before; a.status < 300 && n != 0 && (!row.Spends || row.Pattern == "POST /users/{id}/anonymize") && !slices.Contains(effective, row.Pattern) {
					t.Errorf("%d rows", n)
				}
			})
		}
		ada := o.LoginAs(t, "ada@example.com")
		for _, body := range []string{`{"notes":"a note"}`, `{"user_metadata":{"a":[1]}}`, `{"app_metadata":{"b":{"c":2}}}`, `{"phone":"+4930123457","phone_verified":true}`, `{"email_verified":true}`} {
			o.do(owner, "PATCH /users/"+ada.User.ID, body).want(200)
			before := len(o.audit())
			o.do(owner, "PATCH /users/"+ada.User.ID, body).want(200)
			if n := len(o.audit()) - before; n != 0 {
				t.Errorf("%s: %d rows", body, n)
			}
		}
	})
}

// A change that was one only because another came between has its row in the audit log.
func TestRepetitionsThatChangeSomethingAfterAll(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		tap := storetap.New(st)
		o := newOffice(t, tap)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		ada := o.LoginAs(t, "ada@example.com")
		o.do(owner, "PATCH /users/"+ada.User.ID, `{"full_name":"Ada"}`).want(200)
		updates := func() int {
			return len(slices.DeleteFunc(o.audit(), func(e auth.Event) bool { return e.Type != auth.EventUserUpdated }))
		}
		before, once := updates(), true
		tap.Reset(storetap.Hooks{Background: true, Before: func(ctx context.Context, method string, _ int) {
			if method == "UpdateUser" && once {
				once = false
				name := "Eve"
				if _, err := st.UpdateUser(ctx, store.UpdateUser{Change: store.Change{Now: o.Clock.Now(), By: auth.Authority{System: "test"}}, UserID: ada.User.ID, Patch: store.UserPatch{FullName: &name}}); err != nil {
					t.Error(err)
				}
			}
		}})
		wantResults(t, o.imports(owner, "?on_conflict=update", `{"email":"ada@example.com","full_name":"Ada"}`), "done")
		tap.Reset(storetap.Hooks{})
		if once {
			t.Fatal("no change came between")
		}
		if n := updates() - before; n != 1 {
			t.Errorf("%d rows about the account, want 1", n)
		}
	})
}
