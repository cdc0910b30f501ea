package admin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// crowd creates users without permissions.
func (o *office) crowd(name string, n int) (ids []string) {
	o.t.Helper()
	for i := range n {
		u, err := o.adm.CreateUser(o.t.Context(), admin.System("test").Accepting(), admin.CreateUserParams{Email: fmt.Sprintf("%s%d@example.com", name, i), EmailVerified: true})
		if err != nil {
			o.t.Fatal(err)
		}
		ids = append(ids, u.ID)
	}
	return ids
}

func (o *office) banned(id string) bool {
	u := o.read(id)
	return u.Banned(o.Clock.Now())
}

func quoted(ids []string) string { return `["` + strings.Join(ids, `","`) + `"]` }

func counts(a *answer) string {
	return fmt.Sprintf("%v %v %v", a.body["done"], a.body["skipped"], a.body["failed"])
}

// Each bulk action does to each account the same as its single operation, and has its row
// in the audit log.
func TestBulk(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.permit(role)
		for _, c := range []struct {
			action, more string
			is           func(u auth.User) bool
		}{
			{"ban", `"reason":"spam","until":"2999-01-01T00:00:00Z"`, func(u auth.User) bool { return u.BannedUntil.Year() == 2999 }},
			{"unban", `"reason":"sorry"`, func(u auth.User) bool { return !u.Banned(o.Clock.Now()) }},
			{"add_role", `"role":"support"`, func(u auth.User) bool { return slices.Equal(u.Roles, []string{"support"}) }},
			{"remove_role", `"role":"` + role + `"`, func(u auth.User) bool { return len(u.Roles) == 0 }},
			{"revoke_sessions", `"reason":"x"`, func(auth.User) bool { return true }},
			{"send", `"type":"magic_link"`, func(auth.User) bool { return true }},
			{"anonymize", `"reason":"x"`, func(u auth.User) bool { return u.Anonymized() }},
		} {
			ids := o.crowd("bulk-"+strings.ReplaceAll(c.action, "_", "-"), 3)
			for _, id := range ids {
				row := map[string]string{"unban": "POST /users/{id}/unban", "remove_role": "DELETE /users/{id}/roles/{role}"}[c.action]
				o.changeable(admin.Row{Pattern: row}, &authtest.SignedIn{Tokens: auth.Tokens{User: auth.User{ID: id}}})
			}
			body := func(dry bool) string {
				return fmt.Sprintf(`{"action":"%s","ids":%s,"dry_run":%v,%s}`, c.action, quoted(append(ids, owner.User.ID, "01a1fb4c-2b13-7a71-806e-d67843451400")), dry, c.more)
			}
			before, was := len(o.audit()), o.read(ids[0])
			if got := counts(o.do(owner, "POST /users/bulk", body(true)).want(200)); got != "3 1 1" || len(o.audit()) != before || o.read(ids[0]).Revision != was.Revision {
				t.Errorf("%s, tried: %s", c.action, got)
			}
			a := o.do(owner, "POST /users/bulk", body(false)).want(200)
			rows := o.audit()
			rows = rows[:len(rows)-before]
			if counts(a) != "3 1 1" || len(rows) != 3 || rows[0].Record.Operation != "POST /users/bulk" {
				t.Errorf("%s: %s, and %d rows", c.action, counts(a), len(rows))
			}
			for _, id := range ids {
				if !c.is(o.read(id)) {
					t.Errorf("%s: %+v", c.action, o.read(id))
				}
			}
		}
		ids := o.crowd("gone", 2)
		if a := o.do(owner, "POST /users/bulk", `{"action":"delete","reason":"x","ids":`+quoted(ids)+`}`).want(200); counts(a) != "2 0 0" {
			t.Error(counts(a))
		}
	})
}

// An invalid bulk request, or one that cannot be done at once, changes nothing.
func TestBulkRefuses(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, target := newScene(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		support := o.operator("support@example.com", admin.PermUsersBan, admin.PermUsersRead)
		one := quoted([]string{target.User.ID})
		for _, body := range []string{
			`{"action":"praise","ids":` + one + `}`, `{"action":"ban","reason":"x"}`, `{"action":"ban","reason":"x","ids":` + one + `,"filter":{}}`, `{"action":"ban","ids":` + one + `}`,
			`{"action":"ban","reason":"x","ids":` + quoted(make([]string, 1001)) + `}`, `{"action":"ban","reason":"x","filter":{"role":"writer"}}`, `{"action":"ban","reason":"x","dry_run":true,"filter":{"colour":"red"}}`,
			`{"action":"ban","reason":"x","dry_run":true,"filter":{"role":{"a":1}}}`, `{"action":"add_role","ids":` + one + `}`, `{"action":"send","type":"spam","ids":` + one + `}`,
		} {
			if a := o.do(owner, "POST /users/bulk", body); a.status != 422 || a.body["code"] != string(auth.CodeValidationFailed) {
				t.Errorf("%.80s: %d %v", body, a.status, a.body)
			}
		}
		o.do(support, "POST /users/bulk", `{"action":"delete","reason":"x","ids":`+one+`}`).want(403, auth.CodeMissingPermission)
		o.do(support, "POST /users/bulk", `{"action":"ban","reason":"x","dry_run":true,"filter":{}}`).want(403, auth.CodeMissingPermission)
		o.do(support, "POST /users/bulk", `{"action":"ban","reason":"x","dry_run":true,"filter":{"order":"asc"}}`).want(403, auth.CodeMissingPermission)
		o.do(owner, "POST /users/bulk", `{"action":"add_role","role":"edtior","ids":`+one+`}`).want(404, auth.CodeRoleNotFound)
		o.do(owner, "POST /users/bulk", `{"action":"ban","reason":"x","until":"2020-01-01T00:00:00Z","ids":`+one+`}`).want(422, auth.CodeValidationFailed)
		all := o.do(owner, "POST /users/bulk", `{"action":"revoke_sessions","dry_run":true,"filter":{}}`).want(200).body["selection_id"]
		late := o.later(owner)
		o.do(late, "POST /users/bulk", `{"action":"add_role","role":"writer","ids":`+one+`}`).want(403, auth.CodeReauthNeeded)
		o.do(late, "POST /users/bulk", `{"action":"revoke_sessions","dry_run":true,"filter":{}}`).want(403, auth.CodeReauthNeeded)
		o.do(late, "POST /users/bulk", fmt.Sprintf(`{"action":"revoke_sessions","selection_id":"%s"}`, all)).want(403, auth.CodeReauthNeeded)
		if u := o.read(target.User.ID); u.Banned(o.Clock.Now()) || len(u.Roles) != 0 {
			t.Errorf("%+v", u)
		}
	})
}

