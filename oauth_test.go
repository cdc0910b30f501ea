package auth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
)

// providerWorld is a service with every kind of provider, all played by one.
func providerWorld(t *testing.T, opts ...auth.Option) (*world, *authtest.Provider) {
	t.Helper()
	idp := authtest.StartProvider(t)
	w := newWorld(t, append([]auth.Option{auth.WithProvider(
		idp.OIDC("oidc"), idp.Google(), idp.Microsoft(), idp.Apple(), idp.GitHub(), idp.Facebook(), idp.Twitter(), idp.Discord(),
	)}, opts...)...)
	idp.Now = w.Clock.Now
	return w, idp
}

var everyProvider = []string{"oidc", "google", "microsoft", "apple", "github", "facebook", "twitter", "discord"}

// visitor is a browser as far as cookies go.
type visitor struct {
	*world
	idp     *authtest.Provider
	cookies map[string]*http.Cookie
}

func (w *world) visitor(idp *authtest.Provider) *visitor {
	return &visitor{world: w, idp: idp, cookies: map[string]*http.Cookie{}}
}

func (v *visitor) do(method, path string, body any, headers ...header) *answer {
	v.t.Helper()
	var list []string
	for _, c := range v.cookies {
		list = append(list, c.Name+"="+c.Value)
	}
	if len(list) > 0 {
		headers = append(headers, header{"Cookie", strings.Join(list, "; ")})
	}
	a := v.world.do(method, path, body, headers...)
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		v.cookies[c.Name] = c
	}
	return a
}

// start begins a sign-in and returns the provider's URL.
func (v *visitor) start(provider, query string) string {
	v.t.Helper()
	return v.do("GET", "/oauth/"+provider+"?"+query, nil).want(302).header.Get("Location")
}

// back comes back from the provider with what it sent.
func (v *visitor) back(provider string, with url.Values) *answer {
	v.t.Helper()
	if provider == "apple" {
		return v.do("POST", "/oauth/apple/callback", with.Encode(), form)
	}
	return v.do("GET", "/oauth/"+provider+"/callback?"+with.Encode(), nil)
}

// signIn goes all the way.
func (v *visitor) signIn(provider string, who authtest.Person, query string) *answer {
	v.t.Helper()
	to := v.start(provider, query)
	v.idp.SignsIn(who)
	return v.back(provider, v.idp.Authorize(v.t, to))
}

func (a *answer) location() *url.URL {
	a.t.Helper()
	u, err := url.Parse(a.want(303).header.Get("Location"))
	if err != nil {
		a.t.Fatal(err)
	}
	return u
}

var ada = authtest.Person{Subject: "1815", Email: "ada@example.com", EmailVerified: true, Name: "Ada Lovelace"}

const verifier = "a-code-verifier-of-at-least-43-characters-01"

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Through every provider: a first sign-in makes a user, a second one finds it.
func TestOAuthSignIn(t *testing.T) {
	for _, name := range everyProvider {
		t.Run(name, func(t *testing.T) {
			w, idp := providerWorld(t)
			v := w.visitor(idp)
			s := v.signIn(name, ada, "").session()
			proved := name != "facebook"
			want := []identity{{Provider: name, Subject: "1815", Email: "ada@example.com"}}
			if s.User.Email != "ada@example.com" || s.User.EmailVerified != proved || s.User.FullName != "Ada Lovelace" || !slices.Equal(s.User.Identities, want) {
				t.Errorf("user %+v", s.User)
			}
			w.wantEvents(auth.EventSignedUp, auth.EventSignedIn)
			if !w.alive(s.AccessToken) {
				t.Error("the session does not work")
			}
			if c := w.claimsOf(s); c.AMR[0].Method != "oauth" {
				t.Errorf("amr %+v", c.AMR)
			}
			again := w.visitor(idp).signIn(name, authtest.Person{Subject: "1815", Email: "new@example.com", EmailVerified: true}, "").session()
			if again.User.ID != s.User.ID || again.User.Email != "ada@example.com" || again.User.Identities[0].Email != "new@example.com" {
				t.Errorf("second sign-in %+v", again.User)
			}
			w.wantEvents(auth.EventSignedIn)
			if log := w.log.String(); strings.Contains(log, "authtest-client-secret") {
				t.Error("the log holds the client's secret")
			}
		})
	}
}

