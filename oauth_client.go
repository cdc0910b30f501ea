package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/authmount/auth/internal/oidc"
	"github.com/authmount/auth/internal/outbound"
	"github.com/authmount/auth/provider"
)

// providerTimeout is the default of Provider.Timeout.
const providerTimeout = 10 * time.Second

// maxSubject is the longest subject OpenID Connect allows (Core 1.0, section 2).
const maxSubject = 255

// isSubject reports whether s can be a provider's identifier of a user.
func isSubject(s string) bool { return s != "" && len(s) <= maxSubject && isLine(s) }

// oauthClient is this service as a client of one provider.
type oauthClient struct {
	provider.Provider
	http      *http.Client
	callback  string // redirect_uri
	now       func() time.Time
	discovery *oidc.Discovery // nil without
	keys      *oidc.KeySet
}

// endpoints are the URLs of a provider, as configured or discovered.
type endpoints struct {
	issuer, auth, token, userInfo, jwks string

	basicAuth   bool     // the client authenticates in the header
	namesIssuer bool     // every callback names the issuer (RFC 9207)
	algorithms  []string // ID tokens are signed with one of these
}

// newProviders prepares the configured providers, without a request to them.
func (a *Auth) newProviders() (map[string]*oauthClient, []string) {
	a.client = outbound.NewClient()
	all, names := map[string]*oauthClient{}, []string{}
	for _, p := range a.cfg.providers {
		if p.Timeout == 0 {
			p.Timeout = providerTimeout
		}
		c := &oauthClient{
			Provider: p, http: a.client, now: a.now,
			callback: a.cfg.baseURL.String() + "/oauth/" + p.Name + "/callback",
			keys:     oidc.NewKeySet(a.client, a.now, p.Timeout),
		}
		if p.Discovery {
			c.discovery = oidc.NewDiscovery(a.client, p.Issuer, a.now, p.Timeout)
		}
		all[p.Name] = c
		names = append(names, p.Name)
	}
	return all, names
}

// provider returns the configured provider with a name.
func (a *Auth) provider(ctx context.Context, name string) (*oauthClient, error) {
	if !a.Settings(ctx).OAuth.On() {
		return nil, fail(CodeMethodDisabled, nil)
	}
	if p := a.providers[name]; p != nil {
		return p, nil
	}
	return nil, fail(CodeUnknownProvider, fmt.Errorf("%.64q is not one of %q", name, a.providerNames))
}

// bounded limits the total time of one request at the provider.
func (p *oauthClient) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, p.Timeout)
}

// endpoints returns the provider's endpoints, and discovers them if necessary.
func (p *oauthClient) endpoints(ctx context.Context) (endpoints, error) {
	tenant := strings.NewReplacer("{tenant}", p.Tenant)
	e := endpoints{
		issuer: p.Issuer, auth: tenant.Replace(p.AuthURL), token: tenant.Replace(p.TokenURL),
		userInfo: tenant.Replace(p.UserInfoURL), jwks: tenant.Replace(p.JWKSURL), basicAuth: p.BasicAuth, algorithms: []string{"RS256", "ES256"},
	}
	if p.discovery == nil {
		return e, nil
	}
	d, err := p.discovery.Document(ctx)
	if err != nil {
		return e, err
	}
	e.auth, e.token = cmp.Or(e.auth, d.AuthURL), cmp.Or(e.token, d.TokenURL)
	e.userInfo, e.jwks = cmp.Or(e.userInfo, d.UserInfoURL), cmp.Or(e.jwks, d.JWKSURL)
	e.basicAuth, e.namesIssuer, e.algorithms = d.BasicAuth, d.NamesIssuer, d.Algorithms
	return e, nil
}

// config returns the configuration for x/oauth2.
func (p *oauthClient) config(e endpoints) (*oauth2.Config, error) {
	style := oauth2.AuthStyleInParams // also for public clients, which have no secret
	if e.basicAuth && (p.ClientSecret != "" || p.Secret != nil) {
		style = oauth2.AuthStyleInHeader
	}
	secret := p.ClientSecret
	if p.Secret != nil {
		var err error
		if secret, err = p.Secret(&p.Provider, p.now()); err != nil {
			return nil, fmt.Errorf("client secret: %w", err)
		}
	}
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: secret, RedirectURL: p.callback,
		Endpoint: oauth2.Endpoint{AuthURL: e.auth, TokenURL: e.token, AuthStyle: style},
	}, nil
}

// redeem exchanges the callback's code for tokens (RFC 6749, section 4.1.3) and returns
// the profile of their user.
func (p *oauthClient) redeem(ctx context.Context, e endpoints, code string, st oauthState) (provider.Profile, *oauth2.Token, error) {
	cfg, err := p.config(e)
	if err != nil {
		return provider.Profile{}, nil, err
	}
	var verifier []oauth2.AuthCodeOption
	if st.Verifier != "" {
		verifier = append(verifier, oauth2.VerifierOption(st.Verifier))
	}
	t, err := cfg.Exchange(context.WithValue(ctx, oauth2.HTTPClient, lenient(p.http)), code, verifier...)
	if err != nil {
		return provider.Profile{}, nil, fmt.Errorf("token endpoint: %w", tokenError(err))
	}
	var profile provider.Profile
	if p.OpenID {
		profile, err = p.profileByIDToken(ctx, e, t, st.Nonce)
	} else {
		profile, err = p.Profile(ctx, p.api(t.AccessToken))
	}
	if err == nil {
		err = cleanProfile(&profile)
	}
	return profile, t, err
}

func (p *oauthClient) api(accessToken string) *provider.API {
	return provider.NewAPI(p.Provider, p.http, accessToken)
}

// tokenError returns an error that is safe to log: of the provider's response it keeps
// only the error code, because a description may contain the client's secret.
func tokenError(err error) error {
	var r *oauth2.RetrieveError
	if errors.As(err, &r) {
		return fmt.Errorf("status %d, error %q", r.Response.StatusCode, errorToken(r.ErrorCode))
	}
	if cause := outbound.Cause(err); !errors.Is(cause, outbound.ErrMalformed) {
		return cause
	}
	return errors.New("no well-formed token response")
}

// errorToken returns an error code (RFC 6749, sections 4.1.2.1 and 5.2) in a form that
// is safe to log, because a provider can send any text as the code.
func errorToken(code string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.", r)
	}
	if len(code) > 64 || strings.ContainsFunc(code, odd) {
		return "[not an error code]"
	}
	return code
}

// cleanProfile validates a profile. The subject must be valid. An invalid email address
// or name is omitted.
func cleanProfile(profile *provider.Profile) error {
	if !isSubject(profile.Subject) {
		return errors.New("no usable subject")
	}
	email, err := NormalizeEmail(profile.Email)
	if err != nil {
		email, profile.EmailVerified = "", false
	}
	profile.Email = email
	profile.FullName, _ = cleanName(profile.FullName) // "" if it is invalid
	return nil
}
