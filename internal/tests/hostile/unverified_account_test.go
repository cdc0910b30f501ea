package hostile_test

import (
	"maps"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// An unverified account gets 403 email_not_verified at every endpoint that would add a root,
// even if it lost its verification after the request was started. A verified account does
// not. An endpoint that lists the error and has no case here fails.
func TestDoorsToAnotherRoot(t *testing.T) {
	type door struct {
		begin func(w *harness.World, idp *authtest.Provider, s harness.Session) func() *harness.Answer // while the account is verified
		want  int                                                                                      // of a verified account
	}
	link := map[string]any{"redirect_to": harness.AppURL, "code_challenge": harness.ChallengeOf(harness.Verifier)}
	callback := func(post bool) door {
		return door{func(w *harness.World, idp *authtest.Provider, s harness.Session) func() *harness.Answer {
			v := w.NewVisitor(idp)
			to := v.Link("github", s, nil)
			idp.SignsIn(harness.EvilGit)
			back := idp.Authorize(t, to)
			if post {
				return func() *harness.Answer { return v.Do("POST", "/oauth/github/callback", back.Encode(), harness.Form) }
			}
			return func() *harness.Answer { return v.Back("github", back) }
		}, 200}
	}
	doors := map[string]door{
		"PATCH /me": {func(w *harness.World, _ *authtest.Provider, s harness.Session) func() *harness.Answer {
			return func() *harness.Answer {
				return w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken))
			}
		}, 200},
		"POST /otp/verify": {func(w *harness.World, _ *authtest.Provider, s harness.Session) func() *harness.Answer {
			w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(200)
			code := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
			return func() *harness.Answer { return w.PostOTP(harness.PhoneNumber, code, harness.Bearer(s.AccessToken)) }
		}, 200},
		"POST /me/identities/{provider}": {func(w *harness.World, _ *authtest.Provider, s harness.Session) func() *harness.Answer {
			return func() *harness.Answer {
				return w.Do("POST", "/me/identities/github", link, harness.Bearer(s.AccessToken))
			}
		}, 200},
		"POST /me/passkeys/begin": {func(w *harness.World, _ *authtest.Provider, s harness.Session) func() *harness.Answer {
			return func() *harness.Answer { return w.Do("POST", "/me/passkeys/begin", nil, harness.Bearer(s.AccessToken)) }
		}, 200},
		"POST /me/passkeys": {func(w *harness.World, _ *authtest.Provider, s harness.Session) func() *harness.Answer {
			body := harness.Registration(t, w.Do, harness.NewKey(), false, harness.Bearer(s.AccessToken))
			return func() *harness.Answer { return w.Do("POST", "/me/passkeys", body, harness.Bearer(s.AccessToken)) }
		}, 200},
		"GET /oauth/{provider}/callback":  callback(false),
		"POST /oauth/{provider}/callback": callback(true),
		"POST /exchange": {func(w *harness.World, idp *authtest.Provider, s harness.Session) func() *harness.Answer {
			to := w.NewVisitor(idp).Link("github", s, link)
			idp.SignsIn(harness.EvilGit)
			back := w.NewVisitor(idp).Back("github", idp.Authorize(t, to)).Want(303)
			at, _ := url.Parse(back.Header.Get("Location"))
			return func() *harness.Answer { return w.PostExchange(at.Query().Get("code"), harness.Verifier) }
		}, 200},
	}
	none, nobody := "", time.Time{}
	for route, d := range doors {
		for name, proved := range map[string]bool{"proved": true, "unproved": false} {
			t.Run(route+", "+name, func(t *testing.T) {
				w, idp := harness.NewProviderWorld(t)
				s := w.Member(harness.AdaMail)
				come := d.begin(w, idp, s)
				if proved {
					come().Want(d.want)
					return
				}
				w.Patch(s.User.ID, store.UserPatch{EmailVerifiedAt: &nobody, Phone: &none})
				come().Want(403, auth.CodeEmailNotVerified)
				if u, err := w.Store.User(t.Context(), store.ByID(s.User.ID)); err != nil || u.Phone != "" || len(u.Identities) > 0 {
					t.Errorf("%+v, %v", u, err)
				}
			})
		}
	}
	w, _ := harness.NewProviderWorld(t)
	others := []string{
		"POST /oauth/{provider}/id-token", // the provider has not verified the email address of the account to create
		"POST /reset-password",            // of an account with a verified number, see TestHolderForgetsThePassword
	}
	want := slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(doors)), others...)))
	if got := slices.Sorted(slices.Values(harness.RoutesWith(w.Auth, auth.CodeEmailNotVerified))); !slices.Equal(got, want) {
		t.Errorf("routes with the error: %v, tried here: %v", got, want)
	}
}
