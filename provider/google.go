package provider

// Google signs in with Google accounts.
//
// Endpoints, issuer and claims:
// https://accounts.google.com/.well-known/openid-configuration and
// https://developers.google.com/identity/openid-connect/reference (November 2026). The
// callback may have iss (RFC 9207). ID tokens name the issuer with or without "https://".
func Google(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "google", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"openid", "email", "profile"},
		Issuer:      "https://accounts.google.com",
		AuthURL:     "https://accounts.google.com/o/oauth2/v2/auth",
		TokenURL:    "https://oauth2.googleapis.com/token",
		UserInfoURL: "https://openidconnect.googleapis.com/v1/userinfo",
		JWKSURL:     "https://www.googleapis.com/oauth2/v3/certs",
		OpenID:      true,
		IssuerOf:    googleIssuer,
	}.with(opts)
}

func googleIssuer(p *Provider, c Claims) string {
	const bare = "accounts.google.com"
	if c.Text("iss") == bare && p.Issuer == "https://"+bare {
		return bare
	}
	return p.Issuer
}
