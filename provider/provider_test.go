package provider_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth/provider"
)

func whoever(context.Context, *provider.API) (provider.Profile, error) {
	return provider.Profile{Subject: "1"}, nil
}

func p8(t *testing.T, curve elliptic.Curve) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), key
}

const secret32 = "0123456789abcdef0123456789abcdef"

// every returns one provider of each kind.
func every(t *testing.T, opts ...provider.Option) map[string]provider.Provider {
	key, _ := p8(t, elliptic.P256())
	return map[string]provider.Provider{
		"google": provider.Google("id", "s", opts...), "github": provider.GitHub("id", "s", opts...),
		"facebook": provider.Facebook("id", "s", opts...), "twitter": provider.Twitter("id", "s", opts...),
		"microsoft": provider.Microsoft("id", "s", opts...), "discord": provider.Discord("id", "s", opts...),
		"linkedin": provider.LinkedIn("id", "s", opts...), "line": provider.LINE("id", secret32, opts...),
		"gitlab": provider.GitLab("id", "s", opts...), "slack": provider.Slack("id", "s", opts...),
		"twitch": provider.Twitch("id", "s", opts...), "spotify": provider.Spotify("id", "s", opts...),
		"notion": provider.Notion("id", "s", opts...), "kakao": provider.Kakao("id", "s", opts...),
		"apple": provider.Apple("id", "team", "key", key, opts...),
		"oidc":  provider.OIDC("oidc", "https://id.example.com", "id", "s", opts...),
		"own": provider.OAuth2("own", provider.OAuth2Options{
			ClientID: "id", ClientSecret: "s", AuthURL: "https://a.test/a", TokenURL: "https://a.test/t", Profile: whoever,
		}, opts...),
	}
}

// The constructors return complete providers, and options change them.
func TestConstructors(t *testing.T) {
	all := every(t, func(p *provider.Provider) { p.Timeout = time.Second }, func(p *provider.Provider) { p.Audiences = []string{p.Name} })
	for name, p := range all {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if p.Name != name || p.ClientID != "id" || p.Timeout != time.Second || !slices.Equal(p.Audiences, []string{name}) {
			t.Errorf("%s: %s %s %v %v", name, p.Name, p.ClientID, p.Timeout, p.Audiences)
		}
		if p.OpenID == (p.Profile != nil) {
			t.Errorf("%s: who has signed in is told by both, or by neither", name)
		}
		for _, raw := range []string{p.AuthURL, p.TokenURL, p.UserInfoURL, p.JWKSURL} {
			if u, err := url.Parse(raw); err != nil || (raw != "" && u.Scheme != "https") {
				t.Errorf("%s: %s, %v", name, raw, err)
			}
		}
	}
	basic := slices.Sorted(maps.Keys(all))
	basic = slices.DeleteFunc(basic, func(name string) bool { return !all[name].BasicAuth })
	if !slices.Equal(basic, []string{"notion", "spotify", "twitter"}) {
		t.Errorf("basic authentication: %v", basic)
	}
	// A literal is equivalent to a constructor.
	literal := provider.Provider{Name: "mine", ClientID: "id", ClientSecret: "s", AuthURL: "https://a.test/a", TokenURL: "https://a.test/t", Profile: whoever}
	if err := literal.Validate(); err != nil {
		t.Error(err)
	}
}

