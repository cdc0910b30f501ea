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
	"github.com/authmount/auth/store"
)

const bcryptHash = "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"

// A field needs the permission of its own operation wherever it is written, and the
// fresh proof that that asks for: without it nothing is changed.
func TestFieldPermissions(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, target := newScene(t, st)
		owner := o.later(o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2()))
		clerk := o.operator("clerk@example.com", admin.PermUsersWrite)
		patch := "PATCH /users/" + target.User.ID
		for _, f := range []struct{ pattern, body, permission string }{
			{"POST /users", `"password":"a phrase of four words"`, admin.PermCredentials},
			{"POST /users", `"password_hash":"` + bcryptHash + `"`, admin.PermCredentials},
			{"POST /users", `"email_verified":true`, admin.PermCredentials},
			{"POST /users", `"phone":"+4930123456","phone_verified":true`, admin.PermCredentials},
			{"POST /users", `"roles":["` + role + `"]`, admin.PermRolesAssign},
			{patch, `"email":"else@example.com"`, admin.PermCredentials},
			{patch, `"email":null,"phone":"+4930123456"`, admin.PermCredentials},
			{patch, `"phone":"+4930123456"`, admin.PermCredentials},
			{patch, `"email_verified":false`, admin.PermCredentials},
			{patch, `"email_verified":true`, admin.PermCredentials},
			{patch, `"phone_verified":true`, admin.PermCredentials},
		} {
			body := "{" + f.body + `,"full_name":"Eve"}`
			if f.pattern == "POST /users" {
				body = `{"email":"fresh@example.com",` + f.body + "}"
			}
			before := o.read(target.User.ID)
			a := o.do(clerk, f.pattern, body).want(403, auth.CodeMissingPermission)
			if d, _ := a.body["details"].(map[string]any); d["permission"] != f.permission {
				t.Errorf("%s %s: the refusal names %v, want %s", f.pattern, f.body, d, f.permission)
			}
			o.do(owner, f.pattern, body).want(403, auth.CodeReauthNeeded)
			if after := o.read(target.User.ID); after.Revision != before.Revision {
				t.Errorf("%s %s: changed %+v", f.pattern, f.body, after)
			}
			if _, err := o.Store.User(t.Context(), store.ByEmail("fresh@example.com")); err == nil {
				t.Errorf("%s %s: made all the same", f.pattern, f.body)
			}
		}
		o.do(clerk, patch, `{"full_name":"Ada","notes":"called","app_metadata":{"plan":"pro"},"user_metadata":{"a":1}}`).want(200)
		o.do(clerk, "POST /users", `{"email":"fresh@example.com","phone":"+4930123457","full_name":"Eve","notes":"n","app_metadata":{"a":1}}`).want(201)
	})
}

// Roles are given to somebody new by the same rules as to anybody else.
func TestRolesOfNewAccounts(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, _ := newScene(t, store)
		o.permit("rich", "money.send")
		clerk := o.operator("clerk@example.com", admin.PermUsersWrite, admin.PermRolesAssign)
		o.do(clerk, "POST /users", `{"email":"new@example.com","roles":["rich"]}`).want(403, auth.CodeTargetStronger)
		o.do(clerk, "POST /users", `{"email":"new@example.com","roles":["owner"]}`).want(403, auth.CodeTargetStronger)
		o.do(clerk, "POST /users", `{"email":"new@example.com","roles":["nobody's"]}`).want(404, auth.CodeRoleNotFound)
		a := o.do(clerk, "POST /users", `{"email":"new@example.com","roles":["`+role+`"]}`).want(201)
		if got := fmt.Sprint(a.body["roles"]); got != "["+role+"]" {
			t.Errorf("roles %s", got)
		}
	})
}

