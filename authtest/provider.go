package authtest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/provider"
)

// Provider is an identity provider for tests and examples: an OpenID provider with
// discovery, keys and PKCE that can also act as Google, Microsoft, Apple, GitHub,
// Facebook, Twitter and Discord. Anyone can sign in as anyone, so it answers 403 to requests
// for a host that is not loopback, from outside the private network, or through a proxy.
//
//	idp := authtest.StartProvider(t)
//	env := authtest.New(t, auth.WithProvider(idp.Google(), idp.GitHub()))
//	idp.Now = env.Clock.Now
//	ada := env.SignInWith(t, idp, "google", authtest.Person{Subject: "1", Email: "ada@example.com", EmailVerified: true})
//
// It is safe for concurrent use. Set its exported fields before the first request.
type Provider struct {
	Issuer string           // its URL
	Now    func() time.Time // clock of its tokens; default time.Now

	mux  *http.ServeMux
	done chan struct{} // closed at the end, to stop slow responses

	mu       sync.Mutex
	key      *rsa.PrivateKey
	kid      string
	person   *Person // signs in without the page; nil: the page asks
	deny     bool
	fault    Fault
	grants   map[string]grant // by code, then by access token
	greeted  map[string]bool  // Apple's subjects after their first sign-in
	requests map[string]int   // by path
}

// Person is a user of a Provider.
type Person struct {
	Subject       string
	Email         string
	EmailVerified bool
	Name          string
	// Claims are added to the claims of the ID token, or replace them; nil removes one.
	Claims map[string]any
}

// Fault is a failure of a Provider.
type Fault string

// The faults. Those of the ID token apply to every OpenID style.
const (
	NoFault        Fault = ""
	BadSignature   Fault = "bad signature"        // signed by a key other than the one named
	UnknownKey     Fault = "unknown key"          // names a key that is not published
	AlgNone        Fault = "alg none"             // not signed at all
	AlgHS256       Fault = "alg HS256"            // signed with the public key as a secret
	WrongNonce     Fault = "wrong nonce"          // of another sign-in
	WrongIssuer    Fault = "wrong issuer"         // iss of the ID token
	WrongAudience  Fault = "wrong audience"       // for another client
	Expired        Fault = "expired"              // expired an hour ago
	NoIDToken      Fault = "no ID token"          // no ID token in the response
	OtherUserInfo  Fault = "userinfo of another"  // about another subject
	OtherCallback  Fault = "callback of another"  // iss of the callback (RFC 9207)
	HugeBody       Fault = "huge body"            // responses never end
	Slow           Fault = "slow"                 // responses never begin
	ServerError    Fault = "server error"         // status 500
	Garbage        Fault = "garbage"              // responses are not JSON
	EchoedSecret   Fault = "echoed secret"        // the token endpoint refuses and quotes the client's secret
	OtherDiscovery Fault = "discovery of another" // issuer of the discovery document
)

// grant is the data of a code or an access token.
type grant struct {
	style    string
	person   Person
	redirect string
	code     string // the code challenge; empty for access tokens
	nonce    string
	email    bool // the scope email was requested
	openID   bool // the scope openid was requested, or the style always has ID tokens
}

// TenantID is the default Microsoft tenant of a Person.
const TenantID = "11111111-2222-4333-8444-555555555555"

const (
	clientID     = "authtest-client"
	clientSecret = "authtest-client-secret"
	appleTeam    = "AUTHTEST01"
	appleKeyID   = "AUTHTEST02"
)

// NewProvider returns a Provider to serve at the URL issuer. Its page lets the visitor
// choose a user.
func NewProvider(issuer string) *Provider {
	p := &Provider{
		Issuer: strings.TrimSuffix(issuer, "/"), Now: time.Now, done: make(chan struct{}), key: firstKey(), kid: "1",
		grants: map[string]grant{}, greeted: map[string]bool{}, requests: map[string]int{},
	}
	p.mux = http.NewServeMux()
	p.mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	p.mux.HandleFunc("GET /keys", p.keys)
	p.mux.HandleFunc("GET /{style}/authorize", p.authorize)
	p.mux.HandleFunc("POST /{style}/authorize", p.choose)
	p.mux.HandleFunc("POST /{style}/token", p.token)
	p.mux.HandleFunc("GET /oidc/userinfo", p.userInfo)
	p.mux.HandleFunc("GET /github/user", p.githubUser)
	p.mux.HandleFunc("GET /github/user/emails", p.githubEmails)
	p.mux.HandleFunc("GET /facebook/me", p.facebookUser)
	p.mux.HandleFunc("GET /twitter/2/users/me", p.twitterUser)
	p.mux.HandleFunc("GET /discord/users/@me", p.discordUser)
	return p
}

