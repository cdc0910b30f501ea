package admin_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// An import reports which email addresses have accounts, so only readers of accounts may
// start one, or see the results of another operator's.
func TestImportNeedsThePermissionToRead(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	o.LoginAs(t, "ada@example.com")
	blind := o.operator("blind@example.com", admin.PermUsersImport)
	reader := o.operator("reader@example.com", admin.PermUsersImport, admin.PermUsersRead)
	const row = `{"email":"ada@example.com"}`
	key := program(o.key(admin.System("test").Accepting(), admin.PermUsersImport))
	for _, query := range []string{"", "?on_conflict=skip", "?on_conflict=update"} {
		for _, who := range []string{"blind", "key"} {
			by := blind
			if who == "key" {
				by = key
			}
			a := o.do(by, "POST /users/import"+query, row, ndjson).want(403, auth.CodeMissingPermission)
			if d, _ := a.body["details"].(map[string]any); d["permission"] != admin.PermUsersRead {
				t.Errorf("%s: the refusal names %v", who, a.body)
			}
		}
	}
	id := o.do(reader, "POST /users/import", row, ndjson).want(202).body["job_id"].(string)
	wantResults(t, o.done(id), "failed user_already_exists email")
	for _, at := range []string{"", "/results"} {
		o.do(blind, "GET /jobs/"+id+at, "").want(403, auth.CodeMissingPermission)
		o.do(reader, "GET /jobs/"+id+at, "").want(200)
	}
}

// A role that does not exist is refused by name, before its account or a change of one is
// written, wherever an account is created or gets roles.
func TestUnknownRolesAreNamed(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		ada := o.LoginAs(t, "ada@example.com").User
		const named = `There is no role "help-desk".`
		wrong := []string{admin.RoleSupport, "help-desk"}
		refused := func(path string, err error) {
			t.Helper()
			var e *auth.Error
			if !errors.As(err, &e) || e.Code != auth.CodeRoleNotFound || e.Message != named {
				t.Errorf("%s: %v", path, err)
			}
		}
		_, err := o.ImportUser(t.Context(), auth.ImportUserParams{Email: "wrong@example.com", Roles: wrong})
		refused("ImportUser", err)
		_, err = o.ImportUser(t.Context(), auth.ImportUserParams{Email: "wrong@example.com", Roles: wrong, Accepted: true})
		refused("ImportUser, accepted", err)
		var results []auth.ImportResult
		sum, err := o.ImportUsers(t.Context(), slices.Values([]auth.ImportUserParams{
			{Email: "first@example.com", Roles: []string{admin.RoleSupport}},
			{Email: "wrong@example.com", Roles: wrong},
			{Email: "last@example.com", Roles: []string{auth.RoleOwner}},
		}), func(r auth.ImportResult) { results = append(results, r) })
		if err != nil || sum.Created != 2 || len(results) != 3 || results[0].Err != nil || results[2].Err != nil {
			t.Fatalf("%v, %v, %v", sum, results, err)
		}
		refused("ImportUsers", results[1].Err)
		for query, fine := range map[string]string{"": "second@example.com", "?on_conflict=update": "third@example.com"} {
			rows := o.imports(owner, query, `{"email":"wrong@example.com","roles":["support","help-desk"]}`, `{"email":"`+fine+`","roles":["support"]}`)
			wantResults(t, rows, "failed role_not_found", "done")
			if rows[0]["message"] != named {
				t.Error(query, rows)
			}
		}
		rows := o.imports(owner, "?on_conflict=update", `{"email":"ada@example.com","full_name":"Changed","roles":["help-desk"]}`)
		wantResults(t, rows, "failed role_not_found")
		if rows[0]["message"] != named {
			t.Error(rows)
		}
		for request, body := range map[string]string{
			"POST /users": `{"email":"wrong@example.com","roles":["support","help-desk"]}`,
			"POST /users/" + ada.ID + "/roles/help-desk": "",
			"POST /users/bulk":                           `{"action":"add_role","role":"help-desk","dry_run":true,"filter":{}}`,
			"POST /invitations":                          `{"email":"wrong@example.com","roles":["support","help-desk"]}`,
		} {
			if a := o.do(owner, request, body).want(404, auth.CodeRoleNotFound); a.body["message"] != named {
				t.Error(request, a.body)
			}
		}
		if _, err := st.User(t.Context(), store.ByEmail("wrong@example.com")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an account with an unknown role was created: %v", err)
		}
		if u := o.read(ada.ID); len(u.Roles) > 0 || u.FullName == "Changed" {
			t.Errorf("a refused row changed %v", u)
		}

		// A role that another instance has just created is known.
		second, err := admin.New(t.Context(), authtest.NewOn(t, st).Auth, admin.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := second.CreateRole(t.Context(), admin.System("test").Accepting(), admin.CreateRoleParams{Name: "help-desk"}); err != nil {
			t.Fatal(err)
		}
		if u, err := o.ImportUser(t.Context(), auth.ImportUserParams{Email: "right@example.com", Roles: wrong}); err != nil || len(u.Roles) != 2 {
			t.Errorf("a new role: %v, %v", u, err)
		}
	})
}

// Without package admin there are no roles that operators manage, and an application asks
// for any name.
func TestImportOfFreeRoles(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		env := authtest.NewOn(t, st)
		if u, err := env.ImportUser(t.Context(), auth.ImportUserParams{Email: "ada@example.com", Roles: []string{"editor"}}); err != nil || len(u.Roles) != 1 {
			t.Errorf("%v, %v", u, err)
		}
	})
}

// An import stops where the table of roles cannot be read; it does not report the user as
// refused.
func TestImportStopsWithoutRoles(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	env := authtest.NewOn(t, tap)
	tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
		if method == "Roles" {
			return storetap.FailsBefore
		}
		return storetap.NoFault
	}})
	sum, err := env.ImportUsers(t.Context(), slices.Values([]auth.ImportUserParams{{Email: "ada@example.com", Roles: []string{"editor"}}}), nil)
	if !errors.Is(err, auth.CodeUnavailable) || sum != (auth.ImportSummary{}) {
		t.Errorf("%v, %v", sum, err)
	}
}