// Nobody writes their own metadata of the server's, nor their own ways in, nor those
// of somebody who is as strong.
func TestNobodyWritesTheirOwn(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, _ := newScene(t, store)
		boss := o.operator("boss@example.com", "auth.*")
		equal := o.operator("equal@example.com", "auth.*")
		own := "PATCH /users/" + boss.User.ID
		for _, body := range []string{`{"app_metadata":{"plan":"pro"}}`, `{"email":"x@example.com"}`, `{"email_verified":true}`, `{"phone":"+4930123456"}`, `{"phone_verified":false}`} {
			o.do(boss, own, body).want(403, auth.CodeTargetStronger)
		}
		o.do(boss, own, `{"full_name":"Boss","user_metadata":{"a":1}}`).want(200)
		o.do(boss, "PATCH /users/"+equal.User.ID, `{"full_name":"Equal","app_metadata":{"a":1}}`).want(200)
		o.do(boss, "PATCH /users/"+equal.User.ID, `{"email":"x@example.com"}`).want(403, auth.CodeTargetStronger)
		o.do(boss, "POST /users/"+equal.User.ID+"/password", `{"password":null}`).want(403, auth.CodeTargetStronger)
	})
}

// A new account is what was said, is told of in the audit log, and signs in with the
// password that it was given.
func TestCreateUser(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, _ := newScene(t, store)
		owner := o.operator("owner@example.com", "*")
		const id = "4d6f9f0e-7d0c-4a55-9f1a-2b3c4d5e6f70"
		a := o.do(owner, "POST /users", `{"id":"`+id+`","email":"Ada@example.com","email_verified":true,"phone":"+49 30 123456","full_name":"Ada",
			"password":"a phrase of four words","roles":["`+role+`"],"user_metadata":{"u":1},"app_metadata":{"a":2},"notes":"met at the fair"}`).want(201)
		if a.header.Get("ETag") != `"0"` || a.body["id"] != id || a.body["phone"] != "+4930123456" || a.body["email_verified"] != true || a.body["phone_verified"] != false {
			t.Errorf("%v %v", a.header, a.body)
		}
		if _, err := o.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: "a phrase of four words"}); err != nil {
			t.Error(err)
		}
		whole := o.do(owner, "GET /users/"+id, "").want(200)
		if whole.body["notes"] != "met at the fair" || whole.body["has_password"] != true {
			t.Errorf("%v", whole.body)
		}
		row := o.audit()[0]
		if row.Type != auth.EventUserCreated || row.UserID != id || row.Record.Target != "Ada@example.com" || row.Record.Changes["password"].After != true || row.Record.Changes["notes"].After != nil || fmt.Sprint(row.Record.Changes["roles"].After, row.Record.Changes["app_metadata"].After) != "["+role+"] map[a:2]" {
			t.Errorf("%+v %+v", row, row.Record)
		}
		for body, field := range map[string]string{
			`{}`:              "email",
			`{"email":"ada"}`: "email",
			`{"email":"x@example.com","password":"a phrase of four words","password_hash":"` + bcryptHash + `"}`: "password_hash",
			`{"email":"x@example.com","password_hash":"md5"}`:                                                    "password_hash",
			`{"email":"x@example.com","id":"1"}`:                                                                 "id",
			`{"phone":"+4930123458","send":"verify"}`:                                                            "send",
			`{"email":"x@example.com","send":"nonsense"}`:                                                        "send",
			`{"phone":"+4930123458","send":"invite"}`:                                                            "send",
			`{"email":"x@example.com","password":"a phrase of four words","send":"invite"}`:                      "send",
			`{"email":"x@example.com","notes":"` + strings.Repeat("x", 17<<10) + `"}`:                            "notes",
			`{"phone":"+4930123458","email_verified":true}`:                                                      "email",
		} {
			got := o.do(owner, "POST /users", body).want(422, auth.CodeValidationFailed)
			d, _ := got.body["details"].(map[string]any)
			if f, _ := d["fields"].(map[string]any); f[field] == nil {
				t.Errorf("%.80s: %v, want %s", body, got.body, field)
			}
		}
		o.do(owner, "POST /users", `{"email":"x@example.com","password":"password"}`).want(422, auth.CodeWeakPassword)
		o.do(owner, "POST /users", `{"email":"ADA@example.com"}`).want(409, auth.CodeUserAlreadyExists)
		o.do(owner, "POST /users", `{"phone":"+4930123456"}`).want(409, auth.CodeUserAlreadyExists)
		o.do(owner, "POST /users", `{"email":"x@example.com","id":"`+id+`"}`).want(409, auth.CodeUserAlreadyExists)
	})
}

