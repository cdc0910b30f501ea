package admin_test

import (
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// The list of accounts that wait, and each account, say where the link goes, since when the
// account waits and who made it wait.
func TestWaitingSinceAndBy(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		other := o.LoginAs(t, "second@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.permit("editor", notes)
		o.permit("accountant", notes)
		check := func(address string, since time.Time, by any) {
			t.Helper()
			want := map[string]any{"kind": "user", "id": nil, "session_id": nil, "label": by}
			at := any(nil)
			if by == nil {
				want["kind"] = nil
			}
			if !since.IsZero() {
				at = since.Format(time.RFC3339Nano)
			}
			same := func(where string, got any) {
				t.Helper()
				w, ok := got.(map[string]any)
				if !ok {
					t.Errorf("%s: %s shows %v", address, where, got)
					return
				}
				who, _ := w["by"].(map[string]any)
				if w["address"] != address || w["since"] != at || who["kind"] != want["kind"] || who["label"] != by {
					t.Errorf("%s: %s shows %v, want %v by %v", address, where, w, at, by)
				}
			}
			found := false
			for _, u := range o.do(owner, "GET /users?status=waiting", "").want(200).body["users"].([]any) {
				if u := u.(map[string]any); u["email"] == address || u["email"] == nil && u["phone"] == address {
					found = true
					same("the list", u["waiting"])
					same("the account", o.do(owner, "GET /users/"+u["id"].(string), "").want(200).body["waiting"])
				}
			}
			if !found {
				t.Errorf("%s is not listed", address)
			}
		}
		later := func() time.Time {
			o.Clock.Advance(time.Minute)
			return o.Clock.Now().Truncate(time.Microsecond)
		}

		ada, at := o.imported("ada@example.com").User.ID, later()
		o.do(owner, "PUT /users/"+ada+"/roles", `{"roles":["admin"],"address":"ada@example.com"}`).want(200)
		later()
		o.do(other, "PUT /users/"+ada+"/roles", `{"roles":["admin","editor"]}`).want(200)
		check("ada@example.com", at, "owner@example.com")
		at = later()
		o.do(other, "POST /users/"+ada+"/roles/support", `{"address":"ada@example.com"}`).want(200)
		check("ada@example.com", at, "second@example.com")

		at = later()
		o.imports(other, "", `{"email":"bob@example.com","email_verified":true,"roles":["support"]}`)
		o.do(other, "POST /users", `{"phone":"+4915112345678","roles":["support"]}`).want(201)
		check("bob@example.com", at, "second@example.com")
		check("+4915112345678", at, "second@example.com")

		// The role becomes an operator's after it was given; more permissions change nothing.
		o.do(owner, "POST /users", `{"email":"carl@example.com","roles":["accountant"]}`).want(201)
		at = later()
		o.do(other, "PATCH /roles/accountant", `{"permissions":["money.send"]}`).want(200)
		later()
		o.do(owner, "PATCH /roles/accountant", `{"permissions":["money.send","`+notes+`","auth.users.read"]}`).want(200)
		check("carl@example.com", at, "second@example.com")

		// An operator changes the address of an account that has accepted.
		dora := o.imported("dora@example.com").User.ID
		o.must(second(o.adm.Grant(t.Context(), admin.System("test").Accepting(), admin.GrantParams{UserID: dora, Role: "admin"})))
		if o.do(owner, "GET /users/"+dora, "").want(200).body["waiting"] != nil {
			t.Error("an account that does not wait is shown as waiting")
		}
		at = later()
		o.do(owner, "PATCH /users/"+dora, `{"email":"dora@example.org","email_verified":true}`).want(200)
		check("dora@example.org", at, "owner@example.com")

		// Events that are not kept any more leave the fields empty.
		journal, _ := store.Capability[store.Journal](st)
		_, err := journal.SweepEvents(t.Context(), o.Clock.Now().Add(time.Hour), o.Clock.Now(), 10_000)
		o.must(err)
		check("ada@example.com", time.Time{}, nil)
		if u := o.do(owner, "GET /users?status=active", "").want(200).body["users"].([]any)[0].(map[string]any); u["waiting"] != nil {
			t.Error("another list describes it")
		}
	})
}
