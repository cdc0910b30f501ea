package admin_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// Where the admin side needs no second factor, a role that requires one permits nothing
// there without one, as in the session's tokens: neither its own operations nor an
// impersonation of another bearer. With the factor it does; a trusted device is not enough.
func TestRoleThatRequiresFactorOnTheAdminSide(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOfficeWith(t, st, admin.Options{RequireMFA: auth.Off}, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"auditor"}}), auth.WithMFA(auth.MFAOptions{TrustDevices: time.Hour}))
		o.permit("desk", admin.PermUsersRead, admin.PermImpersonate)
		ada, bearer := o.LoginAs(t, "ada@example.com", authtest.Roles("desk")), o.imported("bearer@example.com", "auditor")
		o.do(ada, "GET /audit-logs", "").want(403, auth.CodeMissingPermission)
		_, err := o.adm.SetRoles(t.Context(), admin.System("test"), admin.SetRolesParams{UserID: ada.User.ID, Roles: []string{"auditor", "desk"}})
		o.must(err)
		ada = o.renewed(ada)
		o.do(ada, "GET /users", "").want(200)
		o.do(ada, "GET /audit-logs", "").want(403, auth.CodeMissingPermission)
		o.do(ada, "POST /users/"+bearer.User.ID+"/impersonate", `{"reason":"x"}`).want(403, auth.CodeTargetStronger)

		me := auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}
		set, err := o.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: me})
		o.must(err)
		ctx := auth.ContextWithClient(t.Context(), auth.Client{Device: plantedDevice})
		on, err := o.EnableTOTP(ctx, auth.EnableTOTPParams{Caller: me, TOTPCode: codeOf(o, set.Secret)})
		o.must(err)
		raised := &authtest.SignedIn{Tokens: *on.Tokens}
		o.do(raised, "GET /audit-logs", "").want(200)
		o.do(raised, "POST /users/"+bearer.User.ID+"/impersonate", `{"reason":"x"}`).want(200)

		sign := auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}
		o.Clock.Advance(time.Minute)
		sign.TOTPCode, sign.TrustDevice = codeOf(o, set.Secret), true
		_, err = o.Login(ctx, sign)
		o.must(err)
		sign.TOTPCode, sign.TrustDevice = "", false
		trusted, err := o.Login(ctx, sign)
		o.must(err)
		o.do(&authtest.SignedIn{Tokens: *trusted}, "GET /audit-logs", "").want(403, auth.CodeInsufficientAAL)
	})
}

// Acting as a user shows what the user has: a role that requires a second factor only if
// the user set one up.
func TestActingAndRoleThatRequiresFactor(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"editor"}}))
		o.permit("editor", notes)
		o.permit("reader")
		boss := o.LoginAs(t, "boss@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		with := o.LoginAs(t, "with@example.com", authtest.Roles("editor", "reader"), authtest.AAL2())
		without := o.imported("without@example.com", "editor", "reader")
		for _, c := range []struct {
			who   *authtest.SignedIn
			roles []string
		}{{with, []string{"editor", "reader"}}, {without, []string{"reader"}}} {
			acts, err := o.adm.Impersonate(t.Context(), admin.User(auth.Caller{UserID: boss.User.ID, SessionID: boss.SessionID}), admin.ImpersonateParams{UserID: c.who.User.ID, Reason: "x"})
			o.must(err)
			claims, err := o.Verify(acts.AccessToken)
			o.must(err)
			if !slices.Equal(claims.Roles, c.roles) || claims.HasPermission(notes) != (len(c.roles) == 2) {
				t.Errorf("acting as %s: %v with %v, want %v", c.who.User.Email, claims.Roles, claims.Permissions, c.roles)
			}
		}
	})
}

// codeOf returns the present code of an authenticator app.
func codeOf(o *office, secret string) string {
	o.t.Helper()
	code, err := totp.GenerateCode(secret, o.Clock.Now())
	o.must(err)
	return code
}
