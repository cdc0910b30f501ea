package admin_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// Every operation on an account that compares its actor with the account counts the name of
// a privileged role, and no other name.
func TestPrivilegedNamesCountAtEveryOperation(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithPrivilegedRoles("superuser"))
		o.fill()
		marked := true
		if _, err := o.adm.CreateRole(t.Context(), admin.System("test").Accepting(), admin.CreateRoleParams{Name: "chief", Privileged: &marked}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.adm.DeleteRole(t.Context(), admin.System("test").Accepting(), admin.DeleteRoleParams{Name: "chief"}); err != nil {
			t.Fatal(err)
		}
		o.permit("customer")
		everything := o.operator("everything@example.com", allBut(t, o)...)
		compared := 0
		for i, row := range admin.Table() {
			if !row.Targets {
				continue
			}
			compared++
			for _, name := range []string{"superuser", "chief", "customer"} { // chief is deleted, and keeps its mark
				target := o.LoginAs(t, fmt.Sprintf("%s%d@example.com", name, i), authtest.Roles(name), authtest.AAL2())
				a := o.try(everything, row, target)
				if stronger := a.body["code"] == string(auth.CodeTargetStronger); stronger != (name != "customer") {
					t.Errorf("%s against a bearer of %s: %d %s", row.Pattern, name, a.status, a.text)
				}
			}
		}
		if compared < 10 {
			t.Errorf("only %d operations compare", compared)
		}
	})
}

// Only its bearer and "*" give or take a privileged role, whatever the way.
func TestPrivilegedRolesAreGivenByBearers(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithPrivilegedRoles("superuser"))
		o.permit("superuser")
		o.permit("editor", notes)
		all := allBut(t, o)
		o.permit("staff", all...)
		other := o.LoginAs(t, "other@example.com", authtest.Roles("staff"), authtest.AAL2())
		bearer := o.LoginAs(t, "bearer@example.com", authtest.Roles("staff", "superuser"), authtest.AAL2())
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		ada := o.LoginAs(t, "ada@example.com")
		ben := o.LoginAs(t, "ben@example.com")
		ways := map[string]string{
			"PUT /users/" + ada.User.ID + "/roles":            `{"roles":["superuser"],"address":"ada@example.com"}`,
			"POST /users/" + ada.User.ID + "/roles/superuser": toAda,
			"POST /users":       `{"email":"new@example.com","roles":["superuser"]}`,
			"POST /invitations": `{"email":"invited@example.com","roles":["superuser"]}`,
		}
		for pattern, body := range ways {
			o.do(other, pattern, body).want(403, auth.CodeTargetStronger)
		}
		wantBulk := func(who *authtest.SignedIn, want string) {
			t.Helper()
			a := o.do(who, "POST /users/bulk", `{"action":"add_role","role":"superuser","ids":["`+ben.User.ID+`"]}`)
			if !strings.Contains(a.text, `"result":"`+want+`"`) {
				t.Errorf("in bulk: %d %s, want %s", a.status, a.text, want)
			}
		}
		wantBulk(other, "skipped")
		wantResults(t, o.imports(other, "", `{"email":"n@example.com","roles":["superuser"]}`), "skipped target_stronger")
		for pattern, body := range ways {
			if a := o.do(bearer, pattern, body); a.status >= 300 {
				t.Errorf("%s by a bearer: %d %s", pattern, a.status, a.text)
			}
		}
		wantBulk(bearer, "done")
		o.do(other, "DELETE /users/"+ada.User.ID+"/roles/superuser", "").want(403, auth.CodeTargetStronger)
		o.do(other, "PUT /users/"+ada.User.ID+"/roles", `{"roles":[]}`).want(403, auth.CodeTargetStronger)
		o.do(bearer, "DELETE /users/"+ada.User.ID+"/roles/superuser", "").want(200)
		o.do(owner, "POST /users/"+ada.User.ID+"/roles/superuser", toAda).want(200)
		if me := o.do(bearer, "GET /me", "").want(200); strings.Contains(me.text, "superuser ") || strings.Contains(me.text, "role/") {
			t.Errorf("the name is shown as a permission: %s", me.text)
		}
	})
}

