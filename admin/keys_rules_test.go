package admin_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// notForKeys are permissions that no key may have.
var notForKeys = []string{"auth.keys.read", "auth.keys.write", "auth.roles.write", "auth.settings.write", "auth.impersonate"}

// The rules about keys hold for every operation: a key can do only operations that its
// scopes permit, its maker may do and keys may do at all.
func TestRulesOfKeys(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, target := newScene(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		scopes := append(allBut(t, o, notForKeys...), "*", "role/"+role) // by name, too: some operations need that
		service, owners := o.key(admin.System("test").Accepting(), scopes...), o.key(actor(owner), scopes...)
		o.permit("maker")
		maker := o.imported("maker@example.com", "maker")
		refusedTo := func(k admin.NewKey, row admin.Row) {
			t.Helper()
			a := o.try(program(k), row, target).want(403, auth.CodeMissingPermission)
			if d, _ := a.body["details"].(map[string]any); d["permission"] != row.Permission {
				t.Errorf("%s: the refusal names %v", row.Pattern, a.body)
			}
		}
		offered := offeredToKeys(t, o)
		refused, done := 0, 0
		for i, row := range admin.Table() {
			if offered[row.Pattern] == slices.Contains(notForKeys, row.Permission) {
				t.Errorf("%s: the document offers it to keys: %t", row.Pattern, offered[row.Pattern])
			}
			if slices.Contains(notForKeys, row.Permission) {
				refused++
				refusedTo(service, row)
				refusedTo(owners, row)
				continue
			}
			if row.Permission == "" {
				o.try(program(o.key(admin.System("test").Accepting(), notes)), row, target).want(403, auth.CodeNotAdmin)
			} else {
				refusedTo(o.key(admin.System("test").Accepting(), allBut(t, o, append(notForKeys, row.Permission)...)...), row)

				o.permit("maker", row.Permission, besides(row))
				k := o.keyOf(maker.User, row.Permission, besides(row))
				o.permit("maker", besides(row))
				refusedTo(k, row)
			}
			if row.Targets { // an owner may do things that no key may
				o.try(program(owners), row, owner).want(403, auth.CodeTargetStronger)
				o.try(program(service), row, owner).want(403, auth.CodeTargetStronger)
			}
			somebody := o.imported(fmt.Sprintf("somebody%d@example.com", i))
			if strings.Contains(row.Pattern, "/sessions/{id}") {
				somebody = target
			}
			o.try(program(service), row, somebody).want(examples[row.Pattern].status)
			done++
		}
		if refused < 15 || done < 10 {
			t.Errorf("%d operations refuse keys, %d do not", refused, done)
		}
	})
}

// offeredToKeys returns the operations that the document offers to secret keys. The admin
// clients have a method for each of them, and for no other.
func offeredToKeys(t *testing.T, o *office) map[string]bool {
	t.Helper()
	type security []map[string][]string
	var doc struct {
		Security security
		Paths    map[string]map[string]struct{ Security *security }
	}
	if err := json.Unmarshal(o.document(), &doc); err != nil {
		t.Fatal(err)
	}
	offered := map[string]bool{}
	for path, operations := range doc.Paths {
		for method, op := range operations {
			schemes := doc.Security
			if op.Security != nil {
				schemes = *op.Security
			}
			for _, s := range schemes {
				if _, key := s["secret-key"]; key {
					offered[strings.ToUpper(method)+" "+strings.TrimPrefix(path, "/admin")] = true
				}
			}
		}
	}
	return offered
}

