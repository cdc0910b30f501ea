package oauth_test

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
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

var squatter = authtest.Person{Subject: "666", Email: "ada@example.com"} // facebook: never verified

// The owner takes the account over during a sign-in by the squatter's identity: the session
// would be created after the takeover.
func TestSignInInFlight(t *testing.T) {
	var during atomic.Pointer[func()]
	idp := authtest.StartProvider(t)
	w := harness.NewWorld(t, auth.WithProvider(idp.Google(), idp.Facebook()), auth.WithHooks(auth.Hooks{BeforeSignIn: func(context.Context, auth.SignInAttempt) error {
		once(&during)
		return nil
	}}))
	idp.Now = w.Clock.Now
	w.NewVisitor(idp).SignIn("facebook", squatter, "").Session()
	var owner string
	takeOver := func() { owner = w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session().User.ID }
	during.Store(&takeOver)
	a := w.NewVisitor(idp).SignIn("facebook", squatter, "")
	if got := w.OwnerOf(a); got != "" && got == owner {
		t.Errorf("the squatter has a live session on the account taken over: %s", a.Body)
	}
}

// The same with a redirect: the exchange code is created after the takeover.
func TestExchangeCodeInFlight(t *testing.T) {
	var during atomic.Pointer[func()]
	idp := authtest.StartProvider(t)
	w := harness.NewWorld(t, auth.WithProvider(idp.Google(), idp.Facebook()), auth.WithHooks(auth.Hooks{OnProviderToken: func(context.Context, auth.ProviderToken) {
		once(&during)
	}}))
	idp.Now = w.Clock.Now
	w.NewVisitor(idp).SignIn("facebook", squatter, "").Session()
	var owner string
	takeOver := func() { owner = w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session().User.ID }
	during.Store(&takeOver)
	code := w.NewVisitor(idp).SignIn("facebook", squatter, "redirect_to=https://app.test/").Location().Query().Get("code")
	a := w.PostExchange(code, harness.Verifier)
	if got := w.OwnerOf(a); got != "" && got == owner {
		t.Errorf("the squatter's code opens the account taken over: %s", a.Body)
	}
}

// Slow is a store in which something happens right after a read.
type slow struct {
	*memstore.Store
	afterSession, afterRedeem, afterIdentity, afterEmail, afterCredentials atomic.Pointer[func()]
}

// once runs the planned function, if there is one.
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

func slowWorld(t *testing.T) (*harness.World, *authtest.Provider, *slow) {
	idp, st := authtest.StartProvider(t), &slow{Store: memstore.New()}
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}}
	w.Env = authtest.NewOn(t, st, auth.WithProvider(idp.Google(), idp.GitHub(), idp.Facebook()))
	idp.Now = w.Clock.Now
	return w, idp, st
}

// Linking in flight, bound: the session check and the link are two steps, and
// the takeover comes between them.
func TestLinkInFlight(t *testing.T) {
	w, idp, st := slowWorld(t)
	evil := w.Squatter("ada@example.com")
	v := w.NewVisitor(idp)
	to := v.Link("github", evil, nil)
	idp.SignsIn(harness.EvilGit)
	back := idp.Authorize(t, to)
	takeOver := func() { w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session() }
	st.afterSession.Store(&takeOver)
	v.Back("github", back).Want(400, auth.CodeBadOAuthState)
	if got := w.OwnerOf(w.NewVisitor(idp).SignIn("github", harness.EvilGit, "")); got == evil.User.ID {
		t.Error("the attacker's identity opens the account for good")
	}
}

// The same at the exchange.
func TestLinkByExchangeInFlight(t *testing.T) {
	w, idp, st := slowWorld(t)
	evil := w.Squatter("ada@example.com")
	v := w.NewVisitor(idp)
	to := v.Link("github", evil, map[string]any{"redirect_to": "https://app.test/", "code_challenge": harness.ChallengeOf(harness.Verifier)})
	idp.SignsIn(harness.EvilGit)
	code := w.NewVisitor(idp).Back("github", idp.Authorize(t, to)).Location().Query().Get("code")
	takeOver := func() { w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session() }
	st.afterRedeem.Store(&takeOver)
	w.Do("POST", "/exchange", map[string]any{"code": code, "code_verifier": harness.Verifier})
	if got := w.OwnerOf(w.NewVisitor(idp).SignIn("github", harness.EvilGit, "")); got == evil.User.ID {
		t.Error("the attacker's identity opens the account for good")
	}
}

