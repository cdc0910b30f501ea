package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

var squatter = authtest.Person{Subject: "666", Email: "ada@example.com"} // facebook: never proved

// Owns tells whose session an answer is; "" if it is none that lives.
func (w *world) ownerOf(a *answer) string {
	if a.status != 200 {
		return ""
	}
	s := decodeAs[session](a)
	if s.AccessToken == "" || !w.alive(s.AccessToken) {
		return ""
	}
	return s.User.ID
}

// A sign-in by the squatter's identity is under way while the owner takes the
// Account over: session after the takeover.
func TestSignInInFlight(t *testing.T) {
	var during atomic.Pointer[func()]
	idp := authtest.StartProvider(t)
	w := newWorld(t, auth.WithProvider(idp.Google(), idp.Facebook()), auth.WithHooks(auth.Hooks{BeforeSignIn: func(context.Context, auth.SignInAttempt) error {
		once(&during)
		return nil
	}}))
	idp.Now = w.Clock.Now
	w.visitor(idp).signIn("facebook", squatter, "").session()
	var owner string
	takeOver := func() { owner = w.visitor(idp).signIn("google", ada, "").session().User.ID }
	during.Store(&takeOver)
	a := w.visitor(idp).signIn("facebook", squatter, "")
	if got := w.ownerOf(a); got != "" && got == owner {
		t.Errorf("the squatter has a live session on the account taken over: %s", a.body)
	}
}

// The same with a redirect: the exchange code is made after the takeover.
func TestExchangeCodeInFlight(t *testing.T) {
	var during atomic.Pointer[func()]
	idp := authtest.StartProvider(t)
	w := newWorld(t, auth.WithProvider(idp.Google(), idp.Facebook()), auth.WithHooks(auth.Hooks{OnProviderToken: func(context.Context, auth.ProviderToken) {
		once(&during)
	}}))
	idp.Now = w.Clock.Now
	w.visitor(idp).signIn("facebook", squatter, "").session()
	var owner string
	takeOver := func() { owner = w.visitor(idp).signIn("google", ada, "").session().User.ID }
	during.Store(&takeOver)
	code := w.visitor(idp).signIn("facebook", squatter, "redirect_to=https://app.test/").location().Query().Get("code")
	a := w.do("POST", "/exchange", map[string]any{"code": code})
	if got := w.ownerOf(a); got != "" && got == owner {
		t.Errorf("the squatter's code opens the account taken over: %s", a.body)
	}
}

// Slow is a store in which something happens right after a read.
type slow struct {
	*memstore.Store
	afterSession, afterRedeem, afterIdentity, afterEmail, afterCredentials atomic.Pointer[func()]
}

// once lets happen what is planned, if anything is.
func once(planned *atomic.Pointer[func()]) {
	if f := planned.Swap(nil); f != nil {
		(*f)()
	}
}

func (s *slow) User(ctx context.Context, key store.UserKey) (auth.User, error) {
	u, err := s.Store.User(ctx, key)
	switch {
	case key.Provider != "":
		once(&s.afterIdentity)
	case key.Email != "":
		once(&s.afterEmail)
	}
	return u, err
}

func (s *slow) Credentials(ctx context.Context, key store.UserKey) (store.Credentials, error) {
	c, err := s.Store.Credentials(ctx, key)
	once(&s.afterCredentials)
	return c, err
}

func (s *slow) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	a, b, err := s.Store.Session(ctx, id, now)
	once(&s.afterSession)
	return a, b, err
}

func (s *slow) RedeemToken(ctx context.Context, r store.Redemption) (store.Token, auth.User, error) {
	a, b, err := s.Store.RedeemToken(ctx, r)
	if r.Purpose == store.PurposeExchange {
		once(&s.afterRedeem)
	}
	return a, b, err
}

func slowWorld(t *testing.T) (*world, *authtest.Provider, *slow) {
	idp, st := authtest.StartProvider(t), &slow{Store: memstore.New()}
	w := &world{t: t, log: &syncBuffer{}}
	w.Env = authtest.NewOn(t, st, auth.WithProvider(idp.Google(), idp.GitHub(), idp.Facebook()))
	idp.Now = w.Clock.Now
	return w, idp, st
}

var evilGit = authtest.Person{Subject: "667", Email: "evil@example.com", EmailVerified: true}

