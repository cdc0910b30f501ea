package admin_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// Ordinary work of operators and their users, which the rules about operators do not get
// in the way of.

// Support helps customers, who bear an ordinary role that the application asks for by
// name. An admin gives and takes roles that they do not bear themselves. One more
// permission of a role is in its bearers' next token.
func TestSupportHelpsCustomers(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		o.permit("customer")
		o.permit("editor")
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		boss := o.LoginAs(t, "boss@example.com", authtest.Roles("admin"), authtest.AAL2())
		support := o.LoginAs(t, "support@example.com", authtest.Roles("support"), authtest.AAL2())
		ada := o.LoginAs(t, "ada@example.com", authtest.Roles("customer"))
		if c, err := o.Verify(ada.AccessToken); err != nil || !c.HasRole("customer") {
			t.Errorf("the customer has no role: %v", err)
		}
		at := "/users/" + ada.User.ID
		o.do(support, "POST "+at+"/ban", `{"reason":"x"}`).want(200)
		o.do(support, "POST "+at+"/unban", "").want(200)
		o.do(support, "POST "+at+"/unlock", "").want(200)
		o.do(support, "DELETE "+at+"/sessions", `{"reason":"x"}`).want(204)
		o.do(support, "POST "+at+"/impersonate", `{"reason":"x"}`).want(403, auth.CodeMissingPermission)

		table := permissionsOf(o, "support")
		o.permit("support", append(table, admin.PermImpersonate)...)
		support = o.renewed(support)
		if !slices.Contains(o.powers(&support.Tokens), admin.PermImpersonate) || !slices.Contains(o.powers(&support.Tokens), admin.PermUsersBan) {
			t.Errorf("the role's bearer has %v", o.powers(&support.Tokens))
		}
		o.do(support, "POST "+at+"/impersonate", `{"reason":"x"}`).want(200)

		o.permit("support", table...) // an admin does not have more than the role
		for range 2 {
			for _, role := range []string{"editor", "support"} {
				o.do(boss, "PUT "+at+"/roles", `{"roles":["customer","`+role+`"],"address":"ada@example.com"}`).want(200)
				o.do(boss, "PUT "+at+"/roles", `{"roles":["customer"],"address":"ada@example.com"}`).want(200)
			}
			o.Clock.Advance(time.Minute)
		}
		again := o.LoginAs(t, "ada@example.com")
		if roles := o.read(ada.User.ID).Roles; !slices.Equal(roles, []string{"customer"}) || !slices.Equal(again.User.Roles, roles) {
			t.Errorf("afterwards the customer has %v", roles)
		}
		o.do(owner, "GET "+at, "").want(200)
	})
}

func permissionsOf(o *office, role string) []string {
	o.t.Helper()
	table, err := o.adm.Roles(o.t.Context(), admin.System("test"))
	o.must(err)
	for _, r := range table.Roles {
		if r.Name == role {
			return r.Permissions
		}
	}
	return nil
}

// An operator leaves, and their keys are rotated and end. The users whom they created or
// helped notice nothing: passwords, sessions, roles and accepted permissions stay.
func TestUsersOutliveTheirOperator(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		o.permit("editor", notes)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		leaver := o.operator("leaver@example.com", "auth.*", notes)
		made := o.do(leaver, "POST /keys", `{"name":"sync","scopes":["auth.users.read","auth.users.write","auth.credentials"]}`).want(200)
		key, keyID := made.body["key"].(string), made.body["id"].(string)

		create := func(who *authtest.SignedIn, email string) string {
			return o.do(who, "POST /users", `{"email":"`+email+`","email_verified":true,"password":"`+password+`"}`).want(201).body["id"].(string)
		}
		users := map[string]string{"by-hand@example.com": create(leaver, "by-hand@example.com"), "by-key@example.com": create(bearing(key), "by-key@example.com")}
		helped := o.LoginAs(t, "helped@example.com")
		o.do(leaver, "POST /users/"+helped.User.ID+"/password", `{"password":"`+password+`"}`).want(200)
		users["helped@example.com"] = helped.User.ID
		o.do(leaver, "PUT /users/"+users["by-hand@example.com"]+"/roles", `{"roles":["editor"],"address":"by-hand@example.com"}`).want(200)
		_, token := o.invite(actor(leaver), "invited@example.com", "editor")
		invited, err := o.accept(token)
		o.must(err)
		users["invited@example.com"] = invited.User.ID
		clerk := o.LoginAs(t, "clerk@example.com")
		o.do(leaver, "PUT /users/"+clerk.User.ID+"/roles", `{"roles":["support"],"address":"clerk@example.com"}`).want(200)
		_, err = o.accept(o.invitedToken("clerk@example.com"))
		o.must(err)
		users["clerk@example.com"] = clerk.User.ID

		sessions := map[string]*authtest.SignedIn{}
		for email := range users {
			sessions[email] = o.signedInAgain(email)
		}
		before := map[string]auth.User{}
		for email, id := range users {
			before[email] = o.read(id)
		}
		o.Clock.Advance(time.Minute)
		next := o.do(leaver, "POST /keys/"+keyID+"/rotate", "").want(200).body["key"].(string)
		o.do(bearing(next), "GET /users", "").want(200)
		o.must(o.adm.DeleteUser(t.Context(), actor(owner), admin.DeleteUserParams{UserID: leaver.User.ID, Reason: "left the company"}))
		o.do(bearing(next), "GET /users", "").want(401, auth.CodeInvalidAPIKey)
		for email, id := range users {
			u := o.read(id)
			if was := before[email]; u.Revision != was.Revision || !slices.Equal(u.Roles, was.Roles) {
				t.Errorf("%s: %+v\nbefore: %+v", email, u, was)
			}
			renewed := o.renewed(sessions[email])
			if wants := email == "clerk@example.com"; len(o.powers(&renewed.Tokens)) > 0 != wants {
				t.Errorf("%s has %v", email, o.powers(&renewed.Tokens))
			}
			o.signedInAgain(email)
		}
	})
}

