package auth_test

import (
	"context"
	"errors"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// atNext runs f right before the n-th call of a method from now on.
func atNext(tap *storetap.Tap, n int, method string, f func()) {
	if n > 1 {
		next := f
		f = func() { atNext(tap, n-1, method, next) }
	}
	between(tap, method, f)
}

func (w *world) endSession(s session) {
	w.t.Helper()
	w.do("POST", "/logout", nil, bearer(s.AccessToken)).want(204)
}

// Whoever's number somebody proves by a code may get an account while they do: then
// it is not another one's, and the code signs in to that account.
func TestNumberIsTakenMeanwhile(t *testing.T) {
	t.Run("confirmed", func(t *testing.T) {
		w, tap, _ := tapped(t)
		s := w.member(adaMail)
		w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken)).want(200)
		code := w.Mail(t, number, auth.KindPhoneCode).Code
		between(tap, "TryCode", func() { w.imported(auth.ImportUserParams{Phone: number, PhoneVerified: true}) })
		w.otp(number, code, bearer(s.AccessToken)).want(409, auth.CodeUserAlreadyExists)
	})
	t.Run("signed in with", func(t *testing.T) {
		w, tap, _ := tapped(t)
		code := w.phoneCode(number)
		var owner auth.User
		atNext(tap, 2, "TryCode", func() { owner = w.imported(auth.ImportUserParams{Phone: number, PhoneVerified: true}) })
		if s := w.otp(number, code).session(); s.User.ID != owner.ID {
			t.Errorf("signed in to %s, not to %s", s.User.ID, owner.ID)
		}
	})
}

// The first proof of an address within a session drops nothing. Once the session has
// ended it does, or else whoever was thrown out would keep what they had set up.
func TestCodeWithinASessionThatEndsMeanwhile(t *testing.T) {
	for name, ends := range map[string]bool{"goes on": false, "ends": true} {
		t.Run(name, func(t *testing.T) {
			w, tap, _ := tapped(t)
			s := w.signUp(adaMail)
			m := w.askByMail(adaMail, nil)
			within := w.claimsOf(s).Caller()
			atNext(tap, 2, "TryCode", func() {
				if ends {
					w.endSession(s)
				}
			})
			if _, err := w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Email: adaMail, Code: m.code, RequestID: m.request, Within: within}); err != nil {
				t.Fatal(err)
			}
			if kept := w.login(adaMail, goodPassword).status == 200; kept == ends {
				t.Errorf("the password that nobody's mailbox vouched for was kept: %v", kept)
			}
		})
	}
}

// A password that is judged while another one is chosen confirms nothing.
func TestPasswordChangesWhileItConfirms(t *testing.T) {
	w, tap, _ := tapped(t)
	s, hash := w.member(adaMail), bcryptHash
	between(tap, "AddProof", func() { w.patch(s.User.ID, store.UserPatch{PasswordHash: &hash}) })
	w.prove(s, map[string]any{"password": goodPassword}).want(401, auth.CodeInvalidCredentials)
}

// A sign-in whose account changes while it is made asks anew whether a second factor
// has to be set up.
func TestFactorIsRequiredMeanwhile(t *testing.T) {
	w, tap, _ := tapped(t)
	s, phone := w.member(adaMail), number
	between(tap, "CreateSession", func() {
		w.patch(s.User.ID, store.UserPatch{Phone: &phone, AppMetadata: map[string]any{"mfa_required": true}})
	})
	w.login(adaMail, goodPassword).want(401, auth.CodeInvalidCredentials)
}

// Of two logins at once with a hash of old, one renews it: the other, which waits for
// its second factor, rests on the new one, too.
func TestLoginsRehashAtOnce(t *testing.T) {
	const secret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
	w, tap, _ := tapped(t)
	w.imported(auth.ImportUserParams{Email: adaMail, EmailVerified: true, PasswordHash: bcryptHash, TOTPSecret: secret})
	between(tap, "UpdateUser", func() { w.login(adaMail, goodPassword).want(403, auth.CodeMFARequired) })
	token := decodeAs[struct {
		Token string `json:"mfa_token"`
	}](w.login(adaMail, goodPassword).want(403, auth.CodeMFARequired)).Token
	w.verifyMFA(token, w.code(secret, 0)).session()
}

// An account that is deleted while somebody asks for a message to it is one that is
// not there: the answer is the same.
func TestDeletedWhileItIsWrittenTo(t *testing.T) {
	for path, body := range map[string]map[string]any{
		"/magic-link/send": {"email": adaMail}, "/forgot-password": {"email": adaMail}, "/otp/send": {"phone": number},
	} {
		t.Run(path, func(t *testing.T) {
			w, tap, _ := tapped(t)
			u := w.imported(auth.ImportUserParams{Email: adaMail, EmailVerified: true, Phone: number, PhoneVerified: true})
			between(tap, "PutToken", func() {
				if err := w.DeleteUser(t.Context(), auth.DeleteUserParams{Caller: auth.ByApplication(u.ID)}); err != nil {
					t.Error(err)
				}
			})
			w.do("POST", path, body).want(200)
		})
	}
}

// The application may name an account that is gone, or never was.
func TestApplicationNamesNobody(t *testing.T) {
	w := newWorld(t)
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
