package admin_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// The list of accounts that wait, and each account, say where the link goes, since when the
// account waits and who made it wait.
func TestWaitingSinceAndBy(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		other := o.LoginAs(t, "second@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.permit("editor", notes)
		o.permit("accountant", notes)
		check := func(address string, since time.Time, by any) {
			t.Helper()
			want := map[string]any{"kind": "user", "id": nil, "session_id": nil, "label": by}
			at := any(nil)
			if by == nil {
				want["kind"] = nil
			}
			if !since.IsZero() {
				at = since.Format(time.RFC3339Nano)
			}
			same := func(where string, got any) {
				t.Helper()
				w, ok := got.(map[string]any)
				if !ok {
					t.Errorf("%s: %s shows %v", address, where, got)
					return
				}
				who, _ := w["by"].(map[string]any)
				if w["address"] != address || w["since"] != at || who["kind"] != want["kind"] || who["label"] != by {
					t.Errorf("%s: %s shows %v, want %v by %v", address, where, w, at, by)
				}
			}
			found := false
			for _, u := range o.do(owner, "GET /users?status=waiting", "").want(200).body["users"].([]any) {
				if u := u.(map[string]any); u["email"] == address || u["email"] == nil && u["phone"] == address {
					found = true
					same("the list", u["waiting"])
					same("the account", o.do(owner, "GET /users/"+u["id"].(string), "").want(200).body["waiting"])
				}
			}
			if !found {
				t.Errorf("%s is not listed", address)
			}
		}
		later := func() time.Time {
			o.Clock.Advance(time.Minute)
			return o.Clock.Now().Truncate(time.Microsecond)
		}

		ada, at := o.imported("ada@example.com").User.ID, later()
		o.do(owner, "PUT /users/"+ada+"/roles", `{"roles":["admin"],"address":"ada@example.com"}`).want(200)
		later()
		o.do(other, "PUT /users/"+ada+"/roles", `{"roles":["admin","editor"]}`).want(200)
		check("ada@example.com", at, "owner@example.com")
		at = later()
		o.do(other, "POST /users/"+ada+"/roles/support", `{"address":"ada@example.com"}`).want(200)
		check("ada@example.com", at, "second@example.com")

		at = later()
		o.imports(other, "", `{"email":"bob@example.com","email_verified":true,"roles":["support"]}`)
		o.do(other, "POST /users", `{"phone":"+4915112345678","roles":["support"]}`).want(201)
		check("bob@example.com", at, "second@example.com")
		check("+4915112345678", at, "second@example.com")

		// The role becomes an operator's after it was given; more permissions change nothing.
		o.do(owner, "POST /users", `{"email":"carl@example.com","roles":["accountant"]}`).want(201)
		at = later()
		o.do(other, "PATCH /roles/accountant", `{"permissions":["money.send"]}`).want(200)
		later()
		o.do(owner, "PATCH /roles/accountant", `{"permissions":["money.send","`+notes+`","auth.users.read"]}`).want(200)
		check("carl@example.com", at, "second@example.com")

		// An operator changes the address of an account that has accepted.
		dora := o.imported("dora@example.com").User.ID
		o.must(second(o.adm.Grant(t.Context(), admin.System("test").Accepting(), admin.GrantParams{UserID: dora, Role: "admin"})))
		if o.do(owner, "GET /users/"+dora, "").want(200).body["waiting"] != nil {
			t.Error("an account that does not wait is shown as waiting")
		}
		at = later()
		o.do(owner, "PATCH /users/"+dora, `{"email":"dora@example.org","email_verified":true}`).want(200)
		check("dora@example.org", at, "owner@example.com")

		// Events that are not kept any more leave the fields empty.
		journal, _ := store.Capability[store.Journal](st)
		_, err := journal.SweepEvents(t.Context(), o.Clock.Now().Add(time.Hour), o.Clock.Now(), 10_000)
		o.must(err)
		check("ada@example.com", time.Time{}, nil)
		if u := o.do(owner, "GET /users?status=active", "").want(200).body["users"].([]any)[0].(map[string]any); u["waiting"] != nil {
			t.Error("another list describes it")
		}
	})
}

