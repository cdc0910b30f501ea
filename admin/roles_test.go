package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// A role is made once, changed in what is named, and deleted once nobody has it; what
// is asked for as a dry run is judged alike, and leaves no trace.
func TestRoleChanges(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		revision := func() float64 { return o.do(owner, "GET /roles", "").want(200).body["revision"].(float64) }
		// dry asks first what a request would lead to, then sends it.
		dry := func(pattern, body string, status int, code ...auth.Code) *answer {
			t.Helper()
			asked, at := pattern, ""
			if body == "" {
				asked = pattern + "?dry_run=true"
			} else {
				at = body[:len(body)-1] + `,"dry_run":true}`
			}
			before, was := len(o.audit()), revision()
			would := o.do(owner, asked, at)
			if len(code) > 0 {
				would.want(status, code...)
			} else {
				would.want(200)
			}
			if n := len(o.audit()) - before; n != 0 || revision() != was {
				t.Errorf("%s: a dry run left %d rows, and revision %v after %v", pattern, n, revision(), was)
			}
			did := o.do(owner, pattern, body).want(status, code...)
			if len(code) == 0 {
				for _, field := range []string{"name", "description"} {
					if a, b := would.body["role"].(map[string]any)[field], did.body["role"].(map[string]any)[field]; a != b {
						t.Errorf("%s: %s would be %v, and is %v", pattern, field, a, b)
					}
				}
				if fmt.Sprint(would.body["users"]) != fmt.Sprint(did.body["users"]) || would.body["dry_run"] != true || did.body["dry_run"] != false {
					t.Errorf("%s: %v, then %v", pattern, would.body, did.body)
				}
				if n := len(o.audit()) - before; n != 1 {
					t.Errorf("%s: %d rows", pattern, n)
				}
			}
			return did
		}
		made := dry("POST /roles", `{"name":"editor","description":"Edits.","permissions":["notes.write"]}`, 201)
		if made.body["users"].(map[string]any)["count"] != 0.0 {
			t.Errorf("made: %v", made.body)
		}
		dry("POST /roles", `{"name":"editor","permissions":[]}`, 422, auth.CodeValidationFailed)
		for _, name := range []string{"owner", "matrix", "Editor", "", "a b"} {
			dry("POST /roles", `{"name":"`+name+`"}`, 422, auth.CodeValidationFailed)
		}
		dry("POST /roles", `{"name":"other","permissions":["no.such"]}`, 422, auth.CodeValidationFailed)
		dry("PATCH /roles/nobody", `{"description":"x"}`, 404, auth.CodeRoleNotFound)
		dry("PATCH /roles/owner", `{"description":"x"}`, 403, auth.CodeTargetStronger)
		dry("DELETE /roles/nobody", "", 404, auth.CodeRoleNotFound)
		dry("DELETE /roles/owner", "", 403, auth.CodeTargetStronger)

		for i := range 3 {
			o.imported(fmt.Sprintf("editor%d@example.com", i), "editor")
		}
		changed := dry("PATCH /roles/editor", `{"description":"Edits all."}`, 200)
		role := changed.body["role"].(map[string]any)
		if role["description"] != "Edits all." || fmt.Sprint(role["permissions"]) != "[notes.write]" || fmt.Sprint(changed.body["users"]) != "map[count:3 exact:true]" {
			t.Errorf("changed: %v", changed.body)
		}
		changed = dry("PATCH /roles/editor", `{"permissions":["notes.*"]}`, 200)
		if role := changed.body["role"].(map[string]any); role["description"] != "Edits all." || fmt.Sprint(role["permissions"]) != "[notes.*]" {
			t.Errorf("changed: %v", changed.body)
		}
		if message := dry("DELETE /roles/editor", "", 409, auth.CodeRoleInUse).body["message"]; message != "3 accounts have this role. Take it from them first." {
			t.Errorf("in use: %v", message)
		}
		o.permit("unused")
		dry("DELETE /roles/unused", "", 200)
		o.do(owner, "GET /roles/unused", "").want(404, auth.CodeRoleNotFound)

		// Who may give less is told so in a dry run, too.
		clerk := o.operator("clerk@example.com", admin.PermRolesWrite)
		o.do(clerk, "PATCH /roles/editor", `{"description":"mine","dry_run":true}`).want(403, auth.CodeTargetStronger)
		o.do(clerk, "POST /roles", `{"name":"mine","permissions":["notes.write"],"dry_run":true}`).want(403, auth.CodeTargetStronger)
		o.do(o.later(owner), "POST /roles", `{"name":"mine","dry_run":true}`).want(403, auth.CodeReauthNeeded)
	})
}

