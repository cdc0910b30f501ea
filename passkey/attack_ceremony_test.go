package passkey_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
)

func challengeIn(t *testing.T, publicKey any) string {
	b, _ := json.Marshal(publicKey)
	var o struct {
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	return o.Challenge
}

// An RSA key of 16000 bytes would cost seconds at each sign-in.
func TestHugeKeysAreRefused(t *testing.T) {
	w := newWorld(t)
	_, err := w.key.Create(mustBegin(w).PublicKey)
	w.must(err)
	k := w.key.Passkeys[0]
	begun := mustBegin(w)
	modulus := make([]byte, 16000)
	_, _ = rand.Read(modulus)
	modulus[0], modulus[len(modulus)-1] = 0xff, modulus[len(modulus)-1]|1
	cose, err := cbor.Marshal(map[int]any{1: 3, 3: -257, -1: modulus, -2: []byte{0x7f, 0xff, 0xff, 0xff}})
	w.must(err)
	data := w.key.AttestedData(k)
	data = append(data[:bytes.Index(data, k.ID)+len(k.ID)], cose...)
	object, err := cbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data})
	w.must(err)
	enc := base64.RawURLEncoding.EncodeToString
	response, err := json.Marshal(map[string]any{
		"id": enc(k.ID), "rawId": enc(k.ID), "type": "public-key", "clientExtensionResults": map[string]any{},
		"response": map[string]any{"clientDataJSON": enc(w.key.ClientData("webauthn.create", challengeIn(t, begun.PublicKey))), "attestationObject": enc(object)},
	})
	w.must(err)
	_, err = w.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: w.caller(), Credential: response})
	w.want(err, auth.CodeInvalidPasskey)
}

// A challenge of one purpose, session or account works for no other.
func TestChallengesHaveOnePurpose(t *testing.T) {
	w := newWorld(t)
	_, err := w.add(true)
	w.must(err)
	k := w.key.Passkeys[0]
	in, err := w.signIn()
	w.must(err)
	w.ada.Tokens = *in
	by := w.caller()
	other, err := w.signIn()
	w.must(err)
	otherBy := w.claims(other).Caller()
	_, err = w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	var e *auth.Error
	errors.As(err, &e)
	signIn, err := w.BeginPasskeySignIn(t.Context())
	w.must(err)
	factor, err := w.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{Caller: by})
	w.must(err)
	mfa, err := w.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{MFAToken: e.MFAToken})
	w.must(err)
	create, upgrade := mustBegin(w), mustUpgrade(w)
	all := map[string]any{"signIn": signIn.PublicKey, "factor": factor.PublicKey, "mfa": mfa.PublicKey, "create": create.PublicKey, "upgrade": upgrade.PublicKey}
	for name, pk := range all {
		sign := func() json.RawMessage {
			b, err := w.key.Sign(k, challengeIn(t, pk))
			w.must(err)
			return b
		}
		ok := func(uses string, err error) {
			if (err == nil) != (uses == name) {
				t.Errorf("challenge %s used as %s: %v", name, uses, err)
			}
		}
		if name != "signIn" {
			_, err = w.FinishPasskeySignIn(t.Context(), auth.FinishPasskeySignInParams{RequestID: signIn.RequestID, Credential: sign()})
			ok("signIn", err)
		}
		if name != "mfa" {
			_, err = w.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: e.MFAToken, Passkey: sign()})
			ok("mfa", err)
		}
		_, err = w.StepUp(t.Context(), auth.StepUpParams{Caller: otherBy, Passkey: sign()})
		ok("other session", err)
		if name != "factor" {
			_, err = w.Confirm(t.Context(), auth.ConfirmParams{Caller: by, Passkey: sign()})
			ok("factor", err)
			_, err = w.StepUp(t.Context(), auth.StepUpParams{Caller: by, Passkey: sign()})
			ok("factor", err)
		}
		if name != "create" && name != "upgrade" {
			b, err := authenticator.New(origin).Create(map[string]any{"challenge": challengeIn(t, pk), "rp": map[string]any{"id": "auth.test"}, "user": map[string]any{"id": "AAAA"}})
			w.must(err)
			_, err = w.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: by, Credential: b})
			ok("create", err)
		}
	}
	b, err := authenticator.New(origin).Create(create.PublicKey)
	w.must(err)
	if _, err = w.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: otherBy, Credential: b}); err == nil {
		t.Error("create in another session")
	}
	silentKey := authenticator.New(origin)
	silentKey.Flags = 0
	b, err = silentKey.Create(create.PublicKey)
	w.must(err)
	if _, err = w.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: by, Credential: b}); err == nil {
		t.Error("create without verification")
	}
	// the handle of one account with the credential of another
	ben := w.LoginAs(t, "ben@example.com")
	list, err := w.ListPasskeys(t.Context(), auth.ByApplication(ben.User.ID))
	w.must(err)
	handle := k.Handle
	k.Handle, _ = base64.RawURLEncoding.DecodeString(list.UserHandle)
	_, err = w.signIn()
	w.want(err, auth.CodeInvalidPasskey)
	k.Handle = handle
}

func mustUpgrade(w *world) *auth.PasskeyRequest {
	begun, err := w.BeginPasskey(w.t.Context(), auth.BeginPasskeyParams{Caller: w.caller(), Conditional: true})
	w.must(err)
	return begun
}

// A thief with 19 passkeys, an app and the owner's passkey turned into a second factor.
func TestRecoveryAgainstManyPasskeys(t *testing.T) {
	w := newWorld(t)
	mine, err := w.add(false)
	w.must(err)
	own := w.key
	w.Clock.Advance(time.Hour)
	thief, err := w.Login(auth.ContextWithClient(t.Context(), auth.Client{Device: "of a thief"}), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.must(err)
	w.ada.Tokens = *thief
	for range 19 {
		w.key = authenticator.New(origin)
		added, err := w.add(true)
		w.must(err)
		w.ada.Tokens = *added.Tokens
	}
	last := w.key
	w.key = authenticator.New(origin)
	_, err = w.add(false)
	w.want(err, auth.CodeValidationFailed)
	w.key = last
	yes := true
	_, err = w.ChangePasskey(t.Context(), auth.ChangePasskeyParams{Caller: w.caller(), ID: mine.Passkey.ID, SecondFactor: &yes})
	w.must(err)
	setup, err := w.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: w.caller()})
	w.must(err)
	code, err := totp.GenerateCode(setup.Secret, w.Clock.Now())
	w.must(err)
	_, err = w.EnableTOTP(t.Context(), auth.EnableTOTPParams{Caller: w.caller(), TOTPCode: code})
	w.must(err)
	w.must(w.SecureAccount(t.Context(), auth.SecureAccountParams{Token: w.token("ada@example.com", auth.KindNewDevice)}))
	_, err = w.signIn()
	if !errors.Is(err, auth.CodePasskeyRemoved) {
		t.Error(err)
	}
	w.key = own
	_, err = w.signIn()
	w.must(err)
}

// A silent passkey alone makes nothing a second factor.
func TestUpgradedPasskeyBecomesNoFactorAlone(t *testing.T) {
	w := newWorld(t)
	added := w.silent()
	in, err := w.signIn()
	w.must(err)
	w.ada.Tokens = *in
	yes := true
	_, err = w.ChangePasskey(t.Context(), auth.ChangePasskeyParams{Caller: w.caller(), ID: added.Passkey.ID, SecondFactor: &yes})
	w.want(err, auth.CodeInsufficientAAL)
}
