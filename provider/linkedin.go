package provider

import "slices"

// LinkedIn signs in with LinkedIn accounts. Add the product "Sign In with LinkedIn using
// OpenID Connect" to the app.
//
// https://learn.microsoft.com/en-us/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin-v2
// (November 2026): email_verified is the "indicator that member's primary email has been
// verified"; it and email may be absent. ID tokens have no nonce
// (linkedin-developers/linkedin-api-js-client #34), and the token endpoint refuses a code
// verifier (teamhanko/hanko #2405): see NoNonce and NoPKCE. ID tokens name one of two
// issuers, with the same keys.
func LinkedIn(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "linkedin", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"openid", "email", "profile"},
		Issuer:      linkedInIssuers[0],
		AuthURL:     "https://www.linkedin.com/oauth/v2/authorization",
		TokenURL:    "https://www.linkedin.com/oauth/v2/accessToken",
		UserInfoURL: "https://api.linkedin.com/v2/userinfo",
		JWKSURL:     "https://www.linkedin.com/oauth/openid/jwks",
		OpenID:      true, NoNonce: true, NoPKCE: true,
		DeniedBy: []string{"user_cancelled_login", "user_cancelled_authorize"},
		IssuerOf: linkedInIssuer,
	}.with(opts)
}

// linkedInIssuers are the issuers of LinkedIn's ID tokens.
var linkedInIssuers = []string{"https://www.linkedin.com/oauth", "https://www.linkedin.com"}

// linkedInIssuer accepts both issuers, unless Issuer was set to another server.
func linkedInIssuer(p *Provider, c Claims) string {
	if named := c.Text("iss"); slices.Contains(linkedInIssuers, named) && slices.Contains(linkedInIssuers, p.Issuer) {
		return named
	}
	return p.Issuer
}