// The maker of a key gives it no more than their own permissions, also later, and nobody
// gets a key that may do more than they may.
func TestScopesAreBounded(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		ada := o.maker("ada@example.com", admin.PermUsersRead, admin.PermUsersBan)
		ben := o.maker("ben@example.com", admin.PermUsersRead)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		for scopes, code := range map[string]auth.Code{
			`"auth.users.delete"`: auth.CodeTargetStronger, `"*"`: auth.CodeTargetStronger, `"auth.users.*"`: auth.CodeTargetStronger,
			`"auth.users.read","notes.write"`: auth.CodeTargetStronger,
		} {
			o.do(ada, "POST /keys", `{"name":"x","scopes":[`+scopes+`]}`).want(403, code)
		}
		for _, scopes := range []string{`"auth.keys.write"`, `"auth.keys.read"`, `"auth.impersonate"`, `"nonsense"`, `""`} {
			o.do(owner, "POST /keys", `{"name":"x","scopes":[`+scopes+`]}`).want(422, auth.CodeValidationFailed)
		}
		pattern := program(o.key(actor(owner), "auth.keys.*"))
		o.do(pattern, "POST /keys/verify", `{"key":"x"}`).want(200)
		o.do(pattern, "GET /keys", "").want(403, auth.CodeMissingPermission)
		k := o.key(actor(ada), admin.PermUsersRead, admin.PermUsersBan)
		o.do(ada, "PATCH /keys/"+k.ID, `{"scopes":["auth.users.delete"]}`).want(403, auth.CodeTargetStronger)
		for pattern, body := range map[string]string{"PATCH /keys/" + k.ID: `{"name":"mine"}`, "POST /keys/" + k.ID + "/rotate": ``, "DELETE /keys/" + k.ID: ``} {
			o.do(ben, pattern, body).want(403, auth.CodeTargetStronger)
		}
		o.do(ben, "PATCH /keys/"+k.ID, `{"scopes":["auth.users.read"]}`).want(403, auth.CodeTargetStronger)
		lesser := o.key(actor(ada), admin.PermUsersRead)
		o.do(ben, "PATCH /keys/"+lesser.ID, `{"name":"ours"}`).want(200)
		o.do(ben, "POST /keys/"+lesser.ID+"/rotate", "").want(403, auth.CodeTargetStronger) // ben would have a key that outlives him
		o.do(ada, "POST /keys/"+lesser.ID+"/rotate", "").want(200)
		o.do(owner, "POST /keys/"+lesser.ID+"/rotate", "").want(200)

		// Keys of the service itself are for owners, with any scopes.
		service := o.key(admin.System("test").Accepting(), admin.PermUsersRead)
		o.do(ada, "PATCH /keys/"+service.ID, `{"name":"mine"}`).want(403, auth.CodeTargetStronger)
		o.do(ada, "POST /keys/"+service.ID+"/rotate", "").want(403, auth.CodeTargetStronger)
		o.do(ada, "PATCH /keys/"+k.ID, `{"adopted":true}`).want(403, auth.CodeTargetStronger)
		o.do(owner, "PATCH /keys/"+k.ID, `{"adopted":true}`).want(200)
		o.do(ada, "PATCH /keys/"+k.ID, `{"scopes":["auth.users.read"]}`).want(403, auth.CodeTargetStronger)
		o.do(ada, "POST /keys/"+k.ID+"/rotate", "").want(403, auth.CodeTargetStronger)
		o.do(ada, "DELETE /keys/"+k.ID, "").want(204) // revoking only stops programs
	})
}

// A key that an owner adopted belongs to the service: its maker can no longer change it,
// even with all its permissions.
func TestAdoptedKeysAreForOwners(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		maker := o.maker("maker@example.com", admin.PermUsersRead)
		k := o.key(actor(maker), admin.PermUsersRead)
		o.do(maker, "POST /keys/"+k.ID+"/rotate", "").want(200)
		o.do(maker, "PATCH /keys/"+k.ID, `{"name":"mine"}`).want(200)
		o.do(owner, "PATCH /keys/"+k.ID, `{"adopted":true}`).want(200)
		o.do(maker, "POST /keys/"+k.ID+"/rotate", "").want(403, auth.CodeTargetStronger)
		o.do(maker, "PATCH /keys/"+k.ID, `{"name":"mine again"}`).want(403, auth.CodeTargetStronger)
		o.do(owner, "POST /keys/"+k.ID+"/rotate", "").want(200)
	})
}

// The keys of a user who is banned, deleted or demoted end with them, unless an owner
// adopted the keys.
func TestKeysGoWithTheirMaker(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner))
		code, yes := admin.System("test").Accepting(), true
		for name, c := range map[string]struct {
			end  func(id string) error
			want int
			code auth.Code
		}{
			"banned": {func(id string) error {
				_, err := o.adm.BanUser(t.Context(), code, admin.BanUserParams{UserID: id, Reason: "x"})
				return err
			}, 401, auth.CodeInvalidAPIKey},
			"deleted": {func(id string) error {
				return o.adm.DeleteUser(t.Context(), code, admin.DeleteUserParams{UserID: id, Reason: "x"})
			}, 401, auth.CodeInvalidAPIKey},
			"demoted": {func(id string) error {
				_, err := o.adm.SetRoles(t.Context(), code, admin.SetRolesParams{UserID: id})
				return err
			}, 403, auth.CodeNotAdmin},
		} {
			maker := o.maker(name+"@example.com", admin.PermUsersRead)
			left, adopted := o.key(actor(maker), admin.PermUsersRead), o.key(actor(maker), admin.PermUsersRead)
			if _, err := o.adm.UpdateKey(t.Context(), code, admin.UpdateKeyParams{ID: adopted.ID, Adopted: &yes}); err != nil {
				t.Fatal(err)
			}
			for _, k := range []admin.NewKey{left, adopted} {
				o.do(program(k), "GET /users", "").want(200)
			}
			if err := c.end(maker.User.ID); err != nil {
				t.Fatal(err)
			}
			o.do(program(left), "GET /users", "").want(c.want, c.code)
			o.do(program(adopted), "GET /users", "").want(200)
		}
	})
}