// Some providers tell no address; their users have none.
func TestOAuthWithoutEmail(t *testing.T) {
	for _, name := range everyProvider {
		w, idp := providerWorld(t)
		s := w.visitor(idp).signIn(name, authtest.Person{Subject: "7", Name: "Nobody"}, "").session()
		if s.User.Email != "" || s.User.EmailVerified || len(s.User.Identities) != 1 {
			t.Errorf("%s: %+v", name, s.User)
		}
		other := w.visitor(idp).signIn(name, authtest.Person{Subject: "8"}, "").session()
		if other.User.ID == s.User.ID {
			t.Errorf("%s: two people are one", name)
		}
	}
}

// The request that goes to the provider.
func TestOAuthRequest(t *testing.T) {
	w, idp := providerWorld(t)
	for _, name := range everyProvider {
		v := w.visitor(idp)
		u, err := url.Parse(v.start(name, "login_hint=ada@example.com&prompt=login&scopes=one,two"))
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		openID := slices.Contains([]string{"oidc", "google", "microsoft", "apple"}, name)
		if q.Get("redirect_uri") != authtest.BaseURL+"/oauth/"+name+"/callback" || q.Get("response_type") != "code" || len(q.Get("state")) < 43 ||
			q.Get("code_challenge_method") != "S256" || (q.Get("nonce") != "") != openID || q.Get("login_hint") != "ada@example.com" || q.Get("prompt") != "login" ||
			!strings.HasSuffix(q.Get("scope"), "one two") || (q.Get("response_mode") == "form_post") != (name == "apple") {
			t.Errorf("%s: %v", name, q)
		}
		cookie, site := "__Host-authmount-oauth", http.SameSiteLaxMode
		if name == "apple" { // whose post comes from another site
			cookie, site = "__Host-authmount-oauth-post", http.SameSiteNoneMode
		}
		c := v.cookies[cookie]
		if len(v.cookies) != 1 || c == nil || c.SameSite != site || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" || c.MaxAge != 600 {
			t.Errorf("%s: cookies %+v", name, v.cookies)
		}
		first := c.Value
		if v.start(name, ""); v.cookies[cookie].Value != first {
			t.Errorf("%s: a second tab would spoil the first one's sign-in", name)
		}
		v.cookies[cookie] = &http.Cookie{Name: cookie, Value: "planted", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
		if v.start(name, ""); v.cookies[cookie].Value == "planted" {
			t.Errorf("%s: a planted cookie is accepted", name)
		}
	}
	for query, code := range map[string]auth.Code{
		"redirect_to=https://evil.test/": auth.CodeRedirectNotAllowed,
		"redirect_to=//app.test/":        auth.CodeRedirectNotAllowed,
		"code_challenge=short":           auth.CodeValidationFailed,
		"code_challenge_method=plain":    auth.CodeValidationFailed,
		"prompt=whatever":                auth.CodeValidationFailed,
		"login_hint=%0d%0a":              auth.CodeValidationFailed,
		"scopes=%22":                     auth.CodeValidationFailed,
		"scopes=" + strings.TrimSuffix(strings.Repeat("a+", 21), "+"): auth.CodeValidationFailed,
	} {
		a := w.do("GET", "/oauth/google?"+query, nil)
		if a.want(a.status, code); a.status < 400 || a.header.Get("Set-Cookie") != "" || a.header.Get("Location") != "" {
			t.Errorf("%s: %d", query, a.status)
		}
	}
	w.do("GET", "/oauth/nobody", nil).want(404, auth.CodeUnknownProvider)
	w.do("GET", "/oauth/nobody/callback", nil).want(404, auth.CodeUnknownProvider)
	if a := w.do("HEAD", "/oauth/google", nil); a.status != 200 || a.header.Get("Set-Cookie") != "" {
		t.Errorf("HEAD: %d %v", a.status, a.header)
	}
	settings := decodeAs[auth.PublicSettings](w.do("GET", "/settings", nil))
	if !settings.Methods.OAuth || !slices.Equal(settings.Providers, everyProvider) {
		t.Errorf("settings %+v", settings)
	}
}

