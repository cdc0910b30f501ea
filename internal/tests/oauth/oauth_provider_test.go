package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// short limits the wait for a provider that does not answer. A provider that answers keeps
// the usual time, because a busy machine needs it.
func short(p provider.Provider) provider.Provider {
	p.Timeout = time.Second
	return p
}

// A provider that lies, is down or does not end its answer: 502, no sign-in, and the cause
// in the log. The cause is compared, so that each fault is really detected.
func TestProviderFaults(t *testing.T) {
	idTokens := []string{"oidc", "google", "apple", "microsoft"}
	for fault, c := range map[authtest.Fault]struct {
		cause string
		at    []string
	}{
		authtest.BadSignature:  {"has a wrong signature", idTokens},
		authtest.UnknownKey:    {"names a key that is not published", idTokens},
		authtest.AlgNone:       {"an algorithm that is not accepted", idTokens},
		authtest.AlgHS256:      {"an algorithm that is not accepted", idTokens},
		authtest.WrongNonce:    {"the nonce of another sign-in", idTokens},
		authtest.WrongIssuer:   {"names another issuer", idTokens},
		authtest.WrongAudience: {"is for another audience", idTokens},
		authtest.Expired:       {"the ID token is expired", idTokens},
		authtest.NoIDToken:     {"has no ID token", idTokens},
		authtest.OtherUserInfo: {"the subject is another user", []string{"oidc"}},
		authtest.OtherCallback: {"the callback names another issuer", []string{"oidc", "google", "github", "apple"}},
		authtest.ServerError:   {"status 500", everyProvider},
		authtest.EchoedSecret:  {`status 400, error \"invalid_client\"`, everyProvider},
		authtest.Garbage:       {"no well-formed token response", everyProvider},
		authtest.HugeBody:      {"no well-formed token response", everyProvider}, // x/oauth2 reads no further
		authtest.Slow:          {"context deadline exceeded", []string{"oidc", "github"}},
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			idp := authtest.StartProvider(t)
			all := []provider.Provider{idp.OIDC("oidc"), idp.Google(), idp.Microsoft(), idp.Apple(), idp.GitHub(), idp.Facebook(), idp.Twitter(), idp.Discord()}
			if fault == authtest.Slow {
				for i := range all {
					all[i] = short(all[i])
				}
			}
			w := harness.NewWorld(t, auth.WithProvider(all...))
			idp.Now = w.Clock.Now
			for _, name := range c.at {
				v := w.NewVisitor(idp)
				idp.Misbehave(authtest.NoFault)
				to := v.Start(name, "") // the discovery works still
				idp.SignsIn(harness.Ada)
				idp.Misbehave(fault)
				back := idp.Authorize(t, to)
				before := len(w.Log.String())
				began := time.Now()
				a := v.Back(name, back).Want(502, auth.CodeProviderError)
				if took := time.Since(began); fault == authtest.Slow && took > 5*time.Second {
					t.Errorf("%s took %s", name, took)
				}
				if strings.Contains(string(a.Body), "127.0.0.1") {
					t.Errorf("%s: the answer tells the cause: %s", name, a.Body)
				}
				log := w.Log.String()[before:]
				for _, leak := range []string{"authtest-client-secret", "client_secret", "is wrong", "other.example.com", "another-client"} {
					if strings.Contains(log, leak) {
						t.Errorf("%s: what the provider sent is in the log: %s", name, log)
					}
				}
				for _, part := range []string{"level=ERROR", "code=provider_error", c.cause} {
					if !strings.Contains(log, part) {
						t.Errorf("%s: no %q in the log %s", name, part, log)
					}
				}
			}
			if _, err := w.Store.User(t.Context(), store.ByEmail(harness.Ada.Email)); err == nil {
				t.Error("a user was made")
			}
		})
	}
}

