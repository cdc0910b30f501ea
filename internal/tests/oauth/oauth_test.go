package oauth_test

import (
	"context"
	"errors"
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
	"github.com/authmount/auth/internal/harness"
)

var everyProvider = []string{"oidc", "google", "microsoft", "apple", "github", "facebook", "twitter", "discord"}

// Through every provider: a first sign-in creates a user, a second one finds it.
func TestOAuthSignIn(t *testing.T) {
	for _, name := range everyProvider {
		t.Run(name, func(t *testing.T) {
			w, idp := harness.NewProviderWorld(t)
			v := w.NewVisitor(idp)
			s := v.SignIn(name, harness.Ada, "").Session()
			proved := name != "facebook"
			want := []harness.Identity{{Provider: name, Subject: "1815", Email: "ada@example.com"}}
			if s.User.Email != "ada@example.com" || s.User.EmailVerified != proved || s.User.FullName != "Ada Lovelace" || !slices.Equal(s.User.Identities, want) {
				t.Errorf("user %+v", s.User)
			}
			w.WantEvents(auth.EventSignedUp, auth.EventSignedIn)
			if !w.Alive(s.AccessToken) {
				t.Error("the session does not work")
			}
			if c := w.ClaimsOf(s); c.AMR[0].Method != "oauth" {
				t.Errorf("amr %+v", c.AMR)
			}
			again := w.NewVisitor(idp).SignIn(name, authtest.Person{Subject: "1815", Email: "new@example.com", EmailVerified: true}, "").Session()
			if again.User.ID != s.User.ID || again.User.Email != "ada@example.com" || again.User.Identities[0].Email != "new@example.com" {
				t.Errorf("second sign-in %+v", again.User)
			}
			w.WantEvents(auth.EventSignedIn)
			if log := w.Log.String(); strings.Contains(log, "authtest-client-secret") {
				t.Error("the log holds the client's secret")
			}
		})
	}
}

// Some providers return no address; their users have none.
func TestOAuthWithoutEmail(t *testing.T) {
	for _, name := range everyProvider {
		w, idp := harness.NewProviderWorld(t)
		s := w.NewVisitor(idp).SignIn(name, authtest.Person{Subject: "7", Name: "Nobody"}, "").Session()
		if s.User.Email != "" || s.User.EmailVerified || len(s.User.Identities) != 1 {
			t.Errorf("%s: %+v", name, s.User)
		}
		other := w.NewVisitor(idp).SignIn(name, authtest.Person{Subject: "8"}, "").Session()
		if other.User.ID == s.User.ID {
			t.Errorf("%s: two people are one", name)
		}
	}
}

