package passkey_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
)

// A second factor becomes required for ada, who has a password and a passkey that is none.
func requiredLater(t *testing.T, opts ...auth.Option) (w *world, required *bool) {
	t.Helper()
	required = new(bool)
	w = newWorld(t, append(opts, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return *required }}))...)
	_, err := w.add(false)
	w.must(err)
	*required = true
	return w, required
}

// waits signs ada in with the password and returns what the sign-in waits for.
func (w *world) waits(code auth.Code) *auth.Error {
	w.t.Helper()
	_, err := w.Login(w.t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.want(err, code)
	var e *auth.Error
	errors.As(err, &e)
	return e
}

// shows continues a sign-in that waits with a passkey of ada.
func (w *world) shows(mfaToken string) (*auth.Tokens, error) {
	w.t.Helper()
	begun, err := w.BeginPasskeyFactor(w.t.Context(), auth.BeginPasskeyFactorParams{MFAToken: mfaToken})
	w.must(err)
	response, err := w.key.Get(begun.PublicKey)
	w.must(err)
	return w.VerifyMFA(w.t.Context(), auth.VerifyMFAParams{MFAToken: mfaToken, Passkey: response})
}

// The password alone sets up no second factor: the passkey is asked for, and becomes the
// factor, with recovery codes.
func TestRequiredLaterAsksForThePasskey(t *testing.T) {
	w, _ := requiredLater(t)
	e := w.waits(auth.CodeMFARequired)
	if !slices.Equal(e.Factors, []string{"passkey"}) {
		t.Errorf("factors %q", e.Factors)
	}
	_, err := w.SetupTOTP(t.Context(), auth.SetupTOTPParams{MFAToken: e.MFAToken})
	w.want(err, auth.CodeBadToken)
	_, err = w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{MFAToken: e.MFAToken})
	w.want(err, auth.CodeBadToken)
	tokens, err := w.shows(e.MFAToken)
	w.must(err)
	if claims := w.claims(tokens); claims.AAL != "aal2" || len(tokens.RecoveryCodes) != 10 || !tokens.User.MFAEnabled {
		t.Errorf("%+v, %d recovery codes, enabled %v", claims, len(tokens.RecoveryCodes), tokens.User.MFAEnabled)
	}
	e = w.waits(auth.CodeMFARequired)
	if !slices.Equal(e.Factors, []string{"passkey", "recovery_code"}) {
		t.Errorf("factors %q", e.Factors)
	}
	_, err = w.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: e.MFAToken, RecoveryCode: tokens.RecoveryCodes[0]})
	w.must(err)
}

// Nor does a session that only the password started, refreshed or confirmed by the password.
func TestRequiredLaterInASession(t *testing.T) {
	w, required := requiredLater(t)
	*required = false
	login, err := w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.must(err)
	w.ada.Tokens = *login
	*required = true
	_, err = w.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: w.caller()})
	w.want(err, auth.CodeInsufficientAAL)
	_, err = w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{Caller: w.caller()})
	w.want(err, auth.CodeInsufficientAAL)
	w.want(w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: w.caller(), ID: "any"}), auth.CodeInsufficientAAL)
	_, err = w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: w.ada.RefreshToken})
	w.want(err, auth.CodeMFARequired)
	var e *auth.Error
	errors.As(err, &e)
	_, err = w.SetupTOTP(t.Context(), auth.SetupTOTPParams{MFAToken: e.MFAToken})
	w.want(err, auth.CodeBadToken)
	tokens, err := w.shows(e.MFAToken)
	w.must(err)
	w.ada.Tokens = *tokens
	if claims := w.claims(tokens); claims.AAL != "aal2" || len(tokens.RecoveryCodes) != 10 {
		t.Errorf("%+v, %d recovery codes", claims, len(tokens.RecoveryCodes))
	}
	w.app() // with the passkey used, more can be added
}

