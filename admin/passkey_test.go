package admin_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/passkey"
	"github.com/authmount/auth/store"
)

// Operators see an account's passkeys and remove one. Removing the second factors keeps
// passkeys that are none.
func TestOperatorsAndPasskeys(t *testing.T) {
	env := authtest.New(t, auth.WithPasskeys(passkey.New(passkey.Options{})))
	adm, err := admin.New(t.Context(), env.Auth, admin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ada := env.LoginAs(t, "ada@example.com")
	first := authenticator.New("https://auth.test")
	key := first
	add := func(second bool) *auth.AddedPasskey {
		t.Helper()
		claims, err := env.Verify(ada.AccessToken)
		if err != nil {
			t.Fatal(err)
		}
		begun, err := env.BeginPasskey(t.Context(), auth.BeginPasskeyParams{Caller: claims.Caller()})
		if err != nil {
			t.Fatal(err)
		}
		credential, err := key.Create(begun.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		added, err := env.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: claims.Caller(), Credential: credential, SecondFactor: second, Name: "Phone"})
		if err != nil {
			t.Fatal(err)
		}
		ada.Tokens = *added.Tokens
		key = authenticator.New("https://auth.test")
		return added
	}
	kept, removed, second := add(false), add(false), add(true)
	operator := admin.System("test")
	remove := func(id string) {
		t.Helper()
		if _, err := adm.RemoveFactor(t.Context(), operator, admin.RemoveFactorParams{UserID: ada.User.ID, FactorID: id}); err != nil {
			t.Fatal(err)
		}
	}
	left := func(want ...string) {
		t.Helper()
		list, err := adm.Factors(t.Context(), operator, ada.User.ID)
		if err != nil || len(list) != len(want) {
			t.Fatalf("%d factors, %v, want %d", len(list), err, len(want))
		}
		for i, f := range list {
			if f.ID != want[i] || f.Label != "Phone" || len(f.Secret) > 0 {
				t.Errorf("%+v", f)
			}
		}
	}
	left(kept.Passkey.ID, removed.Passkey.ID, second.Passkey.ID)
	env.Inbox.Clear()
	remove(removed.Passkey.ID)
	env.Mail(t, "ada@example.com", auth.KindPasskeyRemoved)
	left(kept.Passkey.ID, second.Passkey.ID)
	remove("")
	left(kept.Passkey.ID)
	env.Mail(t, "ada@example.com", auth.KindMFADisabled)
	if _, err := env.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}); err != nil {
		t.Errorf("a second factor is still asked for: %v", err)
	}

	// Several second factors are removed at once, too; the owner hears what is left.
	one, two := add(true), add(true)
	app := enrolApp(t, env, ada)
	env.Inbox.Clear()
	remove(app)
	env.Mail(t, "ada@example.com", auth.KindTOTPRemoved)
	remove(one.Passkey.ID)
	env.Mail(t, "ada@example.com", auth.KindPasskeyRemoved)
	left(kept.Passkey.ID, two.Passkey.ID)
	add(true)
	for _, m := range env.Inbox.Messages() {
		if m.Kind == auth.KindMFADisabled {
			t.Error("announced as off, with a second factor left")
		}
	}
	remove("")
	env.Mail(t, "ada@example.com", auth.KindMFADisabled)
	left(kept.Passkey.ID)
	if _, err := adm.RemoveFactor(t.Context(), operator, admin.RemoveFactorParams{UserID: ada.User.ID}); !errors.Is(err, auth.CodeMFANotEnabled) {
		t.Errorf("without a second factor: %v", err)
	}
	left(kept.Passkey.ID)
	begun, err := env.BeginPasskeySignIn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	credential, err := first.Get(begun.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.FinishPasskeySignIn(t.Context(), auth.FinishPasskeySignInParams{RequestID: begun.RequestID, Credential: credential}); err != nil {
		t.Errorf("the passkey that is no second factor: %v", err)
	}
}

// enrolApp adds an authenticator app to an account and returns the factor's id.
func enrolApp(t *testing.T, env *authtest.Env, who *authtest.SignedIn) string {
	t.Helper()
	claims, err := env.Verify(who.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	setup, err := env.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: claims.Caller()})
	if err != nil {
		t.Fatal(err)
	}
	code, err := totp.GenerateCode(setup.Secret, env.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	enabled, err := env.EnableTOTP(t.Context(), auth.EnableTOTPParams{Caller: claims.Caller(), TOTPCode: code})
	if err != nil {
		t.Fatal(err)
	}
	who.Tokens = *enabled.Tokens
	list, err := env.Store.(store.FactorStore).Factors(t.Context(), who.User.ID)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.List, func(f store.Factor) bool { return f.Kind == store.FactorTOTP })
	return list.List[i].ID
}
