package oauth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/provider"
)

// serviceSecret is the client secret; one of LINE has 32 characters.
const serviceSecret = "0123456789abcdef0123456789abcdef"

var (
	serviceRSA = sync.OnceValue(func() *rsa.PrivateKey { k, _ := rsa.GenerateKey(rand.Reader, 2048); return k })
	serviceEC  = sync.OnceValue(func() *ecdsa.PrivateKey { k, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader); return k })
)

// service is a provider as its documentation describes it. It refuses parameters that the
// provider refuses or does not document.
type service struct {
	provider func(id, secret string, opts ...provider.Option) provider.Provider
	basic    bool           // the client authenticates in the header
	refuses  []string       // parameters of both requests
	requires url.Values     // parameters of the authorization request
	alg      string         // of ID tokens; "": there are none
	claims   map[string]any // of ID tokens
	noNonce  bool           // ID tokens never have a nonce
	pages    map[string]string
	header   http.Header // required by the pages

	now func() time.Time // clock of its tokens
	// sign replaces the signature of ID tokens.
	sign func(claims jwt.MapClaims) string

	mu      sync.Mutex
	url     string
	request url.Values
}

// start serves it and returns the provider with its documented paths on the local host.
func (s *service) start(t *testing.T) provider.Provider {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s.provider("client", serviceSecret, func(p *provider.Provider) {
		if p.Discovery {
			p.Issuer = srv.URL
			return
		}
		for _, at := range []*string{&p.AuthURL, &p.TokenURL, &p.UserInfoURL, &p.JWKSURL} {
			if u, err := url.Parse(*at); err == nil && *at != "" {
				*at = srv.URL + u.Path
			}
		}
	})
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	p := s.provider("client", serviceSecret)
	path := func(at string) string { u, _ := url.Parse(at); return u.Path }
	body, known := s.pages[r.URL.Path]
	switch {
	case r.URL.Path == "/.well-known/openid-configuration":
		answer(200, map[string]any{
			"issuer": s.url, "authorization_endpoint": s.url + "/authorize", "token_endpoint": s.url + "/token", "userinfo_endpoint": s.url + "/userinfo", "jwks_uri": s.url + "/keys",
			"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post"}, "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	case r.URL.Path == "/token" || path(p.TokenURL) == r.URL.Path:
		if wrong := s.wrong(r); wrong != "" {
			answer(400, map[string]string{"error": "invalid_request", "error_description": wrong})
			return
		}
		tokens := map[string]any{"access_token": "t0ken", "token_type": "bearer", "expires_in": 3600}
		if s.alg != "" {
			tokens["id_token"] = s.idToken()
		}
		answer(200, tokens)
	case r.URL.Path == "/keys" || path(p.JWKSURL) == r.URL.Path:
		b64 := base64.RawURLEncoding.EncodeToString
		point, _ := serviceEC().PublicKey.Bytes()
		answer(200, map[string]any{"keys": []any{
			map[string]string{"kty": "RSA", "kid": "rsa", "n": b64(serviceRSA().N.Bytes()), "e": b64(big.NewInt(int64(serviceRSA().E)).Bytes())},
			map[string]string{"kty": "EC", "crv": "P-256", "kid": "ec", "x": b64(point[1:33]), "y": b64(point[33:])},
			map[string]string{"kty": "oct", "kid": "oct", "alg": "HS256", "k": b64([]byte("a published symmetric key, 32 b."))},
		}})
	case known && r.Header.Get("Authorization") == "Bearer t0ken" && s.header.Get("Notion-Version") == r.Header.Get("Notion-Version"):
		if strings.HasPrefix(body, "ey") {
			w.Header().Set("Content-Type", "application/jwt")
		}
		_, _ = io.WriteString(w, body)
	default:
		http.Error(w, "not documented", http.StatusNotFound)
	}
}

// wrong returns what the provider refuses in a token request, or "".
func (s *service) wrong(r *http.Request) string {
	_ = r.ParseForm()
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	challenge := s.request.Get("code_challenge")
	switch {
	case basic != s.basic || id != "client" || secret != serviceSecret:
		return "the client"
	case r.PostForm.Get("code") != "c0de" || r.PostForm.Get("grant_type") != "authorization_code" || r.PostForm.Get("redirect_uri") != s.request.Get("redirect_uri"):
		return "the code"
	case challenge != "" && challenge != base64.RawURLEncoding.EncodeToString(sum[:]):
		return "the code verifier"
	}
	for _, name := range s.refuses {
		if r.PostForm.Has(name) {
			return name
		}
	}
	return ""
}

func (s *service) idToken() string {
	now := s.now()
	c := jwt.MapClaims{"aud": "client", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	if nonce := s.request.Get("nonce"); nonce != "" && !s.noNonce {
		c["nonce"] = nonce
	}
	maps.Copy(c, s.claims)
	if c["iss"] == nil {
		c["iss"] = s.url
	}
	if s.sign != nil {
		return s.sign(c)
	}
	return signService(s.alg, c)
}

// signService signs with the service's key for an algorithm.
func signService(alg string, c jwt.MapClaims) string {
	t := jwt.NewWithClaims(jwt.GetSigningMethod(alg), c)
	var key any = []byte(serviceSecret)
	switch alg {
	case "RS256":
		t.Header["kid"], key = "rsa", serviceRSA()
	case "ES256":
		t.Header["kid"], key = "ec", serviceEC()
	}
	raw, err := t.SignedString(key)
	if err != nil {
		panic(err)
	}
	return raw
}

// authorize reads the authorization request and returns the callback's parameters.
func (s *service) authorize(t *testing.T, to string) url.Values {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for _, name := range s.refuses {
		if q.Has(name) {
			t.Errorf("the request has %s", name)
		}
	}
	for name := range s.requires {
		if q.Get(name) != s.requires.Get(name) {
			t.Errorf("%s is %q", name, q.Get(name))
		}
	}
	s.mu.Lock()
	s.request = q
	s.mu.Unlock()
	return url.Values{"code": {"c0de"}, "state": {q.Get("state")}}
}

// signIn signs in with the service in a world of its own.
func (s *service) signIn(t *testing.T, opts ...provider.Option) (*harness.World, *harness.Answer) {
	t.Helper()
	p := s.start(t)
	for _, o := range opts {
		o(&p)
	}
	w := harness.NewWorld(t, auth.WithProvider(p))
	s.now = w.Clock.Now
	v := w.NewVisitor(nil)
	return w, v.Back(p.Name, s.authorize(t, v.Start(p.Name, "")))
}

var (
	noPKCE        = []string{"code_challenge", "code_challenge_method", "code_verifier"}
	noPKCEOrNonce = append([]string{"nonce"}, noPKCE...)
)

// services are the providers with their documented responses, in which each says about
// the email address the best that it can say.
func services() map[string]*service {
	return map[string]*service{
		"linkedin": {provider: provider.LinkedIn, refuses: noPKCEOrNonce, alg: "RS256", noNonce: true, claims: map[string]any{
			"iss": "https://www.linkedin.com/oauth", "sub": "782bbtaQ", "name": "Ada Lovelace", "email": "ada@example.com", "email_verified": true, "locale": "en_US",
		}},
		"line": {provider: provider.LINE, alg: "HS256", claims: map[string]any{
			"iss": "https://access.line.me", "sub": "U1234", "name": "Ada Lovelace", "email": "ada@example.com", "email_verified": true, "amr": []string{"pwd"},
		}},
		"gitlab": {provider: provider.GitLab, basic: true, alg: "RS256", claims: map[string]any{"sub": "7", "auth_time": 1}, pages: map[string]string{
			"/userinfo": `{"sub":"7","name":"Ada Lovelace","nickname":"ada","email":"ada@example.com","email_verified":true}`,
		}},
		"slack": {provider: provider.Slack, refuses: noPKCE, alg: "RS256", claims: map[string]any{
			"iss": "https://slack.com", "sub": "U0R7JM", "https://slack.com/user_id": "U0R7JM", "https://slack.com/team_id": "T0R7GR",
			"email": "ada@example.com", "email_verified": true, "date_email_verified": 1622128723, "name": "Ada Lovelace",
		}},
		"twitch": {provider: provider.Twitch, alg: "RS256", requires: url.Values{"scope": {"openid user:read:email"}, "claims": {
			`{"id_token":{"email":null,"email_verified":null,"preferred_username":null},"userinfo":{"email":null,"email_verified":null,"preferred_username":null}}`,
		}}, claims: map[string]any{
			"iss": "https://id.twitch.tv/oauth2", "azp": "client", "sub": "713936733", "email": "ada@example.com", "email_verified": true, "preferred_username": "Ada Lovelace",
		}},
		"spotify": {provider: provider.Spotify, basic: true, requires: url.Values{"scope": {"user-read-email"}}, pages: map[string]string{
			"/v1/me": `{"id":"wizzler","display_name":"Ada Lovelace","email":"ada@example.com","type":"user"}`,
		}},
		"notion": {provider: provider.Notion, basic: true, refuses: noPKCE, requires: url.Values{"owner": {"user"}}, header: http.Header{"Notion-Version": {"2022-06-28"}}, pages: map[string]string{
			"/v1/users/me": `{"object":"user","id":"bot","type":"bot","bot":{"owner":{"type":"user","user":{"object":"user","id":"5389a034","name":"Ada Lovelace","type":"person","person":{"email":"ada@example.com"}}}}}`,
		}},
		"kakao": {provider: provider.Kakao, requires: url.Values{"scope": {"account_email profile_nickname"}}, pages: map[string]string{
			"/v2/user/me": `{"id":12345678901234567,"kakao_account":{"email":"ada@example.com","is_email_valid":true,"is_email_verified":true,"profile":{"nickname":"Ada Lovelace"}}}`,
		}},
	}
}

// A first sign-in at each service creates a user with the documented subject, name and
// address; a second sign-in finds the user.
func TestServices(t *testing.T) {
	for name, want := range map[string]struct {
		subject  string
		verified bool
	}{
		"linkedin": {"782bbtaQ", true}, "line": {"U1234", false}, "gitlab": {"7", false}, "slack": {"T0R7GR:U0R7JM", false},
		"twitch": {"713936733", true}, "spotify": {"wizzler", false}, "notion": {"5389a034", false}, "kakao": {"12345678901234567", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := services()[name]
			w, a := s.signIn(t)
			u := a.Session().User
			identity := []harness.Identity{{Provider: name, Subject: want.subject, Email: "ada@example.com"}}
			if u.Email != "ada@example.com" || u.EmailVerified != want.verified || u.FullName != "Ada Lovelace" || !slices.Equal(u.Identities, identity) {
				t.Errorf("user %+v", u)
			}
			v := w.NewVisitor(nil)
			if again := v.Back(name, s.authorize(t, v.Start(name, ""))).Session(); again.User.ID != u.ID {
				t.Errorf("the second sign-in is another user: %+v", again.User)
			}
		})
	}
}

// An address for which a service does not vouch leads into nobody's account, and its owner
// is not locked out.
func TestServicesWithoutVerifiedAddressesJoinNoAccount(t *testing.T) {
	for _, name := range []string{"line", "gitlab", "slack", "spotify", "notion"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := services()[name]
			p := s.start(t)
			w := harness.NewWorld(t, auth.WithProvider(p))
			s.now = w.Clock.Now
			owner := w.PostSignUp("ada@example.com").User.ID
			w.PostConfirm("ada@example.com")
			v := w.NewVisitor(nil)
			v.Back(name, s.authorize(t, v.Start(name, ""))).Want(409, auth.CodeAccountExists)
			if back := w.PostLogin("ada@example.com", harness.GoodPassword).Session(); back.User.ID != owner || len(back.User.Identities) != 0 {
				t.Errorf("%+v", back.User)
			}
		})
	}
}