// A bulk action applies to the accounts that the filter selected in the dry run, to no
// others, once, and only for the actor of the dry run.
func TestBulkByFilter(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		other := o.LoginAs(t, "other@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		ids := o.crowd("plain", 205)
		a := o.do(owner, "POST /users/bulk", `{"action":"ban","reason":"spam","dry_run":true,"filter":{"q":"plain"}}`).want(200)
		selection, _ := a.body["selection_id"].(string)
		if counts(a) != "205 0 0" || selection == "" {
			t.Fatalf("%s %q", counts(a), selection)
		}
		late := o.crowd("plainlate", 1)
		begin := fmt.Sprintf(`{"action":"ban","selection_id":"%s"}`, selection)
		o.do(other, "POST /users/bulk", begin).want(404, auth.CodeNotFound)
		o.do(owner, "POST /users/bulk", strings.Replace(begin, "ban", "delete", 1)).want(422, auth.CodeValidationFailed)
		o.do(owner, "POST /users/bulk", strings.Replace(begin, "}", `,"reason":"other"}`, 1)).want(422, auth.CodeValidationFailed)
		id, _ := o.do(owner, "POST /users/bulk", begin).want(202).body["job_id"].(string)
		o.do(owner, "POST /users/bulk", begin).want(404, auth.CodeNotFound)
		if results := o.done(id); len(results) != 205 || results[204]["result"] != "done" {
			t.Errorf("%d results", len(results))
		}
		for _, id := range ids {
			if !o.banned(id) {
				t.Fatal("somebody is not banned")
			}
		}
		if o.banned(late[0]) {
			t.Error("somebody is banned whom the dry run did not name")
		}
		banned := 0
		for _, e := range o.audit() {
			if e.Type == auth.EventUserBanned && e.Record.RequestID == id && e.Reason == "spam" && e.Actor.ID == owner.User.ID {
				banned++
			}
		}
		if banned != 205 {
			t.Errorf("%d rows of the audit log", banned)
		}
	})
}

// A job ends with its actor's session and with the actor's permission.
func TestJobEndsWithItsActor(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		tap := storetap.New(st)
		o := newOffice(t, tap)
		for name, end := range map[string]func(who *authtest.SignedIn){
			"session_ended": func(who *authtest.SignedIn) {
				if _, err := o.behind().RevokeSessions(t.Context(), store.RevokeSessions{Change: o.change(), UserID: who.User.ID}); err != nil {
					t.Error(err)
				}
			},
			"user_banned": func(who *authtest.SignedIn) {
				until := o.Clock.Now().Add(time.Hour)
				o.patch(who.User.ID, store.UserPatch{BannedUntil: &until})
			},
			"not_admin":          func(who *authtest.SignedIn) { o.patch(who.User.ID, store.UserPatch{Roles: &[]string{}}) },
			"missing_permission": func(who *authtest.SignedIn) { o.patch(who.User.ID, store.UserPatch{Roles: &[]string{"auditor"}}) },
		} {
			ids := o.crowd("end"+strings.ReplaceAll(name, "_", ""), 1)
			who := o.operator(name+"@example.com", admin.PermUsersBan, admin.PermUsersRead)
			a := o.do(who, "POST /users/bulk", `{"action":"ban","reason":"x","dry_run":true,"filter":{"q":"end`+strings.ReplaceAll(name, "_", "")+`"}}`).want(200)
			var once sync.Once
			tap.Reset(storetap.Hooks{Background: true, Before: func(_ context.Context, method string, _ int) {
				if method == "JobChunk" { // the job has started
					once.Do(func() { end(who) })
				}
			}})
			id, _ := o.do(who, "POST /users/bulk", fmt.Sprintf(`{"action":"ban","selection_id":"%s"}`, a.body["selection_id"])).want(202).body["job_id"].(string)
			wantResults(t, o.done(id), "failed "+name)
			tap.Reset(storetap.Hooks{})
			if o.banned(ids[0]) {
				t.Errorf("%s: banned all the same", name)
			}
		}
	})
}
