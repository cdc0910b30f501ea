package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Provider is an outside service that people sign in with. One of the functions
// below makes it; its fields may be changed before it goes to WithProvider.
type Provider struct {
	Name         string // in the paths: /oauth/{name}; lower-case letters, digits, "-" and "_"
	ClientID     string
	ClientSecret string
	Scopes       []string // asked for at every sign-in

	// The endpoints. They are set for the services named here; change them for a
	// test or for an enterprise installation of the same make. OIDC discovers
	// those that are empty.
	AuthURL     string
	TokenURL    string
	UserInfoURL string
	JWKSURL     string
	// Issuer is what ID tokens and the callback's iss (RFC 9207) have to name.
	Issuer string

	// Audiences are further client ids whose ID tokens POST
	// /oauth/{name}/id-token accepts, such as those of native apps. ClientID is
	// always accepted.
	Audiences []string
	// Tenant limits Microsoft to one tenant (its id), "organizations" or
	// "consumers". Default "common": everybody.
	Tenant string
	// AuthParams are further parameters of the authorization request, such as
	// "access_type": "offline" to get refresh tokens from Google. They cannot
	// replace those of the protocol.
	AuthParams map[string]string
	// Timeout bounds all that one request of ours asks the provider; default 10 s.
	Timeout time.Duration

	openID    bool // has ID tokens
	discovers bool // finds its endpoints through Issuer
	formPost  bool // posts to the callback from its own site
	basic     bool // the client authenticates in the header (RFC 6749, 2.3.1)
	idOnly    bool // nothing to fetch besides the ID token
	secret    func(p *Provider, now time.Time) (string, error)
	fetch     func(ctx context.Context, api *ProviderAPI) (Profile, error)
	judge     func(p *Provider, c *idClaims) error // what is particular about its ID tokens
	err       error
}

// Profile is what a provider says about a person.
type Profile struct {
	Subject       string // the provider's own id of the person, which never changes and is never given to another
	Email         string
	EmailVerified bool // only if the provider says that it proved the address
	FullName      string
}

// maxSubject is the longest subject OpenID Connect allows (Core 1.0, section 2).
const maxSubject = 255

var providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// ours are the parameters of the authorization request that AuthParams may not
// set.
var ours = []string{"client_id", "redirect_uri", "response_type", "scope", "state", "nonce", "code_challenge", "code_challenge_method", "response_mode"}

// check tells all that is missing or cannot work.
func (p *Provider) check() error {
	errs := []error{p.err}
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(providerName.MatchString(p.Name), `the name has to consist of lower-case letters, digits, "-" and "_"`)
	need(p.ClientID != "", "the client id is missing")
	need(p.ClientSecret != "" || p.secret != nil || p.discovers, "the client secret is missing")
	need(p.fetch != nil || p.openID || p.err != nil, "use one of the functions that make a Provider")
	need(p.Timeout >= 0, "the timeout is negative")
	if p.discovers {
		need(p.Issuer != "", "the issuer is missing")
		need(!strings.Contains(p.Issuer, "/.well-known/"), "the issuer is the address before /.well-known/")
	} else {
		need(p.AuthURL != "" && p.TokenURL != "", "AuthURL and TokenURL are missing")
	}
	need(!p.openID || p.formPost || slices.Contains(p.Scopes, "openid"), `the scope "openid" is missing`)
	if strings.Contains(p.Issuer, "{tenant}") {
		words := []string{"common", "organizations", "consumers"}
		need(slices.Contains(words, p.Tenant) || isID(strings.ToLower(p.Tenant)), "the tenant is %q; it has to be the tenant's id, or one of %q", p.Tenant, words)
	} else {
		need(p.Tenant == "", "Tenant is for Microsoft")
	}
	for _, name := range ours {
		need(p.AuthParams[name] == "", "AuthParams sets %q, which Authmount sets itself", name)
	}
	for _, s := range []string{p.AuthURL, p.TokenURL, p.UserInfoURL, p.JWKSURL, p.Issuer} {
		errs = append(errs, safeEndpoint(s))
	}
	return errors.Join(errs...)
}

// safeEndpoint refuses endpoints that would send secrets in the clear. On
// loopback hosts http is for tests and development.
func safeEndpoint(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil {
		return fmt.Errorf("%q is not an absolute URL", s)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopbackHost(u.Hostname())) {
		return fmt.Errorf("%q is not https", s)
	}
	return nil
}

// OIDC is any OpenID provider. Its endpoints come from its discovery document
// (OpenID Connect Discovery 1.0), which is read when they are first needed. A
// public client has no secret.
func OIDC(name, issuer, clientID, clientSecret string) Provider {
	return Provider{
		Name: name, ClientID: clientID, ClientSecret: clientSecret, Issuer: issuer,
		Scopes: []string{"openid", "email", "profile"}, openID: true, discovers: true,
	}
}

// OAuth2Options describe a provider without ID tokens.
type OAuth2Options struct {
	ClientID     string
	ClientSecret string
	AuthURL      string
	TokenURL     string
	Scopes       []string
	// BasicAuth sends the client's secret in the Authorization header instead of
	// the body.
	BasicAuth bool
	// Profile asks the provider's API who has signed in. It must set
	// EmailVerified only if the provider says that it proved the address. An
	// error made by Reject refuses the person with its code; any other is
	// CodeProviderError, and so is an empty Subject. An Email that is no address
	// is left out.
	Profile func(ctx context.Context, api *ProviderAPI) (Profile, error)
}

// OAuth2Provider is a provider for which there is no function here. PKCE is sent
// in any case; the callback is {base URL}/oauth/{name}/callback. Fields such as
// AuthParams and Timeout can be set on the result.
func OAuth2Provider(name string, o OAuth2Options) Provider {
	p := Provider{
		Name: name, ClientID: o.ClientID, ClientSecret: o.ClientSecret, Scopes: o.Scopes,
		AuthURL: o.AuthURL, TokenURL: o.TokenURL, basic: o.BasicAuth, fetch: o.Profile,
	}
	if o.Profile == nil {
		p.err = errors.New("OAuth2Options.Profile is missing")
	}
	return p
}