// An account that an operator makes gets a link to prove its address, if that is
// asked for; the application may refuse the account.
func TestCreateUserVerifies(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, _ := newScene(t, store)
		if _, err := o.adm.CreateUser(t.Context(), admin.System("crm"), admin.CreateUserParams{Email: "ada@example.com", SendVerification: true}); err != nil {
			t.Fatal(err)
		}
		v, err := o.VerifyEmail(t.Context(), auth.VerifyEmailParams{Token: o.token("ada@example.com", auth.KindVerifyEmail)})
		if err != nil || !v.User.EmailVerified() {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// A merge patch changes what it names; whoever has the former and the new address is
// told, and what was mailed to the former one dies.
func TestUpdateUser(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, _ := newScene(t, store)
		owner := o.operator("owner@example.com", "*")
		ada := o.LoginAs(t, "ada@example.com", authtest.AppMetadata(map[string]any{"plan": "free", "trial": true, "in": map[string]any{"a": 1.0, "b": 2.0}}))
		path := "PATCH /users/" + ada.User.ID
		if err := o.SendPasswordReset(t.Context(), auth.SendPasswordResetParams{Email: "ada@example.com"}); err != nil {
			t.Fatal(err)
		}
		reset := o.token("ada@example.com", auth.KindResetPassword)
		a := o.do(owner, path, `{"app_metadata":{"plan":"pro","trial":null,"in":{"a":null}},"full_name":"Ada","notes":"vip"}`).want(200)
		if got := fmt.Sprint(a.body["app_metadata"]); got != "map[in:map[b:2] plan:pro]" || a.body["full_name"] != "Ada" || a.header.Get("ETag") != `"1"` {
			t.Errorf("%v", a.body)
		}
		if row := o.audit()[0]; row.Record.Changes["app_metadata"].Before == nil || fmt.Sprint(row.Record.Changes["notes"]) != "{<nil> <nil>}" {
			t.Errorf("%+v", row.Record)
		}
		a = o.do(owner, path, `{"email":"Countess@example.com"}`).want(200)
		if a.body["email"] != "Countess@example.com" || a.body["email_verified"] != false {
			t.Errorf("%v", a.body)
		}
		if m := o.Mail(t, "ada@example.com", auth.KindEmailChanged); !strings.Contains(m.Text, "no longer send messages to ada@example.com") {
			t.Errorf("%s", m.Text)
		}
		if m := o.Mail(t, "Countess@example.com", auth.KindEmailChanged); strings.Contains(m.Text, "no longer come") {
			t.Errorf("%s", m.Text)
		}
		wantCode(t, o.ResetPassword(t.Context(), auth.ResetPasswordParams{Token: reset, NewPassword: "another phrase of words"}), auth.CodeInvalidToken)
		if _, _, err := o.Store.Session(t.Context(), ada.SessionID, o.Clock.Now()); err != nil {
			t.Errorf("the session: %v", err)
		}
		if a = o.do(owner, path, `{"email_verified":true,"phone":"+4930123456","phone_verified":true}`).want(200); a.body["email_verified"] != true || a.body["phone_verified"] != true {
			t.Errorf("%v", a.body)
		}
		o.Mail(t, "Countess@example.com", auth.KindPhoneChanged)
		o.Clock.Advance(time.Second)
		if again := o.do(owner, path, `{"email_verified":true}`).want(200); again.body["email_verified_at"] != a.body["email_verified_at"] {
			t.Errorf("verified at %v, and not at %v", again.body["email_verified_at"], a.body["email_verified_at"])
		}
		if n := o.countEvents(auth.EventEmailVerified); n != 1 {
			t.Errorf("%d events tell that the address was verified", n)
		}
		o.do(owner, path, `{"full_name":"Ada K."}`).want(200)
		if a = o.do(owner, path, `{"phone":null,"full_name":null,"email_verified":false}`).want(200); a.body["phone"] != nil || a.body["phone_verified"] != false || a.body["full_name"] != nil || a.body["email_verified"] != false {
			t.Errorf("%v", a.body)
		}
		for body, field := range map[string]string{
			`{"email":null}`: "email", `{"email":"x"}`: "email", `{"phone":"1"}`: "phone", `{"phone_verified":true}`: "phone_verified", `{"email_verified":null}`: "email_verified",
			`{"app_metadata":null}`: "app_metadata", `{"app_metadata":[]}`: "app_metadata", `{"full_name":7}`: "full_name", `{"notes":"\u0000"}`: "notes",
			`{"user_metadata":{"a":"` + strings.Repeat("x", 17<<10) + `"}}`: "user_metadata",
		} {
			got := o.do(owner, path, body).want(422, auth.CodeValidationFailed)
			d, _ := got.body["details"].(map[string]any)
			if f, _ := d["fields"].(map[string]any); f[field] == nil {
				t.Errorf("%.80s: %v, want %s", body, got.body, field)
			}
		}
		o.LoginAs(t, "bob@example.com")
		o.do(owner, path, `{"email":"bob@example.com"}`).want(409, auth.CodeUserAlreadyExists)
	})
}

