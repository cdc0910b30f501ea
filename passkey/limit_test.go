package passkey_test

import (
	"errors"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/host"
)

// A removed passkey leaves a record for a year, so a session cannot add and remove passkeys
// for ever. Devices can be enrolled in a row.
func TestAddingPasskeysHasALimit(t *testing.T) {
	w := newWorld(t)
	other := w.LoginAs(t, "ben@example.com")
	for range 5 {
		w.key = authenticator.New(origin)
		_, err := w.add(false)
		w.must(err)
	}
	var err error
	added := 5
	for ; err == nil && added < 100; added++ {
		var last *auth.AddedPasskey
		w.key = authenticator.New(origin)
		if last, err = w.add(false); err == nil {
			w.must(w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: w.caller(), ID: last.Passkey.ID}))
		}
	}
	w.want(err, auth.CodeRateLimited)
	var e *auth.Error
	if errors.As(err, &e); e.Status != 429 || e.RetryAfter <= 0 || added < 20 || added > 30 {
		t.Errorf("after %d passkeys: %+v", added, e)
	}
	_, err = w.signIn() // with a passkey that was refused
	w.want(err, auth.CodeInvalidPasskey)
	owner := w.ada
	w.ada = other // another account has a limit of its own
	_, err = w.add(false)
	w.must(err)
	w.Clock.Advance(24 * time.Hour)
	w.ada = owner
	tokens, err := w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.must(err)
	w.ada.Tokens, w.key = *tokens, authenticator.New(origin)
	_, err = w.add(false)
	w.must(err)
}

// A sign-in that waits for a second factor is not kept out by passkeys that a thief added.
func TestLimitLetsAWaitingSignInEnrol(t *testing.T) {
	required := false
	w := newWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required }}),
		auth.WithRateLimits(auth.RateLimits{PasskeysPerUser: auth.Rate{Burst: 1, Per: 24 * time.Hour}}))
	added, err := w.add(false)
	w.must(err)
	w.must(w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: w.caller(), ID: added.Passkey.ID}))
	w.key = authenticator.New(origin)
	_, err = w.add(false)
	w.want(err, auth.CodeRateLimited)
	required = true
	_, err = w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.want(err, auth.CodeMFAEnrollmentRequired)
	var e *auth.Error
	errors.As(err, &e)
	begun, err := w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{MFAToken: e.MFAToken})
	w.must(err)
	w.key = authenticator.New(origin)
	credential, err := w.key.Create(begun.PublicKey)
	w.must(err)
	_, err = w.AddPasskey(t.Context(), auth.AddPasskeyParams{MFAToken: e.MFAToken, Credential: credential})
	w.must(err)
}

// An account with as many passkeys as it can have is refused before its device creates one.
func TestOnePasskeyTooMany(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		w.key = authenticator.New(origin)
		_, err := w.add(false)
		w.must(err)
	}
	_, err := w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{Caller: w.caller()})
	w.want(err, auth.CodeValidationFailed)
	if e := host.As[*auth.Error](err); e.Fields["credential"] == "" {
		t.Errorf("%v", e.Fields)
	}
}

// The passkeys that a thief added do not count against the owner who recovered the account.
func TestRecoveryGivesAdditionsBack(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{PasskeysPerUser: auth.Rate{Burst: 2, Per: 24 * time.Hour}}))
	w.Clock.Advance(time.Hour)
	thief, err := w.Login(auth.ContextWithClient(t.Context(), auth.Client{Device: "of a thief"}), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.must(err)
	w.ada.Tokens = *thief
	for range 2 {
		w.key = authenticator.New(origin)
		_, err = w.add(false)
		w.must(err)
	}
	w.must(w.SecureAccount(t.Context(), auth.SecureAccountParams{Token: w.token("ada@example.com", auth.KindNewDevice)}))
	w.key = authenticator.New(origin)
	_, err = w.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "ada@example.com"})
	w.must(err)
	tokens, err := w.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: w.token("ada@example.com", auth.KindMagicLink)})
	w.must(err)
	w.ada.Tokens = *tokens
	_, err = w.add(false)
	w.must(err)
}
