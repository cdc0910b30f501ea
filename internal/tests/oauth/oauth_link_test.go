package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// Both sides verified the address: the identity joins the account.
func TestLinkByVerifiedEmail(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.PostSignUp("Ada@example.com")
	w.PostConfirm("Ada@example.com")
	w.Fired()
	joined := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	if joined.User.ID != s.User.ID || len(joined.User.Identities) != 1 {
		t.Errorf("user %+v", joined.User)
	}
	w.WantEvents(auth.EventIdentityLinked, auth.EventSignedIn)
	if m := w.Mail(t, "Ada@example.com", auth.KindIdentityLinked); !strings.Contains(m.Text, "google") {
		t.Errorf("notice %s", m.Text)
	}
	w.PostLogin("ada@example.com", harness.GoodPassword).Session() // the password stays
	if !w.Alive(s.AccessToken) {
		t.Error("the owner's session has ended")
	}
	github := w.NewVisitor(idp).SignIn("github", harness.Ada, "").Session()
	if github.User.ID != s.User.ID || len(github.User.Identities) != 2 {
		t.Errorf("user %+v", github.User)
	}
}

// Pre-hijacking: an attacker signs up with the victim's address, which they cannot confirm,
// and waits until the victim signs in by a provider. Then everything that the attacker set
// up is deleted: password, session, links, phone, identity and pending factor.
func TestPreHijackEndsAtProvider(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	evil := w.Squatter("ada@example.com")
	v := w.NewVisitor(idp)
	to := harness.DecodeAs[map[string]string](v.Do("POST", "/me/identities/github", nil, harness.Bearer(evil.AccessToken)).Want(200))["url"]
	idp.SignsIn(authtest.Person{Subject: "666", Email: "evil@example.com", EmailVerified: true})
	v.Back("github", idp.Authorize(t, to)).Session()
	w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(evil.AccessToken)).Want(200)
	w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(evil.AccessToken)).Want(200)
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
	reset := w.LinkToken("ada@example.com", auth.KindResetPassword)

	s := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	if s.User.ID != evil.User.ID || !s.User.EmailVerified || len(s.User.Identities) != 1 || s.User.Identities[0].Provider != "google" || s.User.MFAEnabled {
		t.Errorf("user %+v", s.User)
	}
	if w.Alive(evil.AccessToken) {
		t.Error("the attacker's session goes on")
	}
	w.Do("POST", "/refresh", map[string]any{"refresh_token": evil.RefreshToken}).Want(400, auth.CodeSessionEnded)
	w.PostLogin("ada@example.com", harness.GoodPassword).Want(401, auth.CodeInvalidCredentials)
	w.Do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "another horse battery"}).Want(400, auth.CodeInvalidToken)
	other := w.NewVisitor(idp).SignIn("github", authtest.Person{Subject: "666", Email: "evil@example.com", EmailVerified: true}, "").Session()
	if other.User.ID == s.User.ID {
		t.Error("the attacker's identity still signs in to the victim's account")
	}
	if u, err := w.Store.User(t.Context(), store.ByPhone(harness.PhoneNumber)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the attacker's number belongs to %s", u.ID)
	}
	if f, err := w.Store.(store.FactorStore).Factors(t.Context(), s.User.ID); err != nil || len(f.List) > 0 {
		t.Error("the attacker's pending factor is still there")
	}
}

// The same at a magic link and a reset: an identity that was linked before the address was
// verified lets the person who linked it sign in.
func TestPreHijackByIdentityEndsAtLink(t *testing.T) {
	prove := map[string]func(*harness.World){
		"magic link": func(w *harness.World) {
			w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("ada@example.com", nil)}).Want(200)
		},
		"reset": func(w *harness.World) {
			w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).Want(200)
		},
	}
	for name, proof := range prove {
		w, idp := harness.NewProviderWorld(t)
		evil := w.NewVisitor(idp).SignIn("facebook", authtest.Person{Subject: "666", Email: "ada@example.com"}, "").Session()
		proof(w)
		w.NewVisitor(idp).SignIn("facebook", authtest.Person{Subject: "666", Email: "ada@example.com"}, "").Want(409, auth.CodeAccountExists)
		if w.Alive(evil.AccessToken) {
			t.Errorf("%s: the attacker's session goes on", name)
		}
	}
}