// The owner ended the session that requested the link before the exchange.
func TestLinkByExchangeAfterLogout(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.PostSignUp("ada@example.com")
	w.PostConfirm("ada@example.com")
	to := w.NewVisitor(idp).Link("github", s, map[string]any{"redirect_to": "https://app.test/", "code_challenge": harness.ChallengeOf(harness.Verifier)})
	idp.SignsIn(harness.EvilGit)
	code := w.NewVisitor(idp).Back("github", idp.Authorize(t, to)).Location().Query().Get("code")
	w.Do("POST", "/logout?scope=global", nil, harness.Bearer(s.AccessToken)).Want(204)
	a := w.Do("POST", "/exchange", map[string]any{"code": code, "code_verifier": harness.Verifier})
	if u, _ := w.Store.User(t.Context(), store.ByID(s.User.ID)); len(u.Identities) != 0 || a.Status == 200 {
		t.Errorf("linked and signed in after global logout: %d %+v", a.Status, u.Identities)
	}
}

// A sign-in with a first factor from before the takeover waits for its second factor.
func TestPendingProofOutlivesTakeover(t *testing.T) {
	prove := map[string]func(*harness.World, *authtest.Provider){
		"google": func(w *harness.World, idp *authtest.Provider) { w.NewVisitor(idp).SignIn("google", harness.Ada, "") },
		"magic link": func(w *harness.World, _ *authtest.Provider) {
			w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("ada@example.com", nil)})
		},
		"reset": func(w *harness.World, _ *authtest.Provider) {
			w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).Want(200)
		},
	}
	for name, proof := range prove {
		t.Run("mfa/"+name, func(t *testing.T) {
			w, idp := harness.NewProviderWorld(t)
			fb := w.NewVisitor(idp).SignIn("facebook", squatter, "").Session()
			f := w.Enrol(fb.AccessToken)
			w.Clock.Advance(time.Minute)
			token := harness.DecodeAs[map[string]any](w.NewVisitor(idp).SignIn("facebook", squatter, "").Want(403))["mfa_token"]
			proof(w, idp)
			a := w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.Code(f.Secret, 0)})
			if w.OwnerOf(a) != "" {
				t.Errorf("the squatter's dropped identity signed in after the takeover")
			}
		})
		t.Run("enroll/"+name, func(t *testing.T) {
			w, idp := harness.NewProviderWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
			token := harness.DecodeAs[map[string]any](w.NewVisitor(idp).SignIn("facebook", squatter, "").Want(403, auth.CodeMFAEnrollmentRequired))["mfa_token"].(string)
			proof(w, idp)
			setup := w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token))
			if setup.Status != 200 {
				return
			}
			secret := harness.DecodeAs[struct{ Secret string }](setup).Secret
			a := w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(secret, 0)}, harness.Bearer(token))
			if w.OwnerOf(a) != "" {
				t.Errorf("the squatter enrolled their own factor and is in; the owner is locked out")
			}
		})
	}
}

// A change of address that started before the reset moves the account afterwards.
func TestEmailChangeOutlivesReset(t *testing.T) {
	for _, confirmed := range []bool{false, true} {
		w, _ := harness.NewProviderWorld(t)
		evil := w.PostSignUp("ada@example.com")
		if confirmed {
			w.PostConfirm("ada@example.com")
		}
		w.Do("PATCH", "/me", map[string]any{"email": "evil@example.com"}, harness.Bearer(evil.AccessToken)).Want(200)
		change := w.LinkToken("evil@example.com", auth.KindChangeEmail)
		w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
		w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).Want(200)
		a := w.Do("POST", "/verify-email", map[string]any{"token": change}, harness.Bearer(evil.AccessToken))
		if u, _ := w.Store.User(t.Context(), store.ByID(evil.User.ID)); u.Email != "ada@example.com" {
			t.Errorf("confirmed=%v: after the owner's reset the account is %s's (%d)", confirmed, u.Email, a.Status)
		}
	}
}

