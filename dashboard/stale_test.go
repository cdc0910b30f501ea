package dashboard_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/memstore"
)

// boxes are the values of the page's checkboxes by name, with their state.
func (b *browser) boxes() map[string][]string {
	all := map[string][]string{}
	for n := range b.doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "input" {
			continue
		}
		attr := map[string]string{}
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
		}
		if attr["type"] == "checkbox" {
			all[attr["name"]] = append(all[attr["name"]], attr["value"])
		}
	}
	return all
}

// Several checkboxes of one name can be ticked: every form that has such is posted with
// two.
func TestSeveralBoxes(t *testing.T) {
	t.Parallel()
	tried := 0
	for at, deed := range deeds {
		if deed.at == "" {
			continue
		}
		o := newOffice(t, memstore.New(), admin.Options{})
		ids := o.ids()
		b := o.signedIn("owner@example.com")
		b.get("/dashboard" + ids.Replace(deed.at))
		for name, values := range b.boxes() {
			if len(values) < 2 {
				continue
			}
			tried++
			form := b.form()
			form[name] = values[len(values)-2:]
			for other, list := range deed.form {
				if other != name {
					form[other] = list
				}
			}
			b.post("/dashboard"+ids.Replace(deed.at), form)
			if b.status != http.StatusOK {
				t.Errorf("%s with %v ticked is %d: %s", at, form[name], b.status, b.text())
			}
		}
	}
	if tried < 3 {
		t.Errorf("only %d forms have several boxes of one name", tried)
	}
}

// A form that is older than another user's change is refused, however often it is sent and
// even if it has other mistakes: the change is not overwritten.
func TestStaleForms(t *testing.T) {
	t.Parallel()
	code := admin.System("another owner")
	for name, c := range map[string]struct {
		at    string
		wrong url.Values // posted first, and refused for another reason
		right url.Values
		mean  func(o *office, ada string) error // the concurrent change
		left  func(o *office, ada string) bool  // checks the state afterwards
	}{
		"permissions of a role": {
			at: "/roles/editor/edit", right: url.Values{"description": {"corrected"}, "sure": {"1"}},
			mean: func(o *office, _ string) error {
				_, err := o.adm.UpdateRole(t.Context(), code, admin.UpdateRoleParams{Name: "editor", Permissions: &[]string{}})
				return err
			},
			left: func(o *office, _ string) bool {
				r, _, err := o.adm.Role(t.Context(), code, "editor")
				return err == nil && len(r.Permissions) == 0
			},
		},
		"a role to delete": {
			at: "/roles/auditor/delete", right: url.Values{"typed": {"auditor"}},
			mean: func(o *office, _ string) error {
				_, err := o.adm.UpdateRole(t.Context(), code, admin.UpdateRoleParams{Name: "auditor", Permissions: &[]string{"notes.write"}})
				return err
			},
			left: func(o *office, _ string) bool {
				_, _, err := o.adm.Role(t.Context(), code, "auditor")
				return err == nil
			},
		},
		"metadata": {
			at: "/users/{ada}/metadata", wrong: url.Values{"app_metadata": {`{"plan":}`}}, right: url.Values{"app_metadata": {`{"plan":"gold"}`}},
			mean: func(o *office, ada string) error {
				_, err := o.adm.UpdateUser(t.Context(), code, admin.UpdateUserParams{UserID: ada, AppMetadata: map[string]any{"suspended": true}})
				return err
			},
			left: func(o *office, ada string) bool {
				u, err := o.adm.User(t.Context(), code, ada)
				return err == nil && u.AppMetadata["suspended"] == true
			},
		},
		"roles of a user": {
			at: "/users/{ada}/roles", right: url.Values{"roles": {"editor"}},
			mean: func(o *office, ada string) error {
				_, err := o.adm.SetRoles(t.Context(), code, admin.SetRolesParams{UserID: ada})
				return err
			},
			left: func(o *office, ada string) bool {
				u, err := o.adm.User(t.Context(), code, ada)
				return err == nil && len(u.Roles) == 0
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, memstore.New(), admin.Options{})
			ids := o.ids()
			ada := ids.Replace("{ada}")
			b := o.signedIn("owner@example.com")
			at := "/dashboard" + ids.Replace(c.at)
			b.get(at)
			if err := c.mean(o, ada); err != nil {
				t.Fatal(err)
			}
			for i, posted := range []url.Values{c.wrong, c.right, c.right} {
				if posted == nil {
					continue
				}
				form := b.form()
				for name, list := range posted {
					form[name] = list
				}
				b.post(at, form)
				if i > 0 && b.status != http.StatusPreconditionFailed {
					t.Errorf("post %d is %d: %s", i, b.status, b.text())
				}
			}
			if !c.left(o, ada) {
				t.Error("what happened meanwhile is undone")
			}
			if !slices.Contains(b.links(), at) {
				t.Errorf("no way to see it anew among %v", b.links())
			}
		})
	}
}

// An export has the listed entries, on every page of the list.
func TestExportsWhatIsListed(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), admin.Options{})
	for email, tenant := range map[string]string{"ada@example.com": "t1", "eve@example.com": "t2"} {
		if _, err := o.adm.CreateUser(t.Context(), admin.System("test").Accepting(), admin.CreateUserParams{Email: email, AppMetadata: map[string]any{"tenant": tenant}}); err != nil {
			t.Fatal(err)
		}
	}
	b := o.signedIn("owner@example.com")
	exported := func(list string) string {
		t.Helper()
		b.get(list)
		b.want(http.StatusOK)
		for n := range b.doc.Descendants() {
			for _, a := range n.Attr {
				if n.Data == "form" && a.Key == "action" && strings.Contains(a.Val, "/export") {
					b.post(a.Val, url.Values{})
					b.want(http.StatusOK)
					return b.body
				}
			}
		}
		t.Fatalf("%s has no export", list)
		return ""
	}
	if got := exported("/dashboard/users?metadata.tenant=t1"); !strings.Contains(got, "ada@") || strings.Contains(got, "eve@") {
		t.Errorf("exported %s", got)
	}
	for i := range 60 {
		o.user("u" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + "@example.com")
	}
	for _, list := range []string{"/dashboard/users", "/dashboard/audit"} {
		b.get(list)
		i := slices.IndexFunc(b.links(), func(to string) bool { return strings.Contains(to, "cursor=") })
		if i < 0 {
			t.Fatalf("%s has one page", list)
		}
		exported(b.links()[i])
	}
}
