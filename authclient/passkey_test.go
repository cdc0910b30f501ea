package authclient

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/passkey"
)

// A passkey that a browser added is listed, named, made a second factor, used as one with
// the program's own authenticator, and removed.
func TestPasskeysOfAnAccount(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newService(t, auth.WithBaseURL("http://localhost:8080/auth/v1"), auth.WithPasskeys(passkey.New(passkey.Options{})))
	adm, err := NewAdmin(s.url, secretKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := adm.CreateUser(ctx, CreateUserParams{Email: "ada@example.com", EmailVerified: true, Password: password}); err != nil {
		t.Fatal(err)
	}
	c, login := newClient(t, s), PasswordParams{Email: "ada@example.com", Password: password}
	if _, err := c.SignInWithPassword(ctx, login); err != nil {
		t.Fatal(err)
	}
	key := authenticator.New("http://localhost:8080")
	register(t, s, c, key)
	register(t, s, c, authenticator.New("http://localhost:8080"))

	list, err := c.Passkeys(ctx)
	if err != nil || len(list) != 2 || list[0].SecondFactor || list[0].CredentialID == "" || list[0].CreatedAt.IsZero() || list[0].LastUsedAt != nil {
		t.Fatal(list, err)
	}
	use := func(c *Client) json.RawMessage {
		t.Helper()
		publicKey, err := c.BeginPasskeyFactor(ctx)
		if err != nil {
			t.Fatal(err)
		}
		response, err := key.Get(publicKey)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	if _, err := c.Confirm(ctx, ConfirmParams{Passkey: use(c)}); err != nil {
		t.Fatal(err)
	}
	yes := true
	if k, codes, err := c.UpdatePasskey(ctx, list[0].ID, UpdatePasskeyParams{Name: "Key ring", SecondFactor: &yes}); err != nil || k.Name != "Key ring" || !k.SecondFactor || len(codes) != 10 {
		t.Fatal(k, codes, err)
	}

	other := newClient(t, s)
	if _, err := other.SignInWithPassword(ctx, login); !errors.Is(err, auth.CodeMFARequired) || other.State().Status != StatusMFA {
		t.Fatal(err, other.State())
	}
	if _, err := other.VerifyMFA(ctx, MFAParams{Passkey: use(c)}); !errors.Is(err, auth.CodeInvalidPasskey) {
		t.Error("the response to another challenge:", err)
	}
	if _, err := other.VerifyMFA(ctx, MFAParams{Passkey: use(other)}); err != nil || other.State().Status != StatusSignedIn {
		t.Fatal(err, other.State())
	}
	if err := other.RemovePasskey(ctx, list[1].ID); err != nil {
		t.Fatal(err)
	}
	if err := other.RemovePasskey(ctx, list[1].ID); !errors.Is(err, auth.CodePasskeyNotFound) {
		t.Error(err)
	}
	if list, err := other.Passkeys(ctx); err != nil || len(list) != 1 || list[0].LastUsedAt == nil {
		t.Error(list, err)
	}
}

// register adds a passkey, as a browser does.
func register(t *testing.T, s *service, c *Client, key *authenticator.Authenticator) {
	t.Helper()
	token, err := c.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	claims, err := s.Verify(token)
	if err != nil {
		t.Fatal(err)
	}
	begun, err := s.BeginPasskey(t.Context(), auth.BeginPasskeyParams{Caller: claims.Caller()})
	if err != nil {
		t.Fatal(err)
	}
	response, err := key.Create(begun.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: claims.Caller(), Credential: response}); err != nil {
		t.Fatal(err)
	}
}

// A sign-in that the server has forgotten waits no longer.
func TestPasskeyOfAnExpiredSignIn(t *testing.T) {
	t.Parallel()
	s := newService(t, auth.WithBaseURL("http://localhost:8080/auth/v1"), auth.WithPasskeys(passkey.New(passkey.Options{})))
	c := newClient(t, s)
	c.mu.Lock()
	c.waitFor(pending{token: "forgotten", factors: []string{"passkey"}, until: s.clock.Now().Add(time.Hour)})
	c.mu.Unlock()
	if publicKey, err := c.BeginPasskeyFactor(t.Context()); !errors.Is(err, auth.CodeInvalidToken) || publicKey != nil {
		t.Error(string(publicKey), err)
	}
	if _, ok := c.waiting(); ok {
		t.Error("it still waits")
	}
}
