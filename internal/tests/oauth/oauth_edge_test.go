package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// From Go, too, a sign-in is bound to a browser or to the holder of a verifier.
func TestStartBoundToNobody(t *testing.T) {
	w, _ := harness.NewProviderWorld(t)
	const to = "https://app.test/"
	for name, in := range map[string]auth.StartOAuthParams{
		"nothing":              {},
		"a redirect alone":     {RedirectTo: to},
		"a challenge alone":    {CodeChallenge: harness.ChallengeOf(harness.Verifier)},
		"remote, no challenge": {RedirectTo: to, Browser: "secret", Remote: true},
	} {
		in.Provider = "google"
		if got, err := w.StartOAuth(t.Context(), in); !errors.Is(err, auth.CodeValidationFailed) || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A doubled parameter is ambiguous.
func TestDoubledCallbackParameters(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	v := w.NewVisitor(idp)
	to := v.Start("oidc", "")
	idp.SignsIn(harness.Ada)
	back := idp.Authorize(t, to)
	for _, name := range []string{"state", "code", "error", "iss"} {
		doubled := url.Values{name: {back.Get(name), back.Get(name)}}
		for k, values := range back {
			if k != name {
				doubled[k] = values
			}
		}
		v.Back("oidc", doubled).Want(400, auth.CodeBadOAuthState)
		v.Do("POST", "/oauth/oidc/callback", doubled.Encode(), harness.Form).Want(400, auth.CodeBadOAuthState)
	}
	v.Back("oidc", back).Session() // and none of these spoilt it
}

// A code that is longer than any code is not passed on.
func TestEndlessCode(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	for length, asked := range map[int]int{4096: 1, 4097: 0} {
		before := idp.Requests("/google/token")
		v := w.NewVisitor(idp)
		to := v.Start("google", "")
		idp.SignsIn(harness.Ada)
		back := idp.Authorize(t, to)
		back.Set("code", strings.Repeat("x", length))
		v.Back("google", back).Want(502, auth.CodeProviderError)
		if n := idp.Requests("/google/token") - before; n != asked {
			t.Errorf("%d bytes: the token endpoint was asked %d times", length, n)
		}
	}
}

// Only a provider with NameOf sends a name beside the code. Anybody can add one to a callback.
func TestNameBesideTheCode(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	for i, post := range []bool{false, true} {
		v := w.NewVisitor(idp)
		to := v.Start("google", "")
		idp.SignsIn(authtest.Person{Subject: fmt.Sprint(i)})
		back := idp.Authorize(t, to)
		back.Set("user", `{"name":{"firstName":"Mallory","lastName":"M"}}`)
		a := v.Back
		if post {
			a = func(_ string, with url.Values) *harness.Answer {
				return v.Do("POST", "/oauth/google/callback", with.Encode(), harness.Form)
			}
		}
		if s := a("google", back).Session(); s.User.FullName != "" {
			t.Errorf("post %v: name %q", post, s.User.FullName)
		}
	}
}

// Browsers drop a cookie with SameSite=None that is not Secure, and one that is
// Secure where there is no https.
func TestAppleCookieWithoutHTTPS(t *testing.T) {
	idp := authtest.StartProvider(t)
	w := harness.NewWorld(t, auth.WithDevMode(), auth.WithBaseURL("http://localhost:8080/auth/v1"), auth.WithProvider(idp.Apple()))
	v := w.NewVisitor(idp)
	v.Start("apple", "")
	if c := v.Cookies["authmount-oauth-post"]; c == nil || c.SameSite != http.SameSiteLaxMode || c.Secure || !c.HttpOnly {
		t.Errorf("cookies %+v", v.Cookies)
	}
}

// The person's own refusal, and the answers to prompt=none, are no faults of the
// provider. Some providers have words of their own for it.
func TestDenials(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	back := func(name, code string) *harness.Answer {
		v := w.NewVisitor(idp)
		to, err := url.Parse(v.Start(name, "prompt=none"))
		if err != nil {
			t.Fatal(err)
		}
		with := url.Values{"state": {to.Query().Get("state")}, "error": {code}}
		if name == "oidc" { // its document says that every callback names the issuer
			with.Set("iss", idp.Issuer)
		}
		return v.Back(name, with)
	}
	for _, name := range everyProvider {
		for _, code := range []string{"access_denied", "login_required", "consent_required", "interaction_required", "account_selection_required"} {
			back(name, code).Want(400, auth.CodeOAuthDenied)
		}
	}
	back("apple", "user_cancelled_authorize").Want(400, auth.CodeOAuthDenied)
	back("facebook", "user_denied").Want(400, auth.CodeOAuthDenied)
	back("google", "user_denied").Want(502, auth.CodeProviderError)
}

// An error of the callback is logged if it is an error code, and no other text.
func TestCallbackErrorInLog(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	for code, logged := range map[string]string{
		"temporarily_unavailable":     "temporarily_unavailable",
		"the secret is s3cr3t":        "[not an error code]",
		"caf\u00e9":                   "[not an error code]",
		"x\nlevel=ERROR":              "[not an error code]",
		strings.Repeat("x", 65):       "[not an error code]",
		strings.Repeat("y", 64):       strings.Repeat("y", 64),
		"invalid_request\" code=\"ok": "[not an error code]",
	} {
		v := w.NewVisitor(idp)
		to, err := url.Parse(v.Start("google", ""))
		if err != nil {
			t.Fatal(err)
		}
		before := len(w.Log.String())
		v.Back("google", url.Values{"state": {to.Query().Get("state")}, "error": {code}, "error_description": {"s3cr3t"}}).Want(502, auth.CodeProviderError)
		if log := w.Log.String()[before:]; !strings.Contains(log, `error \"`+logged+`\"`) || strings.Contains(log, "s3cr3t") {
			t.Errorf("%q: log %s", code, log)
		}
		if got := (auth.OAuthCallback{Provider: "google", Code: "c0de", State: "st4te", Error: code}).LogValue().String(); !strings.Contains(got, logged) ||
			strings.Contains(got, "c0de") || strings.Contains(got, "st4te") || strings.Contains(got, "s3cr3t") {
			t.Errorf("%q: %s", code, got)
		}
	}
}

// A hook may fail as stores do. That is no reason to ask it again.
func TestHookThatFailsLikeAStore(t *testing.T) {
	for _, err := range []error{store.ErrNotFound, store.ErrStale, store.ErrConflict} {
		calls := 0
		w, idp := harness.NewProviderWorld(t, auth.WithHooks(auth.Hooks{BeforeSignUp: func(context.Context, auth.SignUpAttempt) error {
			calls++
			return fmt.Errorf("look-up: %w", err)
		}}))
		w.NewVisitor(idp).SignIn("google", harness.Ada, "").Want(500, auth.CodeInternal)
		if calls != 1 {
			t.Errorf("%v: called %d times", err, calls)
		}
	}
}

// Neither the question for the second factor nor a linking, in which the user is signed in
// already, counts as a failed sign-in.
func TestFailedSignInEvents(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	w.NewVisitor(idp).SignIn("github", harness.EvilGit, "").Session()
	v := w.NewVisitor(idp)
	to := v.Link("github", s, nil)
	idp.SignsIn(harness.EvilGit)
	back := idp.Authorize(t, to)
	w.Fired()
	v.Back("github", back).Want(409, auth.CodeIdentityAlreadyExists)
	w.WantEvents()
	w.Enrol(s.AccessToken)
	w.Fired()
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Want(403, auth.CodeMFARequired)
	w.Do("POST", "/oauth/google/id-token", map[string]any{"id_token": idp.IDToken("google", harness.Ada, "")}).Want(403, auth.CodeMFARequired)
	w.WantEvents()
	w.Do("POST", "/oauth/google/id-token", map[string]any{"id_token": "a.b.c"}).Want(400, auth.CodeInvalidToken)
	w.WantEvents(auth.EventSignInFailed)

	w, idp = harness.NewProviderWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Want(403, auth.CodeMFAEnrollmentRequired)
	w.WantEvents(auth.EventSignedUp)
}

// A known identity is no evidence for the email address beside it.
func TestConfirmationOfKnownIdentity(t *testing.T) {
	w, idp := harness.NewProviderWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	for range 2 {
		w.NewVisitor(idp).SignIn("facebook", harness.Ada, "").Want(403, auth.CodeEmailNotVerified)
	}
	u, err := w.Store.User(t.Context(), store.ByIdentity("facebook", harness.Ada.Subject))
	if err != nil {
		t.Fatal(err)
	}
	phone, at := harness.PhoneNumber, w.Clock.Now()
	w.Patch(u.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at}) // a verified phone number replaces a verified email address
	w.NewVisitor(idp).SignIn("facebook", harness.Ada, "").Session()
}

// A banned user's account gains no credentials that would work after the ban.
func TestBannedUserGetsNoIdentity(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	until := w.Clock.Now().Add(time.Hour)
	w.Patch(s.User.ID, store.UserPatch{BannedUntil: &until})
	w.NewVisitor(idp).SignIn("github", harness.Ada, "").Want(403, auth.CodeUserBanned)
	if u, err := w.Store.User(t.Context(), store.ByID(s.User.ID)); err != nil || len(u.Identities) != 1 {
		t.Errorf("identities %+v, %v", u.Identities, err)
	}
}

// A sign-in method that is switched off or no longer configured does not count as another one.
func TestOtherWayInIsOff(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	unlinkable := func(id string, opts ...auth.Option) error {
		return authtest.NewOn(t, w.Store, append([]auth.Option{auth.WithProvider(idp.Google(), idp.GitHub())}, opts...)...).UnlinkIdentity(t.Context(), auth.UnlinkIdentityParams{Caller: auth.ByApplication(id), Provider: "google"})
	}
	settings := func(s auth.Settings) []auth.Option { return []auth.Option{auth.WithSettings(s)} }
	begin := func(subject string) harness.Session {
		return w.NewVisitor(idp).SignIn("google", authtest.Person{Subject: subject, Email: subject + "@example.com", EmailVerified: true}, "").Session()
	}
	for name, c := range map[string]struct {
		add func(s harness.Session)
		off []auth.Option
	}{
		"password": {
			func(s harness.Session) {
				w.Do("POST", "/me/password", map[string]any{"new_password": harness.GoodPassword}, harness.Bearer(s.AccessToken)).Want(200)
			}, settings(auth.Settings{Password: auth.Off}),
		},
		"phone": {
			func(s harness.Session) {
				w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(200)
				w.PostOTP(harness.PhoneNumber, w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code, harness.Bearer(s.AccessToken)).Want(200)
			}, settings(auth.Settings{Phone: auth.Off}),
		},
		"providers": {
			func(s harness.Session) {
				w.NewVisitor(idp).SignIn("github", authtest.Person{Subject: "77", Email: s.User.Email, EmailVerified: true}, "").Session()
			}, settings(auth.Settings{OAuth: auth.Off}),
		},
		"provider-gone": {
			func(s harness.Session) {
				w.NewVisitor(idp).SignIn("discord", authtest.Person{Subject: "78", Email: s.User.Email, EmailVerified: true}, "").Session()
			}, nil,
		},
	} {
		s := begin(name)
		c.add(s)
		if err := unlinkable(s.User.ID, c.off...); !errors.Is(err, auth.CodeLastSignInMethod) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.UnlinkIdentity(t.Context(), auth.UnlinkIdentityParams{Caller: auth.ByApplication(s.User.ID), Provider: "google"}); err != nil {
			t.Errorf("%s, switched on: %v", name, err)
		}
	}
}

func waitOther(w *harness.World, code string) string {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), 5*time.Second)
	defer cancel()
	m, err := w.Inbox.Wait(ctx, func(m auth.Message) bool { return m.Code != "" && m.Code != code })
	if err != nil {
		w.T.Fatal(err)
	}
	return m.Code
}