// An unverified address never joins an account, in any state of the account.
func TestUnverifiedEmailNeverLinks(t *testing.T) {
	for _, confirmed := range []bool{true, false} {
		w, idp := harness.NewProviderWorld(t)
		s := w.PostSignUp("ada@example.com")
		if confirmed {
			w.PostConfirm("ada@example.com")
		}
		liar := harness.Ada
		liar.EmailVerified = false
		for _, name := range everyProvider {
			if name == "twitter" {
				continue // returns confirmed addresses only
			}
			w.NewVisitor(idp).SignIn(name, liar, "").Want(409, auth.CodeAccountExists)
			q := w.NewVisitor(idp).SignIn(name, liar, "redirect_to=https://app.test/").Location().Query()
			if q.Get("error_code") != "account_exists" || q.Has("code") {
				t.Errorf("%s: %v", name, q)
			}
		}
		u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
		if err != nil || len(u.Identities) != 0 {
			t.Errorf("user %+v, %v", u, err)
		}
		w.PostLogin("ada@example.com", harness.GoodPassword).Session()
	}
}

// nOAuth: any Microsoft tenant's administrator can assign any email address to a user. It
// counts only with xms_edov, or from the tenant of personal accounts.
func TestNOAuth(t *testing.T) {
	const personal = "9188040d-6c67-4c5b-b112-36a304b66dad"
	for name, c := range map[string]struct {
		claims map[string]any
		joins  bool
	}{
		"no claim":               {map[string]any{"xms_edov": nil}, false},
		"false":                  {map[string]any{"xms_edov": false}, false},
		"the string false":       {map[string]any{"xms_edov": "false"}, false},
		"zero":                   {map[string]any{"xms_edov": "0"}, false},
		"email_verified instead": {map[string]any{"xms_edov": nil, "email_verified": true}, false},
		"the wrong case":         {map[string]any{"xms_edov": nil, "XMS_EDOV": true}, false},
		"true":                   {map[string]any{"xms_edov": true}, true},
		"one":                    {map[string]any{"xms_edov": 1}, true},
		"personal":               {map[string]any{"xms_edov": nil, "tid": personal}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, idp := harness.NewProviderWorld(t)
			s := w.PostSignUp("ada@example.com")
			w.PostConfirm("ada@example.com")
			who := harness.Ada
			who.Claims = c.claims
			a := w.NewVisitor(idp).SignIn("microsoft", who, "")
			if !c.joins {
				a.Want(409, auth.CodeAccountExists)
			} else if a.Session().User.ID != s.User.ID {
				t.Error("another user")
			}
		})
	}
}

// The string "false" is not true.
func TestEmailVerifiedAsString(t *testing.T) {
	for value, joins := range map[any]bool{"false": false, "False": false, "": false, 0: false, "yes": false, "true": true, true: true} {
		w, idp := harness.NewProviderWorld(t)
		w.PostSignUp("ada@example.com")
		w.PostConfirm("ada@example.com")
		who := harness.Ada
		who.Claims = map[string]any{"email_verified": value}
		for _, name := range []string{"google", "apple", "oidc"} {
			who.Subject = name
			if a := w.NewVisitor(idp).SignIn(name, who, ""); (a.Status == 200) != joins {
				t.Errorf("%s, %v: %d %s", name, value, a.Status, a.Body)
			}
		}
	}
}

// Provider and subject identify a user. Another subject with the same address is another
// person, such as the next holder of a company's mailbox.
func TestReassignedAddress(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	next := harness.Ada
	next.Subject = "1906"
	w.NewVisitor(idp).SignIn("google", next, "").Want(409, auth.CodeAccountExists)
	// And a subject is its provider's only.
	mallory := authtest.Person{Subject: "1815", Email: "mallory@example.com", EmailVerified: true}
	first := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	if s := w.NewVisitor(idp).SignIn("discord", mallory, "").Session(); s.User.ID == first.User.ID {
		t.Error("one subject at two providers is taken for one person")
	}
}

