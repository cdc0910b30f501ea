package admin_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// roleWay is a request by which a key gives or takes the role "clerk".
type roleWay struct {
	pattern string // of the table of operations
	query   string
	body    string // with $id and $email of the account
	takes   bool   // the account has the role before
	invited bool   // an invitation to the email address gives the role before
	waits   bool   // the account has the role before, which waits for the acceptance
	dry     bool   // it only checks
}

var roleWays = map[string]roleWay{
	"set":                     {pattern: "PUT /users/{id}/roles", body: `{"roles":["clerk"],"address":"$email"}`},
	"set none":                {pattern: "PUT /users/{id}/roles", body: `{"roles":[]}`, takes: true},
	"give":                    {pattern: "POST /users/{id}/roles/{role}", body: `{"address":"$email"}`},
	"take":                    {pattern: "DELETE /users/{id}/roles/{role}", takes: true},
	"give many":               {pattern: "POST /users/bulk", body: `{"action":"add_role","role":"clerk","ids":["$id"]}`},
	"take many":               {pattern: "POST /users/bulk", body: `{"action":"remove_role","role":"clerk","ids":["$id"]}`, takes: true},
	"check many":              {pattern: "POST /users/bulk", body: `{"action":"add_role","role":"clerk","ids":["$id"],"dry_run":true}`, dry: true},
	"check many taken":        {pattern: "POST /users/bulk", body: `{"action":"remove_role","role":"clerk","ids":["$id"],"dry_run":true}`, takes: true, dry: true},
	"give those of a filter":  {pattern: "POST /users/bulk", body: `{"action":"add_role","role":"clerk","filter":{"q":"$email"},"dry_run":true}`},
	"create":                  {pattern: "POST /users", body: `{"email":"new-$email","roles":["clerk"]}`},
	"import":                  {pattern: "POST /users/import", body: `{"email":"new-$email","roles":["clerk"]}`},
	"import over":             {pattern: "POST /users/import", query: "?on_conflict=update", body: `{"email":"$email","roles":["clerk"]}`},
	"invite":                  {pattern: "POST /invitations", body: `{"email":"new-$email","roles":["clerk"]}`},
	"replace an invitation":   {pattern: "POST /invitations", body: `{"email":"new-$email"}`, invited: true},
	"invite again":            {pattern: "POST /invitations/{id}/resend", invited: true},
	"withdraw an invitation":  {pattern: "DELETE /invitations/{id}", invited: true},
	"send the link to accept": {pattern: "POST /users/{id}/send", body: `{"type":"accept"}`, waits: true},
}

var clerkHolds = []string{notes, admin.PermStatsRead}

// keyScene is a service with a key, its creator and an account.
type keyScene struct {
	*office
	creator auth.User
	key     *authtest.SignedIn
	ada     *authtest.SignedIn
}

// giverScopes are scopes with which a key may do all of roleWays.
func giverScopes(but ...string) []string {
	all := append([]string{admin.PermUsersRead, admin.PermUsersWrite, admin.PermUsersImport, admin.PermMessagesSend, admin.PermRolesAssign, "role/clerk"}, clerkHolds...)
	return slices.DeleteFunc(all, func(s string) bool { return slices.Contains(but, s) })
}

func newKeyScene(t *testing.T, s auth.Store, w roleWay, scopes ...string) *keyScene {
	t.Helper()
	o := newOffice(t, s)
	o.permit("clerk", clerkHolds...)
	o.permit(role)
	o.permit("giver", giverScopes("role/clerk")...)
	k := &keyScene{office: o, creator: o.imported("giver@example.com", "giver").User}
	k.key, k.ada = program(o.keyOf(k.creator, scopes...)), o.imported("ada@example.com")
	code := admin.System("test")
	if w.takes {
		code = code.Accepting()
	}
	if w.takes || w.waits {
		if _, err := o.adm.Grant(t.Context(), code, admin.GrantParams{UserID: k.ada.User.ID, Role: "clerk"}); err != nil {
			t.Fatal(err)
		}
	}
	if w.invited {
		if _, err := o.adm.Invite(t.Context(), code, admin.InviteParams{Email: "new-ada@example.com", Roles: []string{"clerk"}}); err != nil {
			t.Fatal(err)
		}
	}
	o.Clock.Advance(time.Minute) // the gap between two messages
	return k
}