// Who signs in with the passkey itself needs nothing else, and can add a factor.
func TestRequiredLaterForAPasskeySignIn(t *testing.T) {
	w, _ := requiredLater(t)
	tokens, err := w.signIn()
	w.must(err)
	w.ada.Tokens = *tokens
	if w.claims(tokens).AAL != "aal2" {
		t.Error("not aal2")
	}
	w.app()
}

// Who lost the passkey signs in by a mailed link, also while links are switched off, and sets
// up another factor.
func TestRequiredLaterWithALostPasskey(t *testing.T) {
	for _, links := range []auth.Switch{auth.On, auth.Off} {
		w, _ := requiredLater(t, auth.WithSettings(auth.Settings{MagicLink: links}))
		_ = w.waits(auth.CodeMFARequired)
		_, err := w.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "ada@example.com"})
		w.must(err)
		_, err = w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: w.token("ada@example.com", auth.KindMagicLink)})
		w.want(err, auth.CodeMFAEnrollmentRequired)
		var e *auth.Error
		errors.As(err, &e)
		setup, err := w.SetupTOTP(t.Context(), auth.SetupTOTPParams{MFAToken: e.MFAToken})
		w.must(err)
		code, err := totp.GenerateCode(setup.Secret, w.Clock.Now())
		w.must(err)
		enabled, err := w.EnableTOTP(t.Context(), auth.EnableTOTPParams{MFAToken: e.MFAToken, TOTPCode: code})
		w.must(err)
		if len(enabled.RecoveryCodes) != 10 {
			t.Errorf("%d recovery codes", len(enabled.RecoveryCodes))
		}
	}
}

// A passkey that a browser created by itself counts together with the password. A second
// passkey is asked for after a sign-in with the first that counts as one factor.
func TestRequiredLaterWithUpgradedPasskeys(t *testing.T) {
	required := false
	w := newWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
	w.key = w.addsSilently()
	required = true
	_, err := w.signIn()
	w.want(err, auth.CodeMFAEnrollmentRequired) // there is no other passkey
	tokens, err := w.shows(w.waits(auth.CodeMFARequired).MFAToken)
	w.must(err)
	if w.claims(tokens).AAL != "aal2" || len(tokens.RecoveryCodes) != 10 {
		t.Errorf("%+v, %d recovery codes", w.claims(tokens), len(tokens.RecoveryCodes))
	}
}

// An older session of an account whose passkey was never verified signs in again, instead of
// being raised by one factor.
func TestRequiredLaterTakesNoOldPassword(t *testing.T) {
	required := false
	w := newWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
	w.key = w.addsSilently()
	required = true
	w.Clock.Advance(time.Hour)
	_, err := w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: w.ada.RefreshToken})
	w.want(err, auth.CodeMFARequired)
	var e *auth.Error
	errors.As(err, &e)
	_, err = w.shows(e.MFAToken)
	w.want(err, auth.CodeInvalidPasskey)
	_, err = w.shows(w.waits(auth.CodeMFARequired).MFAToken)
	w.must(err)
}

// Once the account has a second factor, a passkey that is none does not count, even if the
// client answers the request for another one with it.
func TestPlainPasskeyIsNoSecondFactor(t *testing.T) {
	w := newWorld(t)
	_, err := w.add(false)
	w.must(err)
	plain := w.key
	w.key = authenticator.New(origin)
	_, err = w.add(true)
	w.must(err)
	e, second := w.waits(auth.CodeMFARequired), w.key
	begun, err := w.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{MFAToken: e.MFAToken})
	w.must(err)
	response, err := plain.Get(map[string]any{"challenge": challengeIn(t, begun.PublicKey), "rpId": "auth.test"})
	w.must(err)
	_, err = w.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: e.MFAToken, Passkey: response})
	w.want(err, auth.CodeInvalidPasskey)
	w.key = second
	_, err = w.shows(e.MFAToken)
	w.must(err)
}
