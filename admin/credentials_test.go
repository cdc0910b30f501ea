package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// A password that an operator sets or removes ends all sessions, and is told.
func TestSetPassword(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, _ := newScene(t, st)
		owner := o.operator("owner@example.com", "*")
		ada := o.LoginAs(t, "ada@example.com")
		path := "POST /users/" + ada.User.ID + "/password"
		o.do(owner, path, `{}`).want(422, auth.CodeValidationFailed)
		o.do(owner, path, `{"password":""}`).want(422, auth.CodeValidationFailed)
		o.do(owner, path, `{"password":7}`).want(422, auth.CodeValidationFailed)
		o.do(owner, path, `{"password":"password"}`).want(422, auth.CodeWeakPassword)
		if _, _, err := o.Store.Session(t.Context(), ada.SessionID, o.Clock.Now()); err != nil {
			t.Fatalf("the session ended for nothing: %v", err)
		}
		o.do(owner, path, `{"password":"a phrase of four words","reason":"forgot it"}`).want(200)
		o.Mail(t, "ada@example.com", auth.KindPasswordChanged)
		if _, _, err := o.Store.Session(t.Context(), ada.SessionID, o.Clock.Now()); !errors.Is(err, store.ErrSessionEnded) {
			t.Errorf("the session: %v", err)
		}
		if _, err := o.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: "a phrase of four words"}); err != nil {
			t.Error(err)
		}
		row := o.audit()[0]
		if row.Reason != "forgot it" || fmt.Sprint(row.Record.Changes) != "map[password:{true true}]" {
			t.Errorf("%+v %+v", row, row.Record)
		}
		o.do(owner, path, `{"password":null}`).want(200)
		_, err := o.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: "a phrase of four words"})
		wantCode(t, err, auth.CodeInvalidCredentials)
		if a := o.do(owner, "GET /users/"+ada.User.ID, "").want(200); a.body["has_password"] != false {
			t.Errorf("%v", a.body)
		}
	})
}

// The application decides on passwords that operators set, too.
func TestApplicationDecidesOnPasswords(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		var methods []string
		o := newOffice(t, store, auth.WithHooks(auth.Hooks{BeforePasswordChange: func(_ context.Context, p auth.PasswordChange) error {
			methods = append(methods, p.Method)
			return auth.Reject(auth.CodeMethodDisabled, "Not here.")
		}}))
		ada := o.LoginAs(t, "ada@example.com")
		password := "a phrase of four words"
		_, err := o.adm.SetPassword(t.Context(), admin.System("test"), admin.SetPasswordParams{UserID: ada.User.ID, Password: &password})
		wantCode(t, err, auth.CodeMethodDisabled)
		if fmt.Sprint(methods) != "[operator]" {
			t.Errorf("asked of %v", methods)
		}
	})
}

// Factors that an operator removes are gone with the recovery codes, and that is told.
func TestRemoveFactor(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, _ := newScene(t, store)
		owner := o.operator("owner@example.com", "*")
		ada := o.LoginAs(t, "ada@example.com")
		path := "DELETE /users/" + ada.User.ID + "/factors"
		o.do(owner, path, "").want(409, auth.CodeMFANotEnabled)
		for _, which := range []string{"", "/" + ada.User.ID} {
			o.arm(ada)
			o.do(owner, path+"/4d6f9f0e-7d0c-4a55-9f1a-2b3c4d5e6f70", "").want(404, auth.CodeNotFound)
			o.do(owner, path+which, "").want(200)
			o.Mail(t, "ada@example.com", auth.KindMFADisabled)
			if a := o.do(owner, "GET /users/"+ada.User.ID, "").want(200); a.body["mfa_enabled"] != false || a.body["recovery_codes_left"] != 0.0 || fmt.Sprint(a.body["factors"]) != "[]" {
				t.Errorf("%v", a.body)
			}
		}
	})
}

// An identity goes unless it is the last way in, or that is forced.
func TestUnlink(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, _ := newScene(t, st)
		owner := o.operator("owner@example.com", "*")
		ada := o.LoginAs(t, "ada@example.com")
		path := "DELETE /users/" + ada.User.ID + "/identities/" + ada.User.ID
		o.do(owner, path, "").want(404, auth.CodeNotFound)
		o.link(ada)
		o.do(owner, path, "").want(200)
		if m := o.Mail(t, "ada@example.com", auth.KindIdentityUnlinked); !strings.Contains(strings.ToLower(m.Text), "github") {
			t.Errorf("the notice: %s", m.Text)
		}
		if e := o.audit()[0]; e.Provider != "github" || e.Type != auth.EventIdentityUnlinked {
			t.Errorf("%+v", e)
		}
		o.link(ada)
		o.patch(ada.User.ID, store.UserPatch{PasswordHash: new(string)})
		o.do(owner, path, "").want(409, auth.CodeLastSignInMethod)
		o.do(owner, path, `{"force":true,"reason":"stolen"}`).want(200)
		if n := len(o.read(ada.User.ID).Identities); n != 0 {
			t.Errorf("%d identities", n)
		}
	})
}

