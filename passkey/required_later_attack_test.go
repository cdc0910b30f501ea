package passkey_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/passkey"
	"github.com/authmount/auth/store"
)

// A session that only the password started does not move the account to an address or number
// of its own, to sign in there without the passkey: neither asks for it, nor confirms a change
// that it asked for before the account needed a second factor. One that has shown the passkey does.
func TestRequiredLaterKeepsTheAddresses(t *testing.T) {
	const address, phone = "thief@example.com", "+14155550100"
	for _, by := range []string{"email", "phone"} {
		w := newWorld(t, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"editor"}}))
		_, err := w.add(false)
		w.must(err)
		w.Clock.Advance(time.Minute)
		session, err := w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
		w.must(err)
		w.ada.Tokens = *session
		asks := func() error {
			change, to := auth.UpdateMeParams{Caller: w.caller()}, address
			if change.Email = &to; by == "phone" {
				to, change.Email, change.Phone = phone, nil, &to
			}
			_, err := w.UpdateMe(t.Context(), change)
			return err
		}
		confirms := func() error {
			if by == "phone" {
				_, err := w.ConfirmPhone(t.Context(), auth.ConfirmPhoneParams{Caller: w.caller(), Phone: phone, Code: w.Mail(t, phone, auth.KindPhoneCode).Code})
				return err
			}
			_, err := w.VerifyEmail(t.Context(), auth.VerifyEmailParams{Token: w.token(address, auth.KindChangeEmail), Within: w.caller()})
			return err
		}
		w.must(asks())
		w.promote(w.ada.User.ID, "editor") // only the role needs the factor, so the session goes on without it
		w.want(confirms(), auth.CodeInsufficientAAL)
		w.Clock.Advance(2 * time.Minute)
		w.want(asks(), auth.CodeInsufficientAAL)
		w.must(w.confirms(w.key))
		w.must(asks())
		w.must(confirms())
	}
}

// promote gives a user roles, as an operator would.
func (w *world) promote(id string, roles ...string) {
	w.t.Helper()
	_, err := w.Store.UpdateUser(w.t.Context(), store.UpdateUser{
		Change: store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "test"}}, UserID: id, Patch: store.UserPatch{Roles: &roles},
	})
	w.must(err)
}

// A mailed link of last week, in a session that goes on, and the password of today show no passkey.
func TestRequiredLaterTakesNoOldLink(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"editor"}}))
	_, err := w.add(false)
	w.must(err)
	w.Clock.Advance(time.Minute)
	_, err = w.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "ada@example.com"})
	w.must(err)
	in, err := w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: w.token("ada@example.com", auth.KindMagicLink)})
	w.must(err)
	w.promote(w.ada.User.ID, "editor")
	w.Clock.Advance(7 * 24 * time.Hour)
	in, err = w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: in.RefreshToken})
	w.must(err)
	w.ada.Tokens = *in
	in, err = w.Confirm(t.Context(), auth.ConfirmParams{Caller: w.caller(), Password: authtest.Password})
	w.must(err)
	w.ada.Tokens = *in
	_, err = w.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: w.caller()})
	w.want(err, auth.CodeInsufficientAAL)
	w.must(w.confirms(w.key)) // the passkey does
	w.app()
}

// No sign-in asks for a passkey of another domain, which nobody can show here.
func TestRequiredLaterWithAPasskeyOfAnotherDomain(t *testing.T) {
	_, _, _, out := moving(t)
	to := arrival(t, passkey.Options{OtherRPID: true}, auth.WithBaseURL("https://other.test/auth/v1"), auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	out.PasswordHash = harness.BcryptHash
	_, err := to.ImportUser(t.Context(), out)
	to.must(err)
	_, err = to.Login(t.Context(), auth.LoginParams{Email: out.Email, Password: harness.GoodPassword})
	to.want(err, auth.CodeMFAEnrollmentRequired)
}

// The access token that comes with the use of the passkey that was due works.
func TestRequiredLaterReturnsACurrentToken(t *testing.T) {
	w, _ := requiredLater(t)
	tokens, err := w.shows(w.waits(auth.CodeMFARequired).MFAToken)
	w.must(err)
	rec := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, authtest.BaseURL+"/me", nil)
	r.Header.Set("Authorization", "Bearer "+tokens.AccessToken)
	w.Handler().ServeHTTP(rec, r)
	if rec.Code != http.StatusOK {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	rec = httptest.NewRecorder()
	w.Require(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}), auth.AAL2()).ServeHTTP(rec, r)
	if rec.Code != http.StatusOK {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// A user who has no mail or text messages of the service does not lose the account together with
// the passkey: one whose provider names no address, and one with a phone number while phone codes
// are off.
func TestRequiredLaterWithoutMessages(t *testing.T) {
	p := authtest.StartProvider(t)
	required := false
	w := newWorld(t, auth.WithProvider(p.OIDC("corp")), auth.WithSettings(auth.Settings{Phone: auth.Off}), auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
	who := authtest.Person{Subject: "7", Name: "Ada"}
	w.ada = w.SignInWith(t, p, "corp", who)
	_, err := w.add(false)
	w.must(err)
	record, handle := harness.PasskeyRecord(t, harness.NewKey())
	_, err = w.ImportUser(t.Context(), auth.ImportUserParams{
		Phone: "+14155550100", PhoneVerified: true, PasswordHash: harness.BcryptHash, UserHandle: handle, Passkeys: []auth.PasskeyRecord{record},
	})
	w.must(err)
	required = true
	to, err := w.StartOAuth(t.Context(), auth.StartOAuthParams{Provider: "corp", Browser: "of ada"})
	w.must(err)
	p.SignsIn(who)
	back := p.Authorize(t, to)
	_, err = w.FinishOAuth(t.Context(), auth.OAuthCallback{Provider: "corp", State: back.Get("state"), Code: back.Get("code"), Issuer: back.Get("iss"), Browser: "of ada"})
	w.want(err, auth.CodeMFAEnrollmentRequired)
	_, err = w.Login(t.Context(), auth.LoginParams{Phone: "+14155550100", Password: harness.GoodPassword})
	w.want(err, auth.CodeMFAEnrollmentRequired)
}
