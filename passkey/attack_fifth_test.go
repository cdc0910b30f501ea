package passkey_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/passkey"
)

// A stolen refresh token of a session that its owner raises meanwhile adds nothing to it.
func TestStolenRefreshAddsNoFactorLater(t *testing.T) {
	required := false
	w := newWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
	required = true
	enrol := func() *auth.Error {
		_, err := w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: w.ada.RefreshToken})
		w.want(err, auth.CodeMFAEnrollmentRequired)
		var e *auth.Error
		errors.As(err, &e)
		return e
	}
	stolen, own := enrol(), enrol()
	adds := func(token string) error {
		begun, err := w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{MFAToken: token})
		if err != nil {
			return err
		}
		response, err := authenticator.New(origin).Create(begun.PublicKey)
		w.must(err)
		_, err = w.AddPasskey(t.Context(), auth.AddPasskeyParams{MFAToken: token, Credential: response})
		return err
	}
	w.must(adds(own.MFAToken))
	w.want(adds(stolen.MFAToken), auth.CodeBadToken)
}

// Of parallel enrolments with several tokens one succeeds.
func TestParallelFirstFactors(t *testing.T) {
	for range 5 {
		required := false
		w := newWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
		required = true
		var all []auth.AddPasskeyParams
		for range 4 {
			e := w.waits(auth.CodeMFAEnrollmentRequired)
			begun, err := w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{MFAToken: e.MFAToken})
			w.must(err)
			response, err := authenticator.New(origin).Create(begun.PublicKey)
			w.must(err)
			all = append(all, auth.AddPasskeyParams{MFAToken: e.MFAToken, Credential: response})
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		wins := 0
		for _, p := range all {
			wg.Go(func() {
				if _, err := w.AddPasskey(t.Context(), p); err == nil {
					mu.Lock()
					wins++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if wins != 1 {
			t.Fatalf("%d first factors", wins)
		}
	}
}

// An account that waits signs in by the password and its passkey, which becomes no factor until the
// holder has accepted.
func TestWaitingAccountShowsItsPasskey(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"admin"}}))
	_, err := w.add(false)
	w.must(err)
	adm, err := admin.New(t.Context(), w.Auth, admin.Options{})
	w.must(err)
	_, err = adm.Grant(t.Context(), admin.System("test"), admin.GrantParams{UserID: w.ada.User.ID, Role: "admin"})
	w.must(err)
	for range 2 {
		in, err := w.shows(w.waits(auth.CodeMFARequired).MFAToken)
		w.must(err)
		if in.User.MFAEnabled || len(in.RecoveryCodes) > 0 || len(w.claims(in).Roles) > 0 {
			t.Errorf("%+v", in.User)
		}
		w.ada.Tokens = *in
		_, err = w.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: w.caller()})
		w.want(err, auth.CodeTargetStronger)
	}
	_, err = adm.Send(t.Context(), admin.System("test"), admin.SendParams{UserID: w.ada.User.ID, Type: admin.LinkAccept})
	w.must(err)
	token := w.token("ada@example.com", auth.KindInvitation)
	begun, err := w.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{InvitationToken: token})
	w.must(err)
	response, err := w.key.Get(begun.PublicKey)
	w.must(err)
	const password = "another long passphrase 9"
	in, err := w.AcceptInvitation(t.Context(), auth.AcceptInvitationParams{Token: token, Passkey: response, Password: password})
	w.must(err)
	if w.claims(in).AAL != "aal2" || len(w.claims(in).Roles) != 1 {
		t.Errorf("%+v", w.claims(in))
	}
	_, err = w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: password})
	w.want(err, auth.CodeMFARequired)
	var e *auth.Error
	errors.As(err, &e)
	in, err = w.shows(e.MFAToken)
	w.must(err)
	if !in.User.MFAEnabled || len(in.RecoveryCodes) != 10 {
		t.Errorf("%+v", in.User)
	}
}

// A request for a mailed link while links are switched off does the same work for an account whose
// passkey is due, for others and for none.
func TestMailedLinksDoTheSameWork(t *testing.T) {
	tap, required := storetap.New(harness.NewStore(t)), false
	w := &world{t: t, key: authenticator.New(origin)}
	w.Env = authtest.NewOn(t, tap, auth.WithSettings(auth.Settings{MagicLink: auth.Off}), auth.WithPasskeys(passkey.New(passkey.Options{})), auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}))
	w.ada = w.LoginAs(t, "ada@example.com")
	w.LoginAs(t, "ben@example.com")
	_, err := w.add(false)
	w.must(err)
	required = true
	var first []string
	for _, to := range []string{"ada@example.com", "ben@example.com", "nobody@example.com"} {
		var calls []string
		tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, _ int) { calls = append(calls, method) }})
		_, err := w.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: to})
		w.must(err)
		tap.Reset(storetap.Hooks{})
		if first == nil {
			first = calls
		}
		if !slices.Equal(calls, first) {
			t.Errorf("%s: %v, and before %v", to, calls, first)
		}
	}
}
