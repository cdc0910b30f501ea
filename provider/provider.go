// Package provider says what an identity provider is: a service that people
// sign in with. There is one function for each service that is known here, OIDC
// for any OpenID provider and OAuth2 for the rest:
//
//	auth.WithProvider(
//		provider.Google(id, secret),
//		provider.Microsoft(id, secret, func(p *provider.Provider) { p.Tenant = "organizations" }),
//		provider.OIDC("work", "https://id.example.com", id, secret),
//	)
//
// What they make is data, with small functions for what is particular about a
// service. The flow itself is package auth's and the same for all.
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

// Provider is a service that people sign in with. Its fields may be changed, by
// an [Option] or afterwards, until it goes to auth.WithProvider. The functions
// among them have to be safe for concurrent use.
type Provider struct {
	Name         string // in the paths: /oauth/{name}; lower-case letters, digits, "-" and "_"
	ClientID     string
	ClientSecret string
	Scopes       []string // requested at every sign-in

	// The endpoints. They are set for the services named here; change them for a
	// test or for an enterprise installation of the same make. With Discovery
	// those that are empty come from the issuer's document. "{tenant}" in them
	// stands for Tenant.
	AuthURL     string
	TokenURL    string
	UserInfoURL string
	JWKSURL     string
	// Issuer is what ID tokens and the callback's iss (RFC 9207) have to name. With
	// "{tenant}" in it only ID tokens have to, and IssuerOf says what.
	Issuer string

	// Audiences are further client ids whose ID tokens POST
	// /oauth/{name}/id-token accepts, such as those of native apps. ClientID is
	// always accepted.
	Audiences []string
	// Tenant limits who may sign in, where a service has tenants: for Microsoft
	// a tenant's id, "organizations", "consumers" or "common", the default.
	Tenant string
	// AuthParams are further parameters of the authorization request, such as
	// "access_type": "offline" to get refresh tokens from Google. They cannot
	// replace those of the protocol.
	AuthParams map[string]string
	// Timeout bounds all that one request of an application costs at the
	// provider; default 10 s.
	Timeout time.Duration

	// What is particular about the service.

	OpenID    bool // tells who has signed in by an ID token; otherwise Profile does
	Discovery bool // has a discovery document (OpenID Connect Discovery 1.0)
	FormPost  bool // posts to the callback from its own site (response_mode=form_post)
	BasicAuth bool // the client authenticates in the Authorization header (RFC 6749, 2.3.1)
	// DeniedBy are errors of the callback, besides those of the standards, that
	// mean that the person cancelled.
	DeniedBy []string
	// Secret makes the client's secret for one request, in place of ClientSecret.
	Secret func(p *Provider, now time.Time) (string, error)
	// Profile asks the service's API who has signed in. It must set EmailVerified
	// only if the service says that it proved the address. An error made by
	// auth.Reject refuses the person with its code; any other, and an empty
	// Subject, is auth.CodeProviderError. Its text is logged. An Email that is no
	// address is left out. With OpenID there is none.
	Profile func(ctx context.Context, api *API) (Profile, error)
	// IssuerOf returns the issuer that an ID token with these claims has to name,
	// "" if there is none; for services where that is not always Issuer.
	IssuerOf func(p *Provider, c Claims) string
	// ProfileOf reads the claims of a verified ID token, in place of
	// Claims.Profile. UserInfoURL is then not asked. Errors are as for Profile.
	ProfileOf func(p *Provider, c Claims) (Profile, error)
	// NameOf reads a person's name from the parameter "user" of the callback.
	// Nothing vouches for that parameter.
	NameOf func(user string) string

	implied bool                  // an OpenID provider without the scope "openid"
	check   func(*Provider) error // what only this service asks for
	err     error                 // of the function that made it
}

// An Option changes a provider while it is made. It may set any field.
type Option func(p *Provider)

func (p Provider) with(opts []Option) Provider {
	for _, o := range opts {
		o(&p)
	}
	return p
}

// Profile is what a provider says about a person.
type Profile struct {
	Subject       string // the provider's own id of the person, which never changes and is never given to another
	Email         string
	EmailVerified bool // only if the provider says that it proved the address
	FullName      string
}

const redacted = "[redacted]"

// LogValue keeps the secrets out of the log.
func (p Provider) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", p.Name), slog.String("client_secret", redacted))
}

// String keeps the secrets out of what fmt prints.
func (p Provider) String() string { return "provider " + p.Name }

// GoString is String.
func (p Provider) GoString() string { return p.String() }

// ValidName tells whether a provider can have a name.
func ValidName(name string) bool { return validName.MatchString(name) }

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// reserved are the parameters of the authorization request that AuthParams may
// not set.
func reserved() []string {
	return []string{"client_id", "redirect_uri", "response_type", "scope", "state", "nonce", "code_challenge", "code_challenge_method", "response_mode"}
}

// Validate tells all that is missing or cannot work; auth.New calls it.
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
	need(validName.MatchString(p.Name), `the name has to consist of lower-case letters, digits, "-" and "_"`)
	need(p.ClientID != "", "the client id is missing")
	need(p.ClientSecret != "" || p.Secret != nil || p.Discovery, "the client secret is missing")
	need(p.Profile != nil || p.OpenID, "Profile is missing, which a provider without OpenID needs")
	need(p.Profile == nil || !p.OpenID, "Profile is for providers without OpenID; ProfileOf reads ID tokens")
	need(p.Timeout >= 0, "the timeout is negative")
	need(p.Issuer != "" || !p.OpenID && !p.Discovery, "the issuer is missing")
	if p.Discovery {
		need(!strings.Contains(p.Issuer, "/.well-known/"), "the issuer is the address before /.well-known/")
	} else {
		need(p.AuthURL != "" && p.TokenURL != "", "AuthURL and TokenURL are missing")
		need(p.JWKSURL != "" || !p.OpenID, "JWKSURL is missing")
	}
	need(!p.OpenID || p.implied || slices.Contains(p.Scopes, "openid"), `the scope "openid" is missing`)
	need(p.IssuerOf != nil || !strings.Contains(p.Issuer, tenantMark), "an issuer for each tenant needs IssuerOf")
	tenants := slices.ContainsFunc(endpoints, func(e struct{ name, url string }) bool { return strings.Contains(e.url, tenantMark) })
	need(tenants == (p.Tenant != ""), "Tenant is for endpoints with {tenant} in them, and needed there")
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

// tenantMark stands for the tenant in endpoints.
const tenantMark = "{tenant}"

// withQuery adds parameters to an endpoint.
func withQuery(endpoint string, add url.Values) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint // Validate refused it
	}
	q := u.Query()
	for name, values := range add {
		q[name] = values
	}
	u.RawQuery = q.Encode()
	return u.String()
}