func TestOAuthDisabled(t *testing.T) {
	w, _ := providerWorld(t, auth.WithSettings(auth.Settings{OAuth: auth.Off}))
	w.do("GET", "/oauth/google", nil).want(403, auth.CodeMethodDisabled)
	w.do("GET", "/oauth/google/callback", nil).want(403, auth.CodeMethodDisabled)
	w.do("POST", "/oauth/google/id-token", map[string]any{"id_token": "x"}).want(403, auth.CodeMethodDisabled)
	settings := decodeAs[auth.PublicSettings](w.do("GET", "/settings", nil))
	if settings.Methods.OAuth || len(settings.Providers) != 0 {
		t.Errorf("settings %+v", settings)
	}
}

// With redirect_to the browser goes on with a code, never with tokens.
func TestOAuthRedirect(t *testing.T) {
	w, idp := providerWorld(t)
	a := w.visitor(idp).signIn("google", ada, "redirect_to="+url.QueryEscape("https://app.test/done?a=b"))
	to := a.location()
	if to.Host != "app.test" || to.Path != "/done" || to.Query().Get("a") != "b" || len(to.Query()) != 2 || len(a.body) != 0 ||
		a.header.Get("Cache-Control") != "no-store" || a.header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%v %v", to, a.header)
	}
	code := map[string]any{"code": to.Query().Get("code")}
	w.do("POST", "/exchange", code).session()
	w.do("POST", "/exchange", code).want(400, auth.CodeInvalidCode)

	expired := w.visitor(idp).signIn("google", ada, "redirect_to=https://app.test/").location().Query().Get("code")
	w.Clock.Advance(time.Minute)
	w.do("POST", "/exchange", map[string]any{"code": expired}).want(400, auth.CodeInvalidCode)
}

// The application's own PKCE binds the code to whoever began.
func TestOAuthChallenge(t *testing.T) {
	w, idp := providerWorld(t)
	query := "redirect_to=https://app.test/&code_challenge_method=S256&code_challenge=" + challengeOf(verifier)
	for wrong, code := range map[string]auth.Code{"": auth.CodeBadCodeVerifier, strings.Repeat("x", 43): auth.CodeBadCodeVerifier} {
		c := w.visitor(idp).signIn("google", ada, query).location().Query().Get("code")
		w.do("POST", "/exchange", map[string]any{"code": c, "code_verifier": wrong}).want(400, code)
		w.do("POST", "/exchange", map[string]any{"code": c, "code_verifier": verifier}).want(400, auth.CodeInvalidCode)
	}
	c := w.visitor(idp).signIn("google", ada, query).location().Query().Get("code")
	w.do("POST", "/exchange", map[string]any{"code": c, "code_verifier": verifier}).session()
}

// A script asks for the URL as JSON. Its challenge then takes the place of the
// cookie, which it may not be able to keep.
func TestOAuthJSON(t *testing.T) {
	w, idp := providerWorld(t)
	asJSON := header{"Accept", "application/json"}
	w.do("GET", "/oauth/google?redirect_to=https://app.test/", nil, asJSON).want(422, auth.CodeValidationFailed)
	begin := func(v *visitor, query string) url.Values {
		a := v.do("GET", "/oauth/google?code_challenge="+challengeOf(verifier)+query, nil, asJSON).want(200)
		idp.SignsIn(ada)
		return idp.Authorize(t, decodeAs[map[string]string](a)["url"])
	}
	// Another browser comes back: it gets a code, which is worth nothing without
	// the verifier.
	back := begin(w.visitor(idp), "&redirect_to=https://app.test/")
	code := w.visitor(idp).back("google", back).location().Query().Get("code")
	w.do("POST", "/exchange", map[string]any{"code": code}).want(400, auth.CodeBadCodeVerifier)
	back = begin(w.visitor(idp), "&redirect_to=https://app.test/")
	code = w.visitor(idp).back("google", back).location().Query().Get("code")
	w.do("POST", "/exchange", map[string]any{"code": code, "code_verifier": verifier}).session()
	// Without a redirect the session is the answer, so the browser has to be the
	// one that began.
	back = begin(w.visitor(idp), "")
	w.visitor(idp).back("google", back).want(400, auth.CodeBadOAuthState)
	v := w.visitor(idp)
	v.back("google", begin(v, "")).session()
}

