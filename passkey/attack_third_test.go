package passkey_test

import (
	"testing"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/authenticator"
)

// The token of a password sign-in that was to set up the first second factor adds nothing once the
// owner has set one up.
func TestEnrolmentTokenEndsWithTheFirstFactor(t *testing.T) {
	for _, owner := range []string{"app", "passkey"} {
		for _, thief := range []string{"app", "passkey"} {
			t.Run(owner+" "+thief, func(t *testing.T) {
				required := false
				w := newWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
				required = true
				stolen, own := w.waits(auth.CodeMFAEnrollmentRequired), w.waits(auth.CodeMFAEnrollmentRequired)
				stolenKey := authenticator.New(origin)
				var theirs []byte
				if thief == "passkey" {
					begun, err := w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{MFAToken: stolen.MFAToken})
					w.must(err)
					theirs, err = stolenKey.Create(begun.PublicKey)
					w.must(err)
				}
				if owner == "app" {
					setup, err := w.SetupTOTP(t.Context(), auth.SetupTOTPParams{MFAToken: own.MFAToken})
					w.must(err)
					code, err := totp.GenerateCode(setup.Secret, w.Clock.Now())
					w.must(err)
					_, err = w.EnableTOTP(t.Context(), auth.EnableTOTPParams{MFAToken: own.MFAToken, TOTPCode: code})
					w.must(err)
				} else {
					begun, err := w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{MFAToken: own.MFAToken})
					w.must(err)
					response, err := w.key.Create(begun.PublicKey)
					w.must(err)
					_, err = w.AddPasskey(t.Context(), auth.AddPasskeyParams{MFAToken: own.MFAToken, Credential: response})
					w.must(err)
				}
				if thief == "passkey" {
					got, err := w.AddPasskey(t.Context(), auth.AddPasskeyParams{MFAToken: stolen.MFAToken, Credential: theirs})
					if err == nil {
						t.Fatalf("the password added a second factor: %s", w.claims(got.Tokens).AAL)
					}
					_, err = w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{MFAToken: stolen.MFAToken})
					if err == nil {
						t.Fatal("the password begins a second factor")
					}
					return
				}
				setup, err := w.SetupTOTP(t.Context(), auth.SetupTOTPParams{MFAToken: stolen.MFAToken})
				if err == nil {
					code, err := totp.GenerateCode(setup.Secret, w.Clock.Now())
					w.must(err)
					if got, err := w.EnableTOTP(t.Context(), auth.EnableTOTPParams{MFAToken: stolen.MFAToken, TOTPCode: code}); err == nil {
						t.Fatalf("the password added a second factor: %s", w.claims(got.Tokens).AAL)
					}
					t.Fatal("the password begins a second factor")
				}
			})
		}
	}
}

// An enrolment token from before the account had a passkey sets up nothing afterwards.
func TestEnrolmentTokenFromBeforeThePasskey(t *testing.T) {
	required := false
	w := newWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
	required = true
	stolen := w.waits(auth.CodeMFAEnrollmentRequired)
	required = false
	_, err := w.add(false)
	w.must(err)
	required = true
	setup, err := w.SetupTOTP(t.Context(), auth.SetupTOTPParams{MFAToken: stolen.MFAToken})
	if err == nil {
		code, err := totp.GenerateCode(setup.Secret, w.Clock.Now())
		w.must(err)
		_, err = w.EnableTOTP(t.Context(), auth.EnableTOTPParams{MFAToken: stolen.MFAToken, TOTPCode: code})
		t.Fatalf("set up with a password beside a passkey: %v", err)
	}
}