// Linking in flight, bound: the session check and the link are two steps, and
// the takeover comes between them.
func TestLinkInFlight(t *testing.T) {
	w, idp, st := slowWorld(t)
	evil := w.squatter("ada@example.com")
	v := w.visitor(idp)
	to := v.link("github", evil, nil)
	idp.SignsIn(evilGit)
	back := idp.Authorize(t, to)
	takeOver := func() { w.visitor(idp).signIn("google", ada, "").session() }
	st.afterSession.Store(&takeOver)
	v.back("github", back).want(400, auth.CodeBadOAuthState)
	if got := w.ownerOf(w.visitor(idp).signIn("github", evilGit, "")); got == evil.User.ID {
		t.Error("the attacker's identity opens the account for good")
	}
}

// The same at the exchange.
func TestLinkByExchangeInFlight(t *testing.T) {
	w, idp, st := slowWorld(t)
	evil := w.squatter("ada@example.com")
	v := w.visitor(idp)
	to := v.link("github", evil, map[string]any{"redirect_to": "https://app.test/", "code_challenge": challengeOf(verifier)})
	idp.SignsIn(evilGit)
	code := w.visitor(idp).back("github", idp.Authorize(t, to)).location().Query().Get("code")
	takeOver := func() { w.visitor(idp).signIn("google", ada, "").session() }
	st.afterRedeem.Store(&takeOver)
	w.do("POST", "/exchange", map[string]any{"code": code, "code_verifier": verifier})
	if got := w.ownerOf(w.visitor(idp).signIn("github", evilGit, "")); got == evil.User.ID {
		t.Error("the attacker's identity opens the account for good")
	}
}

// The session that asked to link was ended by its owner before the exchange.
func TestLinkByExchangeAfterLogout(t *testing.T) {
	w, idp := providerWorld(t)
	s := w.signUp("ada@example.com")
	w.confirm("ada@example.com")
	to := w.visitor(idp).link("github", s, map[string]any{"redirect_to": "https://app.test/", "code_challenge": challengeOf(verifier)})
	idp.SignsIn(evilGit)
	code := w.visitor(idp).back("github", idp.Authorize(t, to)).location().Query().Get("code")
	w.do("POST", "/logout?scope=global", nil, bearer(s.AccessToken)).want(204)
	a := w.do("POST", "/exchange", map[string]any{"code": code, "code_verifier": verifier})
	if u, _ := w.Store.User(t.Context(), store.ByID(s.User.ID)); len(u.Identities) != 0 || a.status == 200 {
		t.Errorf("linked and signed in after global logout: %d %+v", a.status, u.Identities)
	}
}

// A first proof from before the takeover, waiting for its second factor.
func TestPendingProofOutlivesTakeover(t *testing.T) {
	prove := map[string]func(*world, *authtest.Provider){
		"google": func(w *world, idp *authtest.Provider) { w.visitor(idp).signIn("google", ada, "") },
		"magic link": func(w *world, _ *authtest.Provider) {
			w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink("ada@example.com", nil)})
		},
		"reset": func(w *world, _ *authtest.Provider) {
			w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
			w.do("POST", "/reset-password", map[string]any{"token": w.linkToken("ada@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).want(200)
		},
	}
	for name, proof := range prove {
		t.Run("mfa/"+name, func(t *testing.T) {
			w, idp := providerWorld(t)
			fb := w.visitor(idp).signIn("facebook", squatter, "").session()
			f := w.enrol(fb.AccessToken)
			w.Clock.Advance(time.Minute)
			token := decodeAs[map[string]any](w.visitor(idp).signIn("facebook", squatter, "").want(403))["mfa_token"]
			proof(w, idp)
			a := w.do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.code(f.secret, 0)})
			if w.ownerOf(a) != "" {
				t.Errorf("the squatter's dropped identity signed in after the takeover")
			}
		})
		t.Run("enroll/"+name, func(t *testing.T) {
			w, idp := providerWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
			token := decodeAs[map[string]any](w.visitor(idp).signIn("facebook", squatter, "").want(403, auth.CodeMFAEnrollmentRequired))["mfa_token"].(string)
			proof(w, idp)
			setup := w.do("POST", "/2fa/setup-totp", nil, bearer(token))
			if setup.status != 200 {
				return
			}
			secret := decodeAs[struct{ Secret string }](setup).Secret
			a := w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(secret, 0)}, bearer(token))
			if w.ownerOf(a) != "" {
				t.Errorf("the squatter enrolled their own factor and is in; the owner is locked out")
			}
		})
	}
}

