package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// What pages read of an endpoint's value is what the endpoint writes as JSON, member by
// member, for every operation of the document that reads.
func TestRecordsReadAsJSON(t *testing.T) {
	t.Parallel()
	e := authtest.New(t, auth.WithMail(auth.MailOptions{AppName: "Notes"}), auth.WithProvider(authtest.StartProvider(t).OIDC("acme")))
	adm, err := admin.New(t.Context(), e.Auth, admin.Options{RequireMFA: auth.Off, Permissions: []admin.Permission{{Name: "notes.write", Description: "Notes"}}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(adm, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ids := sceneOf(t, e, adm)
	raw, err := os.ReadFile("../admin/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	who, read := admin.System("test"), 0
	for at, methods := range document.Paths {
		path, ours := strings.CutPrefix(at, "/admin")
		if methods["get"] == nil || !ours || strings.HasSuffix(path, "/export") {
			continue
		}
		target := ids.Replace(path)
		if path == "/stats" {
			target += "?metrics=sign_ins,sign_ups&from=" + e.Clock.Now().Add(-time.Hour).UTC().Format(time.RFC3339) + "&to=" + e.Clock.Now().UTC().Format(time.RFC3339) + "&interval=hour"
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		a := &answer{header: http.Header{}}
		if err := d.room.Serve(who, a, r); err != nil {
			if !slices.Contains([]string{"/jobs/{id}", "/jobs/{id}/results", "/users/lookup", "/first-owner"}, path) { // there is none of it here
				t.Errorf("%s: %v", target, err)
			}
			continue
		}
		b, err := json.Marshal(a.value)
		if err != nil || a.value == nil || a.body.Len() > 0 {
			t.Errorf("%s: %v, %v", target, err, a.value)
			continue
		}
		var written any
		if err := json.Unmarshal(b, &written); err != nil {
			t.Fatal(err)
		}
		read++
		sameRecord(t, path, recordOf(a.value), recordOf(written))
	}
	if read < 20 {
		t.Errorf("only %d operations were read", read)
	}
}

// sceneOf is something of most things that there are, and the ids of them in paths.
func sceneOf(t *testing.T, e *authtest.Env, adm *admin.Admin) *strings.Replacer {
	t.Helper()
	who := admin.System("test")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := adm.CreateRole(t.Context(), who, admin.CreateRoleParams{Name: "editor", Permissions: []string{"notes.write"}})
	must(err)
	ada := e.LoginAs(t, "ada@example.com", authtest.Roles("editor"), authtest.AAL2())
	e.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner))
	notes, name := `"<&>\u00ff"`, "Ada <b>"
	_, err = adm.UpdateUser(t.Context(), who, admin.UpdateUserParams{UserID: ada.User.ID, FullName: &name, Notes: &notes, AppMetadata: map[string]any{"n": 1.5, "deep": map[string]any{"x": []any{nil, true}}}})
	must(err)
	eve := e.LoginAs(t, "eve@example.com")
	_, err = adm.BanUser(t.Context(), who, admin.BanUserParams{UserID: eve.User.ID, Reason: "spam"})
	must(err)
	_, err = adm.Invite(t.Context(), who, admin.InviteParams{Email: "bob@example.com", Roles: []string{"editor"}})
	must(err)
	_, err = adm.CreateKey(t.Context(), who, admin.CreateKeyParams{Name: "deploy", Scopes: []string{"auth.users.read"}})
	must(err)
	_, err = adm.Send(t.Context(), who, admin.SendParams{UserID: ada.User.ID, Type: admin.LinkReset})
	must(err)
	p, err := adm.AuditLog(t.Context(), who, admin.AuditLogParams{})
	must(err)
	return strings.NewReplacer("/users/{id}", "/users/"+ada.User.ID, "/audit-logs/{id}", "/audit-logs/"+p.Events[0].ID, "{role}", "editor")
}

// sameRecord compares two ways to have an object by all that pages can ask of it.
func sameRecord(t *testing.T, at string, is, want object) {
	t.Helper()
	if is == nil || want == nil {
		t.Errorf("%s: %v, want %v", at, is, want)
		return
	}
	if !reflect.DeepEqual(is.whole(), want.whole()) {
		t.Errorf("%s:\n%v, want\n%v", at, is.whole(), want.whole())
	}
	names := want.names()
	if !slices.Equal(is.names(), names) {
		t.Errorf("%s has %q, want %q", at, is.names(), names)
	}
	if is.value.Kind() == reflect.Struct { // what is left out of JSON reads as nothing
		for name := range shapeOf(is.value.Type()).fields {
			names = append(names, name)
		}
	}
	for _, name := range append(names, "no-such-member") {
		here := at + "." + name
		for i, pair := range [][2]any{
			{is.flag(name), want.flag(name)}, {is.num(name), want.num(name)}, {is.get(name), want.get(name)},
			{is.texts(name), want.texts(name)}, {is.time(name).UTC(), want.time(name).UTC()},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%s (%d): %#v, want %#v", here, i, pair[0], pair[1])
			}
		}
		if v := want.get(name); v == nil || reflect.TypeOf(v).Comparable() {
			if a, b := is.str(name), want.str(name); a != b && is.time(name).IsZero() {
				t.Errorf("%s: %q, want %q", here, a, b)
			}
		}
		if want.of(name) != nil || is.of(name) != nil {
			sameRecord(t, here, is.of(name), want.of(name))
		}
		a, b := is.list(name), want.list(name)
		if len(a) != len(b) {
			t.Errorf("%s has %d, want %d", here, len(a), len(b))
			continue
		}
		for i := range a {
			sameRecord(t, fmt.Sprintf("%s[%d]", here, i), a[i], b[i])
		}
	}
}

// hiding is a text that JSON does not show.
type hiding string

func (hiding) MarshalText() ([]byte, error) { return []byte("[hidden]"), nil }

// What encoding/json does with members of structs, records do, too.
func TestRecordsOfStructs(t *testing.T) {
	t.Parallel()
	type Inner struct {
		Name   string `json:"name"`
		Shared string `json:"shared"`
	}
	type part struct {
		N *int `json:"n"`
	}
	number := 7
	for i, v := range []any{
		struct {
			Inner
			*part
			Shared string `json:"shared"`
			Left   string `json:"left,omitempty"`
			At     time.Time
			Never  time.Time         `json:"never,omitzero"`
			Out    string            `json:"-"`
			Raw    json.RawMessage   `json:"raw"`
			Bytes  []byte            `json:"bytes"`
			Parts  []*part           `json:"parts"`
			Any    any               `json:"any"`
			Texts  map[string]string `json:"texts"`
			Nil    map[string]string `json:"nil"`
			U      uint8             `json:"u"`
			F      float64           `json:"f"`
			Bad    string            `json:"bad"`
			Secret hiding            `json:"secret"`
			hidden string
		}{Inner: Inner{"ada", "inner"}, Shared: "outer", At: time.Unix(1, 5).UTC(), Raw: json.RawMessage(`{"a":[1,"b"]}`), Bytes: []byte("x"), Parts: []*part{{&number}, nil}, Any: Inner{Name: "any"}, Texts: map[string]string{"a": "b"}, U: 200, F: 1e21, Bad: "a\xffb", Secret: "sk_live_1", hidden: "x"},
		map[string]any{"list": []string{"a"}, "objects": []map[string]int{{"n": 1}}, "none": nil},
	} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var written any
		if err := json.Unmarshal(b, &written); err != nil {
			t.Fatal(err)
		}
		sameRecord(t, fmt.Sprint(i), recordOf(v), recordOf(written))
	}
	if o := recordOf(nil); o.str("x") != "" || o.flag("x") || o.num("x") != 0 || len(o.list("x"))+len(o.texts("x"))+len(o.names()) != 0 || o.of("x").of("y") != nil || o.get("x") != nil {
		t.Error("an object that is none has members")
	}
	if o := (&record{value: reflect.ValueOf(map[string]any{}), revision: "3"}); o.str("revision") != "3" || o.whole()["revision"] != "3" {
		t.Errorf("%v", o.whole())
	}
}
