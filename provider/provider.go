// Package provider describes identity providers: services with which users sign in. It
// has a function for each known service, OIDC for other OpenID providers and OAuth2 for
// the rest:
//
//	auth.WithProvider(
//		provider.Google(id, secret),
//		provider.Microsoft(id, secret, func(p *provider.Provider) { p.Tenant = "organizations" }),
//		provider.OIDC("work", "https://id.example.com", id, secret),
//	)
//
// The functions return data, with small functions for the differences of a service. The
// flow is in package auth and is the same for all.
package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/outbound"
)

// Provider is a service with which users sign in. Its fields may be changed, by an
// [Option] or afterwards, until it is passed to auth.WithProvider. Its functions must be
// safe for concurrent use.
type Provider struct {
	Name         string // in the paths: /oauth/{name}; lower-case letters, digits, "-" and "_"
	ClientID     string
	ClientSecret string
	Scopes       []string // requested at every sign-in

	// The endpoints. They are set for the known services; change them for tests or for an
	// enterprise installation. With Discovery, empty ones come from the issuer's
	// document. "{tenant}" in them is replaced by Tenant.
	AuthURL     string
	TokenURL    string
	UserInfoURL string
	JWKSURL     string
	// Issuer is the required issuer of ID tokens and of the callback's iss (RFC 9207). If
	// it contains "{tenant}", it applies to ID tokens only, and IssuerOf returns it.
	Issuer string

	// Audiences are additional client ids, such as those of native apps. POST
	// /oauth/{name}/id-token accepts their ID tokens. ClientID is always accepted.
	Audiences []string
	// Tenant limits sign-in for services with tenants. For Microsoft it is a tenant's id,
	// "organizations", "consumers" or "common", the default.
	Tenant string
	// AuthParams are additional parameters of the authorization request, such as
	// "access_type": "offline" for refresh tokens from Google. They cannot replace those
	// of the protocol.
	AuthParams map[string]string
	// Timeout limits the time that all calls of one request take at the provider; default
	// 10 s.
	Timeout time.Duration

	// The differences of the service.

	OpenID    bool // the user comes from an ID token; otherwise from Profile
	Discovery bool // has a discovery document (OpenID Connect Discovery 1.0)
	FormPost  bool // the callback is a cross-site form post (response_mode=form_post)
	BasicAuth bool // the client authenticates in the Authorization header (RFC 6749, section 2.3.1)

	// NoNonce sends no nonce, for OpenID providers that do not return it. Risk: an ID token
	// is no longer bound to the sign-in that requested it. PKCE still binds the code.
	NoNonce bool
	// NoPKCE sends no code challenge and no code verifier, for providers that refuse them.
	// It needs a client secret. Risk: the provider accepts a stolen code from whoever
	// sends it through this service. The nonce still binds the ID token; with NoNonce as
	// well, or without ID tokens, only the state parameter and the browser's cookie
	// protect the sign-in.
	NoPKCE bool
	// HS256 also accepts ID tokens that are signed with ClientSecret (at least 32 bytes).
	// They are accepted from the token endpoint only, never from an app, and never with a
	// key of JWKSURL. Risk: everybody who knows the client secret can sign in as any user
	// of the provider, because the same key signs and verifies.
	HS256 bool
	// UserInfoJWT requires a signed JWT (application/jwt) from UserInfoURL instead of
	// JSON. Its issuer, audience and expiry are checked if it has them. Risk: one without
	// them can be an older response, or the response to another application; it is still
	// of the user in the ID token. Encrypted responses are not supported.
	UserInfoJWT bool

	// DeniedBy are errors of the callback that mean that the user canceled, in addition
	// to those of the standards.
	DeniedBy []string
	// Secret returns the client secret for one request. It replaces ClientSecret.
	Secret func(p *Provider, now time.Time) (string, error)
	// Profile reads the user from the service's API. It must set EmailVerified only if
	// the service reports that it verified the address. An error made by auth.Reject
	// rejects the user with its code; any other error, and an empty Subject, is
	// auth.CodeProviderError. Its text is logged. An invalid Email is dropped. It must be
	// nil with OpenID.
	Profile func(ctx context.Context, api *API) (Profile, error)
	// IssuerOf returns the required issuer of an ID token with these claims, "" if there
	// is none. It is for services with several issuers.
	IssuerOf func(p *Provider, c Claims) string
	// ProfileOf reads the claims of a verified ID token. It replaces Claims.Profile. If it
	// returns no Email and there is a UserInfoURL, it also reads the claims of the userinfo
	// response, which are of the same "sub". Errors are as for Profile.
	ProfileOf func(p *Provider, c Claims) (Profile, error)
	// NameOf reads the user's name from the callback's parameter "user", which is
	// unsigned.
	NameOf func(user string) string

	implied bool                  // an OpenID provider without the scope "openid"
	check   func(*Provider) error // additional checks of this service
	err     error                 // error of the function that returned it
}