// A change of address begun before the reset moves the account afterwards.
func TestEmailChangeOutlivesReset(t *testing.T) {
	for _, confirmed := range []bool{false, true} {
		w, _ := providerWorld(t)
		evil := w.signUp("ada@example.com")
		if confirmed {
			w.confirm("ada@example.com")
		}
		w.do("PATCH", "/me", map[string]any{"email": "evil@example.com"}, bearer(evil.AccessToken)).want(200)
		change := w.linkToken("evil@example.com", auth.KindChangeEmail)
		w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
		w.do("POST", "/reset-password", map[string]any{"token": w.linkToken("ada@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).want(200)
		a := w.do("GET", "/verify-email?token="+change, nil)
		if u, _ := w.Store.User(t.Context(), store.ByID(evil.User.ID)); u.Email != "ada@example.com" {
			t.Errorf("confirmed=%v: after the owner's reset the account is %s's (%d)", confirmed, u.Email, a.status)
		}
	}
}

// StartOAuth as documented, without Browser and with challenge and redirect.
func TestStartWithoutBrowser(t *testing.T) {
	w, idp := providerWorld(t)
	to, err := w.StartOAuth(t.Context(), auth.StartOAuthParams{Provider: "google", RedirectTo: "https://app.test/", CodeChallenge: challengeOf(verifier)})
	if err != nil {
		t.Fatal(err)
	}
	idp.SignsIn(ada)
	w.visitor(idp).back("google", idp.Authorize(t, to)).want(303)
}

// The answer to a linking carries a refresh token that was used meanwhile.
func TestLinkAnswersStaleRefresh(t *testing.T) {
	var during atomic.Pointer[func()]
	idp := authtest.StartProvider(t)
	w := newWorld(t, auth.WithProvider(idp.GitHub()), auth.WithHooks(auth.Hooks{OnProviderToken: func(context.Context, auth.ProviderToken) {
		once(&during)
	}}))
	idp.Now = w.Clock.Now
	s := w.member("ada@example.com")
	v := w.visitor(idp)
	to := v.link("github", s, nil)
	idp.SignsIn(evilGit)
	back := idp.Authorize(t, to)
	f := func() { w.refresh(s.RefreshToken).session() }
	during.Store(&f)
	got := v.back("github", back).session()
	w.Clock.Advance(time.Minute)
	if a := w.refresh(got.RefreshToken); a.status != 200 {
		t.Errorf("the refresh token just handed out ends the session: %d %s", a.status, a.body)
	}
}

// An old discovery document should outlive a provider that hangs.
func TestHangingDiscovery(t *testing.T) {
	var hang atomic.Bool
	gone := make(chan struct{})
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hang.Load() {
			select {
			case <-gone:
			case <-r.Context().Done():
			}
			return
		}
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q}`, srv.URL, srv.URL+"/a", srv.URL+"/t", srv.URL+"/k")
	}))
	t.Cleanup(func() { close(gone); srv.Close() })
	w := newWorld(t, auth.WithProvider(short(provider.OIDC("oidc", srv.URL, "c", "s"))))
	w.do("GET", "/oauth/oidc", nil).want(302)
	w.Clock.Advance(2 * time.Hour)
	hang.Store(true)
	for i := range 2 {
		if a := w.do("GET", "/oauth/oidc", nil); a.status != 302 {
			t.Errorf("%d: %d %s", i, a.status, a.body)
		}
	}
}

// An error of the start drops the application's own cookies.
func TestStartDropsForeignCookies(t *testing.T) {
	w, _ := providerWorld(t)
	rec := httptest.NewRecorder()
	http.SetCookie(rec, &http.Cookie{Name: "app", Value: "x", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	w.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/oauth/google?redirect_to=https://evil.test/", http.NoBody))
	if len(rec.Result().Cookies()) != 1 {
		t.Error("the application's cookie is gone")
	}
}

// A proof by an identity that was unlinked meanwhile.
func TestPendingProofOutlivesUnlink(t *testing.T) {
	w, idp := providerWorld(t)
	w.visitor(idp).signIn("google", ada, "").session()
	f := w.enrol(w.visitor(idp).signIn("github", ada, "").session().AccessToken)
	w.Clock.Advance(time.Minute)
	token := decodeAs[map[string]any](w.visitor(idp).signIn("github", ada, "").want(403))["mfa_token"]
	w.do("DELETE", "/me/identities/github", nil, bearer(f.AccessToken)).want(204)
	w.do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.code(f.secret, 0)}).want(400, auth.CodeInvalidToken)
}

// Nor is a change of password the end of it.
func TestEmailChangeOutlivesPasswordChange(t *testing.T) {
	w, _ := providerWorld(t)
	owner := w.signUp("ada@example.com")
	w.confirm("ada@example.com")
	stolen := w.login("ada@example.com", goodPassword).session()
	w.do("PATCH", "/me", map[string]any{"email": "evil@example.com"}, bearer(stolen.AccessToken)).want(200)
	change := w.linkToken("evil@example.com", auth.KindChangeEmail)
	w.do("POST", "/me/password", map[string]any{"current_password": goodPassword, "new_password": "another horse battery"}, bearer(owner.AccessToken)).want(200)
	a := w.do("GET", "/verify-email?token="+change, nil)
	if u, _ := w.Store.User(t.Context(), store.ByID(owner.User.ID)); u.Email != "ada@example.com" {
		t.Errorf("after the owner's change of password the account is %s's (%d)", u.Email, a.status)
	}
}

// A password's first proof, waiting for its second factor, after the reset.
func TestPendingProofOutlivesReset(t *testing.T) {
	w, _ := providerWorld(t)
	s := w.signUp("ada@example.com")
	w.confirm("ada@example.com")
	f := w.enrol(s.AccessToken)
	w.Clock.Advance(time.Minute)
	token := decodeAs[map[string]any](w.login("ada@example.com", goodPassword).want(403))["mfa_token"]
	w.do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).want(200)
	w.do("POST", "/reset-password", map[string]any{"token": w.linkToken("ada@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).want(200)
	w.do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.code(f.secret, 0)}).want(400, auth.CodeInvalidToken)
}

// The same leftovers where the number's holder takes over.
func TestPendingProofOutlivesPhoneTakeover(t *testing.T) {
	w, _ := providerWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	a := w.do("POST", "/signup", map[string]any{"phone": number, "password": goodPassword})
	token, _ := decodeAs[map[string]any](a)["mfa_token"].(string)
	if token == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	old := w.Mail(t, number, auth.KindPhoneCode).Code
	w.Clock.Advance(2 * time.Minute)
	w.do("POST", "/otp/send", map[string]any{"phone": number}).want(200)
	w.otp(number, w.waitOther(old)).want(403, auth.CodeMFAEnrollmentRequired)
	setup := w.do("POST", "/2fa/setup-totp", nil, bearer(token))
	if setup.status != 200 {
		return
	}
	secret := decodeAs[struct{ Secret string }](setup).Secret
	if w.ownerOf(w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(secret, 0)}, bearer(token))) != "" {
		t.Error("the squatter of the number is in")
	}
}

// The question for a factor is asked after the takeover.
func TestAskInFlight(t *testing.T) {
	var during atomic.Pointer[func()]
	idp := authtest.StartProvider(t)
	w := newWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}), auth.WithProvider(idp.Google(), idp.Facebook()), auth.WithHooks(auth.Hooks{OnProviderToken: func(context.Context, auth.ProviderToken) {
		once(&during)
	}}))
	idp.Now = w.Clock.Now
	w.visitor(idp).signIn("facebook", squatter, "").want(403)
	takeOver := func() { w.visitor(idp).signIn("google", ada, "").want(403) }
	during.Store(&takeOver)
	token, _ := decodeAs[map[string]any](w.visitor(idp).signIn("facebook", squatter, ""))["mfa_token"].(string)
	setup := w.do("POST", "/2fa/setup-totp", nil, bearer(token))
	if setup.status != 200 {
		return
	}
	secret := decodeAs[struct{ Secret string }](setup).Secret
	if w.ownerOf(w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(secret, 0)}, bearer(token))) != "" {
		t.Error("the squatter enrolled their own factor and is in")
	}
}

// Unlinked while its sign-in was under way.
func TestUnlinkInFlight(t *testing.T) {
	var during atomic.Pointer[func()]
	idp := authtest.StartProvider(t)
	w := newWorld(t, auth.WithProvider(idp.Google(), idp.GitHub()), auth.WithHooks(auth.Hooks{OnProviderToken: func(context.Context, auth.ProviderToken) {
		once(&during)
	}}))
	idp.Now = w.Clock.Now
	w.visitor(idp).signIn("google", ada, "").session()
	s := w.visitor(idp).signIn("github", ada, "").session()
	unlink := func() { w.do("DELETE", "/me/identities/github", nil, bearer(s.AccessToken)).want(204) }
	during.Store(&unlink)
	q := w.visitor(idp).signIn("github", ada, "redirect_to=https://app.test/").location().Query()
	if q.Has("code") || q.Get("error_code") != string(auth.CodeBadOAuthState) {
		t.Errorf("the redirect says %v", q)
	}
}

// An https issuer may name plain http endpoints on this machine.
func TestDiscoveryPointsInside(t *testing.T) {
	var srv *httptest.Server
	srv = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":"http://localhost:8500/v1/agent","jwks_uri":%q,"userinfo_endpoint":"http://localhost:9200/_search"}`, srv.URL, srv.URL+"/a", srv.URL+"/k")
	}))
	t.Cleanup(srv.Close)
	base := http.DefaultTransport
	http.DefaultTransport = srv.Client().Transport
	t.Cleanup(func() { http.DefaultTransport = base })
	w := newWorld(t, auth.WithProvider(provider.OIDC("oidc", srv.URL, "c", "s")))
	if a := w.do("GET", "/oauth/oidc", nil); a.status != 502 {
		t.Errorf("accepted: %d", a.status)
	}
}

