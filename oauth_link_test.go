package auth_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// confirm proves an account's address.
func (w *world) confirm(email string) {
	w.t.Helper()
	w.do("GET", "/verify-email?token="+w.linkToken(email, auth.KindVerifyEmail), nil).want(200)
}

func (w *world) login(email, password string) *answer {
	w.t.Helper()
	return w.do("POST", "/login", map[string]any{"email": email, "password": password})
}

// Both sides proved the address: the identity joins the account.
func TestLinkByVerifiedEmail(t *testing.T) {
	w, idp := providerWorld(t)
	s := w.signUp("Ada@example.com")
	w.confirm("Ada@example.com")
	w.fired()
	joined := w.visitor(idp).signIn("google", ada, "").session()
	if joined.User.ID != s.User.ID || len(joined.User.Identities) != 1 {
		t.Errorf("user %+v", joined.User)
	}
	w.wantEvents(auth.EventIdentityLinked, auth.EventSignedIn)
	if m := w.Mail(t, "Ada@example.com", auth.KindIdentityLinked); !strings.Contains(m.Text, "google") {
		t.Errorf("notice %s", m.Text)
	}
	w.login("ada@example.com", goodPassword).session() // the password stays
	if !w.alive(s.AccessToken) {
		t.Error("the owner's session has ended")
	}
	github := w.visitor(idp).signIn("github", ada, "").session()
	if github.User.ID != s.User.ID || len(github.User.Identities) != 2 {
		t.Errorf("user %+v", github.User)
	}
}

// Pre-hijacking: somebody signs up with the victim's address, which they cannot
// confirm, and waits for the victim to come by a provider. Whatever they set up
// is gone then: password, session, links, phone, identity, pending factor.
func TestPreHijackEndsAtProvider(t *testing.T) {
	w, idp := providerWorld(t)
	evil := w.squatter("ada@example.com")
	v := w.visitor(idp)
	to := decodeAs[map[string]string](v.do("POST", "/me/identities/github", nil, bearer(evil.AccessToken)).want(200))["url"]
	idp.SignsIn(authtest.Person{Subject: "666", Email: "evil@example.com", EmailVerified: true})
	v.back("github", idp.Authorize(t, to)).session()
	w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(evil.AccessToken)).want(200)
	w.otp(number, w.Mail(t, number, auth.KindPhoneCode).Code, bearer(evil.AccessToken)).want(200)
	w.do("POST", "/2fa/setup-totp", nil, bearer(evil.AccessToken)).want(200)
	w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
	reset := w.linkToken("ada@example.com", auth.KindResetPassword)

	s := w.visitor(idp).signIn("google", ada, "").session()
	if s.User.ID != evil.User.ID || !s.User.EmailVerified || len(s.User.Identities) != 1 || s.User.Identities[0].Provider != "google" || s.User.MFAEnabled {
		t.Errorf("user %+v", s.User)
	}
	if w.alive(evil.AccessToken) {
		t.Error("the attacker's session goes on")
	}
	w.do("POST", "/refresh", map[string]any{"refresh_token": evil.RefreshToken}).want(400, auth.CodeSessionEnded)
	w.login("ada@example.com", goodPassword).want(401, auth.CodeInvalidCredentials)
	w.do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "another horse battery"}).want(400, auth.CodeInvalidToken)
	other := w.visitor(idp).signIn("github", authtest.Person{Subject: "666", Email: "evil@example.com", EmailVerified: true}, "").session()
	if other.User.ID == s.User.ID {
		t.Error("the attacker's identity still signs in to the victim's account")
	}
	if u, err := w.Store.User(t.Context(), store.ByPhone(number)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the attacker's number belongs to %s", u.ID)
	}
	if f, err := w.Store.(store.FactorStore).Factors(t.Context(), s.User.ID); err != nil || len(f.List) > 0 {
		t.Error("the attacker's pending factor is still there")
	}
}

