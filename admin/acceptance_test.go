package admin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

func (o *office) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// An invitation starts an existing account clean, although its address is verified.
func TestInvitationStartsClean(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		ada := o.LoginAs(t, "ada@example.com")
		_, token := o.invite(admin.System("test"), "ada@example.com", "support")
		if page := o.page("GET", "/invitations/accept?token="+token, ""); !strings.Contains(page, "reset your account first") || strings.Contains(page, `name="totp_code"`) {
			t.Errorf("page: %s", page)
		}
		_, err := o.accept(token, func(p *auth.AcceptInvitationParams) { p.Password = "short" })
		wantCode(t, err, auth.CodeWeakPassword)
		s, err := o.accept(token, func(p *auth.AcceptInvitationParams) {
			p.Within = auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}
		})
		o.must(err)
		if !slices.Contains(o.powers(s), admin.PermUsersRead) || s.SessionID == ada.SessionID {
			t.Errorf("%v", o.powers(s))
		}
		_, err = o.Refresh(t.Context(), auth.RefreshParams{RefreshToken: ada.RefreshToken})
		wantCode(t, err, auth.CodeSessionEnded)
		_, err = o.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
		wantCode(t, err, auth.CodeInvalidCredentials)
	})
}

// An employee with a second factor is given editor, and nothing changes; then admin: one
// link, the second factor and a new password make an admin. A demotion by mistake is undone
// within an hour. The employee changes the address and stays an admin.
func TestAcceptanceOfAnEmployee(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		ada := o.LoginAs(t, "ada@example.com")
		set, err := o.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}})
		o.must(err)
		code := func() string {
			c, err := totp.GenerateCode(set.Secret, o.Clock.Now())
			o.must(err)
			return c
		}
		_, err = o.EnableTOTP(t.Context(), auth.EnableTOTPParams{Caller: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}, TOTPCode: code()})
		o.must(err)
		at := "/users/" + ada.User.ID
		o.permit("editor", notes)
		o.do(owner, "PUT "+at+"/roles", `{"roles":["editor"],"address":"ada@example.com"}`).want(200)
		if s := o.renewed(ada); len(o.powers(&s.Tokens)) != 0 {
			t.Error("an editor is an operator")
		}
		o.do(owner, "PUT "+at+"/roles", `{"roles":["admin"],"address":"eve@example.com"}`).want(422, auth.CodeValidationFailed)
		o.do(owner, "PUT "+at+"/roles", `{"roles":["admin"],"address":"ada@example.com"}`).want(200)
		waiting := func() int { return len(o.do(owner, "GET /users?status=waiting", "").want(200).body["users"].([]any)) }
		if waiting() != 1 {
			t.Error("the account is not listed")
		}
		token := o.invitedToken("ada@example.com")
		_, err = o.accept(token)
		wantCode(t, err, auth.CodeInvalidTOTPCode)
		o.Clock.Advance(time.Minute)
		s, err := o.accept(token, func(p *auth.AcceptInvitationParams) { p.TOTPCode = code() })
		o.must(err)
		if held := o.powers(s); !slices.Contains(held, "role admin") || waiting() != 0 {
			t.Fatalf("accepted: %v", held)
		}
		c, err := o.Verify(s.AccessToken)
		o.must(err)
		if c.AAL != store.LevelAAL2 || !o.read(ada.User.ID).MFAEnabled {
			t.Errorf("the second factor is gone: %s", c.AAL)
		}
		again := &authtest.SignedIn{Tokens: *s}
		owner = o.renewed(owner)
		for _, role := range []string{"editor", "admin"} {
			o.do(owner, "PUT "+at+"/roles", `{"roles":["`+role+`"]}`).want(200)
			o.Clock.Advance(time.Minute)
			again = o.renewed(again)
			if got := len(o.powers(&again.Tokens)) > 0; got != (role == "admin") {
				t.Errorf("%s: %v", role, got)
			}
		}
		helper := o.operator("helper@example.com", admin.PermUsersWrite, admin.PermCredentials)
		o.permit("authtest helper@example.com", "auth.*", "money.send", notes) // stronger than an admin, and not "*"
		_, err = o.adm.Grant(t.Context(), admin.System("test").Accepting(), helper.User.ID, "admin")
		o.must(err)
		helper = o.renewed(helper)
		o.do(helper, "POST "+at+"/password", `{"password":"a planted password"}`).want(403, auth.CodeTargetStronger)
		o.do(helper, "PATCH "+at, `{"email":"new@example.com"}`).want(403, auth.CodeTargetStronger)
		o.do(helper, "POST /links", `{"type":"reset","user_id":"`+ada.User.ID+`"}`).want(403, auth.CodeTargetStronger)
		o.do(helper, "DELETE "+at+"/factors", `{"reason":"lost"}`).want(200)

		married := "married@example.com"
		o.patchAs(again, store.UserPatch{Email: &married})
		again = o.signedInAgain("married@example.com")
		if len(o.powers(&again.Tokens)) == 0 {
			t.Error("an operator who changed the own address waits")
		}
		o.do(owner, "PATCH "+at, `{"email":"other@example.com","email_verified":true}`).want(200)
		again = o.signedInAgain("other@example.com")
		if held := o.powers(&again.Tokens); len(held) != 0 {
			t.Errorf("an operator whose address an owner changed has %v", held)
		}
	})
}

