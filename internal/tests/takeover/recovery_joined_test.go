package takeover_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// The recovery link of a sign-in on a new device removes the identity that joined the account
// in that sign-in, at each endpoint, and keeps an identity that the account had before.
func TestRecoveryRemovesTheIdentityThatJoined(t *testing.T) {
	for name, signIn := range map[string]func(w *harness.World, idp *authtest.Provider) *harness.Answer{
		"POST /oauth/{provider}/id-token": func(w *harness.World, idp *authtest.Provider) *harness.Answer {
			return w.Do("POST", "/oauth/google/id-token", map[string]any{"id_token": idp.IDToken("google", harness.Ada, "")}, harness.OnDevice(harness.Mobile))
		},
		"GET /oauth/{provider}/callback": func(w *harness.World, idp *authtest.Provider) *harness.Answer {
			return harness.SignInEndpoints()["GET /oauth/{provider}/callback"](w, idp, harness.Session{})(harness.OnDevice(harness.Mobile))
		},
	} {
		for _, known := range []bool{false, true} {
			w, idp := harness.NewProviderWorld(t)
			s := w.Do("POST", "/signup", map[string]any{"email": harness.AdaMail, "password": harness.GoodPassword}, harness.OnDevice(harness.Laptop)).Session()
			w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken(harness.AdaMail, auth.KindVerifyEmail)}, harness.Bearer(s.AccessToken)).Want(200)
			link := func(provider string) {
				at := w.Clock.Now()
				w.Patch(s.User.ID, store.UserPatch{Link: &auth.Identity{ID: uuid.NewString(), Provider: provider, Subject: harness.Ada.Subject, CreatedAt: at, LastSignInAt: at}})
			}
			link("github")
			want := 1
			if known {
				link("google")
				w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Laptop)).Session()
				want = 2
			}
			if a := signIn(w, idp); a.Status >= 400 {
				t.Fatalf("%s: %d %s", name, a.Status, a.Body)
			}
			w.Do("POST", "/secure-account", map[string]any{"token": w.StopToken(harness.AdaMail, auth.KindNewDevice)}).Want(200)
			u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
			if err != nil || len(u.Identities) != want {
				t.Errorf("%s, known before %t: identities %+v, %v, want %d", name, known, u.Identities, err, want)
			}
		}
	}
}