// goes sends the request of a way. refused is the missing permission or the code of a
// refusal.
func (k *keyScene) goes(w roleWay) (refused string) {
	k.t.Helper()
	id := k.ada.User.ID
	if w.invited {
		list, err := k.adm.Invitations(k.t.Context(), admin.System("test"), admin.InvitationsParams{})
		if err != nil || len(list.Invitations) != 1 {
			k.t.Fatal(list, err)
		}
		id = list.Invitations[0].ID
	}
	fill := strings.NewReplacer("{id}", id, "{role}", "clerk", "$id", id, "$email", k.ada.User.Email).Replace
	why := func(body map[string]any) string {
		d, _ := body["details"].(map[string]any)
		p, _ := d["permission"].(string)
		return p
	}
	if strings.HasSuffix(w.pattern, "/import") {
		a := k.do(k.key, w.pattern+w.query, fill(w.body), ndjson)
		if a.status != 202 {
			return cmp.Or(why(a.body), fmt.Sprint(a.body["code"]))
		}
		r := k.done(a.body["job_id"].(string))[0]
		if r["result"] == "done" {
			return ""
		}
		if r["code"] != string(auth.CodeMissingPermission) {
			return fmt.Sprint(r["code"])
		}
		words := strings.Fields(fmt.Sprint(r["message"]))
		return strings.TrimSuffix(words[len(words)-1], ".")
	}
	a := k.do(k.key, fill(w.pattern), fill(w.body))
	if a.status >= 400 {
		return cmp.Or(why(a.body), fmt.Sprint(a.body["code"]))
	}
	if items, _ := a.body["results"].([]any); len(items) > 0 {
		if r := items[0].(map[string]any); r["result"] != "done" {
			return fmt.Sprint(r["code"])
		}
	}
	if selection, _ := a.body["selection_id"].(string); selection != "" {
		a := k.do(k.key, fill(w.pattern), `{"action":"add_role","selection_id":"`+selection+`"}`).want(202)
		if r := k.done(a.body["job_id"].(string))[0]; r["result"] != "done" {
			return fmt.Sprint(r["code"])
		}
	}
	return ""
}

// state is everything that a way changes: the accounts' roles, and the invitations.
func (k *keyScene) state() string {
	k.t.Helper()
	page, err := k.adm.ListUsers(k.t.Context(), admin.System("test"), admin.ListUsersParams{})
	if err != nil {
		k.t.Fatal(err)
	}
	state := []string{}
	for _, u := range page.Users {
		state = append(state, fmt.Sprint(u.Email, u.Roles))
	}
	invitations, err := k.adm.Invitations(k.t.Context(), admin.System("test"), admin.InvitationsParams{})
	if err != nil {
		k.t.Fatal(err)
	}
	slices.Sort(state)
	text, _ := json.Marshal(invitations.Invitations)
	return fmt.Sprint(state, string(text))
}

// Every operation of the table with roles among its parameters is a way, or is for no key.
func TestRoleWaysAreAll(t *testing.T) {
	t.Parallel()
	has := map[string]bool{}
	for _, w := range roleWays {
		has[w.pattern] = true
	}
	named := 0
	for _, row := range admin.Table() {
		if row.Roles || row.Permission == admin.PermRolesAssign {
			named++
			if !has[row.Pattern] && !slices.Contains(notForKeys, row.Permission) {
				t.Errorf("%s gives or takes roles, and is not tested with keys", row.Pattern)
			}
		}
	}
	if named < 6 {
		t.Errorf("only %d operations name roles", named)
	}
}