// The takeover comes between the look at a known identity and its renewal, which
// must not bring back what was dropped.
func TestRenewalInFlight(t *testing.T) {
	w, idp, st := slowWorld(t)
	w.visitor(idp).signIn("facebook", squatter, "").session()
	takeOver := func() { w.visitor(idp).signIn("google", ada, "").session() }
	st.afterIdentity.Store(&takeOver)
	w.visitor(idp).signIn("facebook", squatter, "").want(409, auth.CodeAccountExists)
	if u, err := w.Store.User(t.Context(), store.ByEmail(ada.Email)); err != nil || len(u.Identities) != 1 || u.Identities[0].Provider != "google" {
		t.Errorf("identities %+v, %v", u.Identities, err)
	}
}

// The account moves to another address between the look-up by address and the
// join: the identity is not the account's owner's any more.
func TestJoinInFlight(t *testing.T) {
	w, idp, st := slowWorld(t)
	s := w.signUp("ada@example.com")
	w.confirm("ada@example.com")
	w.do("PATCH", "/me", map[string]any{"email": "bob@example.com"}, bearer(s.AccessToken)).want(200)
	change := w.linkToken("bob@example.com", auth.KindChangeEmail)
	move := func() { w.do("GET", "/verify-email?token="+change, nil).want(200) }
	st.afterEmail.Store(&move)
	if joined := w.visitor(idp).signIn("google", ada, "").session(); joined.User.ID == s.User.ID {
		t.Errorf("the identity joined the account of %s", joined.User.Email)
	}
}