// A provider that cannot be discovered costs its timeout, and works once it is
// back.
func TestDiscoveryFaults(t *testing.T) {
	for fault, cause := range map[authtest.Fault]string{
		authtest.ServerError: "status 500", authtest.Garbage: "malformed JSON at byte 1", authtest.HugeBody: "larger than 1 MiB",
		authtest.Slow: "context deadline exceeded", authtest.OtherDiscovery: "issuer is not the configured one",
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			idp := authtest.StartProvider(t)
			p := idp.OIDC("oidc")
			if fault == authtest.Slow {
				p = short(p)
			}
			w := harness.NewWorld(t, auth.WithProvider(p))
			idp.Now = w.Clock.Now
			idp.Misbehave(fault)
			a := w.Do("GET", "/oauth/oidc", nil).Want(502, auth.CodeProviderError)
			if a.Header.Get("Set-Cookie") != "" {
				t.Error("a cookie for a sign-in that did not begin")
			}
			if log := w.Log.String(); !strings.Contains(log, cause) {
				t.Errorf("no %q in the log %s", cause, log)
			}
			idp.Misbehave(authtest.NoFault)
			if fault == authtest.Slow {
				// All callers share the fetch that is under way. It ends by its own timeout.
				w = harness.NewWorld(t, auth.WithProvider(idp.OIDC("oidc")))
				idp.Now = w.Clock.Now
			}
			w.NewVisitor(idp).SignIn("oidc", harness.Ada, "").Session()
		})
	}
}

// The discovery document and the keys are fetched once, not for each sign-in.
func TestProviderCaching(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	for range 3 {
		w.NewVisitor(idp).SignIn("oidc", harness.Ada, "").Session()
	}
	if d, k := idp.Requests("/.well-known/openid-configuration"), idp.Requests("/keys"); d != 1 || k != 1 {
		t.Errorf("discovered %d times, keys fetched %d times", d, k)
	}
	// A new key is fetched when a token names it.
	idp.RotateKey()
	w.NewVisitor(idp).SignIn("oidc", harness.Ada, "").Session()
	if k := idp.Requests("/keys"); k != 2 {
		t.Errorf("keys fetched %d times", k)
	}
	// But made-up key ids do not make us hammer the provider.
	idp.Misbehave(authtest.UnknownKey)
	forged := map[string]any{"id_token": idp.IDToken("oidc", harness.Ada, "")}
	for range 30 {
		w.Do("POST", "/oauth/oidc/id-token", forged).Want(400, auth.CodeInvalidToken)
	}
	if k := idp.Requests("/keys"); k > 7 {
		t.Errorf("keys fetched %d times", k)
	}
	// A wrong signature counts against the same limit.
	idp.Misbehave(authtest.BadSignature)
	before := idp.Requests("/keys")
	w.Do("POST", "/oauth/oidc/id-token", map[string]any{"id_token": idp.IDToken("oidc", harness.Ada, "")}).Want(400, auth.CodeInvalidToken)
	if k := idp.Requests("/keys"); k != before {
		t.Errorf("keys fetched %d times", k)
	}
}

// While a provider fails, its cached data is used, and it is queried again after a minute
// instead of at every sign-in.
func TestStaleDiscovery(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	asked := func(want int) {
		t.Helper()
		w.Do("GET", "/oauth/oidc", nil).Want(302)
		if n := idp.Requests("/.well-known/openid-configuration"); n != want {
			t.Errorf("asked %d times, want %d", n, want)
		}
	}
	asked(1)
	w.Clock.Advance(2 * time.Hour)
	idp.Misbehave(authtest.ServerError)
	asked(2)
	asked(2)
	w.Clock.Advance(time.Minute)
	asked(3)
	idp.Misbehave(authtest.NoFault)
	w.Clock.Advance(time.Minute)
	asked(4)
	asked(4)
	w.Clock.Advance(2 * time.Minute) // the new document is valid for an hour again
	asked(4)
}

// A discovery document cannot have codes and secrets sent in the clear.
func TestDiscoveredEndpointsAreSafe(t *testing.T) {
	for _, bad := range []string{"", "authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"} {
		doc := map[string]string{}
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(doc) }))
		t.Cleanup(srv.Close)
		doc["issuer"] = srv.URL
		for _, name := range []string{"authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"} {
			doc[name] = srv.URL + "/x"
		}
		w := harness.NewWorld(t, auth.WithProvider(provider.OIDC("oidc", srv.URL, "client", "secret")))
		if bad == "" {
			w.Do("GET", "/oauth/oidc", nil).Want(302)
			continue
		}
		doc[bad] = "http://evil.test/x"
		w.Do("GET", "/oauth/oidc", nil).Want(502, auth.CodeProviderError)
		if log := w.Log.String(); !strings.Contains(log, bad+" is not https") || strings.Contains(log, "evil.test") {
			t.Errorf("%s: log %s", bad, log)
		}
	}
}