// The same at a magic link and a reset: an identity that was linked before the
// address was proved is a way in for whoever linked it.
func TestPreHijackByIdentityEndsAtLink(t *testing.T) {
	prove := map[string]func(*world){
		"magic link": func(w *world) {
			w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink("ada@example.com", nil)}).want(200)
		},
		"reset": func(w *world) {
			w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
			w.do("POST", "/reset-password", map[string]any{"token": w.linkToken("ada@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).want(200)
		},
	}
	for name, proof := range prove {
		w, idp := providerWorld(t)
		evil := w.visitor(idp).signIn("facebook", authtest.Person{Subject: "666", Email: "ada@example.com"}, "").session()
		proof(w)
		w.visitor(idp).signIn("facebook", authtest.Person{Subject: "666", Email: "ada@example.com"}, "").want(409, auth.CodeAccountExists)
		if w.alive(evil.AccessToken) {
			t.Errorf("%s: the attacker's session goes on", name)
		}
	}
}

// An unverified address never joins an account, whatever state that is in.
func TestUnverifiedEmailNeverLinks(t *testing.T) {
	for _, confirmed := range []bool{true, false} {
		w, idp := providerWorld(t)
		s := w.signUp("ada@example.com")
		if confirmed {
			w.confirm("ada@example.com")
		}
		liar := ada
		liar.EmailVerified = false
		for _, name := range everyProvider {
			if name == "twitter" {
				continue // tells confirmed addresses only
			}
			w.visitor(idp).signIn(name, liar, "").want(409, auth.CodeAccountExists)
			q := w.visitor(idp).signIn(name, liar, "redirect_to=https://app.test/").location().Query()
			if q.Get("error_code") != "account_exists" || q.Has("code") {
				t.Errorf("%s: %v", name, q)
			}
		}
		u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
		if err != nil || len(u.Identities) != 0 {
			t.Errorf("user %+v, %v", u, err)
		}
		w.login("ada@example.com", goodPassword).session()
	}
}

// nOAuth: any Microsoft tenant's administrator can give anybody any address.
// It counts only with xms_edov, or from the tenant of personal accounts.
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
			w, idp := providerWorld(t)
			s := w.signUp("ada@example.com")
			w.confirm("ada@example.com")
			who := ada
			who.Claims = c.claims
			a := w.visitor(idp).signIn("microsoft", who, "")
			if !c.joins {
				a.want(409, auth.CodeAccountExists)
			} else if a.session().User.ID != s.User.ID {
				t.Error("another user")
			}
		})
	}
}

// The string "false" is not true.
func TestEmailVerifiedAsString(t *testing.T) {
	for value, joins := range map[any]bool{"false": false, "False": false, "": false, 0: false, "yes": false, "true": true, true: true} {
		w, idp := providerWorld(t)
		w.signUp("ada@example.com")
		w.confirm("ada@example.com")
		who := ada
		who.Claims = map[string]any{"email_verified": value}
		for _, name := range []string{"google", "apple", "oidc"} {
			who.Subject = name
			if a := w.visitor(idp).signIn(name, who, ""); (a.status == 200) != joins {
				t.Errorf("%s, %v: %d %s", name, value, a.status, a.body)
			}
		}
	}
}

// Who it is, is told by provider and subject: another subject with the same
// address is another person, such as the next holder of a company's mailbox.
func TestReassignedAddress(t *testing.T) {
	w, idp := providerWorld(t)
	w.visitor(idp).signIn("google", ada, "").session()
	next := ada
	next.Subject = "1906"
	w.visitor(idp).signIn("google", next, "").want(409, auth.CodeAccountExists)
	// And a subject is its provider's only.
	mallory := authtest.Person{Subject: "1815", Email: "mallory@example.com", EmailVerified: true}
	first := w.visitor(idp).signIn("google", ada, "").session()
	if s := w.visitor(idp).signIn("discord", mallory, "").session(); s.User.ID == first.User.ID {
		t.Error("one subject at two providers is taken for one person")
	}
}

func TestWithoutAutoLinking(t *testing.T) {
	w, idp := providerWorld(t, auth.WithSettings(auth.Settings{AutoLinking: auth.Off}))
	w.signUp("ada@example.com")
	w.confirm("ada@example.com")
	w.visitor(idp).signIn("google", ada, "").want(409, auth.CodeAccountExists)
	w.visitor(idp).signIn("google", authtest.Person{Subject: "2", Email: "new@example.com", EmailVerified: true}, "").session()
}

