package passkey_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
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
	credentials func()       // before Credentials
	factors     func()       // after Factors
	removal     error        // of the next RemoveFactor, which does nothing then
	redeems     func() error // before RedeemToken
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

func (s *pausing) RedeemToken(ctx context.Context, c store.Redemption) (store.Token, store.User, error) {
	if s.redeems != nil {
		if err := s.redeems(); err != nil {
			return store.Token{}, store.User{}, err
		}
	}
	return s.Store.RedeemToken(ctx, c)
}

func (s *pausing) RemoveFactor(ctx context.Context, c store.RemoveFactor) (store.User, error) {
	s.mu.Lock()
	err := s.removal
	s.removal = nil
	s.mu.Unlock()
	if err != nil {
		return store.User{}, err
	}
	return s.FactorStore.RemoveFactor(ctx, c)
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

// A removal that fails leaves the passkey as it was, and no client is told to delete it, not
// even one that shows it to another account.
func TestFailedRemovalForgetsNoPasskey(t *testing.T) {
	w, st := newPausingWorld(t)
	added, err := w.add(false)
	w.must(err)
	adas, owner := w.key, w.ada
	w.ada, w.key = w.LoginAs(t, "ben@example.com"), authenticator.New(origin)
	_, err = w.add(false)
	w.must(err)
	elsewhere := func() error {
		t.Helper()
		begun, err := w.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{Caller: w.caller()})
		w.must(err)
		p := *adas.Passkeys[0]
		p.Handle = nil
		response, err := adas.Sign(&p, begun.PublicKey.(protocol.PublicKeyCredentialRequestOptions).Challenge.String())
		w.must(err)
		_, err = w.Confirm(t.Context(), auth.ConfirmParams{Caller: w.caller(), Passkey: response})
		return err
	}
	claims, err := w.Verify(owner.AccessToken)
	w.must(err)
	remove := auth.RemovePasskeyParams{Caller: claims.Caller(), ID: added.Passkey.ID}
	st.removal = errors.New("outage")
	if err := w.RemovePasskey(t.Context(), remove); err == nil {
		t.Fatal("removed during the outage")
	}
	w.want(elsewhere(), auth.CodeInvalidPasskey)
	w.ada, w.key = owner, adas
	_, err = w.signIn()
	w.must(err)
	w.must(w.RemovePasskey(t.Context(), remove))
	_, err = w.signIn()
	w.want(err, auth.CodePasskeyRemoved)
}

// A thief who keeps adding passkeys, and comes back by them and by the password, does not
// hold up the account recovery link, and has nothing afterwards. The owner's passkey stays.
func TestRecoveryIsNotHeldUpByNewPasskeys(t *testing.T) {
	w, st := newPausingWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	_, err := w.add(false)
	w.must(err)
	owner := w.key
	w.Clock.Advance(time.Hour)
	thief := auth.ContextWithClient(t.Context(), auth.Client{Device: "of a thief"})
	tokens, err := w.Login(thief, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.must(err)
	w.ada.Tokens = *tokens
	var thiefs []*authenticator.Authenticator
	adds := func() error {
		w.key = authenticator.New(origin)
		added, err := w.add(true)
		if err == nil {
			w.ada.Tokens, thiefs = *added.Tokens, append(thiefs, w.key)
		}
		return err
	}
	w.must(adds())
	token, busy, acted := w.token("ada@example.com", auth.KindNewDevice), false, 0
	var acts func()
	acts = func() {
		if !busy {
			busy = true
			if adds() != nil { // the session is over, or there are too many
				w.key = thiefs[len(thiefs)-1]
				if in, err := w.signIn(); err == nil {
					w.ada.Tokens = *in
				} else if in, err := w.Login(thief, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}); err == nil {
					w.ada.Tokens = *in
				}
				if adds() == nil {
					acted++
				}
			} else {
				acted++
			}
			busy = false
		}
		st.factors = acts
	}
	st.factors = acts
	err = w.SecureAccount(t.Context(), auth.SecureAccountParams{Token: token})
	st.factors = nil
	w.must(err)
	if acted == 0 {
		t.Error("the thief added nothing meanwhile")
	}
	for _, w.key = range thiefs {
		if _, err := w.signIn(); err == nil {
			t.Error("a passkey of the thief works")
		}
	}
	w.key = owner
	_, err = w.signIn()
	w.must(err)
	list, err := w.ListPasskeys(t.Context(), auth.ByApplication(w.ada.User.ID))
	w.must(err)
	if len(list.Passkeys) != 1 {
		t.Errorf("%d passkeys, want the owner's", len(list.Passkeys))
	}
}

// An outage after the reported sessions were ended leaves the link usable, and the thief out.
func TestRecoveryIsRepeatedAfterAnOutage(t *testing.T) {
	w, st := newPausingWorld(t)
	_, err := w.add(false)
	w.must(err)
	owner := w.key
	w.Clock.Advance(time.Hour)
	thief := auth.ContextWithClient(t.Context(), auth.Client{Device: "of a thief"})
	tokens, err := w.Login(thief, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.must(err)
	w.ada.Tokens, w.key = *tokens, authenticator.New(origin)
	token, calls := w.token("ada@example.com", auth.KindNewDevice), 0
	st.redeems = func() error {
		if calls++; calls > 1 {
			return errors.New("outage")
		}
		_, err := w.add(true)
		w.must(err)
		return nil // and the change is stale
	}
	if err := w.SecureAccount(t.Context(), auth.SecureAccountParams{Token: token}); err == nil || calls != 2 {
		t.Fatalf("%v after %d changes", err, calls)
	}
	st.redeems = nil
	_, err = w.signIn()
	w.want(err, auth.CodePasskeyRemoved)
	_, err = w.Login(thief, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.want(err, auth.CodeInvalidCredentials)
	w.must(w.SecureAccount(t.Context(), auth.SecureAccountParams{Token: token}))
	w.key = owner
	_, err = w.signIn()
	w.must(err)
}
