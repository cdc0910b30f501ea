package provider

// Twitch signs in with Twitch accounts.
//
// https://dev.twitch.tv/docs/authentication/getting-tokens-oidc/ (November 2026):
// email_verified "indicates whether Twitch has verified the user's email address"; it and
// email are requested by name, in the parameter "claims".
func Twitch(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "twitch", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"openid", "user:read:email"},
		Issuer:      "https://id.twitch.tv/oauth2",
		AuthURL:     "https://id.twitch.tv/oauth2/authorize",
		TokenURL:    "https://id.twitch.tv/oauth2/token",
		UserInfoURL: "https://id.twitch.tv/oauth2/userinfo",
		JWKSURL:     "https://id.twitch.tv/oauth2/keys",
		AuthParams: map[string]string{
			"claims": `{"id_token":{"email":null,"email_verified":null,"preferred_username":null},"userinfo":{"email":null,"email_verified":null,"preferred_username":null}}`,
		},
		OpenID:    true,
		ProfileOf: twitchProfile,
	}.with(opts)
}

func twitchProfile(_ *Provider, c Claims) (Profile, error) {
	who := c.Profile()
	who.FullName = c.Text("preferred_username")
	return who, nil
}