func TestWithoutAutoLinking(t *testing.T) {
	w, idp := harness.NewProviderWorld(t, auth.WithSettings(auth.Settings{AutoLinking: auth.Off}))
	w.PostSignUp("ada@example.com")
	w.PostConfirm("ada@example.com")
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Want(409, auth.CodeAccountExists)
	w.NewVisitor(idp).SignIn("google", authtest.Person{Subject: "2", Email: "new@example.com", EmailVerified: true}, "").Session()
}

// A user with a second factor must present it, through every provider and on both ways back.
func TestOAuthAsksForSecondFactor(t *testing.T) {
	for _, name := range everyProvider {
		w, idp := harness.NewProviderWorld(t)
		s := w.NewVisitor(idp).SignIn(name, harness.Ada, "").Session()
		second := w.Enrol(s.AccessToken)
		w.Clock.Advance(time.Minute)
		a := w.NewVisitor(idp).SignIn(name, harness.Ada, "").Want(403, auth.CodeMFARequired)
		token := harness.DecodeAs[map[string]any](a)["mfa_token"]
		w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.Code(second.Secret, 0)}).Session()
		code := w.NewVisitor(idp).SignIn(name, harness.Ada, "redirect_to=https://app.test/").Location().Query().Get("code")
		w.PostExchange(code, harness.Verifier).Want(403, auth.CodeMFARequired)
		if name == "google" || name == "apple" || name == "microsoft" || name == "oidc" {
			who := harness.Ada
			if name == "oidc" {
				who.Claims = map[string]any{"email": who.Email, "email_verified": true}
			}
			w.Do("POST", "/oauth/"+name+"/id-token", map[string]any{"id_token": idp.IDToken(name, who, "")}).Want(403, auth.CodeMFARequired)
		}
	}
	// A factor that was set up before the address was verified belongs to another person and
	// is deleted.
	w, idp := harness.NewProviderWorld(t)
	w.Enrol(w.PostSignUp("ada@example.com").AccessToken)
	if s := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session(); s.User.MFAEnabled {
		t.Errorf("user %+v", s.User)
	}
	// Nor is cookie mode.
	w, idp = harness.NewProviderWorld(t, auth.WithCookies(auth.CookieOptions{}))
	w.Enrol(w.SignInWith(t, idp, "google", harness.Ada).AccessToken)
	v := w.NewVisitor(idp)
	if to := v.SignIn("google", harness.Ada, "redirect_to=https://app.test/").Location(); !to.Query().Has("code") || v.Cookies["__Host-authmount-access"] != nil {
		t.Errorf("%v %v", to, v.Cookies)
	}
}

// A banned user gets nowhere.
func TestOAuthBanned(t *testing.T) {
	for _, name := range everyProvider {
		w, idp := harness.NewProviderWorld(t)
		s := w.NewVisitor(idp).SignIn(name, harness.Ada, "").Session()
		until := w.Clock.Now().Add(time.Hour)
		code := w.NewVisitor(idp).SignIn(name, harness.Ada, "redirect_to=https://app.test/").Location().Query().Get("code")
		w.Patch(s.User.ID, store.UserPatch{BannedUntil: &until})
		w.PostExchange(code, harness.Verifier).Want(403, auth.CodeUserBanned)
		w.NewVisitor(idp).SignIn(name, harness.Ada, "").Want(403, auth.CodeUserBanned)
		if q := w.NewVisitor(idp).SignIn(name, harness.Ada, "redirect_to=https://app.test/").Location().Query(); q.Get("error_code") != "user_banned" || q.Has("code") {
			t.Errorf("%s: %v", name, q)
		}
		if name != "google" && s.User.EmailVerified { // by another provider with the same address
			w.NewVisitor(idp).SignIn("google", harness.Ada, "").Want(403, auth.CodeUserBanned)
		}
	}
}

