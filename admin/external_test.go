package admin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// staffHeader is the header that the application's own admin login reads in these tests.
const staffHeader = "X-Staff"

func authorize(r *http.Request) (admin.Identity, error) {
	var i admin.Identity
	switch text := r.Header.Get(staffHeader); text {
	case "":
		return i, errors.New("no such badge as 4711")
	case "suspended":
		return i, auth.Reject(auth.CodeUserBanned, "Your badge is suspended.")
	default:
		return i, json.Unmarshal([]byte(text), &i)
	}
}

// withStaff returns an office with operators that only the application knows.
func withStaff(t *testing.T, store auth.Store) *office {
	return newOfficeWith(t, store, admin.Options{Authenticate: authorize})
}

// staff returns the header of an external operator with the named permissions.
func (o *office) staff(permissions ...string) string {
	return o.badge(admin.Identity{ID: "4711", Label: "Grace of the desk", Permissions: permissions, AAL: store.LevelAAL2, AuthTime: o.Clock.Now()})
}

func (o *office) badge(i admin.Identity) string {
	o.t.Helper()
	text, err := json.Marshal(i)
	if err != nil {
		o.t.Fatal(err)
	}
	return staffHeader + ": " + string(text)
}

// notForStaff are operations that require an account, and their answers to other actors.
var notForStaff = map[string]auth.Code{
	"POST /users/{id}/impersonate": auth.CodeImpersonationForbidden,
	"POST /settings/test-mail":     auth.CodeValidationFailed,
	"POST /settings/test-sms":      auth.CodeValidationFailed,
}

// Each rule, over every operation, for external admins.
func TestRulesOfExternals(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := withStaff(t, st)
		target := o.fill()
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		for i, row := range admin.Table() {
			t.Run(row.Pattern, func(t *testing.T) {
				o.try(nil, row, target).want(401, auth.CodeMissingToken)
				o.try(owner, row, target).want(401, auth.CodeMissingToken) // Authmount's own sessions open nothing
				o.try(nil, row, target, staffHeader+": suspended").want(403, auth.CodeUserBanned)
				for _, none := range [][]string{nil, {notes}, {"no.such", "auth.no.such"}} {
					o.try(nil, row, target, o.staff(none...)).want(403, auth.CodeNotAdmin)
				}
				all := admin.Identity{ID: "4711", Label: "Grace of the desk", Permissions: []string{"*"}, AAL: store.LevelAAL2, AuthTime: o.Clock.Now()}
				weak := all
				weak.AAL = store.LevelAAL1
				o.try(nil, row, target, o.badge(weak)).want(403, auth.CodeInsufficientAAL)
				if row.Permission != "" {
					a := o.try(nil, row, target, o.staff(append(allBut(t, o, row.Permission), "no.such")...)).want(403, auth.CodeMissingPermission)
					if d, _ := a.body["details"].(map[string]any); d["permission"] != row.Permission {
						t.Errorf("the refusal names %v", a.body)
					}
				}
				if row.Targets {
					o.try(nil, row, owner, o.staff(row.Permission)).want(403, auth.CodeTargetStronger)
				}
				if row.StepUp {
					for _, when := range []time.Time{{}, o.Clock.Now().Add(-15 * time.Minute), o.Clock.Now().Add(time.Hour)} {
						old := all
						old.AuthTime = when
						o.try(nil, row, target, o.badge(old)).want(403, auth.CodeReauthNeeded)
					}
				}
				for _, bearer := range []string{"X-None: 1", "Authorization: Bearer x"} { // the application's login may rest on the cookie
					o.try(nil, row, target, o.badge(all), "Origin: https://evil.example", "Sec-Fetch-Site: cross-site", bearer, "Cookie: a=b").want(403, auth.CodeCrossSiteRequest)
				}
				somebody := o.imported(fmt.Sprintf("somebody%d@example.com", i))
				if strings.Contains(row.Pattern, "/sessions/{id}") {
					somebody = target
				}
				o.permit(role)
				o.changeable(row, somebody)
				before := len(o.audit())
				a := o.try(nil, row, somebody, o.badge(all))
				if code, refused := notForStaff[row.Pattern]; refused {
					a.want(a.status, code)
					return
				}
				a.want(examples[row.Pattern].status)
				rows := o.audit()
				rows = rows[:len(rows)-before]
				rows = slices.DeleteFunc(rows, func(e auth.Event) bool { return e.Record.Actor == "test" }) // the events of the example's setup
				if row.Reads || asks(row) {
					if len(rows) != 0 {
						t.Errorf("%d rows", len(rows))
					}
					return
				}
				if len(rows) != 1 {
					t.Fatalf("%d rows", len(rows))
				}
				if by := rows[0].Actor; by != (auth.Actor{Kind: store.ActorExternal, ID: "4711"}) || rows[0].Record.Actor != "Grace of the desk" {
					t.Errorf("recorded %+v, %q", by, rows[0].Record.Actor)
				}
			})
		}
	})
}