// StartOAuth as documented, without Browser and with challenge and redirect.
func TestStartWithoutBrowser(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	to, err := w.StartOAuth(t.Context(), auth.StartOAuthParams{Provider: "google", RedirectTo: "https://app.test/", CodeChallenge: harness.ChallengeOf(harness.Verifier)})
	if err != nil {
		t.Fatal(err)
	}
	idp.SignsIn(harness.Ada)
	w.NewVisitor(idp).Back("google", idp.Authorize(t, to)).Want(303)
}

// The answer to a linking carries a refresh token that was used meanwhile.
func TestLinkAnswersStaleRefresh(t *testing.T) {
	var during atomic.Pointer[func()]
	idp := authtest.StartProvider(t)
	w := harness.NewWorld(t, auth.WithProvider(idp.GitHub()), auth.WithHooks(auth.Hooks{OnProviderToken: func(context.Context, auth.ProviderToken) {
		once(&during)
	}}))
	idp.Now = w.Clock.Now
	s := w.Member("ada@example.com")
	v := w.NewVisitor(idp)
	to := v.Link("github", s, nil)
	idp.SignsIn(harness.EvilGit)
	back := idp.Authorize(t, to)
	f := func() { w.PostRefresh(s.RefreshToken).Session() }
	during.Store(&f)
	got := v.Back("github", back).Session()
	w.Clock.Advance(time.Minute)
	if a := w.PostRefresh(got.RefreshToken); a.Status != 200 {
		t.Errorf("the refresh token just handed out ends the session: %d %s", a.Status, a.Body)
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
	w := harness.NewWorld(t, auth.WithProvider(short(provider.OIDC("oidc", srv.URL, "c", "s"))))
	w.Do("GET", "/oauth/oidc", nil).Want(302)
	w.Clock.Advance(2 * time.Hour)
	hang.Store(true)
	for i := range 2 {
		if a := w.Do("GET", "/oauth/oidc", nil); a.Status != 302 {
			t.Errorf("%d: %d %s", i, a.Status, a.Body)
		}
	}
}

// An error of the start drops the application's own cookies.
func TestStartDropsForeignCookies(t *testing.T) {
	w, _ := harness.NewProviderWorld(t)
	rec := httptest.NewRecorder()
	http.SetCookie(rec, &http.Cookie{Name: "app", Value: "x", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	w.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/oauth/google?redirect_to=https://evil.test/", http.NoBody))
	if len(rec.Result().Cookies()) != 1 {
		t.Error("the application's cookie is gone")
	}
}

// A sign-in by an identity that was unlinked meanwhile.
func TestPendingProofOutlivesUnlink(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	f := w.Enrol(w.NewVisitor(idp).SignIn("github", harness.Ada, "").Session().AccessToken)
	w.Clock.Advance(time.Minute)
	token := harness.DecodeAs[map[string]any](w.NewVisitor(idp).SignIn("github", harness.Ada, "").Want(403))["mfa_token"]
	w.Do("DELETE", "/me/identities/github", nil, harness.Bearer(f.AccessToken)).Want(204)
	w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.Code(f.Secret, 0)}).Want(400, auth.CodeInvalidToken)
}

// Nor is a change of password the end of it.
func TestEmailChangeOutlivesPasswordChange(t *testing.T) {
	w, _ := harness.NewProviderWorld(t)
	owner := w.PostSignUp("ada@example.com")
	w.PostConfirm("ada@example.com")
	stolen := w.PostLogin("ada@example.com", harness.GoodPassword).Session()
	w.Do("PATCH", "/me", map[string]any{"email": "evil@example.com"}, harness.Bearer(stolen.AccessToken)).Want(200)
	change := w.LinkToken("evil@example.com", auth.KindChangeEmail)
	w.Do("POST", "/me/password", map[string]any{"current_password": harness.GoodPassword, "new_password": "another horse battery"}, harness.Bearer(owner.AccessToken)).Want(200)
	a := w.Do("POST", "/verify-email", map[string]any{"token": change}, harness.Bearer(stolen.AccessToken))
	if u, _ := w.Store.User(t.Context(), store.ByID(owner.User.ID)); u.Email != "ada@example.com" {
		t.Errorf("after the owner's change of password the account is %s's (%d)", u.Email, a.Status)
	}
}

// A sign-in by password waits for its second factor while the password is reset.
func TestPendingProofOutlivesReset(t *testing.T) {
	w, _ := harness.NewProviderWorld(t)
	s := w.PostSignUp("ada@example.com")
	w.PostConfirm("ada@example.com")
	f := w.Enrol(s.AccessToken)
	w.Clock.Advance(time.Minute)
	token := harness.DecodeAs[map[string]any](w.PostLogin("ada@example.com", harness.GoodPassword).Want(403))["mfa_token"]
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
	w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": "another horse battery"}).Want(200)
	w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.Code(f.Secret, 0)}).Want(400, auth.CodeInvalidToken)
}