// A user with a second factor is asked for it, through every provider and both
// ways back.
func TestOAuthAsksForSecondFactor(t *testing.T) {
	for _, name := range everyProvider {
		w, idp := providerWorld(t)
		s := w.visitor(idp).signIn(name, ada, "").session()
		second := w.enrol(s.AccessToken)
		w.Clock.Advance(time.Minute)
		a := w.visitor(idp).signIn(name, ada, "").want(403, auth.CodeMFARequired)
		token := decodeAs[map[string]any](a)["mfa_token"]
		w.do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.code(second.secret, 0)}).session()
		code := w.visitor(idp).signIn(name, ada, "redirect_to=https://app.test/").location().Query().Get("code")
		w.do("POST", "/exchange", map[string]any{"code": code}).want(403, auth.CodeMFARequired)
		if name == "google" || name == "apple" || name == "microsoft" || name == "oidc" {
			who := ada
			if name == "oidc" {
				who.Claims = map[string]any{"email": who.Email, "email_verified": true}
			}
			w.do("POST", "/oauth/"+name+"/id-token", map[string]any{"id_token": idp.IDToken(name, who, "")}).want(403, auth.CodeMFARequired)
		}
	}
	// A factor that was set up before the address was proved is somebody else's, and goes.
	w, idp := providerWorld(t)
	w.enrol(w.signUp("ada@example.com").AccessToken)
	if s := w.visitor(idp).signIn("google", ada, "").session(); s.User.MFAEnabled {
		t.Errorf("user %+v", s.User)
	}
	// Nor is cookie mode.
	w, idp = providerWorld(t, auth.WithCookies(auth.CookieOptions{}))
	w.enrol(w.SignInWith(t, idp, "google", ada).AccessToken)
	v := w.visitor(idp)
	if to := v.signIn("google", ada, "redirect_to=https://app.test/").location(); !to.Query().Has("code") || v.cookies["__Host-authmount-access"] != nil {
		t.Errorf("%v %v", to, v.cookies)
	}
}

// A banned user gets nowhere.
func TestOAuthBanned(t *testing.T) {
	for _, name := range everyProvider {
		w, idp := providerWorld(t)
		s := w.visitor(idp).signIn(name, ada, "").session()
		until := w.Clock.Now().Add(time.Hour)
		code := w.visitor(idp).signIn(name, ada, "redirect_to=https://app.test/").location().Query().Get("code")
		w.patch(s.User.ID, store.UserPatch{BannedUntil: &until})
		w.do("POST", "/exchange", map[string]any{"code": code}).want(403, auth.CodeUserBanned)
		w.visitor(idp).signIn(name, ada, "").want(403, auth.CodeUserBanned)
		if q := w.visitor(idp).signIn(name, ada, "redirect_to=https://app.test/").location().Query(); q.Get("error_code") != "user_banned" || q.Has("code") {
			t.Errorf("%s: %v", name, q)
		}
		if name != "google" && s.User.EmailVerified { // by another provider with the same address
			w.visitor(idp).signIn("google", ada, "").want(403, auth.CodeUserBanned)
		}
	}
}

// Settings hold for providers, too.
func TestOAuthSettings(t *testing.T) {
	w, idp := providerWorld(t, auth.WithSettings(auth.Settings{SignUp: auth.Off}))
	w.visitor(idp).signIn("google", ada, "").want(403, auth.CodeSignupDisabled)

	w, idp = providerWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	unproved := authtest.Person{Subject: "3", Email: "bob@example.com"}
	w.visitor(idp).signIn("github", unproved, "").want(403, auth.CodeEmailNotVerified)
	first := w.linkToken("bob@example.com", auth.KindVerifyEmail)
	w.Clock.Advance(10 * time.Minute)
	w.visitor(idp).signIn("github", unproved, "").want(403, auth.CodeEmailNotVerified) // whoever comes again is sent another link
	if again := w.linkToken("bob@example.com", auth.KindVerifyEmail); again == first {
		t.Error("the second try sent no link")
	}
	w.confirm("bob@example.com")
	w.visitor(idp).signIn("github", unproved, "").session()
	w.visitor(idp).signIn("google", ada, "").session()

	w, idp = providerWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	w.visitor(idp).signIn("google", ada, "").want(403, auth.CodeMFAEnrollmentRequired)

	hooks := auth.WithHooks(auth.Hooks{BeforeSignUp: func(_ context.Context, s auth.SignUpAttempt) error {
		if s.Method != "oauth" || s.Provider != "google" || s.Email != "ada@example.com" || !s.EmailVerified {
			t.Errorf("attempt %+v", s)
		}
		return auth.Reject(auth.CodeSignupDisabled, "not today")
	}})
	w, idp = providerWorld(t, hooks)
	w.visitor(idp).signIn("google", ada, "").want(403, auth.CodeSignupDisabled)
	if _, err := w.Store.User(t.Context(), store.ByEmail("ada@example.com")); !errors.Is(err, store.ErrNotFound) {
		t.Error("a refused sign-up left a user")
	}
}

