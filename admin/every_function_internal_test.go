package admin

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// given returns a value for a field that filters.
func given(t reflect.Type) reflect.Value {
	switch t {
	case reflect.TypeFor[netip.Addr]():
		return reflect.ValueOf(netip.MustParseAddr("192.0.2.1"))
	case reflect.TypeFor[map[string]string]():
		return reflect.ValueOf(map[string]string{"a": "1"})
	case reflect.TypeFor[[]string]():
		return reflect.ValueOf([]string{"x"})
	}
	switch t.Kind() {
	case reflect.Int:
		return reflect.ValueOf(7).Convert(t)
	case reflect.String:
		return reflect.ValueOf("x").Convert(t)
	default:
		return filled(t)
	}
}

// Each field of a query that filters is in the audit log of an export and makes the export
// partial; the other fields do neither.
func TestEachFilterIsRecorded(t *testing.T) {
	t.Parallel()
	if n := len(filtersOf(store.EventQuery{})) + len(filtersOfUsers(userSearch{})); n != 0 || !(UserFilter{}).picksAll() {
		t.Errorf("%d filters of nothing", n)
	}
	no := map[string]bool{"Before": true, "Limit": true} // the position, not the filter
	seen := map[string]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[store.EventQuery]()) {
		var q store.EventQuery
		reflect.ValueOf(&q).Elem().FieldByIndex(f.Index).Set(given(f.Type))
		if got := filtersOf(q); len(got) != 1 && !no[f.Name] || no[f.Name] && len(got) != 0 {
			t.Errorf("%s of events: %v", f.Name, got)
		}
		for name := range filtersOf(q) {
			if other := seen[name]; other != "" {
				t.Errorf("%s and %s of events are both recorded as %s", f.Name, other, name)
			}
			seen[name] = f.Name
		}
	}
	order := map[string]bool{"Desc": true, "Sort": true, "Limit": true, "After": true, "Now": true}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[UserFilter]()) {
		var p UserFilter
		reflect.ValueOf(&p).Elem().FieldByIndex(f.Index).Set(given(f.Type))
		if p.picksAll() != (f.Name == "Order" || f.Name == "Sort") {
			t.Errorf("%s picks all: %t", f.Name, p.picksAll())
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[store.UserQuery]()) {
		var p userSearch
		reflect.ValueOf(&p.UserQuery).Elem().FieldByIndex(f.Index).Set(given(f.Type))
		if got, want := len(filtersOfUsers(p)), !order[f.Name] || f.Name == "Sort"; (got == 1) != want || got > 1 {
			t.Errorf("%s of accounts: %v", f.Name, filtersOfUsers(p))
		}
	}
	for search, all := range map[string]bool{"": true, " ": true, "x": false, " x": false} {
		if (UserFilter{Search: search}).picksAll() != all {
			t.Errorf("%q picks all: %t", search, !all)
		}
	}
	if !(UserFilter{Metadata: map[string]string{}}).picksAll() {
		t.Error("no members of the metadata pick something")
	}
}