// An Option changes a provider while it is created. It may set any field.
type Option func(p *Provider)

func (p Provider) with(opts []Option) Provider {
	for _, o := range opts {
		o(&p)
	}
	return p
}

// Profile is the user as the provider describes them.
type Profile struct {
	Subject       string // the provider's id of the user; it never changes and is never reused
	Email         string
	EmailVerified bool // only if the provider reports that it verified the address
	FullName      string
}

const redacted = "[redacted]"

// LogValue keeps the secrets out of the log.
func (p Provider) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", p.Name), slog.String("client_secret", redacted))
}

// String returns a text without secrets, for fmt.
func (p Provider) String() string { return "provider " + p.Name }

// GoString is String.
func (p Provider) GoString() string { return p.String() }

// ValidName reports whether a name is valid for a provider.
func ValidName(name string) bool { return validName.MatchString(name) }

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// reserved are the parameters of the authorization request that AuthParams must not set.
func reserved() []string {
	return []string{"client_id", "redirect_uri", "response_type", "scope", "state", "nonce", "code_challenge", "code_challenge_method", "response_mode"}
}

// Validate returns all problems of the configuration, joined. auth.New calls it.
func (p Provider) Validate() error {
	errs := []error{p.err}
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	endpoints := []struct{ name, url string }{
		{"AuthURL", p.AuthURL}, {"TokenURL", p.TokenURL}, {"UserInfoURL", p.UserInfoURL}, {"JWKSURL", p.JWKSURL}, {"Issuer", p.Issuer},
	}
	need(validName.MatchString(p.Name), `the name must consist of lower-case letters, digits, "-" and "_"`)
	need(p.ClientID != "", "the client id is missing")
	need(p.ClientSecret != "" || p.Secret != nil || p.Discovery, "the client secret is missing")
	need(p.Profile != nil || p.OpenID, "Profile is missing; a provider without OpenID needs it")
	need(p.Profile == nil || !p.OpenID, "Profile is for providers without OpenID; ProfileOf reads ID tokens")
	need(p.OpenID || !p.NoNonce && !p.HS256 && !p.UserInfoJWT, "NoNonce, HS256 and UserInfoJWT are for providers with OpenID")
	need(!p.NoPKCE || p.ClientSecret != "" || p.Secret != nil, "NoPKCE needs a client secret")
	need(!p.HS256 || p.Secret == nil && len(p.ClientSecret) >= minSharedKey, "HS256 needs a ClientSecret of at least %d bytes", minSharedKey)
	need(p.Timeout >= 0, "the timeout is negative")
	need(p.Issuer != "" || !p.OpenID && !p.Discovery, "the issuer is missing")
	if p.Discovery {
		need(!strings.Contains(p.Issuer, "/.well-known/"), "the issuer is the URL before /.well-known/")
	} else {
		need(p.AuthURL != "" && p.TokenURL != "", "AuthURL and TokenURL are missing")
		need(p.JWKSURL != "" || !p.OpenID, "JWKSURL is missing")
	}
	need(!p.OpenID || p.implied || slices.Contains(p.Scopes, "openid"), `the scope "openid" is missing`)
	need(p.IssuerOf != nil || !strings.Contains(p.Issuer, tenantMark), "an issuer for each tenant needs IssuerOf")
	tenants := slices.ContainsFunc(endpoints, func(e struct{ name, url string }) bool { return strings.Contains(e.url, tenantMark) })
	need(tenants == (p.Tenant != ""), "Tenant must be set if and only if an endpoint contains {tenant}")
	for _, name := range reserved() {
		need(p.AuthParams[name] == "", "AuthParams sets %q, which Authmount sets itself", name)
	}
	for _, e := range endpoints {
		if e.url != "" {
			err := outbound.CheckURL(e.url)
			need(err == nil, "%s %w", e.name, err)
		}
	}
	if p.check != nil {
		errs = append(errs, p.check(&p))
	}
	return errors.Join(errs...)
}

// minSharedKey is the shortest key for HS256 (RFC 7518, section 3.2). Everybody who sees
// an ID token can search for a shorter one.
const minSharedKey = 32

// tenantMark is the placeholder of the tenant in endpoints.
const tenantMark = "{tenant}"

// withQuery adds parameters to an endpoint.
func withQuery(endpoint string, add url.Values) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint // Validate rejected it
	}
	q := u.Query()
	for name, values := range add {
		q[name] = values
	}
	u.RawQuery = q.Encode()
	return u.String()
}