// link begins to link an identity and returns the provider's URL.
func (v *visitor) link(provider string, s session, body any) string {
	v.t.Helper()
	return decodeAs[map[string]string](v.do("POST", "/me/identities/"+provider, body, bearer(s.AccessToken)).want(200))["url"]
}

func TestLinkIdentity(t *testing.T) {
	w, idp := providerWorld(t)
	s := w.member("ada@example.com")
	other := authtest.Person{Subject: "9", Email: "ada@work.test", EmailVerified: true}
	v := w.visitor(idp)
	to := v.link("github", s, nil)
	idp.SignsIn(other)
	w.fired()
	linked := v.back("github", idp.Authorize(t, to)).session()
	if linked.User.ID != s.User.ID || len(linked.User.Identities) != 1 || linked.User.Email != "ada@example.com" || linked.RefreshToken != s.RefreshToken {
		t.Errorf("%+v", linked)
	}
	w.wantEvents(auth.EventIdentityLinked)
	w.Mail(t, "ada@example.com", auth.KindIdentityLinked)
	if in := w.visitor(idp).signIn("github", other, "").session(); in.User.ID != s.User.ID {
		t.Error("the identity signs in somebody else")
	}
	// A second one of the same provider, and one that is somebody else's.
	to = v.link("github", s, nil)
	idp.SignsIn(authtest.Person{Subject: "10"})
	v.back("github", idp.Authorize(t, to)).want(409, auth.CodeIdentityAlreadyExists)
	eve := w.member("eve@example.com")
	to = v.link("github", eve, nil)
	idp.SignsIn(other)
	v.back("github", idp.Authorize(t, to)).want(409, auth.CodeIdentityAlreadyExists)

	w.do("POST", "/me/identities/nobody", nil, bearer(s.AccessToken)).want(404, auth.CodeUnknownProvider)
	w.do("POST", "/me/identities/google", map[string]any{"redirect_to": "https://evil.test/"}, bearer(s.AccessToken)).want(400, auth.CodeRedirectNotAllowed)
	w.Clock.Advance(15 * time.Minute)
	fresh := w.do("POST", "/refresh", map[string]any{"refresh_token": s.RefreshToken}).session()
	w.do("POST", "/me/identities/google", nil, bearer(fresh.AccessToken)).want(403, auth.CodeReauthNeeded)
	w.do("DELETE", "/me/identities/github", nil, bearer(fresh.AccessToken)).want(403, auth.CodeReauthNeeded)
}

// Linking CSRF: an attacker sends the URL of their own linking to a victim, whose
// identity would then open the attacker's account, and the other way round.
func TestLinkingAttack(t *testing.T) {
	w, idp := providerWorld(t)
	evil := w.member("evil@example.com")
	victim := ada
	idp.SignsIn(victim)
	none := func(why string) {
		t.Helper()
		if u, err := w.Store.User(t.Context(), store.ByID(evil.User.ID)); err != nil || len(u.Identities) != 0 {
			t.Errorf("%s: linked %+v", why, u.Identities)
		}
	}
	back := idp.Authorize(t, w.visitor(idp).link("google", evil, nil))
	w.visitor(idp).back("google", back).want(400, auth.CodeBadOAuthState)
	none("another browser")

	// With a challenge the callback may come from another browser, but the link
	// is made by whoever has the verifier.
	body := map[string]any{"redirect_to": "https://app.test/", "code_challenge": challengeOf(verifier)}
	back = idp.Authorize(t, w.visitor(idp).link("google", evil, body))
	code := w.visitor(idp).back("google", back).location().Query().Get("code")
	none("only the callback")
	w.do("POST", "/exchange", map[string]any{"code": code}).want(400, auth.CodeBadCodeVerifier)
	none("without the verifier")
	back = idp.Authorize(t, w.visitor(idp).link("google", evil, body))
	code = w.visitor(idp).back("google", back).location().Query().Get("code")
	s := w.do("POST", "/exchange", map[string]any{"code": code, "code_verifier": verifier}).session()
	if len(s.User.Identities) != 1 {
		t.Error("the rightful exchange does not link")
	}
	// A sign-in's state does not link, and a linking does not outlive its session.
	bob := w.member("bob@example.com")
	v := w.visitor(idp)
	to := v.link("github", bob, nil)
	w.do("POST", "/logout", nil, bearer(bob.AccessToken)).want(204)
	v.back("github", idp.Authorize(t, to)).want(400, auth.CodeBadOAuthState)
}