// Settings hold for providers, too.
func TestOAuthSettings(t *testing.T) {
	w, idp := harness.NewProviderWorld(t, auth.WithSettings(auth.Settings{SignUp: auth.Off}))
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Want(403, auth.CodeSignupDisabled)

	w, idp = harness.NewProviderWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	unproved := authtest.Person{Subject: "3", Email: "bob@example.com"}
	w.NewVisitor(idp).SignIn("github", unproved, "").Want(403, auth.CodeEmailNotVerified)
	first := w.LinkToken("bob@example.com", auth.KindVerifyEmail)
	w.Clock.Advance(10 * time.Minute)
	w.NewVisitor(idp).SignIn("github", unproved, "").Want(403, auth.CodeEmailNotVerified) // a repeated sign-in sends another link
	if again := w.LinkToken("bob@example.com", auth.KindVerifyEmail); again == first {
		t.Error("the second try sent no link")
	}
	code := w.ShownCode(w.LinkToken("bob@example.com", auth.KindVerifyEmail))
	w.NewVisitor(idp).SignIn("github", unproved, "confirmation_code="+harness.OtherNumber(code)).Want(400, auth.CodeInvalidCode)
	w.NewVisitor(idp).SignIn("github", unproved, "confirmation_code="+code).Session()
	w.NewVisitor(idp).SignIn("github", unproved, "").Session()
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()

	w, idp = harness.NewProviderWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Want(403, auth.CodeMFAEnrollmentRequired)

	hooks := auth.WithHooks(auth.Hooks{BeforeSignUp: func(_ context.Context, s auth.SignUpAttempt) error {
		if s.Method != "oauth" || s.Provider != "google" || s.Email != "ada@example.com" || !s.EmailVerified {
			t.Errorf("attempt %+v", s)
		}
		return auth.Reject(auth.CodeSignupDisabled, "not today")
	}})
	w, idp = harness.NewProviderWorld(t, hooks)
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Want(403, auth.CodeSignupDisabled)
	if _, err := w.Store.User(t.Context(), store.ByEmail("ada@example.com")); !errors.Is(err, store.ErrNotFound) {
		t.Error("a refused sign-up left a user")
	}
}

func TestLinkIdentity(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.Member("ada@example.com")
	other := authtest.Person{Subject: "9", Email: "ada@work.test", EmailVerified: true}
	v := w.NewVisitor(idp)
	to := v.Link("github", s, nil)
	idp.SignsIn(other)
	w.Fired()
	linked := v.Back("github", idp.Authorize(t, to)).Session()
	if linked.User.ID != s.User.ID || len(linked.User.Identities) != 1 || linked.User.Email != "ada@example.com" || linked.RefreshToken != s.RefreshToken {
		t.Errorf("%+v", linked)
	}
	w.WantEvents(auth.EventIdentityLinked)
	w.Mail(t, "ada@example.com", auth.KindIdentityLinked)
	if in := w.NewVisitor(idp).SignIn("github", other, "").Session(); in.User.ID != s.User.ID {
		t.Error("the identity signs in somebody else")
	}
	// A second identity of the same provider, and another user's identity.
	to = v.Link("github", s, nil)
	idp.SignsIn(authtest.Person{Subject: "10"})
	v.Back("github", idp.Authorize(t, to)).Want(409, auth.CodeIdentityAlreadyExists)
	eve := w.Member("eve@example.com")
	to = v.Link("github", eve, nil)
	idp.SignsIn(other)
	v.Back("github", idp.Authorize(t, to)).Want(409, auth.CodeIdentityAlreadyExists)

	w.Do("POST", "/me/identities/nobody", nil, harness.Bearer(s.AccessToken)).Want(404, auth.CodeUnknownProvider)
	w.Do("POST", "/me/identities/google", map[string]any{"redirect_to": "https://evil.test/"}, harness.Bearer(s.AccessToken)).Want(400, auth.CodeRedirectNotAllowed)
	w.Clock.Advance(15 * time.Minute)
	fresh := w.Do("POST", "/refresh", map[string]any{"refresh_token": s.RefreshToken}).Session()
	w.Do("POST", "/me/identities/google", nil, harness.Bearer(fresh.AccessToken)).Want(403, auth.CodeReauthNeeded)
	w.Do("DELETE", "/me/identities/github", nil, harness.Bearer(fresh.AccessToken)).Want(403, auth.CodeReauthNeeded)
}