// Login CSRF and replay: a state is good once, for ten minutes, at the callback
// of its provider, in the browser that began.
func TestOAuthState(t *testing.T) {
	w, idp := providerWorld(t)
	bad := func(name string, a *answer) {
		t.Helper()
		if a.want(400, auth.CodeBadOAuthState); strings.Contains(string(a.body), "access_token") {
			t.Errorf("%s: a session", name)
		}
	}
	fresh := func(provider string) (*visitor, url.Values) {
		v := w.visitor(idp)
		to := v.start(provider, "")
		idp.SignsIn(ada)
		return v, idp.Authorize(t, to)
	}
	v, back := fresh("google")
	bad("another browser", w.visitor(idp).back("google", back))
	other, _ := fresh("google")
	bad("another browser with a cookie of its own", other.back("google", back))
	bad("another provider", v.back("github", back))
	bad("unknown", v.back("google", url.Values{"state": {"x"}, "code": {"y"}}))
	bad("none", v.back("google", url.Values{"code": back["code"]}))
	bad("twice", v.back("google", url.Values{"state": {back.Get("state"), "x"}, "code": back["code"]}))
	v.do("HEAD", "/oauth/google/callback?"+back.Encode(), nil)
	v.back("google", back).session() // none of these spoilt it
	bad("replayed", v.back("google", back))

	v, back = fresh("google")
	w.Clock.Advance(10 * time.Minute)
	bad("expired", v.back("google", back))

	v, back = fresh("apple")
	bad("a state for a post, by GET and without its cookie", w.visitor(idp).back("google", back))
	v.back("apple", back).session()
}

