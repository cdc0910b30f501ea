package admin_test

import (
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
)

// A ban of any length is a ban, and is lifted.
func TestBanIsNoAnonymisation(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		target := o.LoginAs(t, "target@example.com").User.ID
		o.do(owner, "POST /users/"+target+"/ban", `{"reason":"x","until":"9999-12-30T00:00:00Z"}`).want(200)
		o.do(owner, "GET /users/"+target, "").want(200)
		o.do(owner, "POST /users/"+target+"/unban", `{"reason":"x"}`).want(200)
		if o.banned(target) {
			t.Error("banned still")
		}
	})
}
