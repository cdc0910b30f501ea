package phonecheck_test

import (
	"context"
	"errors"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/phonecheck"
	"github.com/authmount/auth/store"
)

func TestPossible(t *testing.T) {
	for phone, want := range map[string]bool{
		"+4915123456789": true, "+4930123456": true, "+12025550123": true, "+390669812345": true, "+2250701234567": true, "+819012345678": true,
		"+1202555": false, "+1202555012345": false, "+999123456789": false, "+49": false, "+44": false, "x": false, "": false,
	} {
		if got := phonecheck.Possible(phone); got != want {
			t.Errorf("%s: %v", phone, got)
		}
	}
}

// Impossible numbers are refused where they are added. A number that has an account signs
// in, whatever is thought of it today, and stays at other changes.
func TestOnlyAddedNumbersAreJudged(t *testing.T) {
	const impossible = "+1202555"
	w := authtest.New(t, auth.WithPhone(auth.PhoneOptions{Possible: phonecheck.Possible}))
	ctx := t.Context()
	refused := func(what string, err error) {
		t.Helper()
		var e *auth.Error
		if !errors.As(err, &e) || e.Code != auth.CodeValidationFailed || e.Fields["phone"] != "is not a possible phone number" {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := w.SignUp(ctx, auth.SignUpParams{Phone: "+1 202 5551", Password: authtest.Password})
	refused("a sign-up", err)
	s := w.LoginAs(t, "ada@example.com")
	side, err := admin.New(ctx, w.Auth, admin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	typo := "+12025551"
	_, err = side.CreateUser(ctx, admin.System("test").Accepting(), admin.CreateUserParams{Phone: typo})
	refused("an operator's account", err)
	_, err = side.UpdateUser(ctx, admin.System("test").Accepting(), admin.UpdateUserParams{UserID: s.User.ID, Phone: &typo})
	refused("an operator's change", err)
	number := "+1 (202) 5551"
	_, err = w.UpdateMe(ctx, auth.UpdateMeParams{Caller: auth.Caller{UserID: s.User.ID, SessionID: s.SessionID}, Phone: &number})
	refused("a new number", err)

	// Without an account, the answer is that of every unknown number, and no text is sent.
	if sent, err := w.SendPhoneCode(ctx, auth.SendPhoneCodeParams{Phone: "+12025551"}); err != nil || sent.RequestID == "" {
		t.Errorf("%+v, %v", sent, err)
	}
	if err := w.Close(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, m := range w.Inbox.Messages() {
		if m.To == "+12025551" {
			t.Errorf("sent %s", m.Kind)
		}
	}

	w = authtest.New(t, auth.WithPhone(auth.PhoneOptions{Possible: phonecheck.Possible}))
	u, err := w.ImportUser(ctx, auth.ImportUserParams{Phone: impossible, PhoneVerified: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.SendPhoneCode(ctx, auth.SendPhoneCodeParams{Phone: impossible}); err != nil {
		t.Fatal(err)
	}
	tokens, err := w.VerifyPhoneCode(ctx, auth.VerifyPhoneCodeParams{Phone: impossible, Code: w.Mail(t, impossible, auth.KindPhoneCode).Code})
	if err != nil || tokens.User.ID != u.ID {
		t.Errorf("an imported number: %v", err)
	}
	same := impossible
	if _, err := w.UpdateMe(ctx, auth.UpdateMeParams{Caller: auth.Caller{UserID: u.ID, SessionID: tokens.SessionID}, Phone: &same}); err != nil {
		t.Errorf("the present number: %v", err)
	}

	// Unknown possible numbers sign up by code.
	if _, err := w.SendPhoneCode(ctx, auth.SendPhoneCodeParams{Phone: "+4915123456789"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.VerifyPhoneCode(ctx, auth.VerifyPhoneCodeParams{Phone: "+4915123456789", Code: w.Mail(t, "+4915123456789", auth.KindPhoneCode).Code}); err != nil {
		t.Error(err)
	}
	if _, err := w.Store.User(ctx, store.ByPhone("+4915123456789")); err != nil {
		t.Error(err)
	}
}