func TestUnlinkIdentity(t *testing.T) {
	w, idp := providerWorld(t)
	s := w.visitor(idp).signIn("google", ada, "").session()
	unlink := func(provider string) *answer {
		return w.do("DELETE", "/me/identities/"+provider, nil, bearer(s.AccessToken))
	}
	unlink("google").want(409, auth.CodeLastSignInMethod)
	unlink("github").want(404, auth.CodeNotFound)
	unlink("nobody").want(404, auth.CodeUnknownProvider)
	w.visitor(idp).signIn("github", ada, "").session()
	code := w.visitor(idp).signIn("google", ada, "redirect_to=https://app.test/").location().Query().Get("code")
	w.fired()
	unlink("google").want(204)
	w.wantEvents(auth.EventIdentityUnlinked)
	w.Mail(t, "ada@example.com", auth.KindIdentityUnlinked)
	w.do("POST", "/exchange", map[string]any{"code": code}).want(400, auth.CodeInvalidCode) // made before
	unlink("github").want(409, auth.CodeLastSignInMethod)
	w.do("POST", "/me/password", map[string]any{"new_password": goodPassword}, bearer(s.AccessToken)).want(200)
	unlink("github").want(204)
	w.login("ada@example.com", goodPassword).session()
}

// Of parallel unlinkings the last way to sign in survives.
func TestUnlinkRace(t *testing.T) {
	for range 5 {
		w, idp := providerWorld(t)
		var s session
		names := []string{"google", "github", "discord", "oidc", "apple"}
		for _, name := range names {
			s = w.visitor(idp).signIn(name, ada, "").session()
		}
		var wg sync.WaitGroup
		var gone atomic.Int32
		for _, name := range names {
			wg.Go(func() {
				a := w.do("DELETE", "/me/identities/"+name, nil, bearer(s.AccessToken))
				if a.status == 204 {
					gone.Add(1)
				} else if a.status != 503 { // five rivals in a row
					a.want(409, auth.CodeLastSignInMethod)
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
	w, idp := providerWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	idp.SignsIn(ada)
	type try struct {
		v    *visitor
		back url.Values
	}
	var tries []try
	for i := range 10 {
		s := w.member(string(rune('a'+i)) + "@example.com")
		v := w.visitor(idp)
		tries = append(tries, try{v, idp.Authorize(t, v.link("github", s, nil))})
	}
	var wg sync.WaitGroup
	var won atomic.Int32
	for _, try := range tries {
		wg.Go(func() {
			if a := try.v.back("github", try.back); a.status == 200 {
				won.Add(1)
			} else {
				a.want(409, auth.CodeIdentityAlreadyExists)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d won", won.Load())
	}
}

// A linking that was begun without a browser is bound to none: whoever comes back,
// in a browser without a cookie, too, gets a code, and only its exchange links.
func TestLinkBegunWithoutABrowser(t *testing.T) {
	w, idp := providerWorld(t)
	s := w.member("mallory@example.com")
	claims := w.claimsOf(s)
	to, err := w.LinkIdentity(t.Context(), auth.LinkIdentityParams{
		Caller:           claims.Caller(),
		StartOAuthParams: auth.StartOAuthParams{Provider: "google", RedirectTo: "https://app.test/", CodeChallenge: challengeOf(verifier)},
	})
	if err != nil {
		t.Fatal(err)
	}
	idp.SignsIn(ada)
	back := idp.Authorize(t, to)
	res, err := w.FinishOAuth(t.Context(), auth.OAuthCallback{Provider: "google", State: back.Get("state"), Code: back.Get("code"), Issuer: back.Get("iss")})
	if err != nil || res.Tokens != nil || !strings.Contains(res.RedirectURL, "code=") {
		t.Errorf("%+v, %v", res, err)
	}
	if u, err := w.Store.User(t.Context(), store.ByID(s.User.ID)); err != nil || len(u.Identities) != 0 {
		t.Errorf("linked to %+v, %v", u.Identities, err)
	}
}
