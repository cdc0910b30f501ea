package passkey_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/passkey"
)

// addAgain registers the first passkey of an authenticator again, with the same id.
func (w *world) addAgain() (*auth.AddedPasskey, error) {
	w.t.Helper()
	begun, err := w.BeginPasskey(w.t.Context(), auth.BeginPasskeyParams{Caller: w.caller()})
	w.must(err)
	var options struct{ Challenge string }
	b, err := json.Marshal(begun.PublicKey)
	w.must(err)
	w.must(json.Unmarshal(b, &options))
	p := w.key.Passkeys[0]
	object, err := cbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": w.key.AttestedData(p)})
	w.must(err)
	response, err := json.Marshal(map[string]any{"id": encode(p.ID), "rawId": encode(p.ID), "type": "public-key", "clientExtensionResults": map[string]any{},
		"response": map[string]any{"clientDataJSON": encode(w.key.ClientData("webauthn.create", options.Challenge)), "attestationObject": encode(object)}})
	w.must(err)
	return w.AddPasskey(w.t.Context(), auth.AddPasskeyParams{Caller: w.caller(), Credential: response})
}

// addsSilently adds a passkey that the browser creates by itself, and whose device checks the user
// from now on.
func (w *world) addsSilently() *authenticator.Authenticator {
	w.t.Helper()
	key := authenticator.New(origin)
	key.Flags = authenticator.UserPresent
	begun, err := w.BeginPasskey(w.t.Context(), auth.BeginPasskeyParams{Caller: w.caller(), Conditional: true})
	w.must(err)
	response, err := key.Create(begun.PublicKey)
	w.must(err)
	_, err = w.AddPasskey(w.t.Context(), auth.AddPasskeyParams{Caller: w.caller(), Credential: response})
	w.must(err)
	key.Flags |= authenticator.UserVerified
	return key
}

// confirms shows one of the account's passkeys in the session.
func (w *world) confirms(key *authenticator.Authenticator) error {
	w.t.Helper()
	begun, err := w.BeginPasskeyFactor(w.t.Context(), auth.BeginPasskeyFactorParams{Caller: w.caller()})
	w.must(err)
	response, err := key.Get(begun.PublicKey)
	w.must(err)
	tokens, err := w.Confirm(w.t.Context(), auth.ConfirmParams{Caller: w.caller(), Passkey: response})
	if err == nil {
		w.ada.Tokens = *tokens
	}
	return err
}

// A thief who adds, removes and adds the same credential does not keep the owner from an
// account recovery, and the passkey can be removed each time.
func TestRecoveryAfterAReusedCredential(t *testing.T) {
	w := newWorld(t)
	w.Clock.Advance(time.Hour)
	thief, err := w.Login(auth.ContextWithClient(t.Context(), auth.Client{Device: "of a thief"}), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.must(err)
	w.ada.Tokens = *thief
	added, err := w.add(false)
	w.must(err)
	for range 2 {
		w.must(w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: w.caller(), ID: added.Passkey.ID}))
		added, err = w.addAgain()
		w.must(err)
	}
	w.must(w.SecureAccount(t.Context(), auth.SecureAccountParams{Token: w.token("ada@example.com", auth.KindNewDevice)}))
	_, err = w.signIn()
	w.want(err, auth.CodePasskeyRemoved)
}

// A passkey that counts as one factor does not renew the second factor of a session.
func TestOneFactorIsNoSecondOne(t *testing.T) {
	w := newWorld(t)
	added, err := w.add(true)
	w.must(err)
	w.ada.Tokens = *added.Tokens
	silent := w.addsSilently()
	w.Clock.Advance(time.Hour)
	in, err := w.signIn()
	w.must(err)
	w.Clock.Advance(time.Hour)
	in, err = w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: in.RefreshToken})
	w.must(err)
	w.ada.Tokens = *in
	w.want(w.confirms(silent), auth.CodeInvalidPasskey)
	_, err = w.NewRecoveryCodes(t.Context(), auth.NewRecoveryCodesParams{Caller: w.caller()})
	w.want(err, auth.CodeReauthNeeded)
	w.must(w.confirms(w.key)) // the second factor does
	_, err = w.NewRecoveryCodes(t.Context(), auth.NewRecoveryCodesParams{Caller: w.caller()})
	w.must(err)
}

