package passkey_test

import (
	"encoding/base64"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/passkey"
)

// Of parallel sign-ins with the passkey that is due one returns recovery codes, which work.
func TestParallelUsesOfTheDuePasskey(t *testing.T) {
	for range 5 {
		w, _ := requiredLater(t)
		type waiting struct {
			token    string
			response []byte
		}
		var list []waiting
		for range 4 {
			e := w.waits(auth.CodeMFARequired)
			begun, err := w.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{MFAToken: e.MFAToken})
			w.must(err)
			response, err := w.key.Get(begun.PublicKey)
			w.must(err)
			list = append(list, waiting{e.MFAToken, response})
		}
		var mu sync.Mutex
		var codes [][]string
		var wg sync.WaitGroup
		for _, l := range list {
			wg.Go(func() {
				in, err := w.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: l.token, Passkey: l.response})
				if err == nil && len(in.RecoveryCodes) > 0 {
					mu.Lock()
					codes = append(codes, in.RecoveryCodes)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if len(codes) != 1 {
			t.Fatalf("%d sets of recovery codes", len(codes))
		}
		e := w.waits(auth.CodeMFARequired)
		_, err := w.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: e.MFAToken, RecoveryCode: codes[0][0]})
		w.must(err)
	}
}

// A plain passkey that completes a sign-in, because an operator removed the second factor meanwhile,
// becomes none of an account that needs none.
func TestPasskeyBecomesNoFactorUnasked(t *testing.T) {
	w := newWorld(t)
	_, err := w.add(false)
	w.must(err)
	in, err := w.signIn()
	w.must(err)
	w.ada.Tokens = *in
	w.app()
	e := w.waits(auth.CodeMFARequired)
	adm, err := admin.New(t.Context(), w.Auth, admin.Options{})
	w.must(err)
	_, err = adm.RemoveFactor(t.Context(), admin.System("test"), admin.RemoveFactorParams{UserID: w.ada.User.ID})
	w.must(err)
	got, err := w.shows(e.MFAToken)
	if err == nil && got.User.MFAEnabled {
		t.Error("a plain passkey became a second factor of an account that needs none")
	}
	_, err = w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.must(err)
}

// Two passkeys that a browser created by itself count as one factor each, and are not two factors
// together. With the password, each counts from then on.
func TestTwoSilentPasskeys(t *testing.T) {
	required := false
	w := newWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
	p, q := w.addsSilently(), w.addsSilently()
	required = true
	w.key = p
	_, err := w.signIn()
	w.want(err, auth.CodeMFAEnrollmentRequired) // the other one is none, either
	w.key = q
	_, err = w.shows(w.waits(auth.CodeMFARequired).MFAToken)
	w.must(err)
	w.key = p
	_, err = w.signIn()
	w.want(err, auth.CodeMFARequired)
	var e *auth.Error
	errors.As(err, &e)
	w.key = q
	_, err = w.shows(e.MFAToken) // which counts by now, because the password came with it
	w.must(err)
}

// The same for an import: one of them is the second factor.
func TestTwoImportedSilentPasskeys(t *testing.T) {
	to := arrival(t, passkey.Options{})
	p, q := harness.NewKey(), harness.NewKey()
	first, handle := harness.PasskeyRecord(t, p)
	second, _ := harness.PasskeyRecord(t, q)
	first.UserVerified, second.UserVerified, second.SecondFactor = false, false, true
	in := auth.ImportUserParams{Email: "ada@example.com", EmailVerified: true, PasswordHash: harness.BcryptHash, UserHandle: handle, Passkeys: []auth.PasskeyRecord{first, second}}
	_, err := to.ImportUser(t.Context(), in)
	to.must(err)
	raw, err := base64.RawURLEncoding.DecodeString(handle)
	to.must(err)
	p.Passkeys[0].Handle, q.Passkeys[0].Handle = raw, raw
	to.key = p
	_, err = to.signIn()
	to.want(err, auth.CodeMFARequired)
	var e *auth.Error
	errors.As(err, &e)
	to.key = q
	_, err = to.shows(e.MFAToken)
	to.want(err, auth.CodeInvalidPasskey)
	_, err = to.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: harness.GoodPassword})
	to.want(err, auth.CodeMFARequired)
	errors.As(err, &e)
	_, err = to.shows(e.MFAToken)
	to.must(err)
}

// The recovery codes of a factor that is none any more do not replace the passkey that is due.
func TestLeftoverRecoveryCodes(t *testing.T) {
	required := false
	w := newWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
	added, err := w.add(true)
	w.must(err)
	w.ada.Tokens = *added.Tokens
	no := false
	_, err = w.ChangePasskey(t.Context(), auth.ChangePasskeyParams{Caller: w.caller(), ID: added.Passkey.ID, SecondFactor: &no})
	w.must(err)
	required = true
	e := w.waits(auth.CodeMFARequired)
	if !slices.Equal(e.Factors, []string{"passkey"}) {
		t.Errorf("%v", e.Factors)
	}
	_, err = w.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: e.MFAToken, RecoveryCode: added.RecoveryCodes[0]})
	w.want(err, auth.CodeInvalidTOTPCode)
	_, err = w.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: e.MFAToken, TOTPCode: "000000"})
	w.want(err, auth.CodeInvalidTOTPCode)
}

// Operators need a second factor for the admin API, and their sign-ins ask for none: neither does
// their password set one up beside a passkey, nor does it change the address that could.
func TestOperatorsPasswordSetsUpNoFactorBesideThePasskey(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{MagicLink: auth.Off}))
	_, err := admin.New(t.Context(), w.Auth, admin.Options{})
	w.must(err)
	w.ada = w.LoginAs(t, "boss@example.com", authtest.Permissions(admin.PermUsersRead))
	added, err := w.add(false)
	w.must(err)
	in, err := w.Login(t.Context(), auth.LoginParams{Email: "boss@example.com", Password: authtest.Password})
	w.must(err)
	w.ada.Tokens = *in
	_, err = w.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: w.caller()})
	w.want(err, auth.CodeInsufficientAAL)
	w.want(w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: w.caller(), ID: added.Passkey.ID}), auth.CodeInsufficientAAL)
	address := "thief@example.com"
	_, err = w.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: w.caller(), Email: &address})
	w.want(err, auth.CodeInsufficientAAL)
	_, err = w.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "boss@example.com"}) // the operator who lost it
	w.must(err)
	in, err = w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: w.token("boss@example.com", auth.KindMagicLink)})
	w.must(err)
	w.ada.Tokens = *in
	w.app()
}

// The operator who has the passkey shows it, and sets up what is needed.
func TestOperatorWithAPasskeySetsUpAFactor(t *testing.T) {
	w := newWorld(t)
	w.ada = w.LoginAs(t, "boss@example.com", authtest.Permissions(admin.PermUsersRead))
	_, err := w.add(false)
	w.must(err)
	in, err := w.Login(t.Context(), auth.LoginParams{Email: "boss@example.com", Password: authtest.Password})
	w.must(err)
	w.ada.Tokens = *in
	w.must(w.confirms(w.key))
	w.app()
}
