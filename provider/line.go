package provider

// LINE signs in with LINE accounts. clientID and clientSecret are the channel's id and
// secret. The channel needs the "Email address permission". LINE does not report whether
// an email address is verified, so its addresses always count as unverified.
//
// https://developers.line.biz/en/docs/line-login/verify-id-token/ and
// https://developers.line.biz/en/reference/line-login/ (November 2026). ID tokens of the
// web login are signed with HS256 and the channel secret, see HS256; those of native apps
// with ES256. The discovery document names ES256 only.
func LINE(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "line", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:   []string{"openid", "email", "profile"},
		Issuer:   "https://access.line.me",
		AuthURL:  "https://access.line.me/oauth2/v2.1/authorize",
		TokenURL: "https://api.line.me/oauth2/v2.1/token",
		JWKSURL:  "https://api.line.me/oauth2/v2.1/certs",
		OpenID:   true, HS256: true,
		ProfileOf: unverifiedProfile,
	}.with(opts)
}

// unverifiedProfile is the profile of a service that does not vouch for email addresses.
func unverifiedProfile(_ *Provider, c Claims) (Profile, error) {
	who := c.Profile()
	who.EmailVerified = false
	return who, nil
}
