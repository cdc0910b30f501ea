package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// Bans that are over are none, whichever way accounts are looked for.
func TestBansThatAreOverAreNotListed(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		o.LoginAs(t, "ada@example.com")
		ada, err := st.User(t.Context(), store.ByEmail("ada@example.com"))
		if err != nil {
			t.Fatal(err)
		}
		until := o.Clock.Now().Add(time.Hour)
		if _, err := o.adm.BanUser(t.Context(), admin.System("test"), admin.BanUserParams{UserID: ada.ID, Reason: "x", Until: until}); err != nil {
			t.Fatal(err)
		}
		owner := o.owner()
		for _, c := range []struct {
			after          time.Duration
			banned, active bool
		}{{0, true, false}, {2 * time.Hour, false, true}} {
			o.Clock.Advance(c.after)
			if c.after > 0 {
				owner = o.owner()
			}
			for status, want := range map[string]bool{"banned": c.banned, "active": c.active} {
				if a := o.do(owner, "GET /users?status="+status, "").want(200); strings.Contains(a.text, "ada@example.com") != want {
					t.Errorf("after %s, %s: %s", c.after, status, a.text)
				}
			}
		}
	})
}

// Whoever looks at roles sees them as they are, also where another process has just
// changed them.
func TestRolesAreShownAsTheyAre(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.owner()
		o.do(owner, "GET /roles", "").want(200)
		o.do(owner, "GET /users", "").want(200) // from here on the table is known here
		roles, _ := store.Capability[store.ProjectStore](st)
		now := o.Clock.Now()
		c := store.Change{Now: now, By: auth.Authority{System: "another process"}}
		if _, err := roles.PutRole(t.Context(), store.PutRole{Change: c, Role: store.RolePermissions{Name: "newcomer", Permissions: []string{}, CreatedAt: now, UpdatedAt: now}}); err != nil {
			t.Fatal(err)
		}
		if a := o.do(owner, "GET /roles", "").want(200); !strings.Contains(a.text, "newcomer") {
			t.Error(a.text)
		}
	})
}

// Who may export accounts may do so without their secrets, and is refused with them before
// anything is recorded or written.
func TestExportWithoutTheSecrets(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		clerk := o.operator("clerk@example.com", admin.PermUsersExport)
		o.do(clerk, "GET /users/export?fields=email", "").want(200)
		if n := o.countEvents(auth.EventUsersExported); n != 1 {
			t.Errorf("%d exports are recorded", n)
		}
		for _, field := range []string{"password_hash", "totp_secret"} {
			o.do(clerk, "GET /users/export?fields=email,"+field, "").want(403, auth.CodeMissingPermission)
		}
		if n := o.countEvents(auth.EventUsersExported); n != 1 {
			t.Errorf("%d exports are recorded, of which two were refused", n)
		}
	})
}
