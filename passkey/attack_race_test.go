package passkey_test

import (
	"context"
	"sync"
	"testing"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/passkey"
	"github.com/authmount/auth/store"
)

// pausing is a store that calls a function once, before or after a step of a flow.
type pausing struct {
	store.Store
	store.FactorStore
	mu          sync.Mutex
	credentials func() // before Credentials
	factors     func() // after Factors
}

func (s *pausing) Unwrap() auth.Store { return s.Store }

func (s *pausing) once(f *func()) {
	s.mu.Lock()
	run := *f
	*f = nil
	s.mu.Unlock()
	if run != nil {
		run()
	}
}

func (s *pausing) Credentials(ctx context.Context, k store.UserKey) (store.Credentials, error) {
	s.once(&s.credentials)
	return s.Store.Credentials(ctx, k)
}

func (s *pausing) Factors(ctx context.Context, userID string) (store.Factors, error) {
	list, err := s.FactorStore.Factors(ctx, userID)
	s.once(&s.factors)
	return list, err
}

// newPausingWorld is newWorld on a pausing store.
func newPausingWorld(t *testing.T, opts ...auth.Option) (*world, *pausing) {
	t.Helper()
	st := harness.NewStore(t)
	p := &pausing{Store: st, FactorStore: st.(store.FactorStore)}
	w := &world{t: t, key: authenticator.New(origin)}
	w.Env = authtest.NewOn(t, p, append([]auth.Option{auth.WithPasskeys(passkey.New(passkey.Options{}))}, opts...)...)
	w.ada = w.LoginAs(t, "ada@example.com")
	return w, p
}

// Of two passkeys that are removed at the same moment one stays, if there is no other
// sign-in method.
func TestParallelRemovalsLeaveAPasskey(t *testing.T) {
	w, st := newPausingWorld(t)
	first, err := w.add(false)
	w.must(err)
	w.key = authenticator.New(origin)
	second, err := w.add(false)
	w.must(err)
	w.onlyPasskeys()
	by := w.caller()
	st.credentials = func() {
		w.must(w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: by, ID: second.Passkey.ID}))
	}
	w.want(w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: by, ID: first.Passkey.ID}), auth.CodeLastSignInMethod)
}

// An authenticator app and a passkey that are removed at the same moment do not leave an
// account without the second factor that it needs.
func TestParallelRemovalsLeaveAFactor(t *testing.T) {
	required := false
	w, st := newPausingWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
	added, err := w.add(true)
	w.must(err)
	w.ada.Tokens = *added.Tokens
	setup, err := w.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: w.caller()})
	w.must(err)
	code, err := totp.GenerateCode(setup.Secret, w.Clock.Now())
	w.must(err)
	_, err = w.EnableTOTP(t.Context(), auth.EnableTOTPParams{Caller: w.caller(), TOTPCode: code})
	w.must(err)
	required = true
	by := w.caller()
	st.factors = func() {
		w.must(w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: by, ID: added.Passkey.ID}))
	}
	w.want(w.DisableTOTP(t.Context(), auth.DisableTOTPParams{Caller: by}), auth.CodeMFAEnforced)
}