// The request to the provider.
func TestOAuthRequest(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	for _, name := range everyProvider {
		v := w.NewVisitor(idp)
		u, err := url.Parse(v.Start(name, "login_hint=ada@example.com&prompt=login&scopes=one,two"))
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
		if name == "apple" { // its POST comes from another site
			cookie, site = "__Host-authmount-oauth-post", http.SameSiteNoneMode
		}
		c := v.Cookies[cookie]
		if len(v.Cookies) != 1 || c == nil || c.SameSite != site || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" || c.MaxAge != 600 {
			t.Errorf("%s: cookies %+v", name, v.Cookies)
		}
		first := c.Value
		if v.Start(name, ""); v.Cookies[cookie].Value != first {
			t.Errorf("%s: a second tab would spoil the first one's sign-in", name)
		}
		v.Cookies[cookie] = &http.Cookie{Name: cookie, Value: "planted", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
		if v.Start(name, ""); v.Cookies[cookie].Value == "planted" {
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
		a := w.Do("GET", "/oauth/google?"+query, nil)
		if a.Want(a.Status, code); a.Status < 400 || a.Header.Get("Set-Cookie") != "" || a.Header.Get("Location") != "" {
			t.Errorf("%s: %d", query, a.Status)
		}
	}
	w.Do("GET", "/oauth/nobody", nil).Want(404, auth.CodeUnknownProvider)
	w.Do("GET", "/oauth/nobody/callback", nil).Want(404, auth.CodeUnknownProvider)
	if a := w.Do("HEAD", "/oauth/google", nil); a.Status != 200 || a.Header.Get("Set-Cookie") != "" {
		t.Errorf("HEAD: %d %v", a.Status, a.Header)
	}
	settings := harness.DecodeAs[auth.PublicSettings](w.Do("GET", "/settings", nil))
	if !settings.Methods.OAuth || !slices.Equal(settings.Providers, everyProvider) {
		t.Errorf("settings %+v", settings)
	}
}

func TestOAuthDisabled(t *testing.T) {
	w, _ := harness.NewProviderWorld(t, auth.WithSettings(auth.Settings{OAuth: auth.Off}))
	w.Do("GET", "/oauth/google", nil).Want(403, auth.CodeMethodDisabled)
	w.Do("GET", "/oauth/google/callback", nil).Want(403, auth.CodeMethodDisabled)
	w.Do("POST", "/oauth/google/id-token", map[string]any{"id_token": "x"}).Want(403, auth.CodeMethodDisabled)
	settings := harness.DecodeAs[auth.PublicSettings](w.Do("GET", "/settings", nil))
	if settings.Methods.OAuth || len(settings.Providers) != 0 {
		t.Errorf("settings %+v", settings)
	}
}

// With redirect_to the browser gets a code, never tokens.
func TestOAuthRedirect(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	a := w.NewVisitor(idp).SignIn("google", harness.Ada, "redirect_to="+url.QueryEscape("https://app.test/done?a=b"))
	to := a.Location()
	if to.Host != "app.test" || to.Path != "/done" || to.Query().Get("a") != "b" || len(to.Query()) != 2 || len(a.Body) != 0 ||
		a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%v %v", to, a.Header)
	}
	code := to.Query().Get("code")
	w.PostExchange(code, harness.Verifier).Session()
	w.PostExchange(code, harness.Verifier).Want(400, auth.CodeInvalidCode)

	expired := w.NewVisitor(idp).SignIn("google", harness.Ada, "redirect_to=https://app.test/").Location().Query().Get("code")
	w.Clock.Advance(time.Minute)
	w.PostExchange(expired, harness.Verifier).Want(400, auth.CodeInvalidCode)
}

// The application's own PKCE binds the code to the client that started the sign-in.
func TestOAuthChallenge(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	query := "redirect_to=https://app.test/&code_challenge_method=S256&code_challenge=" + harness.ChallengeOf(harness.Verifier)
	for wrong, code := range map[string]auth.Code{"": auth.CodeBadCodeVerifier, strings.Repeat("x", 43): auth.CodeBadCodeVerifier} {
		c := w.NewVisitor(idp).SignIn("google", harness.Ada, query).Location().Query().Get("code")
		w.Do("POST", "/exchange", map[string]any{"code": c, "code_verifier": wrong}).Want(400, code)
		w.Do("POST", "/exchange", map[string]any{"code": c, "code_verifier": harness.Verifier}).Want(400, auth.CodeInvalidCode)
	}
	c := w.NewVisitor(idp).SignIn("google", harness.Ada, query).Location().Query().Get("code")
	w.Do("POST", "/exchange", map[string]any{"code": c, "code_verifier": harness.Verifier}).Session()
}

// A script requests the URL as JSON. Its challenge then replaces the cookie, which the
// script may not be able to store.
func TestOAuthJSON(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	asJSON := harness.Header{Name: "Accept", Value: "application/json"}
	w.Do("GET", "/oauth/google?redirect_to=https://app.test/", nil, asJSON).Want(422, auth.CodeValidationFailed)
	w.Do("GET", "/oauth/google?redirect_to=https://app.test/", nil, harness.Browser).Want(422, auth.CodeValidationFailed) // the code could be planted in another browser
	_, err := w.StartOAuth(t.Context(), auth.StartOAuthParams{Provider: "google", Browser: "hers", RedirectTo: "https://app.test/"})
	if !errors.Is(err, auth.CodeValidationFailed) {
		t.Errorf("without a challenge: %v", err)
	}
	begin := func(v *harness.Visitor, query string) url.Values {
		a := v.Do("GET", "/oauth/google?code_challenge="+harness.ChallengeOf(harness.Verifier)+query, nil, asJSON).Want(200)
		idp.SignsIn(harness.Ada)
		return idp.Authorize(t, harness.DecodeAs[map[string]string](a)["url"])
	}
	// Another browser returns: it gets a code, which is useless without the verifier.
	back := begin(w.NewVisitor(idp), "&redirect_to=https://app.test/")
	code := w.NewVisitor(idp).Back("google", back).Location().Query().Get("code")
	w.Do("POST", "/exchange", map[string]any{"code": code}).Want(400, auth.CodeBadCodeVerifier)
	back = begin(w.NewVisitor(idp), "&redirect_to=https://app.test/")
	code = w.NewVisitor(idp).Back("google", back).Location().Query().Get("code")
	w.Do("POST", "/exchange", map[string]any{"code": code, "code_verifier": harness.Verifier}).Session()
	// Without a redirect the session is the answer, so the browser must be the one that started.
	back = begin(w.NewVisitor(idp), "")
	w.NewVisitor(idp).Back("google", back).Want(400, auth.CodeBadOAuthState)
	v := w.NewVisitor(idp)
	v.Back("google", begin(v, "")).Session()
}