// StartProvider serves a Provider on a loopback address until the test ends.
func StartProvider(tb testing.TB) *Provider {
	tb.Helper()
	p := NewProvider("")
	srv := httptest.NewServer(p)
	p.Issuer = srv.URL
	tb.Cleanup(func() {
		close(p.done)
		srv.Close()
	})
	return p
}

// ServeHTTP serves the provider, at the path of its issuer or at the root.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !local(r) {
		http.Error(w, "authtest.Provider signs in anyone as anyone, so it serves only this machine. Remove it from the providers of a public server.", http.StatusForbidden)
		return
	}
	p.serve(w, r)
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if u, err := url.Parse(p.Issuer); err == nil && u.Path != "" {
		path = strings.TrimPrefix(path, u.Path)
	}
	p.mu.Lock()
	p.requests[path]++
	fault := p.fault
	p.mu.Unlock()
	if !strings.HasSuffix(path, "/authorize") && p.failing(w, r, fault) {
		return
	}
	r = r.Clone(r.Context())
	r.URL.Path = path
	p.mux.ServeHTTP(w, r)
}

// local reports whether a request comes from this machine, or from the private network of
// a container's host.
func local(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	host := (&url.URL{Host: r.Host}).Hostname()
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return redirect.IsLoopback(host) && err == nil && (from.Addr().Unmap().IsLoopback() || from.Addr().Unmap().IsPrivate())
}

// failing applies the faults of all responses.
func (p *Provider) failing(w http.ResponseWriter, r *http.Request, f Fault) bool {
	switch f {
	case ServerError:
		http.Error(w, "out of order", http.StatusInternalServerError)
	case Garbage:
		_, _ = w.Write([]byte("<html>"))
	case Slow:
		select {
		case <-r.Context().Done():
		case <-p.done:
		}
	case HugeBody:
		w.Header().Set("Content-Type", "application/json")
		_, err := w.Write([]byte(`{"access_token":"`))
		for block := []byte(strings.Repeat("a", 64<<10)); err == nil; {
			_, err = w.Write(block)
		}
	default:
		return false
	}
	return true
}

// Requests returns how often a path below the issuer was requested.
func (p *Provider) Requests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