// By every way, a key gives and takes a role if its scopes name the role, its permissions
// and auth.roles.assign, and its creator holds these permissions at that time.
func TestKeysGiveAndTakeRoles(t *testing.T) {
	creatorHolds := func(but ...string) func(*keyScene) {
		return func(k *keyScene) { k.permit("giver", giverScopes(append(but, "role/clerk")...)...) }
	}
	code := admin.System("test")
	stronger := string(auth.CodeTargetStronger)
	cases := map[string]struct {
		scopes []string
		change func(k *keyScene)
		want   []string // one of these refuses; none: it is done
	}{
		"all":                               {scopes: giverScopes()},
		"without the name of the role":      {scopes: append(giverScopes("role/clerk"), "*"), want: []string{"role/clerk"}},
		"the name of another role":          {scopes: append(giverScopes("role/clerk"), "role/"+role), want: []string{"role/clerk"}},
		"a permission of the same name":     {scopes: append(giverScopes("role/clerk"), "notes.*"), want: []string{"role/clerk"}},
		"without a permission of the role":  {scopes: giverScopes(notes), want: []string{notes, stronger}},
		"without an operator's permission":  {scopes: giverScopes(admin.PermStatsRead), want: []string{admin.PermStatsRead, stronger}},
		"the permission to give, unnamed":   {scopes: append(giverScopes(admin.PermRolesAssign), "auth.*", "auth.roles.*", "*"), want: []string{admin.PermRolesAssign}},
		"the creator lost a permission":     {scopes: giverScopes(), change: creatorHolds(notes), want: []string{notes, stronger}},
		"the creator may not give any more": {scopes: giverScopes(), change: creatorHolds(admin.PermRolesAssign), want: []string{admin.PermRolesAssign}},
		"the creator has it again": {scopes: giverScopes(), change: func(k *keyScene) {
			creatorHolds(notes)(k)
			creatorHolds()(k)
		}},
		"the creator holds more": {scopes: giverScopes(), change: func(k *keyScene) { k.permit("giver", "*") }},
		"the creator waits": {scopes: giverScopes(), change: func(k *keyScene) {
			now := k.Clock.Now()
			k.patch(k.creator.ID, store.UserPatch{AcceptedUntil: &now})
		}, want: []string{string(auth.CodeNotAdmin)}},
		"the creator is banned": {scopes: giverScopes(), change: func(k *keyScene) {
			if _, err := k.adm.BanUser(k.t.Context(), code, admin.BanUserParams{UserID: k.creator.ID, Reason: "x"}); err != nil {
				k.t.Fatal(err)
			}
		}, want: []string{string(auth.CodeInvalidAPIKey)}},
		"the creator is deleted": {scopes: giverScopes(), change: func(k *keyScene) {
			if err := k.adm.DeleteUser(k.t.Context(), code, admin.DeleteUserParams{UserID: k.creator.ID, Reason: "x"}); err != nil {
				k.t.Fatal(err)
			}
		}, want: []string{string(auth.CodeInvalidAPIKey)}},
		"the role gained a permission": {scopes: giverScopes(), change: func(k *keyScene) {
			k.permit("clerk", append(clerkHolds, admin.PermUsersDelete)...)
		}, want: []string{admin.PermUsersDelete, stronger}},
	}
	for way, w := range roleWays {
		for name, c := range cases {
			t.Run(way+"/"+name, func(t *testing.T) {
				test := func(t *testing.T, s auth.Store) {
					k := newKeyScene(t, s, w, c.scopes...)
					if c.change != nil {
						c.change(k)
					}
					before := k.state()
					switch got := k.goes(w); {
					case len(c.want) == 0 && got != "":
						t.Errorf("refused: %s", got)
					case len(c.want) > 0 && !slices.Contains(c.want, got):
						t.Errorf("refused with %q, want one of %q", got, c.want)
					}
					if changed, should := k.state() != before, len(c.want) == 0 && !w.dry; changed != should {
						t.Errorf("changed: %t, want %t\n%s\n%s", changed, should, before, k.state())
					}
				}
				if name == "the creator lost a permission" || name == "the creator has it again" {
					onStores(t, test)
				} else { // the decision does not depend on the store
					t.Parallel()
					test(t, memstore.New())
				}
			})
		}
	}
}