// Staff who sign in through one provider only accept with that identity, keep it, and never
// get a password.
func TestStaffWithOneProviderAccept(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		idp := authtest.StartProvider(t)
		o := newOffice(t, st, auth.WithProvider(idp.OIDC(plantedIDP)))
		owner := o.operator("owner@example.com", "*")
		ada := authtest.Person{Subject: "ada", Email: "ada@example.com", EmailVerified: true}
		s := o.SignInWith(t, idp, plantedIDP, ada)
		o.do(owner, "PUT /users/"+s.User.ID+"/roles", `{"roles":["support"],"address":"ada@example.com"}`).want(200)
		const browser = "a-browser"
		to, err := o.StartOAuth(t.Context(), auth.StartOAuthParams{Provider: plantedIDP, Browser: browser, Invitation: o.invitedToken("ada@example.com")})
		o.must(err)
		idp.SignsIn(ada)
		back := idp.Authorize(t, to)
		res, err := o.FinishOAuth(t.Context(), auth.OAuthCallback{Provider: plantedIDP, State: back.Get("state"), Code: back.Get("code"), Issuer: back.Get("iss"), Browser: browser})
		o.must(err)
		if res.Tokens.User.ID != s.User.ID || len(o.powers(res.Tokens)) == 0 || len(o.read(s.User.ID).Identities) != 1 {
			t.Errorf("accepted as %s with %v", res.Tokens.User.ID, o.powers(res.Tokens))
		}
		owner = o.renewed(owner)
		if u := o.do(owner, "GET /users/"+s.User.ID, "").want(200); u.body["has_password"] != false {
			t.Errorf("there is a password: %v", u.body)
		}
		o.Clock.Advance(31 * 24 * time.Hour)
		again := o.SignInWith(t, idp, plantedIDP, ada)
		if again.User.ID != s.User.ID || len(o.powers(&again.Tokens)) == 0 || len(o.read(s.User.ID).Identities) != 1 {
			t.Errorf("signs in as %s with %v", again.User.ID, o.powers(&again.Tokens))
		}
	})
}

// A user who is given a role without operator permissions stays signed in, and has it at
// the next refresh.
func TestOrdinaryRoleWhileSignedIn(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		o.permit("pro", notes)
		boss := o.operator("boss@example.com", notes, admin.PermRolesAssign, admin.PermUsersRead)
		ada := o.LoginAs(t, "ada@example.com")
		for _, give := range []string{"PUT /users/" + ada.User.ID + `/roles`, "POST /users/" + ada.User.ID + "/roles/pro"} {
			body := `{"roles":["pro"]}`
			if give[:4] == "POST" {
				o.do(boss, "PUT /users/"+ada.User.ID+"/roles", `{"roles":[]}`).want(200)
				body = ""
			}
			o.do(boss, give, body).want(200)
			ada = o.renewed(ada)
			c, err := o.Verify(ada.AccessToken)
			o.must(err)
			if !c.HasPermission(notes) || !c.HasRole("pro") || c.SessionID != ada.SessionID {
				t.Errorf("%s: %v %v", give, c.Roles, c.Permissions)
			}
		}
		if sent := o.Inbox.Messages(); slices.ContainsFunc(sent, func(m auth.Message) bool { return m.To == "ada@example.com" }) {
			t.Errorf("mail was sent: %v", sent)
		}
	})
}

// 300 people with support are imported from another system as accepted: each signs in with
// the old password and works at once. Without that choice they wait, and nobody gets mail.
func TestStaffAreImportedAsAccepted(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOfficeWith(t, st, admin.Options{RequireMFA: auth.Off})
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner))
		n := &nursery{office: o}
		rows := func(prefix string, number int) (list []string) {
			for i := range number {
				list = append(list, fmt.Sprintf(`{"email":"%s%d@example.com","email_verified":true,"password_hash":"%s","roles":["support"]}`, prefix, i, n.hash()))
			}
			return list
		}
		o.imports(owner, "?accepted=true", rows("staff", 300)...)
		o.imports(owner, "", rows("late", 3)...)
		for i := range 300 {
			if i%30 != 0 && i != 299 {
				continue
			}
			s, err := o.Login(t.Context(), auth.LoginParams{Email: fmt.Sprintf("staff%d@example.com", i), Password: plantedPassword})
			o.must(err)
			o.do(&authtest.SignedIn{Tokens: *s}, "GET /users", "").want(200)
		}
		s, err := o.Login(t.Context(), auth.LoginParams{Email: "late0@example.com", Password: plantedPassword})
		o.must(err)
		o.do(&authtest.SignedIn{Tokens: *s}, "GET /users", "").want(403)
		if list := o.do(owner, "GET /users?status=waiting", "").want(200).body["users"].([]any); len(list) != 3 {
			t.Errorf("%d accounts wait", len(list))
		}
		if sent := o.Inbox.Messages(); len(sent) > 0 {
			t.Errorf("%d messages were sent, such as %v", len(sent), sent[0])
		}
	})
}