// signedInAgain signs in with the password of accept.
func (o *office) signedInAgain(email string) *authtest.SignedIn {
	o.t.Helper()
	s, err := o.Login(o.t.Context(), auth.LoginParams{Email: email, Password: password})
	o.must(err)
	return &authtest.SignedIn{Tokens: *s}
}

// patchAs changes an account within its own session.
func (o *office) patchAs(who *authtest.SignedIn, p store.UserPatch) {
	o.t.Helper()
	c := store.UpdateUser{Change: store.Change{Now: o.Clock.Now(), By: auth.Authority{Session: &auth.SessionRef{ID: who.SessionID, UserID: who.User.ID}}}, UserID: who.User.ID, Patch: p}
	_, err := o.Store.UpdateUser(o.t.Context(), c)
	o.must(err)
}

// An intranet without mail: the owner is shown the link once, and a key never is.
func TestAcceptanceWithoutMail(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		helper := o.operator("helper@example.com", "auth.*", "money.send", notes)
		id := o.do(owner, "POST /users", `{"email":"ada@example.com","password":"a first password","roles":["support"]}`).want(201).body["id"].(string)
		body := fmt.Sprintf(`{"type":"accept","user_id":%q}`, id)
		o.do(helper, "POST /links", body).want(403, auth.CodeMissingPermission)
		made := o.do(owner, "POST /links", body).want(201).body["url"].(string)
		_, token, _ := strings.Cut(made, "token=")
		s, err := o.accept(token)
		o.must(err)
		if u := o.read(id); len(o.powers(s)) == 0 || u.EmailVerified() {
			t.Errorf("%v; verified by a link that was shown: %v", o.powers(s), u.EmailVerified())
		}
	})
}

// A permission is declared privileged: its holders are counted in the log and listed, keep
// their other permissions, and get their links in one step. Imports may skip the waiting.
func TestAccountsThatWait(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.permit("accountant", notes, "money.send")
		var ids []string
		for i := range 3 {
			s := o.imported(fmt.Sprintf("a%d@example.com", i))
			_, err := o.adm.Grant(t.Context(), admin.System("test"), s.User.ID, "accountant")
			o.must(err)
			ids = append(ids, `"`+s.User.ID+`"`)
		}
		if list := o.do(owner, "GET /users?status=waiting", "").want(200).body["users"].([]any); len(list) != 3 {
			t.Errorf("%d wait", len(list))
		}
		can, err := o.adm.Check(t.Context(), admin.System("test"), strings.Trim(ids[0], `"`), notes)
		o.must(err)
		cannot, err := o.adm.Check(t.Context(), admin.System("test"), strings.Trim(ids[0], `"`), "money.send")
		o.must(err)
		if !can.Allowed || cannot.Allowed {
			t.Errorf("%v, %v", can, cannot)
		}
		o.do(owner, "POST /users/bulk", `{"action":"send","type":"accept","ids":[`+strings.Join(ids, ",")+`]}`).want(200)
		for i := range ids {
			_, err := o.accept(o.invitedToken(fmt.Sprintf("a%d@example.com", i)))
			o.must(err)
		}
		o.imports(owner, "?accepted=true", `{"email":"now@example.com","email_verified":true,"roles":["support"]}`)
		u, err := o.Store.User(t.Context(), store.ByEmail("now@example.com"))
		o.must(err)
		if u.AcceptedSequence != 1 {
			t.Error("an import with accepted waits")
		}
	})
}
