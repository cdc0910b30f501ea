package admin_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/host"
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
		_, err = o.adm.Grant(t.Context(), admin.System("test").Accepting(), admin.GrantParams{UserID: helper.User.ID, Role: "admin"})
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
		// Demoted by mistake and restored after another change of the address: the answer says
		// that the account waits, and for the link to which address.
		o.do(owner, "PUT "+at+"/roles", `{"roles":["editor"]}`).want(200)
		married = "married-again@example.com"
		o.patchAs(again, store.UserPatch{Email: &married})
		for _, change := range [][2]string{{"PUT " + at + "/roles", `{"roles":["admin"],"address":"` + married + `"}`}, {"POST " + at + "/roles/editor", ""}} {
			restored := o.do(owner, change[0], change[1]).want(200).body
			if w, _ := restored["waiting"].(map[string]any); w["address"] != married {
				t.Errorf("%s: %v", change[0], restored)
			}
		}
		if n := o.sent(married, auth.KindInvitation); n != 1 {
			t.Errorf("%d links to the account that waits again", n)
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

// An account without an email address: an owner is shown the link, which is bound to the
// phone number, verifies nothing and keeps the number.
func TestAcceptanceByPhone(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		for i, verified := range []bool{true, false} {
			phone := fmt.Sprintf("+4915112345%03d", i)
			id := o.do(owner, "POST /users", fmt.Sprintf(`{"phone":%q,"phone_verified":%v,"roles":["support"]}`, phone, verified)).want(201).body["id"].(string)
			link := func() string {
				made := o.do(owner, "POST /links", fmt.Sprintf(`{"type":"accept","user_id":%q}`, id)).want(201).body["url"].(string)
				_, token, _ := strings.Cut(made, "token=")
				return token
			}
			if a := o.do(owner, "POST /users/"+id+"/send", `{"type":"accept"}`).want(422, auth.CodeValidationFailed); !strings.Contains(a.text, "hand it over") {
				t.Errorf("send: %s", a.text)
			}
			old := link()
			for _, moved := range []string{fmt.Sprintf(`"email":"ada%d@example.com"`, i), fmt.Sprintf(`"phone":"+4915112346%03d","phone_verified":%v`, i, verified)} {
				o.do(owner, "PATCH /users/"+id, "{"+moved+"}").want(200)
				_, err := o.accept(old)
				wantCode(t, err, auth.CodeInvalidToken)
				o.do(owner, "PATCH /users/"+id, fmt.Sprintf(`{"email":"","phone":%q,"phone_verified":%v}`, phone, verified)).want(200)
			}

			token := link()
			if page := o.page("GET", "/invitations/accept?token="+token, ""); strings.Contains(page, phone) || !strings.Contains(page, phone[len(phone)-2:]) {
				t.Errorf("page: %s", page)
			}
			list := o.do(owner, "GET /invitations", "").want(200).body["invitations"].([]any)
			invitation := list[0].(map[string]any)
			if len(list) != 1 || invitation["phone"] != phone || invitation["email"] != "" {
				t.Errorf("listed: %v", list)
			}
			o.do(owner, "POST /invitations/"+invitation["id"].(string)+"/resend", "").want(422, auth.CodeValidationFailed)
			s, err := o.accept(token)
			o.must(err)
			if u := o.read(id); len(o.powers(s)) == 0 || u.Phone != phone || u.PhoneVerified() != verified || u.Email != "" {
				t.Errorf("%v; %+v", o.powers(s), u)
			}
			for _, e := range o.do(owner, "GET /users/"+id+"/events", "").want(200).body["events"].([]any) {
				if e.(map[string]any)["type"] == "phone_verified" {
					t.Errorf("a link that was shown verified the number: %v", e)
				}
			}
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
			_, err := o.adm.Grant(t.Context(), admin.System("test"), admin.GrantParams{UserID: s.User.ID, Role: "accountant"})
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
		if picked := o.do(owner, "POST /users/bulk", `{"action":"send","type":"accept","filter":{"status":"waiting"},"dry_run":true}`).want(200).body; picked["done"] != 3.0 {
			t.Errorf("the filter picks %v", picked)
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

// A role of an operator needs the account's address, to which its link goes at once. An
// ordinary role, code of the application, and operations on many accounts need none.
func TestLinkToAcceptIsSentWithTheRole(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.permit("editor", notes)
		for _, pattern := range []string{"POST /users/%s/roles/%s", "PUT /users/%s/roles"} {
			ask := func(id, role, address string) *answer {
				body := fmt.Sprintf(`{"address":%q}`, address)
				if strings.HasPrefix(pattern, "PUT") {
					return o.do(owner, fmt.Sprintf(pattern, id), fmt.Sprintf(`{"roles":[%q],"address":%q}`, role, address))
				}
				return o.do(owner, fmt.Sprintf(pattern, id, role), body)
			}
			email := strings.ToLower(pattern[:3]) + "@example.com"
			ada := o.imported(email)
			ask(ada.User.ID, "editor", "").want(200)
			for _, address := range []string{"", "eve@example.com", "+4930123456"} {
				if a := ask(ada.User.ID, "admin", address).want(422, auth.CodeValidationFailed); !strings.Contains(a.text, `"address"`) {
					t.Errorf("%s to %q: %s", pattern, address, a.text)
				}
			}
			if u := o.read(ada.User.ID); !slices.Equal(u.Roles, []string{"editor"}) {
				t.Errorf("%s: refused, and gave %v", pattern, u.Roles)
			}
			ask(ada.User.ID, "admin", strings.ToUpper(email)).want(200)
			if n := o.sent(email, auth.KindInvitation); n != 1 {
				t.Errorf("%s: %d links", pattern, n)
			}
			ask(ada.User.ID, "admin", "").want(200) // nothing new
			s, err := o.accept(o.invitedToken(email))
			o.must(err)
			if len(o.powers(s)) == 0 {
				t.Errorf("%s: accepted, and no operator", pattern)
			}
			ask(ada.User.ID, "support", "").want(200) // a later role takes effect at once
		}
		eve := o.imported("eve@example.com")
		links := func(want int, after string) {
			if n := o.sent("eve@example.com", auth.KindInvitation); n != want {
				t.Errorf("%d links after %s, want %d", n, after, want)
			}
		}
		o.do(owner, "POST /users/"+eve.User.ID+"/roles/editor", `{"address":"eve@example.com"}`).want(200)
		links(0, "an ordinary role")
		_, err := o.adm.Grant(t.Context(), admin.System("code"), admin.GrantParams{UserID: eve.User.ID, Role: "admin"})
		o.must(err)
		links(0, "a role by code")
		o.do(owner, "POST /users/"+eve.User.ID+"/roles/admin", `{"address":"eve@example.com"}`).want(200)
		links(1, "the same role with the address")
	})
}

// A second acceptance ends the invitations, links, and keys that the account created
// before it. An invitation that is sent again, and a key that somebody adopts, live on.
func TestSecondAcceptanceEndsOlderWork(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		o.permit("editor", notes)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		boss := o.LoginAs(t, "boss@example.com", authtest.Roles(admin.RoleAdmin), authtest.AAL2())
		ben := o.LoginAs(t, "ben@example.com")
		o.permit("admin", "auth.*", notes)
		boss = o.renewed(boss)
		_, older := o.invite(actor(boss), "ada@example.com", "editor")
		again, _ := o.invite(actor(boss), "eve@example.com", "editor")
		link := o.do(boss, "POST /links", `{"type":"reset","user_id":"`+ben.User.ID+`"}`).want(201).body["url"].(string)
		left, adopted := o.key(actor(boss), admin.PermUsersRead), o.key(actor(boss), admin.PermUsersRead)
		o.do(owner, "PATCH /keys/"+adopted.ID, `{"adopted":true}`).want(200)
		o.do(owner, "DELETE /users/"+boss.User.ID+"/factors", `{"reason":"lost"}`).want(200)
		o.do(owner, "PATCH /users/"+boss.User.ID, `{"email":"chief@example.com","email_verified":true}`).want(200)
		if !o.waits(boss.User.ID) {
			t.Fatal("an operator whose address an owner changed does not wait")
		}
		for _, m := range o.Inbox.Messages() {
			if m.Kind == auth.KindEmailChanged && m.Link != "" {
				t.Errorf("the notice to %s has a link", m.To)
			}
		}
		o.do(owner, "POST /users/"+boss.User.ID+"/send", `{"type":"accept"}`).want(202)
		_, err := o.accept(o.invitedToken("chief@example.com"))
		o.must(err)
		_, err = o.accept(older)
		wantCode(t, err, auth.CodeInvalidToken)
		err = o.ResetPassword(t.Context(), auth.ResetPasswordParams{Token: tokenIn(t, link), NewPassword: password})
		wantCode(t, err, auth.CodeInvalidToken)
		o.do(boss, "GET /users", "").want(401) // and so do its jobs, which are bound to the session
		o.Clock.Advance(5 * time.Minute)
		_, err = o.adm.InviteAgain(t.Context(), actor(owner), again.ID)
		o.must(err)
		_, err = o.accept(o.invitedToken("eve@example.com"))
		o.must(err)
		o.do(program(left), "GET /users", "").want(401)
		o.do(program(adopted), "GET /users", "").want(200)
	})
}