// A token with a nonce is of another sign-in, if this one had none.
func TestNoNonce(t *testing.T) {
	s := services()["linkedin"]
	s.claims["nonce"] = "of another sign-in"
	w, a := s.signIn(t)
	a.Want(502, auth.CodeProviderError)
	if !strings.Contains(w.Log.String(), "the nonce of another sign-in") {
		t.Error(w.Log.String())
	}
	for _, issuer := range []string{"https://www.linkedin.com", "https://www.linkedin.com/oauth", "https://evil.test"} {
		s := services()["linkedin"]
		s.claims["iss"] = issuer
		if _, a := s.signIn(t); (a.Status == 200) != (issuer != "https://evil.test") {
			t.Errorf("%s: %d", issuer, a.Status)
		}
	}
}

// hs256 signs with a symmetric key.
func hs256(key []byte, kid string) func(jwt.MapClaims) string {
	return func(c jwt.MapClaims) string {
		t := jwt.NewWithClaims(jwt.SigningMethodHS256, c)
		if kid != "" {
			t.Header["kid"] = kid
		}
		raw, err := t.SignedString(key)
		if err != nil {
			panic(err)
		}
		return raw
	}
}

// HS256 is verified with the client secret and nothing else, and the secret verifies
// nothing else.
func TestHS256(t *testing.T) {
	public := []byte(fmt.Sprint(serviceRSA().N))
	halfHash := func(access string) string {
		sum := sha256.Sum256([]byte(access))
		return base64.RawURLEncoding.EncodeToString(sum[:16])
	}
	hs384 := func(c jwt.MapClaims) string {
		raw, _ := jwt.NewWithClaims(jwt.SigningMethodHS384, c).SignedString([]byte(serviceSecret))
		return raw
	}
	for name, c := range map[string]struct {
		sign  func(jwt.MapClaims) string
		claim map[string]any
		cause string // "" for a sign-in
	}{
		"the client secret":                  {hs256([]byte(serviceSecret), ""), nil, ""},
		"with a key id":                      {hs256([]byte(serviceSecret), "oct"), nil, ""},
		"a hash of the access token":         {hs256([]byte(serviceSecret), ""), map[string]any{"at_hash": halfHash("t0ken")}, ""},
		"a hash of another":                  {hs256([]byte(serviceSecret), ""), map[string]any{"at_hash": halfHash("other")}, "belongs to another access token"},
		"a native app's key":                 {func(c jwt.MapClaims) string { return signService("ES256", c) }, nil, ""},
		"another secret":                     {hs256([]byte(strings.Repeat("x", 32)), ""), nil, "has a wrong signature"},
		"a published symmetric key":          {hs256([]byte("a published symmetric key, 32 b."), "oct"), nil, "has a wrong signature"},
		"the public key as a secret":         {hs256(public, "rsa"), nil, "has a wrong signature"},
		"no secret":                          {hs256(nil, ""), nil, "has a wrong signature"},
		"HS384":                              {hs384, nil, "an algorithm that is not accepted"},
		"the client secret, for another app": {hs256([]byte(serviceSecret), ""), map[string]any{"aud": "other"}, "is for another audience"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := services()["line"]
			s.sign = c.sign
			maps.Copy(s.claims, c.claim)
			w, a := s.signIn(t)
			if c.cause == "" {
				a.Session()
				return
			}
			a.Want(502, auth.CodeProviderError)
			if !strings.Contains(w.Log.String(), c.cause) {
				t.Error(w.Log.String())
			}
		})
	}
	t.Run("without the option", func(t *testing.T) {
		s := services()["line"]
		_, a := s.signIn(t, func(p *provider.Provider) { p.HS256 = false })
		a.Want(502, auth.CodeProviderError)
	})
	t.Run("from an app", func(t *testing.T) {
		s := services()["line"]
		w := harness.NewWorld(t, auth.WithProvider(s.start(t)))
		s.now = w.Clock.Now
		s.claims["nonce"] = "n"
		w.Do("POST", "/oauth/line/id-token", map[string]any{"id_token": s.idToken(), "nonce": "n"}).Want(400, auth.CodeInvalidToken)
		s.alg = "ES256"
		w.Do("POST", "/oauth/line/id-token", map[string]any{"id_token": s.idToken(), "nonce": "n"}).Session()
	})
}

