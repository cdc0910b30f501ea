package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
)

// refuses checks that an instance refuses an access token of what has ended.
func refuses(t *testing.T, e *authtest.Env, s *authtest.SignedIn) {
	t.Helper()
	if _, err := e.Verify(s.AccessToken); !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("verify: %v", err)
	}
}

// What ends in one instance is refused in the others, without a read.
func TestRevocationsReachEveryInstance(t *testing.T) {
	store := open(t)
	secret := auth.WithSecret([]byte("a secret of more than thirty-two bytes"))
	one := authtest.NewOn(t, store, secret, auth.WithClock(time.Now))
	two := authtest.NewOn(t, store, secret, auth.WithClock(time.Now), one.SameKeys())
	f := follow(t, store, two.Revoke)
	ctx := t.Context()
	ada, elsewhere, bob, eve := one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "bob@example.com"), one.LoginAs(t, "eve@example.com")
	for _, s := range []*authtest.SignedIn{ada, elsewhere, bob, eve} {
		if _, err := two.Verify(s.AccessToken); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.Logout(ctx, auth.LogoutParams{Caller: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}}); err != nil {
		t.Fatal(err)
	}
	f.await(t, ada.SessionID)
	refuses(t, two, ada)
	if _, err := two.Verify(elsewhere.AccessToken); err != nil {
		t.Errorf("the other session: %v", err)
	}
	ban(t, store, bob.User.ID)
	f.await(t, bob.User.ID)
	refuses(t, two, bob)
	if err := one.DeleteUser(ctx, auth.DeleteUserParams{Caller: auth.ByApplication(eve.User.ID)}); err != nil {
		t.Fatal(err)
	}
	f.await(t, eve.User.ID)
	refuses(t, two, eve)
}

// The clocks of the application and the database differ by a few seconds.
func TestBanUnderClockSkew(t *testing.T) {
	for _, skew := range []time.Duration{3 * time.Second, -3 * time.Second} {
		store := open(t)
		secret := auth.WithSecret([]byte("a secret of more than thirty-two bytes"))
		env := authtest.NewOn(t, store, secret, auth.WithClock(func() time.Time { return time.Now().Add(skew) }))
		f := follow(t, store, env.Revoke)
		bob := env.LoginAs(t, "bob@example.com")
		ban(t, store, bob.User.ID)
		f.await(t, bob.User.ID)
		refuses(t, env, bob)
	}
}