// The same under one key: a dry run does not use it up and tells no hook, and a
// repetition is answered as the first was.
func TestDryRunKeepsNoKey(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		told := 0
		o := newOffice(t, store, auth.WithHooks(auth.Hooks{OnEvent: func(_ context.Context, e auth.Event) {
			if e.Type == auth.EventRoleChanged {
				told++
			}
		}}))
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		key := "Idempotency-Key: one"
		o.do(owner, "POST /roles", `{"name":"editor","dry_run":true}`, key).want(200)
		if told != 0 {
			t.Error("a hook was told of a dry run")
		}
		first := o.do(owner, "POST /roles", `{"name":"editor"}`, key).want(201)
		if again := o.do(owner, "POST /roles", `{"name":"editor"}`, key).want(201); again.text != first.text {
			t.Errorf("answered %s, then %s", first.text, again.text)
		}
	})
}

func TestRoleMatrix(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		o.permit("editor", "notes.*")
		o.permit("writer", "notes.write", "notes.*")
		x, err := o.adm.RoleMatrix(t.Context(), admin.System("test"))
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"owner", "admin", "auditor", "editor", "support", "writer"}; !slices.Equal(x.Roles, want) {
			t.Errorf("roles %v", x.Roles)
		}
		want := map[string][]admin.Holding{
			notes:                    {{Role: "owner", Via: "*"}, {Role: "editor", Via: "notes.*"}, {Role: "writer", Via: notes}},
			"money.send":             {{Role: "owner", Via: "*"}},
			admin.PermStatsRead:      {{Role: "owner", Via: "*"}, {Role: "admin", Via: admin.PermStatsRead}, {Role: "auditor", Via: admin.PermStatsRead}},
			admin.PermKeysWrite:      {{Role: "owner", Via: "*"}},
			admin.PermSessionsRevoke: {{Role: "owner", Via: "*"}, {Role: "admin", Via: admin.PermSessionsRevoke}, {Role: "support", Via: admin.PermSessionsRevoke}},
		}
		all, err := o.adm.Permissions(t.Context(), admin.System("test"))
		if err != nil || len(all) != len(x.Rows) {
			t.Fatalf("%d rows of %d permissions: %v", len(x.Rows), len(all), err)
		}
		for _, row := range x.Rows {
			if w, ok := want[row.Name]; ok && !slices.Equal(row.HeldBy, w) {
				t.Errorf("%s: %v, want %v", row.Name, row.HeldBy, w)
			}
		}
	})
}

