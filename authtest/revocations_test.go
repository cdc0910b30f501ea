package authtest_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authclient"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// A test of another service follows revocations without Postgres.
func TestFollowRevocations(t *testing.T) {
	t.Parallel()
	env := authtest.New(t, auth.WithClock(time.Now))
	env.FollowRevocations(t)
	adm, err := admin.New(t.Context(), env.Auth, admin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key, err := adm.CreateKey(t.Context(), admin.System("test"), admin.CreateKeyParams{Name: "notes", Scopes: []string{admin.PermRevocationsRead}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/admin/", adm.Handler())
	mux.Handle("/auth/v1/", env.Handler())
	server := httptest.NewServer(mux)
	defer server.Close()
	v, err := authclient.NewVerifier(t.Context(), server.URL, authclient.WithSecretKey(key.Secret.Reveal()), authclient.WithRevocations(authclient.RevocationOptions{FailClosed: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	ada := env.LoginAs(t, "ada@example.com")
	if _, err := v.Verify(t.Context(), ada.AccessToken); err != nil {
		t.Fatal(err)
	}
	if err := env.Logout(t.Context(), auth.LogoutParams{Caller: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}}); err != nil {
		t.Fatal(err)
	}
	env.Revoke(store.Revocation{SessionID: ada.SessionID, At: time.Now()})
	refused := time.After(5 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-refused:
			t.Fatal("the token of an ended session is accepted")
		}
		if _, err := v.Verify(t.Context(), ada.AccessToken); errors.Is(err, auth.CodeSessionEnded) {
			return
		}
	}
}