// Linking CSRF: an attacker sends the URL of their own linking to a victim, so that the
// victim's identity would sign in to the attacker's account, and the other way round.
func TestLinkingAttack(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	evil := w.Member("evil@example.com")
	victim := harness.Ada
	idp.SignsIn(victim)
	none := func(why string) {
		t.Helper()
		if u, err := w.Store.User(t.Context(), store.ByID(evil.User.ID)); err != nil || len(u.Identities) != 0 {
			t.Errorf("%s: linked %+v", why, u.Identities)
		}
	}
	back := idp.Authorize(t, w.NewVisitor(idp).Link("google", evil, nil))
	w.NewVisitor(idp).Back("google", back).Want(400, auth.CodeBadOAuthState)
	none("another browser")

	// With a challenge, the callback may come from another browser, but only the holder of
	// the verifier completes the link.
	body := map[string]any{"redirect_to": "https://app.test/", "code_challenge": harness.ChallengeOf(harness.Verifier)}
	back = idp.Authorize(t, w.NewVisitor(idp).Link("google", evil, body))
	code := w.NewVisitor(idp).Back("google", back).Location().Query().Get("code")
	none("only the callback")
	w.Do("POST", "/exchange", map[string]any{"code": code}).Want(400, auth.CodeBadCodeVerifier)
	none("without the verifier")
	back = idp.Authorize(t, w.NewVisitor(idp).Link("google", evil, body))
	code = w.NewVisitor(idp).Back("google", back).Location().Query().Get("code")
	s := w.Do("POST", "/exchange", map[string]any{"code": code, "code_verifier": harness.Verifier}).Session()
	if len(s.User.Identities) != 1 {
		t.Error("the rightful exchange does not link")
	}
	// A sign-in's state does not link, and a linking does not outlive its session.
	bob := w.Member("bob@example.com")
	v := w.NewVisitor(idp)
	to := v.Link("github", bob, nil)
	w.Do("POST", "/logout", nil, harness.Bearer(bob.AccessToken)).Want(204)
	v.Back("github", idp.Authorize(t, to)).Want(400, auth.CodeBadOAuthState)
}

func TestUnlinkIdentity(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	unlink := func(provider string) *harness.Answer {
		return w.Do("DELETE", "/me/identities/"+provider, nil, harness.Bearer(s.AccessToken))
	}
	unlink("google").Want(409, auth.CodeLastSignInMethod)
	unlink("github").Want(404, auth.CodeNotFound)
	unlink("nobody").Want(404, auth.CodeUnknownProvider)
	w.NewVisitor(idp).SignIn("github", harness.Ada, "").Session()
	code := w.NewVisitor(idp).SignIn("google", harness.Ada, "redirect_to=https://app.test/").Location().Query().Get("code")
	w.Fired()
	unlink("google").Want(204)
	w.WantEvents(auth.EventIdentityUnlinked)
	w.Mail(t, "ada@example.com", auth.KindIdentityUnlinked)
	w.PostExchange(code, harness.Verifier).Want(400, auth.CodeInvalidCode) // made before
	unlink("github").Want(409, auth.CodeLastSignInMethod)
	w.Do("POST", "/me/password", map[string]any{"new_password": harness.GoodPassword}, harness.Bearer(s.AccessToken)).Want(200)
	unlink("github").Want(204)
	w.PostLogin("ada@example.com", harness.GoodPassword).Session()
}

// Of parallel unlinkings the last way to sign in survives.
func TestUnlinkRace(t *testing.T) {
	for range 5 {
		w, idp := harness.NewProviderWorld(t)
		var s harness.Session
		names := []string{"google", "github", "discord", "oidc", "apple"}
		for _, name := range names {
			s = w.NewVisitor(idp).SignIn(name, harness.Ada, "").Session()
		}
		var wg sync.WaitGroup
		var gone atomic.Int32
		for _, name := range names {
			wg.Go(func() {
				a := w.Do("DELETE", "/me/identities/"+name, nil, harness.Bearer(s.AccessToken))
				if a.Status == 204 {
					gone.Add(1)
				} else if a.Status != 503 { // five rivals in a row
					a.Want(409, auth.CodeLastSignInMethod)
				}
			})
		}
		wg.Wait()
		u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
		if err != nil || len(u.Identities) != 5-int(gone.Load()) || len(u.Identities) == 0 {
			t.Errorf("%d unlinked, left %+v", gone.Load(), u.Identities)
		}
	}
}