// An actor gives a key the name of a role only if the actor could give the role, and a key
// could.
func TestNamesOfRolesAsScopes(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithPrivilegedRoles("superuser"))
		o.permit("clerk", clerkHolds...)
		o.permit("superuser", notes)
		o.permit("all", "*")
		o.permit("full", append(clerkHolds, admin.PermRolesAssign, admin.PermKeysWrite)...)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		full := o.LoginAs(t, "full@example.com", authtest.Roles("full"), authtest.AAL2())
		bearer := o.LoginAs(t, "bearer@example.com", authtest.Roles("full", "superuser"), authtest.AAL2())
		weak := o.maker("weak@example.com", admin.PermRolesAssign, notes)
		unable := o.maker("unable@example.com", clerkHolds...)
		create := func(who *authtest.SignedIn, scope string) *answer {
			return o.do(who, "POST /keys", `{"name":"x","scopes":["`+scope+`"]}`)
		}
		for _, who := range []*authtest.SignedIn{full, bearer, owner} {
			create(who, "role/clerk").want(200)
		}
		for _, who := range []*authtest.SignedIn{weak, unable} {
			create(who, "role/clerk").want(403, auth.CodeTargetStronger)
		}
		create(full, "role/superuser").want(403, auth.CodeTargetStronger)
		create(bearer, "role/superuser").want(200)
		create(owner, "role/superuser").want(200)
		for _, scope := range []string{"role/none", "role/", "role/*", "role/Clerk", "role/owner", "role/admin", "role/all", "role clerk", "clerk"} {
			create(owner, scope).want(422, auth.CodeValidationFailed)
		}

		// Whoever could not give the role does not change or revoke the key.
		k := o.key(actor(full), admin.PermRolesAssign, "role/clerk")
		for pattern, body := range map[string]string{"PATCH /keys/" + k.ID: `{"name":"y"}`, "DELETE /keys/" + k.ID: ``} {
			o.do(weak, pattern, body).want(403, auth.CodeTargetStronger)
		}
		mine := o.key(actor(full), notes)
		o.do(full, "PATCH /keys/"+mine.ID, `{"scopes":["role/clerk"]}`).want(200)
		o.do(full, "PATCH /keys/"+mine.ID, `{"scopes":["role/none"]}`).want(422, auth.CodeValidationFailed)
		o.do(owner, "DELETE /roles/clerk", "").want(200)
		o.do(full, "PATCH /keys/"+mine.ID, `{"name":"of a role that was deleted"}`).want(200)
		o.do(full, "DELETE /keys/"+mine.ID, "").want(204)
	})
}

// A privileged role is given by a key only if the scopes name it and the creator has it at
// that time, or "*".
func TestKeysGivePrivilegedRolesOfTheirBearers(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithPrivilegedRoles("superuser"))
		o.permit("superuser")
		o.permit("giver", admin.PermRolesAssign, admin.PermUsersRead)
		u := o.imported("giver@example.com", "giver", "superuser").User
		k, unnamed := program(o.keyOf(u, admin.PermRolesAssign, "role/superuser")), program(o.keyOf(u, admin.PermRolesAssign, "*"))
		ada := o.imported("ada@example.com").User
		give, take := "POST /users/"+ada.ID+"/roles/superuser", "DELETE /users/"+ada.ID+"/roles/superuser"
		refused := func(k *authtest.SignedIn, pattern, message string) {
			t.Helper()
			a := o.do(k, pattern, toAda).want(403, auth.CodeMissingPermission)
			if d := a.body["details"].(map[string]any); d["permission"] != "role/superuser" || a.body["message"] != message {
				t.Errorf("%s: %s", pattern, a.text)
			}
		}
		refused(unnamed, give, "The key lacks the scope role/superuser.")
		o.do(k, give, toAda).want(200)
		o.do(k, take, "").want(200)
		set := func(roles ...string) {
			if _, err := o.adm.SetRoles(t.Context(), admin.System("test"), admin.SetRolesParams{UserID: u.ID, Roles: roles}); err != nil {
				t.Fatal(err)
			}
		}
		set("giver")
		refused(k, give, "The creator of the key lacks the permission role/superuser.")
		set("giver", "superuser")
		o.do(k, give, toAda).want(200)
	})
}

// The name of a role in the scopes makes a key no stronger against other accounts.
func TestNamesOfRolesAreNoStrength(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		o.permit("clerk", notes)
		o.permit("helper", admin.PermCredentials, admin.PermRolesAssign, notes)
		maker, other := o.imported("maker@example.com", "helper").User, o.imported("other@example.com", "helper").User
		scopes := []string{admin.PermCredentials, admin.PermRolesAssign, notes, "role/clerk"}
		for name, k := range map[string]admin.NewKey{"a user's": o.keyOf(maker, scopes...), "the service's": o.key(admin.System("test"), scopes...)} {
			if a := o.do(program(k), "POST /links", `{"type":"magic_link","user_id":"`+other.ID+`"}`); a.status != 403 {
				t.Errorf("%s key made a link for an equal: %d", name, a.status)
			}
		}
	})
}