// The same leftovers where the number's holder takes over.
func TestPendingProofOutlivesPhoneTakeover(t *testing.T) {
	w, _ := harness.NewProviderWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	a := w.Do("POST", "/signup", map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword})
	token, _ := harness.DecodeAs[map[string]any](a)["mfa_token"].(string)
	if token == "" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	old := w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code
	w.Clock.Advance(2 * time.Minute)
	w.Do("POST", "/otp/send", map[string]any{"phone": harness.PhoneNumber}).Want(200)
	w.PostOTP(harness.PhoneNumber, waitOther(w, old)).Want(403, auth.CodeMFAEnrollmentRequired)
	setup := w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token))
	if setup.Status != 200 {
		return
	}
	secret := harness.DecodeAs[struct{ Secret string }](setup).Secret
	if w.OwnerOf(w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(secret, 0)}, harness.Bearer(token))) != "" {
		t.Error("the squatter of the number is in")
	}
}

// The second factor is requested after the takeover.
func TestAskInFlight(t *testing.T) {
	var during atomic.Pointer[func()]
	idp := authtest.StartProvider(t)
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}), auth.WithProvider(idp.Google(), idp.Facebook()), auth.WithHooks(auth.Hooks{OnProviderToken: func(context.Context, auth.ProviderToken) {
		once(&during)
	}}))
	idp.Now = w.Clock.Now
	w.NewVisitor(idp).SignIn("facebook", squatter, "").Want(403)
	takeOver := func() { w.NewVisitor(idp).SignIn("google", harness.Ada, "").Want(403) }
	during.Store(&takeOver)
	token, _ := harness.DecodeAs[map[string]any](w.NewVisitor(idp).SignIn("facebook", squatter, ""))["mfa_token"].(string)
	setup := w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token))
	if setup.Status != 200 {
		return
	}
	secret := harness.DecodeAs[struct{ Secret string }](setup).Secret
	if w.OwnerOf(w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(secret, 0)}, harness.Bearer(token))) != "" {
		t.Error("the squatter enrolled their own factor and is in")
	}
}

// Unlinked while its sign-in was under way.
func TestUnlinkInFlight(t *testing.T) {
	var during atomic.Pointer[func()]
	idp := authtest.StartProvider(t)
	w := harness.NewWorld(t, auth.WithProvider(idp.Google(), idp.GitHub()), auth.WithHooks(auth.Hooks{OnProviderToken: func(context.Context, auth.ProviderToken) {
		once(&during)
	}}))
	idp.Now = w.Clock.Now
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	s := w.NewVisitor(idp).SignIn("github", harness.Ada, "").Session()
	unlink := func() { w.Do("DELETE", "/me/identities/github", nil, harness.Bearer(s.AccessToken)).Want(204) }
	during.Store(&unlink)
	q := w.NewVisitor(idp).SignIn("github", harness.Ada, "redirect_to=https://app.test/").Location().Query()
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
	w := harness.NewWorld(t, auth.WithProvider(provider.OIDC("oidc", srv.URL, "c", "s")))
	if a := w.Do("GET", "/oauth/oidc", nil); a.Status != 502 {
		t.Errorf("accepted: %d", a.Status)
	}
}