// Only "*" creates or deletes a marked role or changes the mark, which outlives the role;
// bearers may edit it.
func TestMarksAreForOwners(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithPrivilegedRoles("superuser"))
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.permit("staff", allBut(t, o)...)
		other := o.LoginAs(t, "other@example.com", authtest.Roles("staff"), authtest.AAL2())
		refused := func(pattern, body string) {
			t.Helper()
			o.do(other, pattern, body).want(403, auth.CodeTargetStronger)
		}
		marked := func(name string, want bool) {
			t.Helper()
			if a := o.do(owner, "GET /roles/"+name, "").want(200); a.body["privileged"] != want {
				t.Errorf("%s: %s", name, a.text)
			}
		}
		refused("POST /roles", `{"name":"superuser"}`)
		refused("POST /roles", `{"name":"chief","privileged":true}`)
		o.do(other, "POST /roles", `{"name":"plain","privileged":false}`).want(201)
		refused("PATCH /roles/plain", `{"privileged":true}`)
		o.do(owner, "POST /roles", `{"name":"superuser"}`).want(201)
		o.do(owner, "POST /roles", `{"name":"chief","privileged":true}`).want(201)
		for _, name := range []string{auth.RoleOwner, admin.RoleAdmin, "superuser", "chief"} {
			marked(name, true)
		}
		marked("plain", false)
		for _, name := range []string{admin.RoleAdmin, "superuser", "chief"} {
			refused("PATCH /roles/"+name, `{"description":"x"}`)
			refused("PATCH /roles/"+name, `{"privileged":false}`)
			refused("DELETE /roles/"+name, "")
		}
		for _, name := range []string{admin.RoleAdmin, "superuser"} {
			o.do(owner, "PATCH /roles/"+name, `{"privileged":false}`).want(422, auth.CodeValidationFailed)
		}
		bearer := o.LoginAs(t, "bearer@example.com", authtest.Roles("staff", "chief"), authtest.AAL2())
		o.do(bearer, "PATCH /roles/chief", `{"description":"x"}`).want(200)
		o.do(o.renewed(bearer), "PATCH /roles/chief", `{"privileged":false}`).want(403, auth.CodeTargetStronger)
		o.do(owner, "PUT /users/"+bearer.User.ID+"/roles", `{"roles":["staff"]}`).want(200)
		o.do(owner, "DELETE /roles/chief", "").want(200)
		refused("POST /roles", `{"name":"chief"}`)
		o.do(owner, "POST /roles", `{"name":"chief"}`).want(201)
		marked("chief", true)
		o.do(owner, "PATCH /roles/chief", `{"privileged":false}`).want(200)
		marked("chief", false)
		o.do(other, "DELETE /roles/chief", "").want(200)
	})
}

// Support helps the bearers of ordinary roles, an admin gives and takes ordinary roles
// without bearing them, and one more permission of support reaches its bearers.
func TestOrdinaryRolesCostNobodyAnything(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithPrivilegedRoles("superuser"))
		o.permit("customer")
		o.permit("editor")
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		support := o.LoginAs(t, "support@example.com", authtest.Roles(admin.RoleSupport), authtest.AAL2())
		helper := o.LoginAs(t, "helper@example.com", authtest.Permissions(admin.PermImpersonate), authtest.AAL2())
		boss := o.LoginAs(t, "boss@example.com", authtest.Roles(admin.RoleAdmin), authtest.AAL2())
		ada := o.LoginAs(t, "ada@example.com", authtest.Roles("customer"))
		at := "/users/" + ada.User.ID
		o.do(support, "POST "+at+"/ban", `{"reason":"spam"}`).want(200)
		o.do(support, "POST "+at+"/unban", `{"reason":"no spam"}`).want(200)
		o.do(support, "POST "+at+"/unlock", "").want(200)
		o.do(support, "DELETE "+at+"/sessions", "").want(204)
		o.do(helper, "POST "+at+"/impersonate", `{"reason":"help"}`).want(200)
		for _, name := range []string{"editor", admin.RoleSupport} {
			o.do(boss, "POST "+at+"/roles/"+name, toAda).want(200)
			o.do(boss, "DELETE "+at+"/roles/"+name, "").want(200)
		}
		role := o.do(owner, "GET /roles/support", "").want(200)
		var permissions []string
		for _, p := range role.body["permissions"].([]any) {
			permissions = append(permissions, p.(string))
		}
		o.do(support, "GET /stats", "").want(403, auth.CodeMissingPermission)
		o.permit(admin.RoleSupport, append(permissions, admin.PermStatsRead)...)
		tokens, err := o.Refresh(t.Context(), auth.RefreshParams{RefreshToken: support.RefreshToken})
		if err != nil {
			t.Fatal(err)
		}
		claims, err := o.Verify(tokens.AccessToken)
		if err != nil || !slices.Contains(claims.Permissions, admin.PermStatsRead) {
			t.Errorf("after a refresh: %v, %v", claims, err)
		}
	})
}

// Diagnostics list the names that code asks for and that protect nobody.
func TestDiagnosticsListOpenRoles(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithPrivilegedRoles("open-marked"))
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.permit("open-empty")
		o.permit("open-holding", notes)
		auth.HasRole("open-empty")
		auth.HasRole("open-holding")
		auth.HasRole("open-marked")
		(&auth.Claims{}).HasRole("open-missing")
		(&auth.Claims{}).HasRole("open\nline")
		var names []string
		for _, r := range o.do(owner, "GET /diagnostics", "").want(200).body["open_roles"].([]any) {
			r := r.(map[string]any)
			if r["consequence"] == "" {
				t.Errorf("no consequence: %v", r)
			}
			if name := r["name"].(string); strings.HasPrefix(name, "open") {
				names = append(names, name)
			}
		}
		if !slices.Equal(names, []string{"open-empty", "open-missing"}) {
			t.Errorf("open roles: %q", names)
		}
	})
}

// EnsureRole creates a role once, also at several instances that start at once, and keeps
// what operators made of it.
func TestEnsureRole(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		who, p := admin.System("setup"), admin.CreateRoleParams{Name: "editor", Permissions: []string{"notes.write"}}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := o.adm.EnsureRole(t.Context(), who, p); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if _, err := o.adm.UpdateRole(t.Context(), who, admin.UpdateRoleParams{Name: "editor", Permissions: &[]string{}}); err != nil {
			t.Fatal(err)
		}
		if err := o.adm.EnsureRole(t.Context(), who, p); err != nil {
			t.Fatal(err)
		}
		if r, _, err := o.adm.Role(t.Context(), who, "editor"); err != nil || len(r.Permissions) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		p = admin.CreateRoleParams{Name: "Not a name"}
		wantCode(t, o.adm.EnsureRole(t.Context(), who, p), auth.CodeValidationFailed)
	})
}