// Misbehave sets a fault until it is called with NoFault.
func (p *Provider) Misbehave(f Fault) {
	if f == BadSignature {
		otherKey() // creates the key now, because that takes a while
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// SignsIn makes a user sign in without the page, from now on.
func (p *Provider) SignsIn(who Person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person, p.deny = &who, false
}

// Denies makes every visitor cancel the sign-in, from now on.
func (p *Provider) Denies() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deny = true
}

// RotateKey replaces the key that signs ID tokens.
func (p *Provider) RotateKey() {
	key := newRSAKey()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.kid = key, p.kid+"1"
}

// OIDC returns the provider as an OpenID provider with discovery.
func (p *Provider) OIDC(name string) provider.Provider {
	return provider.OIDC(name, p.Issuer, clientID, clientSecret)
}

// at sets a provider's endpoints to this one.
func (p *Provider) at(made provider.Provider, style, userInfo string) provider.Provider {
	made.AuthURL, made.TokenURL = p.Issuer+"/"+style+"/authorize", p.Issuer+"/"+style+"/token"
	if userInfo != "" {
		made.UserInfoURL = p.Issuer + userInfo
	}
	if made.JWKSURL != "" {
		made.JWKSURL = p.Issuer + "/keys"
	}
	if made.Issuer != "" {
		made.Issuer = p.Issuer
	}
	return made
}

// Google returns the provider in the shape of Google.
func (p *Provider) Google() provider.Provider {
	return p.at(provider.Google(clientID, clientSecret), "google", "/oidc/userinfo")
}

// Microsoft returns the provider in the shape of Microsoft, for every tenant. A user is
// of the tenant TenantID unless their claim "tid" names another. EmailVerified becomes
// the claim xms_edov.
func (p *Provider) Microsoft() provider.Provider {
	made := p.at(provider.Microsoft(clientID, clientSecret), "microsoft", "")
	made.Issuer = p.Issuer + "/{tenant}/v2.0"
	return made
}

// Apple returns the provider in the shape of Apple.
func (p *Provider) Apple() provider.Provider {
	der, err := x509.MarshalPKCS8PrivateKey(appleKey())
	if err != nil {
		panic(err) // this kind of key can be marshalled
	}
	p8 := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return p.at(provider.Apple(clientID, appleTeam, appleKeyID, p8), "apple", "")
}

// GitHub returns the provider in the shape of GitHub.
func (p *Provider) GitHub() provider.Provider {
	return p.at(provider.GitHub(clientID, clientSecret), "github", "/github/user")
}

// Facebook returns the provider in the shape of Facebook.
func (p *Provider) Facebook() provider.Provider {
	return p.at(provider.Facebook(clientID, clientSecret), "facebook", "/facebook/me")
}

// Twitter returns the provider in the shape of X.
func (p *Provider) Twitter() provider.Provider {
	return p.at(provider.Twitter(clientID, clientSecret), "twitter", "/twitter/2/users/me")
}

// Discord returns the provider in the shape of Discord.
func (p *Provider) Discord() provider.Provider {
	return p.at(provider.Discord(clientID, clientSecret), "discord", "/discord/users/@me")
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	issuer := p.Issuer
	if p.has(OtherDiscovery) {
		issuer = "https://other.example.com"
	}
	respond(w, http.StatusOK, map[string]any{
		"issuer":                                issuer,
		"authorization_endpoint":                p.Issuer + "/oidc/authorize",
		"token_endpoint":                        p.Issuer + "/oidc/token",
		"userinfo_endpoint":                     p.Issuer + "/oidc/userinfo",
		"jwks_uri":                              p.Issuer + "/keys",
		"response_types_supported":              []string{"code"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"},
		"code_challenge_methods_supported":      []string{"S256"},

		"authorization_response_iss_parameter_supported": true,
	})
}

func (p *Provider) has(f Fault) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault == f
}

// checkRequest returns the problem of an authorization request, or "". Unlike most real
// providers it requires everything that a careful client sends.
func checkRequest(style string, q url.Values) string {
	target, err := url.Parse(q.Get("redirect_uri"))
	switch {
	case err != nil || target.Host == "":
		return "redirect_uri is missing"
	case q.Get("client_id") != clientID:
		return "client_id is unknown"
	case q.Get("response_type") != "code":
		return "response_type is not code"
	case q.Get("state") == "":
		return "state is missing"
	case q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43:
		return "PKCE is missing"
	case hasIDTokens(style) && q.Get("nonce") == "":
		return "nonce is missing"
	case style == "apple" && q.Get("response_mode") != "form_post":
		return "response_mode has to be form_post when name or email is asked for"
	}
	return ""
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	style, q := r.PathValue("style"), r.URL.Query()
	if wrong := checkRequest(style, q); wrong != "" {
		http.Error(w, wrong, http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	person, deny := p.person, p.deny
	p.mu.Unlock()
	if person == nil && !deny {
		showChoice(w, style, q)
		return
	}
	p.callBack(w, r, style, q, person, deny)
}

// callBack redirects the browser back, with a code or with an error.
func (p *Provider) callBack(w http.ResponseWriter, r *http.Request, style string, q url.Values, person *Person, deny bool) {
	back := url.Values{"state": {q.Get("state")}}
	if deny {
		back.Set("error", "access_denied")
	} else {
		code := newID20()
		p.mu.Lock()
		p.grants[code] = grant{
			style: style, person: *person, redirect: q.Get("redirect_uri"), code: q.Get("code_challenge"), nonce: q.Get("nonce"),
			email: strings.Contains(q.Get("scope"), "email"), openID: givesIDToken(style, q.Get("scope")),
		}
		if style == "apple" && !p.greeted[person.Subject] {
			p.greeted[person.Subject] = true
			first, last, _ := strings.Cut(person.Name, " ")
			b, _ := json.Marshal(map[string]any{"email": person.Email, "name": map[string]string{"firstName": first, "lastName": last}})
			back.Set("user", string(b))
		}
		p.mu.Unlock()
		back.Set("code", code)
	}
	if style == "oidc" {
		back.Set("iss", p.Issuer)
	}
	if p.has(OtherCallback) {
		back.Set("iss", "https://other.example.com")
	}
	if style == "apple" {
		showPost(w, q.Get("redirect_uri"), back)
		return
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound) //nolint:gosec // as providers do; for tests
}

func respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// newID20 returns a code or token of 160 bits.
func newID20() string {
	b := make([]byte, 20)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}