// The takeover comes between the read of a known identity and its renewal. The renewal must
// not restore deleted data.
func TestRenewalInFlight(t *testing.T) {
	w, idp, st := slowWorld(t)
	w.NewVisitor(idp).SignIn("facebook", squatter, "").Session()
	takeOver := func() { w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session() }
	st.afterIdentity.Store(&takeOver)
	w.NewVisitor(idp).SignIn("facebook", squatter, "").Want(409, auth.CodeAccountExists)
	if u, err := w.Store.User(t.Context(), store.ByEmail(harness.Ada.Email)); err != nil || len(u.Identities) != 1 || u.Identities[0].Provider != "google" {
		t.Errorf("identities %+v, %v", u.Identities, err)
	}
}

// The account moves to another address between the look-up by address and the
// join: the identity is not the account's owner's any more.
func TestJoinInFlight(t *testing.T) {
	w, idp, st := slowWorld(t)
	s := w.PostSignUp("ada@example.com")
	w.PostConfirm("ada@example.com")
	w.Do("PATCH", "/me", map[string]any{"email": "bob@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
	change := w.LinkToken("bob@example.com", auth.KindChangeEmail)
	move := func() {
		w.Do("POST", "/verify-email", map[string]any{"token": change}, harness.Bearer(s.AccessToken)).Want(200)
	}
	st.afterEmail.Store(&move)
	if joined := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session(); joined.User.ID == s.User.ID {
		t.Errorf("the identity joined the account of %s", joined.User.Email)
	}
}

// The other identity is deleted between the check of the credentials and the unlinking.
func TestLastWayGoesInFlight(t *testing.T) {
	w, idp, st := slowWorld(t)
	w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	s := w.NewVisitor(idp).SignIn("github", harness.Ada, "").Session()
	unlink := func(provider string) *harness.Answer {
		return w.Do("DELETE", "/me/identities/"+provider, nil, harness.Bearer(s.AccessToken))
	}
	rival := func() { unlink("github").Want(204) }
	st.afterCredentials.Store(&rival)
	unlink("google").Want(409, auth.CodeLastSignInMethod)
}

// Two tabs at a first sign-in: the slower one found no identity, and then finds
// the account that the faster one made.
func TestTwoTabsAtFirstSignIn(t *testing.T) {
	for _, provider := range []string{"google", "facebook"} {
		w, idp, st := slowWorld(t)
		var first harness.Session
		faster := func() { first = w.NewVisitor(idp).SignIn(provider, harness.Ada, "").Session() }
		st.afterIdentity.Store(&faster)
		second := w.NewVisitor(idp).SignIn(provider, harness.Ada, "").Session()
		if second.User.ID != first.User.ID || len(second.User.Identities) != 1 {
			t.Errorf("%s: %+v, %+v", provider, first.User, second.User)
		}
	}
}

// The user is banned between the callback and the exchange that links.
func TestBanBeforeLinkByExchange(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.Member("ada@example.com")
	to := w.NewVisitor(idp).Link("github", s, map[string]any{"redirect_to": "https://app.test/", "code_challenge": harness.ChallengeOf(harness.Verifier)})
	idp.SignsIn(harness.EvilGit)
	code := w.NewVisitor(idp).Back("github", idp.Authorize(t, to)).Location().Query().Get("code")
	until := w.Clock.Now().Add(time.Hour)
	w.Patch(s.User.ID, store.UserPatch{BannedUntil: &until})
	w.Do("POST", "/exchange", map[string]any{"code": code, "code_verifier": harness.Verifier}).Want(403, auth.CodeUserBanned)
	if u, err := w.Store.User(t.Context(), store.ByID(s.User.ID)); err != nil || len(u.Identities) != 0 {
		t.Errorf("linked to a banned user: %+v, %v", u.Identities, err)
	}
}
