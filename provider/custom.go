package provider

import "context"

// OIDC is any OpenID provider. Its endpoints come from its discovery document (OpenID
// Connect Discovery 1.0), which is read on first use. A public client has no secret.
// NoNonce, NoPKCE, HS256 and UserInfoJWT are for providers that do not fit the standard.
func OIDC(name, issuer, clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: name, ClientID: clientID, ClientSecret: clientSecret, Issuer: issuer,
		Scopes: []string{"openid", "email", "profile"}, OpenID: true, Discovery: true,
	}.with(opts)
}

// OAuth2Options describe a provider without ID tokens. The fields are those of Provider.
type OAuth2Options struct {
	ClientID     string
	ClientSecret string
	AuthURL      string
	TokenURL     string
	Scopes       []string
	BasicAuth    bool
	Profile      func(ctx context.Context, api *API) (Profile, error)
}

// OAuth2 is a provider that has no function in this package. PKCE is used unless
// NoPKCE is set. The callback is {base URL}/oauth/{name}/callback.
func OAuth2(name string, o OAuth2Options, opts ...Option) Provider {
	return Provider{
		Name: name, ClientID: o.ClientID, ClientSecret: o.ClientSecret, Scopes: o.Scopes,
		AuthURL: o.AuthURL, TokenURL: o.TokenURL, BasicAuth: o.BasicAuth, Profile: o.Profile,
	}.with(opts)
}