// External admins cannot remove the last owner, and their id and permissions are shown to
// them. Secret keys still work beside them.
func TestExternals(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := withStaff(t, st)
		owner := o.imported("owner@example.com", auth.RoleOwner)
		all := o.staff("*")
		for pattern, body := range map[string]string{"PUT /users/%s/roles": `{"roles":[]}`, "POST /users/%s/ban": `{"reason":"x"}`, "POST /users/%s/delete": `{"reason":"x"}`} {
			o.do(nil, fmt.Sprintf(pattern, owner.User.ID), body, all).want(409, auth.CodeLastOwner)
		}
		o.do(program(o.key(admin.System("test").Accepting(), admin.PermUsersRead)), "GET /users", "").want(200)
		me := o.do(nil, "GET /me", "", o.staff(notes, admin.PermUsersRead, "no.such")).want(200)
		if fmt.Sprint(me.body["permissions"]) != "[auth.users.read notes.write]" || me.body["user"] != nil || fmt.Sprint(me.body["actor"]) != "map[id:4711 kind:external label:Grace of the desk session_id:<nil>]" {
			t.Errorf("me: %v", me.body)
		}
		for _, i := range []admin.Identity{{}, {Label: "x"}, {ID: strings.Repeat("x", 256)}, {ID: "a\nb"}} {
			i.Permissions, i.AAL = []string{"*"}, store.LevelAAL2
			if a := o.do(nil, "GET /users", "", o.badge(i)).want(401, auth.CodeMissingToken); strings.Contains(a.text, "Identity") {
				t.Errorf("answered %s", a.text)
			}
		}
		if a := o.do(nil, "GET /users", "").want(401, auth.CodeMissingToken); strings.Contains(a.text, "4711") {
			t.Errorf("says more than it may: %s", a.text)
		}

		// A later change of the application's list does not change the actor.
		list := []string{admin.PermUsersRead}
		who := admin.External(admin.Identity{ID: "1", Permissions: list, AAL: store.LevelAAL2})
		list[0] = "*"
		if _, err := o.adm.Roles(t.Context(), who); !errors.Is(err, auth.CodeMissingPermission) {
			t.Errorf("permissions changed meanwhile: %v", err)
		}
	})
}

// The later permissions of an external admin cannot be read. Keys and invitations with
// roles, which depend on their maker's permissions, require a maker who may do everything.
func TestExternalsLeaveNoPower(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := withStaff(t, store)
		o.permit("editor", notes)
		some, all := o.staff(notes, "auth.*"), o.staff("*")
		o.do(nil, "POST /keys", `{"name":"x","scopes":["auth.users.read"]}`, some).want(403, auth.CodeTargetStronger)
		o.do(nil, "POST /keys", `{"name":"x","scopes":["auth.users.read"]}`, all).want(200)
		o.do(nil, "POST /invitations", `{"email":"ada@example.com","roles":["editor"]}`, some).want(403, auth.CodeTargetStronger)
		o.do(nil, "POST /invitations", `{"email":"ada@example.com"}`, some).want(201)
		if _, err := o.accept(o.invitedToken("ada@example.com")); err != nil {
			t.Error(err)
		}
		invited := o.do(nil, "POST /invitations", `{"email":"bob@example.com","roles":["editor"]}`, all).want(201)
		token := o.invitedToken("bob@example.com")
		o.do(nil, fmt.Sprintf("POST /invitations/%s/resend", invited.body["id"]), "", some).want(403, auth.CodeTargetStronger)
		if _, err := o.accept(token); err != nil {
			t.Error(err)
		}
	})
}

// A job that an external admin starts continues in their name, with the permissions that
// they had when it started.
func TestJobsOfExternals(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := withStaff(t, st)
		o.permit("rich", "money.send")
		who := admin.External(admin.Identity{ID: "4711", Permissions: []string{admin.PermUsersImport, admin.PermUsersRead}, AAL: store.LevelAAL2, AuthTime: o.Clock.Now()})
		id, err := o.adm.ImportUsers(t.Context(), who, admin.ImportUsersParams{}, strings.NewReader(`{"email":"ada@example.com"}`+"\n"+`{"email":"eve@example.com","roles":["rich"]}`+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		o.Clock.Advance(time.Hour) // the authentication is old by now
		o.done(id)
		if _, err := o.behind().User(t.Context(), store.ByEmail("ada@example.com")); err != nil {
			t.Errorf("not imported: %v", err)
		}
		if u, err := o.behind().User(t.Context(), store.ByEmail("eve@example.com")); err == nil && slices.Contains(u.Roles, "rich") {
			t.Error("they gave a role that they may not give")
		}
		ids := o.crowd("crowd", 2)
		chosen := admin.BulkParams{Action: admin.BulkBan, DryRun: true, Filter: &admin.UserFilter{Search: "crowd"}, BulkDetails: admin.BulkDetails{Reason: "x"}}
		banner := func(id string) admin.Actor {
			return admin.External(admin.Identity{ID: id, Permissions: []string{admin.PermUsersBan, admin.PermUsersRead}, AAL: store.LevelAAL2, AuthTime: o.Clock.Now()})
		}
		tried, err := o.adm.Bulk(t.Context(), banner("1"), chosen)
		if err != nil {
			t.Fatal(err)
		}
		begin := admin.BulkParams{Action: admin.BulkBan, SelectionID: tried.SelectionID}
		if _, err := o.adm.Bulk(t.Context(), banner("2"), begin); !errors.Is(err, auth.CodeNotFound) {
			t.Errorf("somebody else begins it: %v", err)
		}
		begun, err := o.adm.Bulk(t.Context(), banner("1"), begin)
		if err != nil {
			t.Fatal(err)
		}
		wantResults(t, o.done(begun.JobID), "done", "done")
		if !o.banned(ids[0]) {
			t.Error("not banned")
		}
	})
}