// What operators note reaches no token, no page of the user's own, and not what they
// export; nor do operators' names.
func TestNotesAreTheOperators(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, _ := newScene(t, store)
		owner := o.operator("operator@example.com", "*")
		ada := o.LoginAs(t, "ada@example.com")
		o.do(owner, "PATCH /users/"+ada.User.ID, `{"notes":"difficult","full_name":"Ada"}`).want(200)
		if a := o.do(owner, "GET /users/"+ada.User.ID, "").want(200); a.body["notes"] != "difficult" {
			t.Errorf("%v", a.body)
		}
		e, err := o.Export(t.Context(), auth.ExportParams{Caller: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}})
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		if err := e.Write(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		if text := all.String(); strings.Contains(text, "difficult") || strings.Contains(text, `"notes"`) || strings.Contains(text, "operator@example.com") || !strings.Contains(text, "user.updated") {
			t.Errorf("exported %s", text)
		}
	})
}

// One account is shown with all that there is to it.
func TestAccount(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, _ := newScene(t, store)
		reader := o.operator("reader@example.com", admin.PermUsersRead)
		ada := o.LoginAs(t, "ada@example.com")
		o.link(ada)
		o.arm(ada)
		me := auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}
		to, number := "countess@example.com", "+4930123456"
		for _, p := range []auth.UpdateMeParams{{Caller: me, Email: &to}, {Caller: me, Phone: &number}} {
			if _, err := o.UpdateMe(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		a := o.do(reader, "GET /users/"+ada.User.ID, "").want(200)
		factors, _ := a.body["factors"].([]any)
		f, _ := factors[0].(map[string]any)
		if len(factors) != 1 || f["id"] != ada.User.ID || f["kind"] != "totp" || f["label"] != "phone" || f["last_used_at"] != nil {
			t.Errorf("factors %v", factors)
		}
		if got := fmt.Sprint(o.do(reader, "GET /users/"+ada.User.ID+"/factors", "").want(200).body["factors"]); got != fmt.Sprint(factors) {
			t.Errorf("factors %v", got)
		}
		var pending []string
		list, _ := a.body["pending_changes"].([]any)
		for _, p := range list {
			p, _ := p.(map[string]any)
			pending = append(pending, fmt.Sprint(p["field"], " ", p["value"]))
		}
		if slices.Sort(pending); fmt.Sprint(pending) != "[email countess@example.com phone +4930123456]" {
			t.Errorf("pending %v", pending)
		}
		if a.body["has_password"] != true || a.body["recovery_codes_left"] != 1.0 || fmt.Sprint(a.body["locks"]) != "[]" || a.body["notes"] != "" || a.header.Get("ETag") == "" {
			t.Errorf("%v", a.body)
		}
		o.do(reader, "GET /users/4d6f9f0e-7d0c-4a55-9f1a-2b3c4d5e6f70", "").want(404, auth.CodeUserNotFound)
		o.do(reader, "GET /users/nobody", "").want(404, auth.CodeUserNotFound)
	})
}

// A key writes as little of whoever answers for it.
func TestKeyWritesNothingOfItsMakers(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, _ := newScene(t, store)
		boss := o.maker("boss@example.com", "auth.*")
		k := program(o.key(actor(boss), admin.PermUsersWrite, admin.PermCredentials))
		path := "PATCH /users/" + boss.User.ID
		for _, body := range []string{`{"app_metadata":{"plan":"pro"}}`, `{"email":"x@example.com"}`, `{"phone_verified":false}`} {
			o.do(k, path, body).want(403, auth.CodeTargetStronger)
		}
		o.do(k, "POST /users", `{"email":"new@example.com","roles":["`+role+`"]}`).want(403, auth.CodeMissingPermission)
		o.do(k, "POST /users", `{"email":"new@example.com","email_verified":true}`).want(201)
	})
}