// waits reports whether an account waits for an acceptance.
func (o *office) waits(id string) bool {
	o.t.Helper()
	table, err := host.Of(o).Roles(o.t.Context())
	o.must(err)
	return host.Of(o).Standing(table, o.read(id)).Waits
}

// sent counts the messages of a kind to an address.
func (o *office) sent(to string, k auth.Kind) (n int) {
	o.t.Helper()
	o.settled()
	for _, m := range o.Inbox.Messages() {
		if m.To == to && m.Kind == k {
			n++
		}
	}
	return n
}

// Only an invitation that could have given the permissions itself, or that was made for the
// account, lets its holder accept them: an operator who may only invite cannot have the
// permissions of another account accepted, nor replace or withdraw the link to accept them.
func TestWeakInvitationAcceptsNothing(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		for _, first := range []bool{true, false} {
			o := newOffice(t, st)
			name := fmt.Sprint("first-", first)
			address := name + "@mailbox-of-helper.example"
			owner := o.LoginAs(t, name+"-owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
			helper := o.operator(name+"-helper@example.com", admin.PermUsersWrite, admin.PermUsersRead)
			id := o.do(helper, "POST /users", `{"email":"`+address+`"}`).want(201).body["id"].(string)
			invite := func() { o.do(helper, "POST /invitations", `{"email":"`+address+`"}`).want(201) }
			if first {
				invite()
			}
			o.must(second(o.adm.Grant(t.Context(), admin.System("test"), admin.GrantParams{UserID: id, Role: "support"})))
			if !first {
				invite()
			}
			if s, err := o.accept(o.invitedToken(address)); err == nil && len(o.powers(s)) > 0 {
				t.Errorf("%s: accepted with %v", name, o.powers(s))
			}

			o.Clock.Advance(2 * time.Minute) // between mails to one address
			o.do(owner, "POST /users/"+id+"/send", `{"type":"accept"}`).want(202)
			bound := o.invitedToken(address)
			invitation := o.do(owner, "GET /invitations", "").want(200).body["invitations"].([]any)[0].(map[string]any)["id"].(string)
			o.do(helper, "POST /invitations/"+invitation+"/resend", "").want(403)
			o.do(helper, "DELETE /invitations/"+invitation, "").want(403)
			o.do(helper, "POST /invitations", `{"email":"`+address+`"}`).want(403)
			s, err := o.accept(bound)
			o.must(err)
			if len(o.powers(s)) == 0 {
				t.Errorf("%s: the link of the owner gave nothing", name)
			}
		}
	})
}