// Of many parallel callbacks with one state and code, one wins.
func TestOAuthCallbackRace(t *testing.T) {
	w, idp := providerWorld(t)
	v := w.visitor(idp)
	to := v.start("google", "")
	idp.SignsIn(ada)
	back := idp.Authorize(t, to)
	cookie := header{"Cookie", "__Host-authmount-oauth=" + v.cookies["__Host-authmount-oauth"].Value}
	var wg sync.WaitGroup
	var won, lost atomic.Int32
	for range 20 {
		wg.Go(func() {
			switch a := w.do("GET", "/oauth/google/callback?"+back.Encode(), nil, cookie); a.status {
			case 200:
				won.Add(1)
			case 400:
				a.want(400, auth.CodeBadOAuthState)
				lost.Add(1)
			default:
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 19 {
		t.Errorf("%d won, %d lost", won.Load(), lost.Load())
	}
}

// One person's first sign-in by many tabs at once makes one user.
func TestOAuthFirstSignInRace(t *testing.T) {
	w, idp := providerWorld(t)
	ids := make([]string, 20)
	var wg sync.WaitGroup
	for i := range ids {
		v := w.visitor(idp)
		to := v.start("github", "")
		idp.SignsIn(ada)
		back := idp.Authorize(t, to)
		wg.Go(func() { ids[i] = v.back("github", back).session().User.ID })
	}
	wg.Wait()
	if slices.Sort(ids); ids[0] != ids[19] {
		t.Errorf("users %v", ids)
	}
}

// What goes wrong is told to the application by the redirect, or as JSON.
func TestOAuthErrors(t *testing.T) {
	w, idp := providerWorld(t)
	idp.Denies()
	v := w.visitor(idp)
	v.back("google", idp.Authorize(t, v.start("google", ""))).want(400, auth.CodeOAuthDenied)
	q := v.back("google", idp.Authorize(t, v.start("google", "redirect_to=https://app.test/x"))).location().Query()
	if q.Get("error") != "access_denied" || q.Get("error_code") != "oauth_denied" || q.Get("error_description") == "" || q.Has("code") {
		t.Errorf("redirect %v", q)
	}
	w.wantEvents(auth.EventSignInFailed, auth.EventSignInFailed)
	state := func(query string) string {
		u, _ := url.Parse(v.start("google", query))
		return u.Query().Get("state")
	}
	v.back("google", url.Values{"state": {state("")}, "error": {"temporarily_unavailable"}}).want(502, auth.CodeProviderError)
	v.back("google", url.Values{"state": {state("")}}).want(502, auth.CodeProviderError)
	q = v.back("google", url.Values{"state": {state("redirect_to=https://app.test/")}, "error": {"server_error"}, "error_description": {"<script>"}}).location().Query()
	if q.Get("error") != "server_error" || q.Get("error_code") != "provider_error" || strings.Contains(q.Get("error_description"), "<script>") {
		t.Errorf("redirect %v", q)
	}
	v.back("google", url.Values{"state": {state("")}, "code": {"made-up"}}).want(502, auth.CodeProviderError)
	w.do("POST", "/oauth/apple/callback", map[string]any{"state": "x"}).want(415, auth.CodeUnsupportedMediaType)
}

// In cookie mode the callback signs the browser in itself.
func TestOAuthCookies(t *testing.T) {
	w, idp := providerWorld(t, auth.WithCookies(auth.CookieOptions{Name: "my"}))
	v := w.visitor(idp)
	to := v.signIn("google", ada, "redirect_to=https://app.test/home").location()
	if to.String() != "https://app.test/home" || v.cookies["__Host-my-access"] == nil || v.cookies["__Host-my-oauth"] == nil {
		t.Errorf("%v %v", to, v.cookies)
	}
	v.do("GET", "/me", nil).want(200)
	s := w.visitor(idp).signIn("google", ada, "").session()
	if s.AccessToken != "" {
		t.Error("tokens in the body")
	}
	// A challenge asks for the code, and so does a second factor.
	v = w.visitor(idp)
	if q := v.signIn("google", ada, "redirect_to=https://app.test/&code_challenge="+challengeOf(verifier)).location().Query(); !q.Has("code") || v.cookies["__Host-my-access"] != nil {
		t.Errorf("%v %v", q, v.cookies)
	}
}

// What a provider lets the application do goes to the application alone.
func TestOAuthProviderToken(t *testing.T) {
	var mu sync.Mutex
	var got []auth.ProviderToken
	idp := authtest.StartProvider(t)
	hooks := auth.WithHooks(auth.Hooks{OnProviderToken: func(_ context.Context, p auth.ProviderToken) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, p)
	}})
	w := newWorld(t, auth.WithProvider(idp.Google()), hooks)
	idp.Now = w.Clock.Now
	s := w.visitor(idp).signIn("google", ada, "").session()
	if len(got) != 1 || got[0].UserID != s.User.ID || got[0].Provider != "google" || got[0].Subject != "1815" || got[0].AccessToken == "" || got[0].RefreshToken == "" || !got[0].ExpiresAt.Equal(w.Clock.Now().Add(time.Hour)) {
		t.Fatalf("%+v", got)
	}
	for _, secret := range []string{got[0].AccessToken, got[0].RefreshToken} {
		if strings.Contains(w.log.String(), secret) {
			t.Error("the log holds a provider's token")
		}
	}
}

// A visitor cannot make the service begin sign-ins without end.
func TestOAuthStartLimit(t *testing.T) {
	w, _ := providerWorld(t, auth.WithRateLimits(auth.RateLimits{OAuthPerIP: auth.Rate{Burst: 3, Per: time.Minute}}))
	for range 3 {
		w.do("GET", "/oauth/google", nil).want(302)
	}
	w.do("GET", "/oauth/google", nil).want(429, auth.CodeRateLimited)
	w.do("POST", "/oauth/google/id-token", map[string]any{"id_token": "x"}).want(429, auth.CodeRateLimited)
}
