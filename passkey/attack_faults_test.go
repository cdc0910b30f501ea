package passkey_test

import (
	"context"
	"errors"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/passkey"
	"github.com/authmount/auth/store"
)

// A store that fails at any call never lets the password set up a second factor beside a
// passkey, and the owner signs in afterwards.
func TestFaultsWhileAPasskeyIsDue(t *testing.T) {
	for _, fault := range []storetap.Fault{storetap.FailsBefore, storetap.FailsAfter} {
		for at := 1; ; at++ {
			tap, required := storetap.New(harness.NewStore(t)), false
			w := &world{t: t, key: authenticator.New(origin)}
			w.Env = authtest.NewOn(t, tap, auth.WithPasskeys(passkey.New(passkey.Options{})), auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
			w.ada = w.LoginAs(t, "ada@example.com")
			_, err := w.add(false)
			w.must(err)
			required = true
			failed := ""
			tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, n int) storetap.Fault {
				if n == at {
					failed = method
					return fault
				}
				return storetap.NoFault
			}})
			_, err = w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
			var e *auth.Error
			switch errors.As(err, &e); {
			case err == nil:
				t.Fatalf("%s %s: the password alone signs in", fault, failed)
			case errors.Is(err, auth.CodeMFAEnrollmentRequired):
				t.Fatalf("%s %s: the password alone sets up a factor", fault, failed)
			case errors.Is(err, auth.CodeMFARequired):
				var in *auth.Tokens
				begun, err := w.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{MFAToken: e.MFAToken})
				if err == nil {
					response, err := w.key.Get(begun.PublicKey)
					w.must(err)
					if in, err = w.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: e.MFAToken, Passkey: response}); err == nil && w.claims(in).AAL != "aal2" {
						t.Errorf("%s %s: a session of %s", fault, failed, w.claims(in).AAL)
					}
				}
				tap.Reset(storetap.Hooks{})
				u, err := w.Store.User(t.Context(), store.ByEmail("ada@example.com"))
				w.must(err)
				lost := fault == storetap.FailsAfter && failed == "UpdateFactor" // the user can create new codes
				if in != nil && u.MFAEnabled != (len(in.RecoveryCodes) > 0) && !lost {
					t.Errorf("%s %s: a second factor %v, recovery codes %v", fault, failed, u.MFAEnabled, len(in.RecoveryCodes) > 0)
				}
			}
			done := failed == ""
			tap.Reset(storetap.Hooks{})
			if _, err = w.shows(w.waits(auth.CodeMFARequired).MFAToken); err != nil {
				t.Errorf("%s %s: afterwards: %v", fault, failed, err)
			}
			if done {
				break
			}
		}
	}
}