// The permissions of roles and users, by tables.
func TestPermissionsByTables(t *testing.T) {
	t.Parallel()
	c, err := newCatalog([]Permission{{Name: "a.c", Privileged: true}, {Name: "a.b"}})
	if err != nil || !slices.IsSortedFunc(c, func(a, b Permission) int { return strings.Compare(a.Name, b.Name) }) {
		t.Fatal(err)
	}
	words := func(s string) []string { return append([]string{}, strings.Fields(s)...) }
	for _, row := range [][3]string{
		{"a.b", "a.b", "a.b"}, {"a.b", "a.c", ""}, {"a.*", "a.b", "a.b"}, {"a.b", "*", "a.b"}, {"*", "a.b a.c", "a.b a.c"}, {"a.*", "a.*", "a.*"}, {"*", "*", "*"}, {"", "*", ""}, {"*", "", ""}, {"a.c a.b a.b", "*", "a.b a.c"},
	} {
		if got := strings.Join(intersect(words(row[0]), words(row[1])), " "); got != row[2] {
			t.Errorf("both %q and %q grant %q, want %q", row[0], row[1], got, row[2])
		}
	}
	own := func(keep func(string) bool) string {
		var list []string
		for _, p := range ownPermissions {
			if keep(p.Name) && !slices.Contains([]string{PermKeysRead, PermKeysWrite, PermRolesWrite, PermRolesAssign, PermSettingsWrite, PermImpersonate}, p.Name) {
				list = append(list, p.Name)
			}
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	all := own(func(string) bool { return true })
	for scopes, want := range map[string]string{
		"a.b": "a.b", "a.*": "a.*", "a.c a.b a.b": "a.b a.c", "auth.users.*": "auth.users.*", "auth.impersonate": "", "auth.keys.*": "auth.keys.verify", "auth.roles.*": "auth.roles.read", "auth.settings.*": "auth.settings.read", "*": "a.b a.c " + all, "auth.*": all, "none": "none", "": "",
	} {
		if got := strings.Join(c.forKeys(words(scopes)), " "); got != want {
			t.Errorf("a key for %q may %q, want %q", scopes, got, want)
		}
	}
	for held, want := range map[string]struct {
		managing     string
		known, admin bool
	}{
		"a.b": {"", true, false}, "a.c": {"a.c", true, false}, "a.*": {"a.*", true, false}, "*": {"*", true, true}, "auth.*": {"auth.*", true, true}, "auth.users.read": {"auth.users.read", true, true}, "auth.users.*": {"auth.users.*", true, true},
		"auth.none": {"", false, false}, "b.*": {"", false, false}, "": {"", false, false},
	} {
		if got := strings.Join(c.managing(words(held)), " "); got != want.managing || c.known(held) != want.known || c.admits(words(held)) != want.admin {
			t.Errorf("%q: managing %q, known %t, admits %t", held, got, c.known(held), c.admits(words(held)))
		}
	}
	table := store.RoleTable{Roles: []store.RolePermissions{{Name: "x", Permissions: []string{"b", "a"}}, {Name: "y", Permissions: []string{"a", "c"}}, {Name: auth.RoleOwner, Permissions: []string{"d"}}}}
	for roles, want := range map[string]string{"": "", "x": "a b", "y x": "a b c", "none": "", "owner": "* d", "owner x": "* a b d"} {
		if got := strings.Join(permissionsIn(table, words(roles)), " "); got != want {
			t.Errorf("%q permit %q, want %q", roles, got, want)
		}
	}
	if r := find(table, "y"); r.Name != "y" || find(table, "none").Name != "" {
		t.Errorf("%+v", r)
	}
}

// Two identities are the same if they may do the same, in any order.
func TestIdentitiesThatAreTheSame(t *testing.T) {
	t.Parallel()
	is := Identity{ID: "1", Label: "x", Permissions: []string{"a", "b"}, AAL: store.LevelAAL2, AuthTime: time.Unix(1, 0)}
	for name, c := range map[string]struct {
		edit func(i *Identity)
		same bool
	}{
		"itself":             {func(*Identity) {}, true},
		"another order":      {func(i *Identity) { i.Permissions = []string{"b", "a", "b"} }, true},
		"another label":      {func(i *Identity) { i.Label = "y" }, true},
		"another time":       {func(i *Identity) { i.AuthTime = time.Unix(2, 0) }, true},
		"another id":         {func(i *Identity) { i.ID = "2" }, false},
		"another level":      {func(i *Identity) { i.AAL = "" }, false},
		"fewer permissions":  {func(i *Identity) { i.Permissions = []string{"a"} }, false},
		"more permissions":   {func(i *Identity) { i.Permissions = []string{"a", "b", "c"} }, false},
		"others permissions": {func(i *Identity) { i.Permissions = []string{"a", "c"} }, false},
	} {
		o := is
		c.edit(&o)
		if is.same(o) != c.same || o.same(is) != c.same {
			t.Errorf("%s: the same: %t", name, !c.same)
		}
		a, b := jobActor{Kind: store.ActorExternal, External: &is}, jobActor{Kind: store.ActorExternal, External: &o}
		if a.same(b) != c.same || b.same(a) != c.same {
			t.Errorf("%s, of a job: the same: %t", name, !c.same)
		}
	}
	one := jobActor{Kind: store.ActorUser, ID: "1", Session: "2", Name: "3", At: 4}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[jobActor]()) {
		other := one
		v := reflect.ValueOf(&other).Elem().FieldByIndex(f.Index)
		if v.CanInt() {
			v.SetInt(5)
		} else {
			v.Set(given(f.Type))
		}
		if one.same(other) || other.same(one) {
			t.Errorf("with another %s it is the same", f.Name)
		}
	}
	if !one.same(one) {
		t.Error("it is not itself")
	}
	for name, want := range map[string]bool{"x": true, "": false, "a\nb": false, "a\x7fb": false, "\xff": false, strings.Repeat("x", 255): true, strings.Repeat("x", 256): false} {
		if isName(name) != want {
			t.Errorf("%.20q is a name: %t", name, !want)
		}
	}
	for text, want := range map[string]bool{"": true, "x": true, "a\x00b": false, "\xff": false} {
		if isText(text) != want {
			t.Errorf("%q is text: %t", text, !want)
		}
	}
	for r, want := range map[rune]bool{'a': false, ' ': false, '\x1f': true, '\x7f': true, '\ufffd': true, '\u200b': true} {
		if notShown(r) != want {
			t.Errorf("%q is not shown: %t", r, !want)
		}
	}
	if got := fmt.Sprint(each([]string{"b", "a", "b", "c", "a"})); got != "[b a c]" {
		t.Error(got)
	}
}