// Whoever is invited with the account chooses its password by the link in the mail,
// which proves the address; none goes out for an account that is not made.
func TestCreateUserInvites(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		clerk := o.operator("clerk@example.com", admin.PermUsersWrite, admin.PermUsersRead)
		made := o.do(clerk, "POST /users", `{"email":"ada@example.com","send":"invite"}`).want(201)
		if made.body["status"] != "unconfirmed" {
			t.Errorf("made %v", made.body)
		}
		if _, err := o.SignUp(t.Context(), auth.SignUpParams{Email: "bob@example.com", Password: authtest.Password}); err != nil {
			t.Fatal(err) // who waits for his proof, and has a way in
		}
		lists := func(status, want string) {
			t.Helper()
			if got := emails(o.do(clerk, "GET /users?order=asc&status="+status, "").want(200)); got != want {
				t.Errorf("%s: %q, want %q", status, got, want)
			}
		}
		lists("invited", "ada")
		lists("unconfirmed", "ada bob")
		token := o.token("ada@example.com", auth.KindWelcome)
		o.do(clerk, "POST /users", `{"email":"ADA@example.com","send":"invite"}`).want(429, auth.CodeRateLimited)
		o.Clock.Advance(time.Minute) // the gap between two messages
		o.do(clerk, "POST /users", `{"email":"ADA@example.com","send":"invite"}`).want(409, auth.CodeUserAlreadyExists)
		if err := o.ResetPassword(t.Context(), auth.ResetPasswordParams{Token: token, NewPassword: "a phrase of four words"}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: "a phrase of four words"}); err != nil {
			t.Error(err)
		}
		id, _ := made.body["id"].(string)
		if u := o.read(id); !u.EmailVerified() {
			t.Error("the address is not proved")
		}
		lists("invited", "")
	})
}

// Where there are no passwords nobody is invited to choose one.
func TestCreateUserInvitesToPasswords(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, auth.WithSettings(auth.Settings{Password: auth.Off}))
		_, err := o.adm.CreateUser(t.Context(), admin.System("test"), admin.CreateUserParams{Email: "ada@example.com", SendInvitation: true})
		wantCode(t, err, auth.CodeMethodDisabled)
		if _, err := o.behind().User(t.Context(), store.ByEmail("ada@example.com")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("made all the same: %v", err)
		}
	})
}

// Every field of a new account is kept, and shown.
func TestCreateUserKeepsEveryField(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.permit("editor", notes)
		made := o.do(owner, "POST /users", `{"id":"01990000-0000-7000-8000-000000000001","email":"ada@example.com","email_verified":true,"phone":"+4930123456","phone_verified":true,
			"full_name":"Ada L.","password":"a phrase of four words","roles":["editor"],"user_metadata":{"a":1},"app_metadata":{"b":2},"notes":"calls often"}`).want(201)
		id, _ := made.body["id"].(string)
		a := o.do(owner, "GET /users/"+id, "").want(200)
		for name, want := range map[string]string{
			"id": "01990000-0000-7000-8000-000000000001", "email": "ada@example.com", "email_verified": "true", "phone": "+4930123456", "phone_verified": "true", "full_name": "Ada L.",
			"has_password": "true", "roles": "[editor]", "user_metadata": "map[a:1]", "app_metadata": "map[b:2]", "notes": "calls often", "status": "active",
		} {
			if got := fmt.Sprint(a.body[name]); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	})
}

// An account whose limits cannot be read is not shown as one without locks.
func TestAccountWithoutItsLimits(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		o := newOffice(t, tap)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
			if method == "Take" {
				return storetap.FailsBefore
			}
			return storetap.NoFault
		}})
		defer tap.Reset(storetap.Hooks{})
		o.do(owner, "GET /users/"+owner.User.ID, "").want(503, auth.CodeUnavailable)
	})
}
