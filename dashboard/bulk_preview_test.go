package dashboard_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/admin"
)

// Whoever goes on from the preview of an operation on several users applies what the
// preview showed, without choosing the message, role and reason again.
func TestPreviewIsApplied(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	u, err := o.adm.CreateUser(t.Context(), admin.System("test"), admin.CreateUserParams{Email: "new@example.com", EmailVerified: true, Roles: []string{"support"}})
	if err != nil {
		t.Fatal(err)
	}
	b := o.signedIn("owner@example.com")
	for _, c := range []struct{ action, field, value string }{{"send", "type", "accept"}, {"add_role", "role", "auditor"}, {"ban", "reason", "spam"}} {
		at := "/dashboard/users/bulk?" + url.Values{"action": {c.action}, "ids": {u.ID}}.Encode()
		b.get(at)
		form := b.form()
		form.Set(c.field, c.value)
		b.post(at, form)
		b.want(200, "Preview", "1 done")
		if strings.Contains(b.text(), "hourly budget") {
			t.Errorf("%s of an owner who has just signed in has a budget: %s", c.action, b.text())
		}
		for _, l := range b.links() {
			if strings.HasPrefix(l, "/dashboard/users/bulk?") {
				b.get(l)
				break
			}
		}
		if form = b.form(); form.Get(c.field) != c.value {
			t.Errorf("%s: %s is %q after the preview", c.action, c.field, form.Get(c.field))
		}
	}
}

// The preview says what the hourly budget still allows.
func TestPreviewShowsTheBudget(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	o.Clock.Advance(16 * time.Minute)
	at := "/dashboard/users/bulk?" + url.Values{"action": {"ban"}, "ids": {ids.Replace("{ada}")}}.Encode()
	b.get(at)
	form := b.form()
	form.Set("reason", "spam")
	b.post(at, form)
	b.want(200, "Preview", "Your hourly budget still allows 50 accounts. After signing in again there is no limit.")
}

// The overview tells an owner that accounts wait for their holders, and leads to them.
func TestOverviewNamesWaitingAccounts(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	b := o.signedIn("owner@example.com")
	if strings.Contains(b.text(), "have not accepted") {
		t.Error("an account waits before there is one")
	}
	if _, err := o.adm.CreateUser(t.Context(), admin.System("test"), admin.CreateUserParams{Email: "new@example.com", EmailVerified: true, Roles: []string{"support"}}); err != nil {
		t.Fatal(err)
	}
	b.get("/dashboard/")
	if !strings.Contains(b.text(), "have not accepted their permissions yet (1)") || !slices.Contains(b.links(), "/dashboard/users?status=waiting") {
		t.Errorf("the overview does not name the account that waits: %s", b.text())
	}
}
