package admin_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// A link that an operator created does the same as the mailed one, and its token is in no
// row of the audit log.
func TestMadeLinks(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		helper := o.operator("helper@example.com", admin.PermCredentials)
		ada := o.LoginAs(t, "ada@example.com", authtest.Unverified())
		secret := func(body string) string {
			u, err := url.Parse(o.do(helper, "POST /links", body).want(201).body["url"].(string))
			if err != nil {
				t.Fatal(err)
			}
			return u.Query().Get("token")
		}
		verify := secret(`{"type":"verify","email":"ada@example.com"}`)
		if _, err := o.VerifyEmail(t.Context(), auth.VerifyEmailParams{Token: verify, Within: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}}); err != nil {
			t.Error(err)
		}
		magic := secret(`{"type":"magic_link","user_id":"` + ada.User.ID + `"}`)
		if tokens, err := o.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: magic}); err != nil || tokens.User.ID != ada.User.ID {
			t.Error(err)
		}
		reset := secret(`{"type":"reset","email":"Ada@example.com"}`)
		if err := o.ResetPassword(t.Context(), auth.ResetPasswordParams{Token: reset, NewPassword: password}); err != nil {
			t.Error(err)
		}
		for body, code := range map[string]auth.Code{
			`{"type":"verify","email":"ada@example.com"}`:                                                        auth.CodeValidationFailed,
			`{"type":"invite","email":"ada@example.com"}`:                                                        auth.CodeValidationFailed,
			`{"type":"code","email":"ada@example.com"}`:                                                          auth.CodeValidationFailed,
			`{"type":"x","email":"ada@example.com"}`:                                                             auth.CodeValidationFailed,
			`{"type":"reset"}`:                                                                                   auth.CodeValidationFailed,
			`{"type":"reset","email":"nobody@example.com"}`:                                                      auth.CodeUserNotFound,
			`{"type":"reset","email":"ada@example.com","redirect_to":"https://evil.example/"}`:                   auth.CodeRedirectNotAllowed,
			`{"type":"reset","email":"ada@example.com","user_id":"` + ada.User.ID + `"}`:                         auth.CodeValidationFailed,
			`{"type":"reset","user_id":"` + helper.User.ID + `"}`:                                                auth.CodeTargetStronger,
			`{"type":"reset","user_id":"` + o.operator("peer@example.com", admin.PermCredentials).User.ID + `"}`: auth.CodeTargetStronger,
		} {
			if a := o.do(helper, "POST /links", body); a.body["code"] != string(code) {
				t.Errorf("%s: %d %v, want %s", body, a.status, a.body, code)
			}
		}
		rows, err := json.Marshal(o.audit())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{verify, magic, reset} {
			if strings.Contains(string(rows), s) {
				t.Error("the audit log has a link")
			}
		}
	})
}

// A message that an operator sends goes to the account's own address, and counts against
// the limits.
func TestSentOnBehalf(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		support := o.LoginAs(t, "support@example.com", authtest.Roles(admin.RoleSupport), authtest.AAL2())
		ada := o.LoginAs(t, "ada@example.com", authtest.Unverified())
		for _, typ := range []admin.LinkType{admin.LinkVerify, admin.LinkMagicLink, admin.LinkReset} {
			o.do(support, "POST /users/"+ada.User.ID+"/send", `{"type":"`+string(typ)+`"}`).want(202)
			o.do(support, "POST /users/"+ada.User.ID+"/send", `{"type":"`+string(typ)+`"}`).want(429, auth.CodeRateLimited)
		}
		for _, k := range []auth.Kind{auth.KindVerifyEmail, auth.KindMagicLink, auth.KindResetPassword} {
			if m := o.Mail(t, "ada@example.com", k); m.Link == "" {
				t.Errorf("%s: %+v", k, m)
			}
		}
		o.do(support, "POST /users/"+ada.User.ID+"/send", `{"type":"code"}`).want(422, auth.CodeValidationFailed)
		if _, err := o.adm.BanUser(t.Context(), admin.System("test").Accepting(), admin.BanUserParams{UserID: ada.User.ID, Reason: "x"}); err != nil {
			t.Fatal(err)
		}
		o.Clock.Advance(time.Minute)
		o.do(support, "POST /users/"+ada.User.ID+"/send", `{"type":"reset"}`).want(403, auth.CodeUserBanned)
	})
}

// The export has all data about a user, without the names of other actors, and is
// recorded.
func TestExportOfAPerson(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		clerk := o.operator("clerk@example.com", admin.PermUsersExport)
		ada := o.LoginAs(t, "ada@example.com")
		if _, err := o.adm.SetRoles(t.Context(), actor(o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())), admin.SetRolesParams{UserID: ada.User.ID, Roles: []string{admin.RoleAuditor}, Address: "ada@example.com"}); err != nil {
			t.Fatal(err)
		}
		o.do(clerk, "GET /users/"+ada.User.ID+"/export", "").want(403, auth.CodeTargetStronger)
		if _, err := o.adm.SetRoles(t.Context(), admin.System("test").Accepting(), admin.SetRolesParams{UserID: ada.User.ID}); err != nil {
			t.Fatal(err)
		}
		a := o.do(clerk, "GET /users/"+ada.User.ID+"/export", "").want(200)
		text, err := json.Marshal(a.body)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{"ada@example.com", "user.roles_changed", "user.exported", ada.SessionID} {
			if !strings.Contains(string(text), s) {
				t.Errorf("%s is not in %s", s, text)
			}
		}
		for _, s := range []string{"clerk@example.com", "owner@example.com", clerk.User.ID} {
			if strings.Contains(string(text), s) {
				t.Errorf("%s is in %s", s, text)
			}
		}
		if r := o.audit()[0]; r.Type != auth.EventUserExported || r.Record.Actor != "clerk@example.com" {
			t.Errorf("recorded %+v", r)
		}
	})
}
