package admin_test

import (
	"fmt"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// If the account changes between an operation's read and its change, If-Match with the
// revision that was read refuses the operation. With the present revision, it takes effect.
func TestIfMatchHoldsUntilTheChange(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		tap := storetap.New(st)
		o := newOffice(t, tap)
		o.permit("editor")
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		for i, row := range []struct{ method, path, body string }{
			{"POST", "/ban", `{"reason":"x"}`},
			{"PATCH", "", `{"full_name":"Ada"}`},
			{"PUT", "/roles", `{"roles":["editor"]}`},
			{"POST", "/password", `{"password":"` + password + `"}`},
		} {
			ada := o.imported(fmt.Sprintf("u%d@example.com", i))
			pattern := row.method + " /users/" + ada.User.ID + row.path
			match := func() string { return fmt.Sprintf("If-Match: \"%d\"", o.read(ada.User.ID).Revision) }
			name := "changed meanwhile"
			harness.BeforeCall(tap, "UpdateUser", func() { o.patch(ada.User.ID, store.UserPatch{FullName: &name}) })
			o.do(owner, pattern, row.body, match()).want(412, auth.CodePreconditionFailed)
			tap.Reset(storetap.Hooks{})
			o.do(owner, pattern, row.body, match()).want(200)
		}
	})
}