// A signed userinfo response is verified like an ID token, and replaced by nothing else.
func TestUserInfoJWT(t *testing.T) {
	who := func(change jwt.MapClaims) jwt.MapClaims {
		c := jwt.MapClaims{"sub": "7", "email": "ada@example.com", "email_verified": true}
		maps.Copy(c, change)
		return c
	}
	rs := func(c jwt.MapClaims) func(string) string {
		return func(string) string { return signService("RS256", c) }
	}
	for name, c := range map[string]struct {
		body  func(issuer string) string
		cause string
	}{
		"signed": {rs(who(nil)), ""},
		"with issuer": {func(issuer string) string {
			return signService("RS256", who(jwt.MapClaims{"iss": issuer, "aud": "client"}))
		}, ""},
		"two audiences":     {rs(who(jwt.MapClaims{"aud": []string{"other", "client"}})), ""},
		"another algorithm": {func(string) string { return signService("ES256", who(nil)) }, ""},
		"another issuer":    {rs(who(jwt.MapClaims{"iss": "https://evil.test"})), "names another issuer"},
		"another audience":  {rs(who(jwt.MapClaims{"aud": []string{"other"}})), "is for another audience"},
		"odd audience":      {rs(who(jwt.MapClaims{"aud": map[string]any{}})), "is for another audience"},
		"expired":           {rs(who(jwt.MapClaims{"exp": 1000000000})), "is expired"},
		"odd expiry":        {rs(who(jwt.MapClaims{"exp": "soon"})), "is expired"},
		"another user":      {rs(who(jwt.MapClaims{"sub": "8"})), "the subject is another user"},
		"the client secret": {func(string) string { return signService("HS256", who(nil)) }, "an algorithm that is not accepted"},
		"unsigned": {func(string) string {
			raw, _ := jwt.NewWithClaims(jwt.SigningMethodNone, who(nil)).SignedString(jwt.UnsafeAllowNoneSignatureType)
			return raw
		}, "an algorithm that is not accepted"},
		"another payload": {func(string) string {
			p, q := strings.Split(signService("RS256", who(nil)), "."), strings.Split(signService("RS256", who(jwt.MapClaims{"sub": "8"})), ".")
			return p[0] + "." + q[1] + "." + p[2]
		}, "has a wrong signature"},
		"JSON": {func(string) string { return `{"sub":"7","email":"ada@example.com","email_verified":true}` }, "is malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &service{
				provider: func(id, secret string, opts ...provider.Option) provider.Provider {
					return provider.OIDC("oidc", "https://id.example.com", id, secret, opts...)
				},
				basic: true, alg: "RS256", claims: map[string]any{"sub": "7"},
			}
			p := s.start(t)
			p.UserInfoJWT = true
			s.pages = map[string]string{"/userinfo": c.body(s.url)}
			w := harness.NewWorld(t, auth.WithProvider(p))
			s.now = w.Clock.Now
			v := w.NewVisitor(nil)
			a := v.Back("oidc", s.authorize(t, v.Start("oidc", "")))
			if c.cause == "" {
				if u := a.Session().User; !u.EmailVerified || u.Email != "ada@example.com" {
					t.Errorf("%+v", u)
				}
				return
			}
			a.Want(502, auth.CodeProviderError)
			if log := w.Log.String(); !strings.Contains(log, c.cause) || strings.Contains(log, "evil.test") {
				t.Error(log)
			}
		})
	}
}