// The provider's document says that every callback names the issuer: one that
// does not may be another server's (RFC 9207, section 2.4).
func TestCallbackWithoutIssuer(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	v := w.NewVisitor(idp)
	to := v.Start("oidc", "")
	idp.SignsIn(harness.Ada)
	back := idp.Authorize(t, to)
	back.Del("iss")
	v.Back("oidc", back).Want(502, auth.CodeProviderError)
	if idp.Requests("/oidc/token") != 0 {
		t.Error("the code was sent to the token endpoint")
	}
}

// An ID token with the hash of another access token than the one beside it.
func TestAccessTokenOfAnother(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	who := harness.Ada
	who.Claims = map[string]any{"at_hash": "bm90IHRoaXMgb25lIQ"}
	for _, name := range []string{"oidc", "google"} {
		before := len(w.Log.String())
		w.NewVisitor(idp).SignIn(name, who, "").Want(502, auth.CodeProviderError)
		if log := w.Log.String()[before:]; !strings.Contains(log, "belongs to another access token") {
			t.Errorf("%s: log %s", name, log)
		}
	}
}

// A native app's access token is unverified unless the ID token confirms it by at_hash.
func TestNativeAccessToken(t *testing.T) {
	var got []auth.ProviderToken
	idp := authtest.StartProvider(t)
	hooks := auth.WithHooks(auth.Hooks{OnProviderToken: func(_ context.Context, p auth.ProviderToken) { got = append(got, p) }})
	w := harness.NewWorld(t, auth.WithProvider(idp.Google()), hooks)
	idp.Now = w.Clock.Now
	body := map[string]any{"id_token": idp.IDToken("google", harness.Ada, ""), "access_token": "theirs"}
	w.Do("POST", "/oauth/google/id-token", body).Session()
	if len(got) != 0 {
		t.Fatalf("passed on unproved: %+v", got)
	}
	sum := sha256.Sum256([]byte("theirs"))
	who := harness.Ada
	who.Claims = map[string]any{"at_hash": base64.RawURLEncoding.EncodeToString(sum[:16])}
	body["id_token"] = idp.IDToken("google", who, "")
	s := w.Do("POST", "/oauth/google/id-token", body).Session()
	if len(got) != 1 || got[0].AccessToken != "theirs" || !got[0].ExpiresAt.IsZero() || got[0].UserID != s.User.ID {
		t.Errorf("%+v", got)
	}
}

// The configuration overrides discovery, and the client authenticates by the required
// method. A client without a secret sends only its id, in the body.
func TestTokenRequest(t *testing.T) {
	for name, public := range map[string]bool{"confidential": false, "public": true} {
		t.Run(name, func(t *testing.T) {
			idp := authtest.StartProvider(t)
			asked := 0
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				id, secret, basic := r.BasicAuth()
				inBody, secretInBody := r.PostFormValue("client_id"), r.PostFormValue("client_secret")
				want := []any{"authtest-client", "authtest-client-secret", true, "", ""}
				if public {
					want = []any{"", "", false, "authtest-client", ""}
				}
				if got := []any{id, secret, basic, inBody, secretInBody}; !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
				idp.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			p := idp.OIDC("oidc")
			p.TokenURL = front.URL + "/oidc/token"
			if public {
				p.ClientSecret = ""
			}
			w := harness.NewWorld(t, auth.WithProvider(p))
			idp.Now = w.Clock.Now
			w.NewVisitor(idp).SignIn("oidc", harness.Ada, "").Session()
			if asked != 1 {
				t.Errorf("asked %d times where it was configured", asked)
			}
		})
	}
}

// A provider vouches for something that is no address.
func TestVerifiedNonsense(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	for _, name := range []string{"google", "discord", "oidc"} {
		s := w.NewVisitor(idp).SignIn(name, authtest.Person{Subject: "5", Email: "not an address", EmailVerified: true}, "").Session()
		if s.User.Email != "" || s.User.EmailVerified || s.User.Identities[0].Email != "" {
			t.Errorf("%s: %+v", name, s.User)
		}
	}
}