// Login CSRF and replay: a state is valid once, for ten minutes, at the callback of its
// provider, in the browser that started.
func TestOAuthState(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	bad := func(name string, a *harness.Answer) {
		t.Helper()
		if a.Want(400, auth.CodeBadOAuthState); strings.Contains(string(a.Body), "access_token") {
			t.Errorf("%s: a session", name)
		}
	}
	fresh := func(provider string) (*harness.Visitor, url.Values) {
		v := w.NewVisitor(idp)
		to := v.Start(provider, "")
		idp.SignsIn(harness.Ada)
		return v, idp.Authorize(t, to)
	}
	v, back := fresh("google")
	bad("another browser", w.NewVisitor(idp).Back("google", back))
	other, _ := fresh("google")
	bad("another browser with a cookie of its own", other.Back("google", back))
	bad("another provider", v.Back("github", back))
	bad("unknown", v.Back("google", url.Values{"state": {"x"}, "code": {"y"}}))
	bad("none", v.Back("google", url.Values{"code": back["code"]}))
	bad("twice", v.Back("google", url.Values{"state": {back.Get("state"), "x"}, "code": back["code"]}))
	v.Do("HEAD", "/oauth/google/callback?"+back.Encode(), nil)
	v.Back("google", back).Session() // none of these spoilt it
	bad("replayed", v.Back("google", back))

	v, back = fresh("google")
	w.Clock.Advance(10 * time.Minute)
	bad("expired", v.Back("google", back))

	v, back = fresh("apple")
	bad("a state for a post, by GET and without its cookie", w.NewVisitor(idp).Back("google", back))
	v.Back("apple", back).Session()
}

