package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/axetest"
	"github.com/authmount/auth/internal/browsertest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// extremes are accounts and roles of the kinds that break layouts.
func (o *office) extremes(roles int) (long, rightToLeft auth.User) {
	o.t.Helper()
	ctx, who := o.t.Context(), admin.System("test").Accepting()
	table, ok := store.Capability[store.ProjectStore](o.Store)
	if !ok {
		o.t.Fatal("the store keeps no roles")
	}
	for i := range roles {
		c := store.PutRole{Change: store.Change{Now: o.Clock.Now(), By: auth.Authority{System: "test"}}, Role: store.RolePermissions{Name: fmt.Sprintf("role-%05d", i), Permissions: []string{"notes.write"}}}
		if _, err := table.PutRole(ctx, c); err != nil {
			o.t.Fatal(err)
		}
	}
	make := func(p admin.CreateUserParams) auth.User {
		p.EmailVerified = true
		u, err := o.adm.CreateUser(ctx, who, p)
		if err != nil {
			o.t.Fatal(err)
		}
		return u
	}
	long = make(admin.CreateUserParams{
		Email: strings.Repeat("a", 60) + "@" + strings.Repeat(strings.Repeat("b", 60)+".", 2) + "example.com", FullName: strings.Repeat("Wolfeschlegelsteinhausenbergerdorff", 3),
		Notes: strings.Repeat("note ", 300), UserMetadata: map[string]any{strings.Repeat("k", 200): strings.Repeat("v", 3000)}, Roles: []string{"role-00001", "role-00002", "role-00003"},
	})
	rightToLeft = make(admin.CreateUserParams{Email: "layla@example.com", FullName: "ليلى بنت عبد الرحمن الأندلسية", Notes: "שלום עולם, הערה ארוכה"})
	return long, rightToLeft
}

// Long names, names from right to left and many roles do not make a page wider than its
// window, in either theme, on a phone or a desktop.
func TestExtremes(t *testing.T) {
	t.Parallel()
	axe := axetest.Source(t)
	o := newOffice(t, memstore.New(), admin.Options{})
	long, rtl := o.extremes(300)
	ctx := o.window("owner@example.com", true)
	for name, at := range map[string]string{
		"x-users": "/users?column=name&column=phone&column=roles&column=id", "x-long": "/users/" + long.ID, "x-long-metadata": "/users/" + long.ID + "?tab=metadata", "x-long-ban": "/users/" + long.ID + "/ban",
		"x-rtl": "/users/" + rtl.ID, "x-roles": "/roles", "x-user-roles": "/users/" + long.ID + "/roles", "x-nothing": "/invitations",
	} {
		browsertest.Do(ctx, t, chromedp.Navigate(o.url+"/dashboard"+at))
		axetest.Check(ctx, t, axe, name, axetest.Looks(), func(look string) chromedp.Action { return browsertest.Shot(t, look) })
	}
}

// Thousands of roles are found by their names, page by page, and given by name.
func TestThousandsOfRoles(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), admin.Options{})
	long, _ := o.extremes(2_000)
	b := o.signedIn("owner@example.com")
	b.get("/dashboard/roles")
	b.want(http.StatusOK, "The first 25 roles of 2\u202f004", "role-00010")
	if len(b.body) > 300_000 {
		t.Errorf("the page of roles is %d bytes", len(b.body))
	}
	var next string
	for _, to := range b.links() {
		if strings.Contains(to, "after=") {
			next = to
		}
	}
	b.get(next)
	b.want(http.StatusOK, "role-00150")
	b.get("/dashboard/roles?q=role-01999")
	b.want(http.StatusOK, "role-01999")
	b.get("/dashboard/users/" + long.ID + "/roles")
	form := b.form()
	if got := strings.Fields(form.Get("roles")); len(got) != 3 {
		t.Fatalf("the form has the roles %q", got)
	}
	form.Set("roles", "role-01999")
	b.post("/dashboard/users/"+long.ID+"/roles", form)
	b.want(http.StatusOK, "role-01999")
	b.get("/dashboard/users/" + long.ID + "/roles")
	form = b.form()
	form.Set("roles", "")
	b.post("/dashboard/users/"+long.ID+"/roles", form)
	b.want(http.StatusOK, "No role.")
	b.post("/dashboard/users/"+long.ID+"/roles", url.Values{"roles": {"role-77777"}, "revision": form["revision"]})
	if b.status == http.StatusOK {
		t.Error("a role that there is not was given")
	}
}