// The message with the link to accept names the application, the role and the email address
// of the operator, and nothing that an operator chose. An invitation names no role.
func TestAcceptanceMessageNamesRoleAndOperator(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, auth.WithMail(auth.MailOptions{AppName: "Notes & Co"}))
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		name := "Call evil.example now"
		o.patch(owner.User.ID, store.UserPatch{FullName: &name})
		ada := o.imported("ada@example.com").User.ID
		message := func() auth.Message {
			t.Helper()
			m := o.Mail(t, "ada@example.com", auth.KindInvitation)
			o.Inbox.Clear()
			o.Clock.Advance(2 * time.Minute) // for the limit on messages to one address
			return m
		}
		check := func(m auth.Message, by, role string) {
			t.Helper()
			if m.Subject != "Accept your role at Notes & Co" || !strings.Contains(m.Text, by+" to accept a role at Notes & Co as ada@example.com: "+role+". ") || !strings.Contains(m.HTML, "Notes &amp; Co") || !strings.Contains(m.HTML, ": "+role+". ") {
				t.Errorf("%s\n%s\n%s", m.Subject, m.Text, m.HTML)
			}
			if strings.Contains(m.Text+m.HTML, "evil") || strings.Contains(m.Text, "editor") {
				t.Errorf("the message has a text of an operator, or another role:\n%s", m.Text)
			}
		}
		o.permit("editor", notes)
		o.do(owner, "PUT /users/"+ada+"/roles", `{"roles":["admin","editor"],"address":"ada@example.com"}`).want(200)
		check(message(), "owner@example.com asks you", "admin")
		o.do(owner, "POST /users/"+ada+"/roles/support", `{"address":"ada@example.com"}`).want(200)
		check(message(), "owner@example.com asks you", "admin, support")
		o.must(second(o.adm.Send(t.Context(), admin.System("evil"), admin.SendParams{UserID: ada, Type: admin.LinkAccept})))
		check(message(), "You are asked", "admin, support")

		o.do(owner, "POST /invitations", `{"email":"bob@example.com","roles":["editor"]}`).want(201)
		if m := o.Mail(t, "bob@example.com", auth.KindInvitation); m.Subject != "You are invited to Notes & Co" || strings.Contains(m.Text, "owner@example.com") {
			t.Errorf("%s\n%s", m.Subject, m.Text)
		}
	})
}

// A waiting account keeps the permissions that are no operator's, also those that its role
// names by a pattern.
func TestWaitingAccountKeepsTheRestOfAPattern(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		env := authtest.NewOn(t, st)
		adm, err := admin.New(t.Context(), env.Auth, admin.Options{Permissions: []admin.Permission{{Name: "invoices.read"}, {Name: "invoices.approve", Privileged: true}, {Name: "notes.write"}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := adm.EnsureRole(t.Context(), admin.System("test"), admin.CreateRoleParams{Name: "clerk", Permissions: []string{"invoices.*"}}); err != nil {
			t.Fatal(err)
		}
		ada := env.LoginAs(t, "ada@example.com")
		if _, err := adm.SetRoles(t.Context(), admin.System("test"), admin.SetRolesParams{UserID: ada.User.ID, Roles: []string{"clerk"}}); err != nil {
			t.Fatal(err)
		}
		next, err := env.Refresh(t.Context(), auth.RefreshParams{RefreshToken: ada.RefreshToken})
		if err != nil {
			t.Fatal(err)
		}
		claims, err := env.Verify(next.AccessToken)
		if err != nil || !slices.Equal(claims.Permissions, []string{"invoices.read"}) {
			t.Errorf("%v, %v", claims, err)
		}
	})
}