// Native apps bring an ID token of the provider's own library.
func TestIDTokenSignIn(t *testing.T) {
	idp := authtest.StartProvider(t)
	google := idp.Google()
	google.Audiences = []string{"android-app"}
	w := harness.NewWorld(t, auth.WithProvider(google, idp.Apple(), idp.Microsoft(), idp.OIDC("oidc"), idp.GitHub()))
	idp.Now = w.Clock.Now
	post := func(provider string, body map[string]any) *harness.Answer {
		return w.Do("POST", "/oauth/"+provider+"/id-token", body)
	}
	for _, name := range []string{"google", "apple", "microsoft", "oidc"} {
		s := post(name, map[string]any{"id_token": idp.IDToken(name, authtest.Person{Subject: name}, "n"), "nonce": "n"}).Session()
		again := post(name, map[string]any{"id_token": idp.IDToken(name, authtest.Person{Subject: name}, "")}).Session()
		if again.User.ID != s.User.ID || s.User.Identities[0].Subject != name {
			t.Errorf("%s: %+v", name, s.User)
		}
	}
	sum := sha256.Sum256([]byte("raw"))
	token := func(who authtest.Person, nonce string) string { return idp.IDToken("google", who, nonce) }
	post("google", map[string]any{"id_token": token(harness.Ada, hex.EncodeToString(sum[:])), "nonce": "raw"}).Session()
	android := harness.Ada
	android.Claims = map[string]any{"aud": "android-app"}
	post("google", map[string]any{"id_token": token(android, "")}).Session()
	twoAudiences := harness.Ada
	twoAudiences.Claims = map[string]any{"aud": []string{"android-app", "somebody-else"}}
	for name, body := range map[string]map[string]any{
		"nonce missing":         {"id_token": token(harness.Ada, "n")},
		"nonce wrong":           {"id_token": token(harness.Ada, "n"), "nonce": "m"},
		"nonce not in token":    {"id_token": token(harness.Ada, ""), "nonce": "n"},
		"several audiences":     {"id_token": token(twoAudiences, "")},
		"garbage":               {"id_token": "a.b.c"},
		"of another provider":   {"id_token": idp.IDToken("microsoft", harness.Ada, "")},
		"our own access token":  {"id_token": w.LoginAs(t, "bob@example.com").AccessToken},
		"no expiry":             {"id_token": token(authtest.Person{Subject: "1", Claims: map[string]any{"exp": nil}}, "")},
		"no subject":            {"id_token": token(authtest.Person{}, "")},
		"subject too long":      {"id_token": token(authtest.Person{Subject: strings.Repeat("x", 256)}, "")},
		"issuer in other case":  {"id_token": token(authtest.Person{Subject: "1", Claims: map[string]any{"iss": strings.ToUpper(idp.Issuer)}}, "")},
		"access token of other": {"id_token": token(authtest.Person{Subject: "1", Claims: map[string]any{"at_hash": "x"}}, ""), "access_token": "y"},
	} {
		if a := post("google", body); a.Status != 400 {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		} else {
			a.Want(400, auth.CodeInvalidToken)
		}
	}
	for _, fault := range []authtest.Fault{authtest.BadSignature, authtest.AlgNone, authtest.AlgHS256, authtest.WrongIssuer, authtest.WrongAudience, authtest.Expired, authtest.UnknownKey} {
		idp.Misbehave(fault)
		post("google", map[string]any{"id_token": token(harness.Ada, "")}).Want(400, auth.CodeInvalidToken)
	}
	idp.Misbehave(authtest.NoFault)
	post("google", map[string]any{}).Want(422, auth.CodeValidationFailed)
	post("github", map[string]any{"id_token": token(harness.Ada, "")}).Want(404, auth.CodeUnknownProvider)
	post("nobody", map[string]any{"id_token": token(harness.Ada, "")}).Want(404, auth.CodeUnknownProvider)
	if strings.Contains(w.Log.String(), strings.SplitN(token(harness.Ada, ""), ".", 3)[1]) {
		t.Error("the log holds an ID token")
	}
	// Keys that cannot be had are the provider's fault, not the token's.
	fresh := harness.NewWorld(t, auth.WithProvider(idp.Google()))
	idp.Misbehave(authtest.ServerError)
	fresh.Do("POST", "/oauth/google/id-token", map[string]any{"id_token": token(harness.Ada, "")}).Want(502, auth.CodeProviderError)
}