// A program gives and takes a role every night, also of people with other roles and with an
// invitation, and the holder accepts permissions of an operator that it gave.
func TestNightlyKeyForARole(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		o.permit("editor", notes)
		o.permit("viewer")
		o.permit("clerk", clerkHolds...)
		boss := o.LoginAs(t, "boss@example.com", authtest.Permissions(append(clerkHolds, admin.PermUsersWrite, admin.PermRolesAssign, admin.PermKeysWrite)...), authtest.AAL2())
		nightly := program(o.key(actor(boss), admin.PermRolesAssign, notes, "role/editor"))
		service := program(o.key(admin.System("deploy"), admin.PermRolesAssign, notes, "role/editor"))
		inviting := o.key(actor(boss), append(clerkHolds, admin.PermRolesAssign, admin.PermUsersWrite, "role/editor", "role/clerk")...)
		o.later(boss) // no recent sign-in is asked of a key
		ada := o.imported("ada@example.com").User
		if _, err := o.adm.Grant(t.Context(), admin.System("test"), admin.GrantParams{UserID: ada.ID, Role: "viewer"}); err != nil {
			t.Fatal(err)
		}
		at := "/users/" + ada.ID + "/roles"
		for _, k := range []*authtest.SignedIn{nightly, service} {
			o.do(k, "POST "+at+"/editor", "").want(200)
			o.do(k, "POST "+at+"/editor", "").want(200)
			o.do(k, "DELETE "+at+"/editor", "").want(200)
			o.do(k, "PUT "+at, `{"roles":["viewer","editor"]}`).want(200)
			o.do(k, "PUT "+at, `{"roles":["viewer"]}`).want(200)
			a := o.do(k, "PUT "+at, `{"roles":[]}`).want(403, auth.CodeMissingPermission)
			if a.body["message"] != "The key lacks the scope role/viewer." {
				t.Error(a.text)
			}
			o.do(k, "POST /users", `{"email":"x@example.com","roles":["editor"]}`).want(403, auth.CodeMissingPermission)
		}

		_, token := o.invite(admin.Key(inviting.Secret.Reveal()), "new@example.com", "editor")
		if s, err := o.accept(token); err != nil || !slices.Equal(s.User.Roles, []string{"editor"}) {
			t.Errorf("%+v, %v", s, err)
		}
		o.Clock.Advance(time.Minute)
		o.do(program(inviting), "POST "+at+"/clerk", toAda).want(200)
		o.do(program(inviting), "GET /me", "").want(200)
		if s, err := o.accept(o.invitedToken("ada@example.com")); err != nil || !slices.Contains(o.powers(s), admin.PermStatsRead) {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// An invitation by a key gives its roles only while the key could still give them.
func TestInvitationsByKeysEndWithTheScope(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *office, k admin.NewKey) error
		ends   bool
	}{
		"nothing happened": {func(*office, admin.NewKey) error { return nil }, false},
		"the key lost the name": {func(o *office, k admin.NewKey) error {
			_, err := o.adm.UpdateKey(t.Context(), admin.System("test"), admin.UpdateKeyParams{ID: k.ID, Scopes: ptrTo(giverScopes("role/clerk"))})
			return err
		}, true},
		"the key has the permission by a pattern": {func(o *office, k admin.NewKey) error {
			_, err := o.adm.UpdateKey(t.Context(), admin.System("test"), admin.UpdateKeyParams{ID: k.ID, Scopes: ptrTo(append(giverScopes(admin.PermRolesAssign), "auth.*"))})
			return err
		}, true},
		"the creator lost a permission": {func(o *office, _ admin.NewKey) error {
			return o.permitIn(o.t.Context(), "giver", giverScopes("role/clerk", notes)...)
		}, true},
		"the creator has it again": {func(o *office, _ admin.NewKey) error {
			if err := o.permitIn(o.t.Context(), "giver", giverScopes("role/clerk", notes)...); err != nil {
				return err
			}
			return o.permitIn(o.t.Context(), "giver", giverScopes("role/clerk")...)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, store auth.Store) {
				o := newOffice(t, store)
				o.permit("clerk", clerkHolds...)
				o.permit("giver", giverScopes("role/clerk")...)
				k := o.keyOf(o.imported("giver@example.com", "giver").User, giverScopes()...)
				_, token := o.invite(admin.Key(k.Secret.Reveal()), "new@example.com", "clerk")
				if err := c.change(o, k); err != nil {
					t.Fatal(err)
				}
				switch _, err := o.accept(token); {
				case c.ends:
					wantCode(t, err, auth.CodeInvalidToken)
				case err != nil:
					t.Error(err)
				}
			})
		})
	}
}

func ptrTo[T any](v T) *T { return &v }