// An invalid configuration is rejected with an error that says how to fix it.
func TestValidate(t *testing.T) {
	key, _ := p8(t, elliptic.P256())
	large, _ := p8(t, elliptic.P384())
	set := func(f func(*provider.Provider)) provider.Provider { return provider.Google("id", "s3cr3t", f) }
	for want, p := range map[string]provider.Provider{
		"the name must":                     provider.OIDC("No Good", "https://op.example.com", "id", "s3cr3t"),
		"client id is missing":              provider.GitHub("", "s3cr3t"),
		"client secret is missing":          provider.GitHub("id", ""),
		"issuer is missing":                 provider.OIDC("oidc", "", "id", "s3cr3t"),
		"before /.well-known/":              provider.OIDC("oidc", "https://op.example.com/.well-known/openid-configuration", "id", "s3cr3t"),
		"Issuer is not https":               provider.OIDC("oidc", "http://op.example.com", "id", "s3cr3t"),
		"TokenURL is not an absolute":       set(func(p *provider.Provider) { p.TokenURL = "/token" }),
		"AuthURL is not https":              set(func(p *provider.Provider) { p.AuthURL = "http://op.example.com" }),
		"UserInfoURL is not https":          set(func(p *provider.Provider) { p.UserInfoURL = "http://op.example.com" }),
		"JWKSURL is not https":              set(func(p *provider.Provider) { p.JWKSURL = "http://op.example.com" }),
		"AuthURL and TokenURL":              set(func(p *provider.Provider) { p.AuthURL = "" }),
		"JWKSURL is missing":                set(func(p *provider.Provider) { p.JWKSURL = "" }),
		`scope "openid"`:                    set(func(p *provider.Provider) { p.Scopes = []string{"email"} }),
		"timeout is negative":               set(func(p *provider.Provider) { p.Timeout = -1 }),
		"Tenant must be set if and only if": set(func(p *provider.Provider) { p.Tenant = "common" }),
		"an endpoint contains {tenant}":     provider.Microsoft("id", "s3cr3t", func(p *provider.Provider) { p.Tenant = "" }),
		"each tenant needs IssuerOf":        provider.OIDC("own", "https://a.test/{tenant}", "id", "s3cr3t", func(p *provider.Provider) { p.Tenant = "x" }),
		`the tenant is "contoso.com"`:       provider.Microsoft("id", "s3cr3t", func(p *provider.Provider) { p.Tenant = "contoso.com" }),
		"Profile is missing":                provider.OAuth2("own", provider.OAuth2Options{ClientID: "id", ClientSecret: "s3cr3t", AuthURL: "https://a.test", TokenURL: "https://a.test"}),
		"not PEM":                           provider.Apple("id", "team", "key", []byte("x")),
		"not PKCS #8":                       provider.Apple("id", "team", "key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("s3cr3t")})),
		"not on the curve P-256":            provider.Apple("id", "team", "key", large),
		"ProfileOf reads ID tokens":         set(func(p *provider.Provider) { p.Profile = whoever }),
		"are for providers with OpenID":     provider.GitHub("id", "s3cr3t", func(p *provider.Provider) { p.NoNonce = true }),
		"NoPKCE needs a client secret":      provider.OIDC("oidc", "https://op.example.com", "id", "", func(p *provider.Provider) { p.NoPKCE = true }),
		"HS256 needs a ClientSecret of at":  provider.LINE("id", secret32[1:]),
		"team id or the key id is missing":  provider.Apple("id", "", "key", key),
	} {
		err := p.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Apple's secret is a token that the app's key signs, valid for a few minutes.
func TestAppleSecret(t *testing.T) {
	raw, key := p8(t, elliptic.P256())
	p := provider.Apple("app", "team", "kid", raw)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	p.ClientID = "changed"
	secret, err := p.Secret(&p, now)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Parse(secret, func(*jwt.Token) (any, error) { return &key.PublicKey, nil }, jwt.WithValidMethods([]string{"ES256"}),
		jwt.WithIssuer("team"), jwt.WithSubject("changed"), jwt.WithAudience("https://appleid.apple.com"), jwt.WithExpirationRequired(),
		jwt.WithTimeFunc(func() time.Time { return now.Add(4 * time.Minute) }))
	if err != nil || token.Header["kid"] != "kid" {
		t.Errorf("%v %v", token.Header, err)
	}
	claims, _ := token.Claims.(jwt.MapClaims)
	if claims["iat"] != float64(now.Unix()) || claims["exp"] != float64(now.Add(5*time.Minute).Unix()) {
		t.Errorf("it lives from %v to %v", claims["iat"], claims["exp"])
	}
	for user, want := range map[string]string{
		`{"name":{"firstName":"Ada","lastName":"Lovelace"},"email":"x"}`: "Ada Lovelace",
		`{"name":{"firstName":"Ada"}}`:                                   "Ada",
		`{}`:                                                             "",
		`{"name":"Ada"}`:                                                 "",
		"":                                                               "",
	} {
		if got := p.NameOf(user); got != want {
			t.Errorf("%s: %q", user, got)
		}
	}
}

// Verified email addresses and admitted tenants of Microsoft.
func TestMicrosoft(t *testing.T) {
	const (
		company  = "11111111-2222-4333-8444-555555555555"
		personal = "9188040d-6c67-4c5b-b112-36a304b66dad"
	)
	for name, c := range map[string]struct {
		tenant   string
		claims   provider.Claims
		in       bool
		verified bool
	}{
		"company":               {"common", provider.Claims{"tid": company}, true, false},
		"email_verified":        {"common", provider.Claims{"tid": company, "email_verified": true}, true, false},
		"xms_edov":              {"common", provider.Claims{"tid": company, "xms_edov": true}, true, true},
		"xms_edov 1":            {"common", provider.Claims{"tid": company, "xms_edov": float64(1)}, true, true},
		"xms_edov \"1\"":        {"common", provider.Claims{"tid": company, "xms_edov": "1"}, true, true},
		"xms_edov \"true\"":     {"common", provider.Claims{"tid": company, "xms_edov": "true"}, true, true},
		"xms_edov \"false\"":    {"common", provider.Claims{"tid": company, "xms_edov": "false"}, true, false},
		"personal":              {"common", provider.Claims{"tid": personal}, true, true},
		"personal, not wanted":  {"organizations", provider.Claims{"tid": personal}, false, false},
		"company, wanted":       {"organizations", provider.Claims{"tid": company}, true, false},
		"company, not wanted":   {"consumers", provider.Claims{"tid": company}, false, false},
		"the tenant":            {strings.ToUpper(company), provider.Claims{"tid": company}, true, false},
		"another tenant":        {personal, provider.Claims{"tid": company}, false, false},
		"another one, in vouch": {company, provider.Claims{"tid": personal, "xms_edov": true}, false, false},
	} {
		p := provider.Microsoft("id", "s", func(p *provider.Provider) { p.Tenant = c.tenant })
		c.claims["sub"], c.claims["email"] = "1", "ada@example.com"
		who, err := p.ProfileOf(&p, c.claims)
		if (err == nil) != c.in || who.EmailVerified != c.verified || (c.in && (who.Subject != "1" || who.Email != "ada@example.com")) {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	p := provider.Microsoft("id", "s")
	for tid, want := range map[any]string{
		company:                              "https://login.microsoftonline.com/" + company + "/v2.0",
		strings.ToUpper(personal):            "https://login.microsoftonline.com/" + personal + "/v2.0",
		"":                                   "",
		"common":                             "",
		company + "/../x":                    "",
		strings.ReplaceAll(company, "-", ""): "",
		7:                                    "",
	} {
		if got := p.IssuerOf(&p, provider.Claims{"tid": tid}); got != want {
			t.Errorf("%v: %q", tid, got)
		}
	}
}

// Google's tokens may name the issuer without a scheme, which is valid for Google only.
func TestGoogleIssuer(t *testing.T) {
	for _, c := range []struct{ issuer, named, want string }{
		{"https://accounts.google.com", "accounts.google.com", "accounts.google.com"},
		{"https://accounts.google.com", "https://accounts.google.com", "https://accounts.google.com"},
		{"https://accounts.google.com", "accounts.google.test", "https://accounts.google.com"},
		{"https://other.test", "accounts.google.com", "https://other.test"},
	} {
		p := provider.Google("id", "s", func(p *provider.Provider) { p.Issuer = c.issuer })
		if got := p.IssuerOf(&p, provider.Claims{"iss": c.named}); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// Apple's tokens may name either of two issuers, which is valid for Apple only.
func TestAppleIssuer(t *testing.T) {
	key, _ := p8(t, elliptic.P256())
	const first, second = "https://appleid.apple.com", "https://account.apple.com"
	for _, c := range []struct{ issuer, named, want string }{
		{first, first, first}, {first, second, second}, {second, first, first}, {second, second, second},
		{first, "https://account.apple.test", first}, {first, "", first}, {"https://other.test", second, "https://other.test"},
	} {
		p := provider.Apple("id", "team", "key", key, func(p *provider.Provider) { p.Issuer = c.issuer })
		if got := p.IssuerOf(&p, provider.Claims{"iss": c.named}); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestClaims(t *testing.T) {
	for doc, want := range map[string]provider.Profile{
		`{"sub":"1","email":"a@b.c","email_verified":true,"name":"Ada"}`:           {Subject: "1", Email: "a@b.c", EmailVerified: true, FullName: "Ada"},
		`{"sub":"1","email_verified":"true","given_name":"Ada","family_name":"L"}`: {Subject: "1", EmailVerified: true, FullName: "Ada L"},
		`{"sub":"1","email_verified":"false","family_name":"L"}`:                   {Subject: "1", FullName: "L"},
		`{"sub":1,"email":["a@b.c"],"email_verified":{"true":true},"name":null}`:   {},
		`{"Sub":"1","EMAIL":"a@b.c"}`:                                              {},
		`{"email_verified":1}`:                                                     {EmailVerified: true},
		`{"email_verified":2}`:                                                     {},
		`{"email_verified":"True"}`:                                                {EmailVerified: true},
		`{"email_verified":"TRUE"}`:                                                {},
		`{"email_verified":"False"}`:                                               {},
		`{"email_verified":" True"}`:                                               {},
		`{"email_verified":"yes"}`:                                                 {},
	} {
		var c provider.Claims
		if err := json.Unmarshal([]byte(doc), &c); err != nil {
			t.Fatal(err)
		}
		if got := c.Profile(); got != want {
			t.Errorf("%s: %+v", doc, got)
		}
	}
}