// A password of last week does not confirm a passkey that the browser created by itself; one
// of today does.
func TestOldPasswordConfirmsNoPasskey(t *testing.T) {
	for level, wait := range map[string]time.Duration{"aal1": 7 * 24 * time.Hour, "aal2": time.Minute} {
		w := newWorld(t)
		key := w.addsSilently()
		w.Clock.Advance(wait)
		renewed, err := w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: w.ada.RefreshToken})
		w.must(err)
		w.ada.Tokens = *renewed
		w.must(w.confirms(key))
		w.key = key
		in, err := w.signIn()
		w.must(err)
		if got := w.claims(in).AAL; got != level {
			t.Errorf("after %s: %s, want %s", wait, got, level)
		}
	}
}

// A passkey of another domain cannot be shown here, so no sign-in asks for it.
func TestImportedSecondFactorOfAnotherRPID(t *testing.T) {
	_, _, _, out := moving(t)
	to := arrival(t, passkey.Options{OtherRPID: true}, auth.WithBaseURL("https://other.test/auth/v1"))
	out.PasswordHash = harness.BcryptHash
	_, err := to.ImportUser(t.Context(), out)
	to.must(err)
	_, err = to.Login(t.Context(), auth.LoginParams{Email: out.Email, Password: harness.GoodPassword})
	to.must(err)
}

// After an account recovery that ended the recovery codes, the owner gets new ones with the
// next use of a passkey as the second factor, as with an app.
func TestRecoveredCodesByPasskey(t *testing.T) {
	w := newWorld(t)
	added, err := w.add(true)
	w.must(err)
	w.ada.Tokens = *added.Tokens
	w.Clock.Advance(time.Hour)
	in, err := w.FinishPasskeySignIn(auth.ContextWithClient(t.Context(), auth.Client{Device: "of a thief"}), w.begin())
	w.must(err)
	w.ada.Tokens = *in
	_, err = w.NewRecoveryCodes(t.Context(), auth.NewRecoveryCodesParams{Caller: w.caller()})
	w.must(err)
	w.must(w.SecureAccount(t.Context(), auth.SecureAccountParams{Token: w.token("ada@example.com", auth.KindNewDevice)}))
	w.Clock.Advance(time.Minute)
	in, err = w.signIn()
	w.must(err)
	if len(in.RecoveryCodes) != 10 {
		t.Errorf("%d recovery codes", len(in.RecoveryCodes))
	}
}

// Two imports of the same passkeys at once, in opposite orders, create each once.
func TestParallelImportsOfPasskeys(t *testing.T) {
	to := arrival(t, passkey.Options{})
	var lists [2][]auth.ImportUserParams
	for n := range 100 {
		record, _ := harness.PasskeyRecord(t, harness.NewKey())
		for i := range lists {
			_, handle := harness.PasskeyRecord(t, harness.NewKey())
			lists[i] = append(lists[i], auth.ImportUserParams{Email: fmt.Sprintf("user%d-%d@example.com", n, i), UserHandle: handle, Passkeys: []auth.PasskeyRecord{record}})
		}
	}
	slices.Reverse(lists[1])
	var created atomic.Int64
	var all sync.WaitGroup
	for _, list := range lists {
		all.Go(func() {
			sum, err := to.ImportUsers(t.Context(), slices.Values(list), nil)
			if err != nil {
				t.Error(err)
			}
			created.Add(int64(sum.Created))
		})
	}
	all.Wait()
	if n := created.Load(); n != 100 {
		t.Errorf("%d accounts for 100 passkeys", n)
	}
}

// An account that has verified no address does not sign in by an imported passkey while
// confirmation is required, as it does not by its password.
func TestUnconfirmedImportDoesNotSignIn(t *testing.T) {
	for _, verified := range []bool{false, true} {
		to := arrival(t, passkey.Options{}, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
		to.key = harness.NewKey()
		record, handle := harness.PasskeyRecord(t, to.key)
		_, err := to.ImportUser(t.Context(), auth.ImportUserParams{Email: "ada@example.com", EmailVerified: verified, UserHandle: handle, Passkeys: []auth.PasskeyRecord{record}})
		to.must(err)
		if _, err = to.signIn(); verified != (err == nil) {
			t.Errorf("verified %t: %v", verified, err)
		}
	}
}
