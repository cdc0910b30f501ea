package admin_test

import (
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// What no role permits is not allowed, and what one does is, by that one.
func TestCheckTellsBothWays(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		if _, err := o.adm.CreateRole(t.Context(), admin.System("test"), admin.CreateRoleParams{Name: "editor", Permissions: []string{notes}}); err != nil {
			t.Fatal(err)
		}
		ada, eve := o.LoginAs(t, "ada@example.com", authtest.Roles("editor")), o.LoginAs(t, "eve@example.com")
		for id, want := range map[string]bool{ada.User.ID: true, eve.User.ID: false} {
			got, err := o.adm.Check(t.Context(), admin.System("test"), id, notes)
			if err != nil || got.Allowed != want || want != (len(got.Via) == 1) {
				t.Errorf("%+v, %v, want %v", got, err, want)
			}
			if got, err := o.adm.Check(t.Context(), admin.System("test"), id, "money.send"); err != nil || got.Allowed || len(got.Via) > 0 {
				t.Errorf("money.send: %+v, %v", got, err)
			}
		}
	})
}
