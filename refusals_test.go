package auth_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// A sign-up whose session the application refuses makes no account, and writes to
// nobody.
func TestRefusedFirstSessionMakesNoAccount(t *testing.T) {
	refuse := func(context.Context, auth.SignInAttempt) error {
		return auth.Reject(auth.CodeMethodDisabled, "Not yet.")
	}
	w := newWorld(t, auth.WithHooks(auth.Hooks{BeforeSignIn: refuse}))
	w.do("POST", "/signup", map[string]any{"email": adaMail, "password": goodPassword}).want(403, auth.CodeMethodDisabled)
	if _, err := w.Store.User(t.Context(), store.ByEmail(adaMail)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("there is an account: %v", err)
	}
	if err := w.Close(t.Context()); err != nil || len(w.Inbox.Messages()) != 0 {
		t.Errorf("%d messages, %v", len(w.Inbox.Messages()), err)
	}
}

// An enrolment that would end in a session that the application refuses switches no
// second factor on, and can be ended later.
func TestRefusedSessionEndsNoEnrolment(t *testing.T) {
	var refusal error
	w := newWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}), auth.WithHooks(auth.Hooks{BeforeSignIn: func(context.Context, auth.SignInAttempt) error { return refusal }}))
	w.imported(auth.ImportUserParams{Email: adaMail, EmailVerified: true, PasswordHash: bcryptHash})
	token, _ := decodeAs[map[string]any](w.login(adaMail, goodPassword).want(403, auth.CodeMFAEnrollmentRequired))["mfa_token"].(string)
	secret := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(token)).want(200)).Secret
	enable := func() *answer {
		return w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(secret, 0)}, bearer(token))
	}
	refusal = auth.Reject(auth.CodeMethodDisabled, "Not yet.")
	enable().want(403, auth.CodeMethodDisabled)
	if u, err := w.Store.User(t.Context(), store.ByEmail(adaMail)); err != nil || u.MFAEnabled {
		t.Errorf("%+v, %v", u, err)
	}
	refusal = nil
	enable().want(200)
}

// A second factor from elsewhere that nobody can keep is no reason to bring its owner
// over without one.
func TestImportWithoutAStoreOfFactors(t *testing.T) {
	w := &world{t: t, Env: authtest.NewOn(t, plainStore{memstore.New()})}
	_, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: adaMail, TOTPSecret: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"})
	var e *auth.Error
	if !errors.As(err, &e) || e.Code != auth.CodeValidationFailed || e.Fields["totp_secret"] == "" {
		t.Errorf("%v", err)
	}
}

// Fields of other types are bad JSON, and nothing is changed.
func TestOwnFieldsOfOtherTypes(t *testing.T) {
	w := newWorld(t)
	s := w.signUp(adaMail)
	for field, v := range map[string]any{"full_name": 7, "user_metadata": "x"} {
		w.do("PATCH", "/me", map[string]any{field: v}, bearer(s.AccessToken)).want(400, auth.CodeBadJSON)
	}
	w.do("PATCH", "/me", map[string]any{"user_metadata": nil}, bearer(s.AccessToken)).want(422, auth.CodeValidationFailed)
}

// While passwords are switched off nobody changes theirs either.
func TestSwitchedOffPasswordsStay(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{Password: auth.Off}))
	s := w.do("GET", "/magic-link/verify?token="+w.magicLink(adaMail, nil), nil).session()
	w.do("POST", "/me/password", map[string]any{"new_password": goodPassword}, bearer(s.AccessToken)).want(403, auth.CodeMethodDisabled)
}

// A link leads nowhere that is not on the list, whatever it is for.
func TestMailedLinksLeadToAllowedPlaces(t *testing.T) {
	w := newWorld(t)
	for path, body := range map[string]map[string]any{
		"/signup": {"email": adaMail, "password": goodPassword}, "/magic-link/send": {"email": adaMail}, "/forgot-password": {"email": adaMail},
	} {
		body["redirect_to"] = "https://evil.test/"
		w.do("POST", path, body).want(400, auth.CodeRedirectNotAllowed)
	}
}

// leaks is a breach checker that is out of order.
type leaks struct{}

func (leaks) Breached(context.Context, string) (bool, error) { return false, errors.New("no answer") }

// Where passwords are not to be taken unchecked, none is taken while the checker fails.
func TestUncheckedPasswordIsNotTaken(t *testing.T) {
	for closed, want := range map[bool]int{true: 503, false: 200} {
		w := newWorld(t, auth.WithPasswords(auth.PasswordOptions{Breach: leaks{}, BreachFailClosed: closed}))
		if a := w.do("POST", "/signup", map[string]any{"email": adaMail, "password": goodPassword}); a.status != want {
			t.Errorf("fail closed %v: %d", closed, a.status)
		}
	}
}

// Another code to a new address has tries of its own.
func TestNewCodeToANewAddress(t *testing.T) {
	const newMail = "new@example.com"
	w := newWorld(t)
	s := w.member(adaMail)
	ask := func() string {
		seen := w.mailsSeen()
		w.do("PATCH", "/me", map[string]any{"email": newMail}, bearer(s.AccessToken)).want(200)
		return w.newMail(newMail, auth.KindChangeEmail, seen).Code
	}
	code := ask()
	for range 5 {
		w.verifyBy(newMail, other(code), bearer(s.AccessToken)).want(400, auth.CodeInvalidCode)
	}
	w.verifyBy(newMail, code, bearer(s.AccessToken)).want(429, auth.CodeRateLimited)
	w.Clock.Advance(time.Minute)
	w.verifyBy(newMail, ask(), bearer(s.AccessToken)).want(200)
}
