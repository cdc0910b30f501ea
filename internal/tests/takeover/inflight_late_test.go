package takeover_test

import (
	"context"
	"errors"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// atNext runs f right before the n-th call of a method from now on.
func atNext(tap *storetap.Tap, n int, method string, f func()) {
	if n > 1 {
		next := f
		f = func() { atNext(tap, n-1, method, next) }
	}
	harness.BeforeCall(tap, method, f)
}

// If a phone number gets an account while its code is used, a session cannot confirm the
// number any more, and a sign-in by the code signs in to that account.
func TestNumberIsTakenMeanwhile(t *testing.T) {
	t.Run("confirmed", func(t *testing.T) {
		w, tap, _ := harness.NewTappedWorld(t)
		s := w.Member(harness.AdaMail)
		w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(200)
		code := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
		harness.BeforeCall(tap, "RedeemCode", func() { w.Imported(auth.ImportUserParams{Phone: harness.PhoneNumber, PhoneVerified: true}) })
		w.PostOTP(harness.PhoneNumber, code, harness.Bearer(s.AccessToken)).Want(409, auth.CodeUserAlreadyExists)
	})
	t.Run("signed in with", func(t *testing.T) {
		w, tap, _ := harness.NewTappedWorld(t)
		code := w.PhoneCode(harness.PhoneNumber)
		var owner auth.User
		atNext(tap, 2, "RedeemCode", func() { owner = w.Imported(auth.ImportUserParams{Phone: harness.PhoneNumber, PhoneVerified: true}) })
		if s := w.PostOTP(harness.PhoneNumber, code).Session(); s.User.ID != owner.ID {
			t.Errorf("signed in to %s, not to %s", s.User.ID, owner.ID)
		}
	})
}

// The first verification of an address within a session deletes nothing. Once the session
// has ended it does, because a former intruder would otherwise keep their changes.
func TestCodeWithinASessionThatEndsMeanwhile(t *testing.T) {
	for name, ends := range map[string]bool{"goes on": false, "ends": true} {
		t.Run(name, func(t *testing.T) {
			w, tap, _ := harness.NewTappedWorld(t)
			s := w.PostSignUp(harness.AdaMail)
			m := w.AskByMail(harness.AdaMail, nil)
			within := w.ClaimsOf(s).Caller()
			atNext(tap, 2, "RedeemCode", func() {
				if ends {
					w.DeleteSession(s)
				}
			})
			if _, err := w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Email: harness.AdaMail, Code: m.Code, RequestID: m.Request, Within: within}); err != nil {
				t.Fatal(err)
			}
			if kept := w.PostLogin(harness.AdaMail, harness.GoodPassword).Status == 200; kept == ends {
				t.Errorf("the password that nobody's mailbox vouched for was kept: %v", kept)
			}
		})
	}
}

// A password that is checked while another one is set confirms nothing.
func TestPasswordChangesWhileItConfirms(t *testing.T) {
	w, tap, _ := harness.NewTappedWorld(t)
	s, hash := w.Member(harness.AdaMail), harness.BcryptHash
	harness.BeforeCall(tap, "AddAuthentication", func() { w.Patch(s.User.ID, store.UserPatch{PasswordHash: &hash}) })
	w.Reauthenticate(s, map[string]any{"password": harness.GoodPassword}).Want(401, auth.CodeInvalidCredentials)
}

// If the account changes during a sign-in, the sign-in checks again whether a second factor
// must be set up.
func TestFactorIsRequiredMeanwhile(t *testing.T) {
	w, tap, _ := harness.NewTappedWorld(t)
	s, phone := w.Member(harness.AdaMail), harness.PhoneNumber
	harness.BeforeCall(tap, "CreateSession", func() {
		w.Patch(s.User.ID, store.UserPatch{Phone: &phone, AppMetadata: map[string]any{"mfa_required": true}})
	})
	w.PostLogin(harness.AdaMail, harness.GoodPassword).Want(401, auth.CodeInvalidCredentials)
}

// Of two logins at once with a hash of old, one renews it: the other, which waits for
// its second factor, rests on the new one, too.
func TestLoginsRehashAtOnce(t *testing.T) {
	const secret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
	w, tap, _ := harness.NewTappedWorld(t)
	w.Imported(auth.ImportUserParams{Email: harness.AdaMail, EmailVerified: true, PasswordHash: harness.BcryptHash, TOTPSecret: secret})
	harness.BeforeCall(tap, "UpdateUser", func() { w.PostLogin(harness.AdaMail, harness.GoodPassword).Want(403, auth.CodeMFARequired) })
	token := harness.DecodeAs[struct {
		Token string `json:"mfa_token"`
	}](w.PostLogin(harness.AdaMail, harness.GoodPassword).Want(403, auth.CodeMFARequired)).Token
	w.PostVerifyMFA(token, w.Code(secret, 0)).Session()
}

// A request for a message to an account that is deleted meanwhile gets the same answer as
// one for an unknown account.
func TestDeletedWhileItIsWrittenTo(t *testing.T) {
	for path, body := range map[string]map[string]any{
		"/magic-link/send": {"email": harness.AdaMail}, "/forgot-password": {"email": harness.AdaMail}, "/otp/send": {"phone": harness.PhoneNumber},
	} {
		t.Run(path, func(t *testing.T) {
			w, tap, _ := harness.NewTappedWorld(t)
			u := w.Imported(auth.ImportUserParams{Email: harness.AdaMail, EmailVerified: true, Phone: harness.PhoneNumber, PhoneVerified: true})
			harness.BeforeCall(tap, "PutToken", func() {
				if err := w.DeleteUser(t.Context(), auth.DeleteUserParams{Caller: auth.ByApplication(u.ID)}); err != nil {
					t.Error(err)
				}
			})
			w.Do("POST", path, body).Want(200)
		})
	}
}

// The application may name a deleted or unknown account.
func TestApplicationNamesNobody(t *testing.T) {
	w := harness.NewWorld(t)
	nobody := auth.ByApplication("00000000-0000-7000-8000-000000000000")
	for name, call := range map[string]func(context.Context) error{
		"recovery codes": func(ctx context.Context) error {
			_, err := w.NewRecoveryCodes(ctx, auth.NewRecoveryCodesParams{Caller: nobody})
			return err
		},
		"second factor": func(ctx context.Context) error { return w.DisableTOTP(ctx, auth.DisableTOTPParams{Caller: nobody}) },
	} {
		if err := call(t.Context()); !errors.Is(err, auth.CodeSessionEnded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