// Of parallel linkings of one identity by many users one wins.
func TestLinkRace(t *testing.T) {
	w, idp := harness.NewProviderWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	idp.SignsIn(harness.Ada)
	type try struct {
		v    *harness.Visitor
		back url.Values
	}
	var tries []try
	for i := range 10 {
		s := w.Member(string(rune('a'+i)) + "@example.com")
		v := w.NewVisitor(idp)
		tries = append(tries, try{v, idp.Authorize(t, v.Link("github", s, nil))})
	}
	var wg sync.WaitGroup
	var won atomic.Int32
	for _, try := range tries {
		wg.Go(func() {
			if a := try.v.Back("github", try.back); a.Status == 200 {
				won.Add(1)
			} else {
				a.Want(409, auth.CodeIdentityAlreadyExists)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d won", won.Load())
	}
}

// A linking that started without a browser is bound to none: any browser that returns gets a
// code, even one without a cookie, and only the exchange of the code links.
func TestLinkBegunWithoutABrowser(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.Member("mallory@example.com")
	claims := w.ClaimsOf(s)
	to, err := w.LinkIdentity(t.Context(), auth.LinkIdentityParams{
		Caller:           claims.Caller(),
		StartOAuthParams: auth.StartOAuthParams{Provider: "google", RedirectTo: "https://app.test/", CodeChallenge: harness.ChallengeOf(harness.Verifier)},
	})
	if err != nil {
		t.Fatal(err)
	}
	idp.SignsIn(harness.Ada)
	back := idp.Authorize(t, to)
	res, err := w.FinishOAuth(t.Context(), auth.OAuthCallback{Provider: "google", State: back.Get("state"), Code: back.Get("code"), Issuer: back.Get("iss")})
	if err != nil || res.Tokens != nil || !strings.Contains(res.RedirectURL, "code=") {
		t.Errorf("%+v, %v", res, err)
	}
	if u, err := w.Store.User(t.Context(), store.ByID(s.User.ID)); err != nil || len(u.Identities) != 0 {
		t.Errorf("linked to %+v, %v", u.Identities, err)
	}
}

// In cookie mode, the browser that signed up at a provider confirms by one press. A browser
// that another one sent to the callback does not, because its sign-up is not the visitor's. A
// later sign-in at a provider that verified the address keeps everything.
func TestProviderSignUpIsConfirmedInItsBrowser(t *testing.T) {
	w, idp := harness.NewProviderWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}), auth.WithCookies(auth.CookieOptions{}),
		auth.WithRedirectURLs("https://app.test/*"))
	who := authtest.Person{Subject: "3", Email: "ada@example.com"}
	press := func(v *harness.Visitor) string {
		v.Do("POST", "/verify-email", "token="+w.LinkToken("ada@example.com", auth.KindVerifyEmail), harness.Form, harness.Browser, harness.SameOrigin).Want(200)
		u, err := w.Store.User(t.Context(), store.ByEmail("ada@example.com"))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(u.EmailVerified(), len(u.Identities))
	}
	mine, other := w.NewVisitor(idp), w.NewVisitor(idp)
	at := "/oauth/facebook?redirect_to=https://app.test/&code_challenge=" + harness.ChallengeOf(harness.Verifier)
	to := harness.DecodeAs[map[string]string](mine.Do("GET", at, nil, harness.Header{Name: "Accept", Value: "application/json"}).Want(200))["url"]
	idp.SignsIn(who)
	other.Back("facebook", idp.Authorize(t, to)).Want(303)
	if got := press(other); got != "false 1" {
		t.Errorf("in another browser: %s", got)
	}
	mine.SignIn("facebook", who, "").Want(403, auth.CodeEmailNotVerified)
	if got := press(mine); got != "true 1" {
		t.Errorf("in its browser: %s", got)
	}
	w.NewVisitor(idp).SignIn("google", authtest.Person{Subject: "4", Email: "ada@example.com", EmailVerified: true}, "").Want(200)
	mine.SignIn("facebook", who, "").Want(200)
}