// The other identity goes between the look at the ways in and the unlinking.
func TestLastWayGoesInFlight(t *testing.T) {
	w, idp, st := slowWorld(t)
	w.visitor(idp).signIn("google", ada, "").session()
	s := w.visitor(idp).signIn("github", ada, "").session()
	unlink := func(provider string) *answer {
		return w.do("DELETE", "/me/identities/"+provider, nil, bearer(s.AccessToken))
	}
	rival := func() { unlink("github").want(204) }
	st.afterCredentials.Store(&rival)
	unlink("google").want(409, auth.CodeLastSignInMethod)
}

// Two tabs at a first sign-in: the slower one found no identity, and then finds
// the account that the faster one made.
func TestTwoTabsAtFirstSignIn(t *testing.T) {
	for _, provider := range []string{"google", "facebook"} {
		w, idp, st := slowWorld(t)
		var first session
		faster := func() { first = w.visitor(idp).signIn(provider, ada, "").session() }
		st.afterIdentity.Store(&faster)
		second := w.visitor(idp).signIn(provider, ada, "").session()
		if second.User.ID != first.User.ID || len(second.User.Identities) != 1 {
			t.Errorf("%s: %+v, %+v", provider, first.User, second.User)
		}
	}
}

// The user is banned between the callback and the exchange that links.
func TestBanBeforeLinkByExchange(t *testing.T) {
	w, idp := providerWorld(t)
	s := w.member("ada@example.com")
	to := w.visitor(idp).link("github", s, map[string]any{"redirect_to": "https://app.test/", "code_challenge": challengeOf(verifier)})
	idp.SignsIn(evilGit)
	code := w.visitor(idp).back("github", idp.Authorize(t, to)).location().Query().Get("code")
	until := w.Clock.Now().Add(time.Hour)
	w.patch(s.User.ID, store.UserPatch{BannedUntil: &until})
	w.do("POST", "/exchange", map[string]any{"code": code, "code_verifier": verifier}).want(403, auth.CodeUserBanned)
	if u, err := w.Store.User(t.Context(), store.ByID(s.User.ID)); err != nil || len(u.Identities) != 0 {
		t.Errorf("linked to a banned user: %+v, %v", u.Identities, err)
	}
}
