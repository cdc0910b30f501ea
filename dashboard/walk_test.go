package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/authmount/auth/admin"
)

// An invalid query is reported, instead of an empty result. A form about an account names
// it.
func TestPagesSayWhatIsSo(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ada := o.scene()
	b := o.signedIn("owner@example.com")
	b.get("/dashboard/sessions?client=firefox")
	b.want(http.StatusOK, "This input was refused")
	if strings.Contains(b.text(), "No matching active sessions") {
		t.Errorf("and it says that there is none: %s", b.text())
	}
	for _, form := range []string{"unlock", "password", "roles", "sign-out", "impersonate", "send"} {
		b.get("/dashboard/users/" + ada.ID + "/" + form)
		b.want(http.StatusOK, "ada@example.com")
	}
}

// A figure leads to a list, and the list's fields show the filters.
func TestFiguresLeadToTheirLists(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	o.scene()
	b := o.signedIn("owner@example.com")
	b.get("/dashboard/audit?action=user.signed_up&from=2026-01-01T07:00:00Z")
	b.want(http.StatusOK)
	if !strings.Contains(b.body, `name="from" value="2026-01-01"`) {
		t.Error("the field has forgotten from when")
	}
}

// Lists of other things show accounts by their names.
func TestListsNameAccounts(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ada := o.scene()
	b := o.signedIn("owner@example.com")
	for _, at := range []string{"/dashboard/sessions", "/dashboard/audit?action=user.signed_in", "/dashboard/users?q=ada"} {
		b.get(at)
		b.want(http.StatusOK, "ada@example.com")
		if strings.Contains(b.text(), ada.ID) {
			t.Errorf("%s shows an id", at)
		}
	}
	clerk := o.user("clerk@example.com")
	if _, err := o.adm.CreateRole(t.Context(), admin.System("test").Accepting(), admin.CreateRoleParams{Name: "guard", Permissions: []string{admin.PermSessionsRead}}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.adm.SetRoles(t.Context(), admin.System("test").Accepting(), admin.SetRolesParams{UserID: clerk.ID, Roles: []string{"guard"}}); err != nil {
		t.Fatal(err)
	}
	b = o.signedIn("clerk@example.com")
	b.get("/dashboard/sessions")
	b.want(http.StatusOK, ada.ID) // a user who may not read accounts sees no names
	if strings.Contains(b.text(), "ada@example.com") {
		t.Error("a name is shown to whom it is not for")
	}
}

// Every link of a page works with GET, and changes nothing.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	o.scene()
	b := o.signedIn("owner@example.com")
	seen, queue := map[string]bool{}, []string{"/dashboard/"}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if plain, _, _ := strings.Cut(at, "#"); seen[plain] || strings.Contains(plain, "cursor=") && len(seen) > 400 {
			continue
		}
		seen[at] = true
		if len(seen) > 600 {
			break
		}
		b.get(at)
		if b.status != http.StatusOK {
			t.Errorf("%s is %d: %.300s", at, b.status, b.text())
			continue
		}
		if !strings.Contains(b.got.Get("Content-Security-Policy"), "default-src 'none'") || b.got.Get("Cache-Control") != "no-store" {
			t.Errorf("%s has the headers %v", at, b.got)
		}
		b.harmless()
		queue = append(queue, b.links()...)
	}
	t.Logf("%d pages", len(seen))
	if len(seen) < 60 {
		t.Errorf("only %d pages were found: %v", len(seen), seen)
	}
}