// Who has a role, page by page, and nothing of them that needs another permission.
func TestRoleUsers(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		o.permit("editor")
		var want, got []string
		for i := range 5 {
			u := o.imported(fmt.Sprintf("editor%d@example.com", i), "editor")
			want = append(want, u.User.ID)
		}
		clerk := o.operator("clerk@example.com", admin.PermRolesRead)
		next := ""
		for pages := 0; pages == 0 || next != ""; pages++ {
			a := o.do(clerk, "GET /roles/editor/users?limit=2"+next, "").want(200)
			for _, u := range a.body["users"].([]any) {
				got = append(got, u.(map[string]any)["id"].(string))
				if len(u.(map[string]any)) != 3 {
					t.Errorf("shown %v", u)
				}
			}
			if next = ""; a.body["next_cursor"] != nil {
				next = "&cursor=" + a.body["next_cursor"].(string)
				o.do(clerk, "GET /roles/owner/users?limit=2"+next, "").want(422, auth.CodeValidationFailed)
			}
			if pages > 5 {
				t.Fatal("no end of pages")
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("listed %v, want %v", got, want)
		}
		o.do(clerk, "GET /roles/nobody/users", "").want(404, auth.CodeRoleNotFound)
		o.do(clerk, "GET /roles/owner", "").want(200)
		o.do(clerk, "GET /roles/nobody", "").want(404, auth.CodeRoleNotFound)
		o.do(clerk, "GET /roles/editor/users?count=estimate", "").want(422, auth.CodeValidationFailed)
	})
}

// Where the application has filled the table of roles itself, no ready-made ones come
// to it.
func TestRolesOfTheApplicationsOwn(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		roles, _ := store.Capability[store.ProjectStore](st)
		change := store.Change{Now: time.Now(), By: auth.Authority{System: "test"}}
		if _, err := roles.PutRole(t.Context(), store.PutRole{Change: change, Role: store.RolePermissions{Name: "editor", Permissions: []string{notes}}}); err != nil {
			t.Fatal(err)
		}
		o := newOffice(t, st)
		list, err := o.adm.Roles(t.Context(), admin.System("test"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.Roles {
			if r.Name != "editor" && r.Name != auth.RoleOwner {
				t.Errorf("there is %s", r.Name)
			}
		}
	})
}

// A role for an address that nobody has is for nobody, and is told as that.
func TestGrantByAddressOfNobody(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	if _, err := o.adm.GrantByAddress(t.Context(), admin.System("setup"), "nobody@example.com", auth.RoleOwner); !errors.Is(err, auth.CodeUserNotFound) {
		t.Errorf("error %v", err)
	}
}

// A role for an address is for whoever has proved it, and only while it is theirs.
func TestGrantByAddressThatIsProved(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		tap := storetap.New(st)
		o := newOffice(t, tap)
		grant := func(email string) error {
			_, err := o.adm.GrantByAddress(t.Context(), admin.System("setup"), email, auth.RoleOwner)
			return err
		}
		if _, err := o.ImportUser(t.Context(), auth.ImportUserParams{Email: "eve@example.com"}); err != nil {
			t.Fatal(err)
		}
		wantCode(t, grant("eve@example.com"), auth.CodeEmailNotVerified)

		ada, moved := o.LoginAs(t, "ada@example.com"), errors.New("not asked")
		tap.Reset(storetap.Hooks{After: func(ctx context.Context, method string, _ int, _ error) {
			if method == "User" && moved != nil {
				email, now := "other@example.com", o.Clock.Now()
				_, moved = st.UpdateUser(ctx, store.UpdateUser{Change: store.Change{Now: now, By: auth.Authority{System: "test"}}, UserID: ada.User.ID, Patch: store.UserPatch{Email: &email, EmailVerifiedAt: &now}})
			}
		}})
		err := grant("ada@example.com")
		tap.Reset(storetap.Hooks{})
		if moved != nil {
			t.Fatal(moved)
		}
		wantCode(t, err, auth.CodeEmailNotVerified)
		if err := grant("OTHER@example.com"); err != nil {
			t.Error(err)
		}
	})
}

// Whoever gives a role its permissions is told what each of Authmount's own is for.
func TestPermissionsAreDescribed(t *testing.T) {
	t.Parallel()
	list, err := newOffice(t, memstore.New()).adm.Permissions(t.Context(), admin.System("test"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if strings.HasPrefix(p.Name, "auth.") && !strings.HasSuffix(p.Description, ".") {
			t.Errorf("%s says %q", p.Name, p.Description)
		}
	}
}
