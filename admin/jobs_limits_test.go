package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// Jobs that wait to be started take up space, so an actor's jobs are limited across
// operations and keys, and no actor is limited by another one's.
func TestJobsAreLimited(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		const option = "sk_test_0123456789abcdefghij"
		o := newOffice(t, store, auth.WithSecretKeys(auth.SecretKey{Key: option, Scopes: []string{"*"}}))
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		again := o.LoginAs(t, "owner@example.com", authtest.AAL2()) // another session of the same user
		other := o.LoginAs(t, "other@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.LoginAs(t, "ada@example.com")
		tries := func(who *authtest.SignedIn, headers ...string) *answer {
			return o.do(who, "POST /users/bulk", `{"action":"ban","reason":"x","dry_run":true,"filter":{"q":"ada"}}`, headers...)
		}
		n := 0
		for ; n < 200 && tries(owner).status == 200; n++ {
		}
		if n != 120 {
			t.Errorf("%d were let pass, want 120", n)
		}
		tries(again).want(429, auth.CodeRateLimited)
		o.do(owner, "POST /users/import", `{"email":"eve@example.com"}`, ndjson).want(429, auth.CodeRateLimited)
		tries(other).want(200)
		tries(nil, "Authorization: Bearer "+option).want(200)
		if _, err := o.adm.ImportUsers(t.Context(), admin.System("owner"), admin.ImportUsersParams{}, strings.NewReader(`{"email":"eve@example.com"}`)); err != nil {
			t.Error(err)
		}
		o.Clock.Advance(time.Minute) // refunds two
		tries(again).want(200)
	})
}

// An import has a maximal size, however many lines it has.
func TestImportSize(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		row := `{"email":"a@example.com"}`
		o.adm.ImportSize(int64(3 * len(row)))
		wantResults(t, o.imports(owner, "", row, "", strings.ReplaceAll(row, "a@", "b@"), strings.ReplaceAll(row, "a@", "c@")), "done", "done", "done")
		a := o.do(owner, "POST /users/import", strings.Join([]string{row, row, row, " {} "}, "\n"), ndjson).want(422, auth.CodeValidationFailed)
		if !strings.Contains(a.text, "bytes") {
			t.Error(a.text)
		}
	})
}