// Of many parallel callbacks with one state and code, one wins.
func TestOAuthCallbackRace(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	v := w.NewVisitor(idp)
	to := v.Start("google", "")
	idp.SignsIn(harness.Ada)
	back := idp.Authorize(t, to)
	cookie := harness.Header{Name: "Cookie", Value: "__Host-authmount-oauth=" + v.Cookies["__Host-authmount-oauth"].Value}
	var wg sync.WaitGroup
	var won, lost atomic.Int32
	for range 20 {
		wg.Go(func() {
			switch a := w.Do("GET", "/oauth/google/callback?"+back.Encode(), nil, cookie); a.Status {
			case 200:
				won.Add(1)
			case 400:
				a.Want(400, auth.CodeBadOAuthState)
				lost.Add(1)
			default:
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 19 {
		t.Errorf("%d won, %d lost", won.Load(), lost.Load())
	}
}

// One person's first sign-in from many tabs in parallel creates one user.
func TestOAuthFirstSignInRace(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	ids := make([]string, 20)
	var wg sync.WaitGroup
	for i := range ids {
		v := w.NewVisitor(idp)
		to := v.Start("github", "")
		idp.SignsIn(harness.Ada)
		back := idp.Authorize(t, to)
		wg.Go(func() { ids[i] = v.Back("github", back).Session().User.ID })
	}
	wg.Wait()
	if slices.Sort(ids); ids[0] != ids[19] {
		t.Errorf("users %v", ids)
	}
}

// Errors reach the application by the redirect or as JSON.
func TestOAuthErrors(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	idp.Denies()
	v := w.NewVisitor(idp)
	v.Back("google", idp.Authorize(t, v.Start("google", ""))).Want(400, auth.CodeOAuthDenied)
	q := v.Back("google", idp.Authorize(t, v.Start("google", "redirect_to=https://app.test/x"))).Location().Query()
	if q.Get("error") != "access_denied" || q.Get("error_code") != "oauth_denied" || q.Get("error_description") == "" || q.Has("code") {
		t.Errorf("redirect %v", q)
	}
	w.WantEvents(auth.EventSignInFailed, auth.EventSignInFailed)
	state := func(query string) string {
		u, _ := url.Parse(v.Start("google", query))
		return u.Query().Get("state")
	}
	v.Back("google", url.Values{"state": {state("")}, "error": {"temporarily_unavailable"}}).Want(502, auth.CodeProviderError)
	v.Back("google", url.Values{"state": {state("")}}).Want(502, auth.CodeProviderError)
	q = v.Back("google", url.Values{"state": {state("redirect_to=https://app.test/")}, "error": {"server_error"}, "error_description": {"<script>"}}).Location().Query()
	if q.Get("error") != "server_error" || q.Get("error_code") != "provider_error" || strings.Contains(q.Get("error_description"), "<script>") {
		t.Errorf("redirect %v", q)
	}
	v.Back("google", url.Values{"state": {state("")}, "code": {"made-up"}}).Want(502, auth.CodeProviderError)
	w.Do("POST", "/oauth/apple/callback", map[string]any{"state": "x"}).Want(415, auth.CodeUnsupportedMediaType)
}

// In cookie mode the callback signs the browser in itself.
func TestOAuthCookies(t *testing.T) {
	w, idp := harness.NewProviderWorld(t, auth.WithCookies(auth.CookieOptions{Name: "my"}))
	v := w.NewVisitor(idp)
	to := v.SignIn("google", harness.Ada, "redirect_to=https://app.test/home").Location()
	if to.String() != "https://app.test/home" || v.Cookies["__Host-my-access"] == nil || v.Cookies["__Host-my-oauth"] == nil {
		t.Errorf("%v %v", to, v.Cookies)
	}
	v.Do("GET", "/me", nil).Want(200)
	s := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	if s.AccessToken != "" {
		t.Error("tokens in the body")
	}
	// A sign-in with a challenge returns the code, even with a second factor.
	v = w.NewVisitor(idp)
	if q := v.SignIn("google", harness.Ada, "redirect_to=https://app.test/&code_challenge="+harness.ChallengeOf(harness.Verifier)).Location().Query(); !q.Has("code") || v.Cookies["__Host-my-access"] != nil {
		t.Errorf("%v %v", q, v.Cookies)
	}
}

// A provider's tokens go to the application alone.
func TestOAuthProviderToken(t *testing.T) {
	var mu sync.Mutex
	var got []auth.ProviderToken
	idp := authtest.StartProvider(t)
	hooks := auth.WithHooks(auth.Hooks{OnProviderToken: func(_ context.Context, p auth.ProviderToken) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, p)
	}})
	w := harness.NewWorld(t, auth.WithProvider(idp.Google()), hooks)
	idp.Now = w.Clock.Now
	s := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	if len(got) != 1 || got[0].UserID != s.User.ID || got[0].Provider != "google" || got[0].Subject != "1815" || got[0].AccessToken == "" || got[0].RefreshToken == "" || !got[0].ExpiresAt.Equal(w.Clock.Now().Add(time.Hour)) {
		t.Fatalf("%+v", got)
	}
	for _, secret := range []string{got[0].AccessToken, got[0].RefreshToken} {
		if strings.Contains(w.Log.String(), secret) {
			t.Error("the log holds a provider's token")
		}
	}
}

// The number of sign-ins that a visitor can start is limited.
func TestOAuthStartLimit(t *testing.T) {
	w, _ := harness.NewProviderWorld(t, auth.WithRateLimits(auth.RateLimits{OAuthPerIP: auth.Rate{Burst: 3, Per: time.Minute}}))
	for range 3 {
		w.Do("GET", "/oauth/google", nil).Want(302)
	}
	w.Do("GET", "/oauth/google", nil).Want(429, auth.CodeRateLimited)
	w.Do("POST", "/oauth/google/id-token", map[string]any{"id_token": "x"}).Want(429, auth.CodeRateLimited)
}