// Microsoft's issuer and the permitted users depend on the tenant.
func TestMicrosoftTenants(t *testing.T) {
	const (
		home     = authtest.TenantID
		elswhere = "22222222-2222-4333-8444-555555555555"
		personal = "9188040d-6c67-4c5b-b112-36a304b66dad"
	)
	for tenant, in := range map[string]map[string]bool{
		"common":        {home: true, elswhere: true, personal: true},
		"organizations": {home: true, elswhere: true, personal: false},
		"consumers":     {home: false, elswhere: false, personal: true},
		home:            {home: true, elswhere: false, personal: false},
	} {
		idp := authtest.StartProvider(t)
		ms := idp.Microsoft()
		ms.Tenant = tenant
		w := harness.NewWorld(t, auth.WithProvider(ms))
		idp.Now = w.Clock.Now
		for tid, ok := range in {
			who := authtest.Person{Subject: tid, Claims: map[string]any{"tid": tid}}
			if a := w.NewVisitor(idp).SignIn("microsoft", who, ""); (a.Status == 200) != ok {
				t.Errorf("tenant %s, account of %s: %d %s", tenant, tid, a.Status, a.Body)
			}
			// The issuer of one tenant with the id of another.
			who.Claims = map[string]any{"tid": tid, "iss": idp.Issuer + "/" + elswhere + "x/v2.0"}
			w.NewVisitor(idp).SignIn("microsoft", who, "").Want(502, auth.CodeProviderError)
		}
	}
}

// A callback may name the issuer of the person's own tenant, which no
// configuration can know.
func TestCallbackNamesTenant(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	v := w.NewVisitor(idp)
	to := v.Start("microsoft", "")
	idp.SignsIn(harness.Ada)
	back := idp.Authorize(t, to)
	back.Set("iss", idp.Issuer+"/"+authtest.TenantID+"/v2.0")
	v.Back("microsoft", back).Session()
}

// Apple sends the name once, beside the code and unsigned. It is used as a name and nothing more.
func TestAppleName(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	v := w.NewVisitor(idp)
	to := v.Start("apple", "")
	idp.SignsIn(harness.Ada)
	back := idp.Authorize(t, to)
	back.Set("user", `{"name":{"firstName":"Ada","lastName":"L"},"email":"victim@example.com"}`)
	s := v.Back("apple", back).Session()
	if s.User.FullName != "Ada L" || s.User.Email != "ada@example.com" {
		t.Errorf("user %+v", s.User)
	}
}

// A token endpoint that redirects does not get the client's secret sent on.
func TestProviderRedirects(t *testing.T) {
	reached := false
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer thief.Close()
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	}))
	defer away.Close()
	idp := authtest.StartProvider(t)
	p := idp.GitHub()
	p.TokenURL = away.URL
	w := harness.NewWorld(t, auth.WithProvider(p))
	w.NewVisitor(idp).SignIn("github", harness.Ada, "").Want(502, auth.CodeProviderError)
	if reached {
		t.Error("the redirect was followed")
	}
}

// New refuses providers that cannot work or are not safe, and names them.
func TestProviderConfiguration(t *testing.T) {
	google := provider.Google("id", "s3cr3t")
	for want, list := range map[string][]provider.Provider{
		"WithProvider: github: the client secret is missing": {google, provider.GitHub("id", "")},
		"WithProvider: oidc: Issuer is not https":            {provider.OIDC("oidc", "http://op.example.com", "id", "s3cr3t")},
		`two providers are named "google"`:                   {google, google},
	} {
		_, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithProvider(list...))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A sign-in that the user cancels is no fault. All providers may report it in the standard's
// words, and each in its own.
func TestOAuthCancelled(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	idp.Denies()
	own := map[string][]string{"apple": idp.Apple().DeniedBy, "facebook": idp.Facebook().DeniedBy}
	standard := []string{"access_denied", "login_required", "consent_required", "interaction_required", "account_selection_required"}
	for _, name := range everyProvider {
		for _, word := range slices.Concat(standard, own["apple"], own["facebook"]) {
			want := auth.CodeProviderError
			if slices.Contains(standard, word) || slices.Contains(own[name], word) {
				want = auth.CodeOAuthDenied
			}
			v := w.NewVisitor(idp)
			back := idp.Authorize(t, v.Start(name, ""))
			back.Set("error", word)
			if a := v.Back(name, back); !strings.Contains(string(a.Body), string(want)) {
				t.Errorf("%s at %s: %d %s", word, name, a.Status, a.Body)
			}
		}
	}
}