// The sessions of an account that waits change neither its address nor its number, and add
// no second factor. A factor of an account whose address was never verified does not keep
// its holder out.
func TestWaitingAccountStaysWhereItIs(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		stranger := func(address string) auth.Caller {
			r, err := o.SignUp(t.Context(), auth.SignUpParams{Email: address, Password: "a stranger's password"})
			o.must(err)
			return auth.Caller{UserID: r.User.ID, SessionID: r.Tokens.SessionID}
		}
		moves := func(c auth.Caller, to string) error {
			_, err := o.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: c, Email: &to})
			return err
		}
		cto := stranger("cto@example.com")
		o.must(moves(cto, "early@evil.example")) // asked for before the role, completed after it
		early := auth.VerifyEmailParams{Token: o.token("early@evil.example", auth.KindChangeEmail), Within: cto}
		o.do(owner, "PUT /users/"+cto.UserID+"/roles", `{"roles":["admin"],"address":"cto@example.com"}`).want(200)
		if _, err := o.VerifyEmail(t.Context(), early); err == nil {
			t.Error("a change asked for before completed")
		}
		for name, err := range map[string]error{
			"address": moves(cto, "late@evil.example"),
			"factor":  second(o.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: cto})),
		} {
			if !errors.Is(err, auth.CodeTargetStronger) {
				t.Errorf("%s: %v, want target_stronger", name, err)
			}
		}
		o.must(moves(cto, "cto@example.com")) // the present address, to get its mail again
		s, err := o.accept(o.invitedToken("cto@example.com"))
		o.must(err)
		if len(o.powers(s)) == 0 {
			t.Error("the holder has no permissions")
		}

		cfo := stranger("cfo@example.com")
		set, err := o.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: cfo})
		o.must(err)
		code, err := totp.GenerateCode(set.Secret, o.Clock.Now())
		o.must(err)
		_, err = o.EnableTOTP(t.Context(), auth.EnableTOTPParams{Caller: cfo, TOTPCode: code})
		o.must(err)
		o.do(owner, "POST /invitations", `{"email":"cfo@example.com","roles":["admin"]}`).want(201)
		_, err = o.accept(o.invitedToken("cfo@example.com"))
		o.must(err)
	})
}