// Limits that failures have used up are shown, and cleared for all names of the
// account and for nobody else.
func TestUnlock(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, _ := newScene(t, store)
		owner := o.operator("owner@example.com", "*")
		ada, bob := o.LoginAs(t, "ada@example.com"), o.LoginAs(t, "bob@example.com")
		try := func(email, password string) error {
			_, err := o.Login(t.Context(), auth.LoginParams{Email: email, Password: password})
			return err
		}
		for _, email := range []string{"ada@example.com", "bob@example.com"} {
			for range 10 {
				wantCode(t, try(email, "wrong"), auth.CodeInvalidCredentials)
			}
			wantCode(t, try(email, authtest.Password), auth.CodeRateLimited)
		}
		a := o.do(owner, "GET /users/"+ada.User.ID, "").want(200)
		locks, _ := a.body["locks"].([]any)
		lock, _ := locks[0].(map[string]any)
		until, err := time.Parse(time.RFC3339, fmt.Sprint(lock["until"]))
		if len(locks) != 1 || lock["limit"] != "password" || err != nil || !until.After(o.Clock.Now()) {
			t.Errorf("locks %v", locks)
		}
		o.do(owner, "POST /users/"+ada.User.ID+"/unlock", `{"reason":"asked"}`).want(200)
		if e := o.audit()[0]; e.Type != auth.EventUserUnlocked || e.Reason != "asked" || e.UserID != ada.User.ID {
			t.Errorf("%+v", e)
		}
		if err := try("ada@example.com", authtest.Password); err != nil {
			t.Error(err)
		}
		wantCode(t, try("bob@example.com", authtest.Password), auth.CodeRateLimited)
		if a := o.do(owner, "GET /users/"+ada.User.ID, "").want(200); fmt.Sprint(a.body["locks"]) != "[]" {
			t.Errorf("%v", a.body)
		}
		if a := o.do(owner, "GET /users/"+bob.User.ID, "").want(200); fmt.Sprint(a.body["locks"]) == "[]" {
			t.Errorf("%v", a.body)
		}
	})
}

// Failures on a device of the owner's count apart, and are cleared, too; so are those
// of second factors and codes.
func TestUnlockClearsAllCounts(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, _ := newScene(t, st)
		ada := o.LoginAs(t, "ada@example.com", authtest.AAL2())
		number := "+4930123456"
		o.patch(ada.User.ID, store.UserPatch{Phone: &number})
		here := auth.ContextWithClient(t.Context(), auth.Client{Device: "device of hers"})
		signIn := func(code string) error {
			_, err := o.Login(here, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password, TOTPCode: code})
			return err
		}
		var s auth.Session
		s, _, err := o.Store.Session(t.Context(), ada.SessionID, o.Clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.ID, s.Device = "4d6f9f0e-7d0c-4a55-9f1a-2b3c4d5e6f70", "device of hers"
		if _, err := o.Store.CreateSession(t.Context(), store.CreateSession{Change: o.change(), NewSession: store.NewSession{Session: s}}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // codes, of five tries each
			if _, err := o.SendPhoneCode(t.Context(), auth.SendPhoneCodeParams{Phone: number}); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				_, err := o.VerifyPhoneCode(t.Context(), auth.VerifyPhoneCodeParams{Phone: number, Code: "not it"})
				wantCode(t, err, auth.CodeInvalidCode)
			}
			o.Clock.Advance(time.Minute)
		}
		for range 5 {
			wantCode(t, signIn("000000"), auth.CodeInvalidTOTPCode)
		}
		wantCode(t, signIn("000000"), auth.CodeRateLimited)
		for range 10 {
			_, err := o.Login(here, auth.LoginParams{Email: "ada@example.com", Password: "wrong"})
			wantCode(t, err, auth.CodeInvalidCredentials)
		}
		limits := map[string]bool{}
		locks := func() map[string]bool {
			t.Helper()
			a, err := o.adm.User(t.Context(), admin.System("test"), ada.User.ID)
			if err != nil {
				t.Fatal(err)
			}
			clear(limits)
			for _, l := range a.Locks {
				limits[l.Limit] = true
			}
			return limits
		}
		if got := fmt.Sprint(locks()); got != "map[code:true factor:true password:true]" {
			t.Errorf("locks %v", got)
		}
		if _, err := o.adm.Unlock(t.Context(), admin.System("test"), admin.UnlockParams{UserID: ada.User.ID}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(locks()); got != "map[]" {
			t.Errorf("locks %v", got)
		}
		wantCode(t, signIn("000000"), auth.CodeInvalidTOTPCode)
	})
}
