package admin_test

import (
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/passkey"
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
		credential, err := authenticator.New("https://auth.test").Create(begun.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		added, err := env.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: claims.Caller(), Credential: credential, SecondFactor: second, Name: "Phone"})
		if err != nil {
			t.Fatal(err)
		}
		ada.Tokens = *added.Tokens
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
	if _, err := env.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}); err != nil {
		t.Errorf("a second factor is still asked for: %v", err)
	}
}