// Where passwords are off, the holder accepts without one.
func TestAcceptanceWithoutPasswords(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, auth.WithSettings(auth.Settings{Password: auth.Off}))
		id := o.imported("ada@example.com").User.ID
		o.must(second(o.adm.Grant(t.Context(), admin.System("test"), admin.GrantParams{UserID: id, Role: "support"})))
		_, err := o.adm.Send(t.Context(), admin.System("test"), admin.SendParams{UserID: id, Type: admin.LinkAccept})
		o.must(err)
		token := o.invitedToken("ada@example.com")
		if page := o.page("GET", "/invitations/accept?token="+token, ""); !strings.Contains(page, "<button") || strings.Contains(page, `type="password"`) {
			t.Error(page)
		}
		if _, err := o.accept(token); !errors.Is(err, auth.CodeMethodDisabled) {
			t.Errorf("with a password: %v", err)
		}
		s, err := o.accept(token, func(p *auth.AcceptInvitationParams) { p.Password = "" })
		o.must(err)
		if len(o.powers(s)) == 0 {
			t.Error("no permissions")
		}
	})
}

func second[T any](_ T, err error) error { return err }

// An account recovery link of a former address does not move an account that waits: the
// permissions were given to the person with the present address. Without them it does.
func TestRecoveryMovesNoWaitingAccount(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		before := o.LoginAs(t, "before@example.com")
		address := "elsewhere@example.com"
		_, err := o.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: auth.Caller{UserID: before.User.ID, SessionID: before.SessionID}, Email: &address})
		o.must(err)
		link := o.token("before@example.com", auth.KindEmailChangeRequested)
		o.do(owner, "PATCH /users/"+before.User.ID, `{"email":"ada@example.com","email_verified":true}`).want(200)
		o.do(owner, "PUT /users/"+before.User.ID+"/roles", `{"roles":["admin"],"address":"ada@example.com"}`).want(200)
		if err := o.SecureAccount(t.Context(), auth.SecureAccountParams{Token: link}); !errors.Is(err, auth.CodeTargetStronger) {
			t.Errorf("while it waits: %v", err)
		}
		if w := o.send("GET", "/secure-account?token="+link, ""); w.Code != 403 {
			t.Errorf("its page: %d %s", w.Code, w.Body)
		}
		if u := o.read(before.User.ID); u.Email != "ada@example.com" {
			t.Errorf("it moved to %s", u.Email)
		}
		o.do(owner, "PUT /users/"+before.User.ID+"/roles", `{"roles":[]}`).want(200)
		o.must(o.SecureAccount(t.Context(), auth.SecureAccountParams{Token: link}))
		if u := o.read(before.User.ID); u.Email != "before@example.com" {
			t.Errorf("without the role it stays at %s", u.Email)
		}
	})
}

// A thief of an operator's session who changes the address twice, and recovers the one in
// between, does not keep the operator from recovering the first.
func TestRecoveryAfterARecovery(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		s := o.LoginAs(t, "ada@example.com", authtest.Roles(admin.RoleAdmin), authtest.AAL2())
		by := auth.Caller{UserID: s.User.ID, SessionID: s.SessionID}
		links := []string{}
		from := "ada@example.com"
		for _, to := range []string{"one@example.com", "two@example.com"} {
			_, err := o.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: by, Email: &to})
			o.must(err)
			_, err = o.VerifyEmail(t.Context(), auth.VerifyEmailParams{Token: o.token(to, auth.KindChangeEmail), Within: by})
			o.must(err)
			links, from = append(links, o.token(from, auth.KindEmailChanged)), to
		}
		o.must(o.SecureAccount(t.Context(), auth.SecureAccountParams{Token: links[1]}))
		if u := o.read(s.User.ID); u.Email != "one@example.com" || !o.waits(u.ID) {
			t.Fatalf("the thief's recovery: %s, waits %v", u.Email, o.waits(u.ID))
		}
		o.must(o.SecureAccount(t.Context(), auth.SecureAccountParams{Token: links[0]}))
		if u := o.read(s.User.ID); u.Email != "ada@example.com" {
			t.Errorf("the operator's recovery: %s", u.Email)
		}
	})
}
