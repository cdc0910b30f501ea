package provider

import (
	"cmp"
	"context"
)

// Discord signs in with Discord accounts.
//
// https://discord.com/developers/docs/topics/oauth2,
// https://discord.com/developers/docs/resources/user (November 2026). PKCE is supported
// with S256 only.
func Discord(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "discord", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"identify", "email"},
		AuthURL:     "https://discord.com/oauth2/authorize",
		TokenURL:    "https://discord.com/api/oauth2/token",
		UserInfoURL: "https://discord.com/api/users/@me",
		Profile:     discordProfile,
	}.with(opts)
}

func discordProfile(ctx context.Context, api *API) (Profile, error) {
	var u struct {
		ID         string `json:"id"`
		Username   string `json:"username"`
		GlobalName string `json:"global_name"`
		Email      string `json:"email"`
		Verified   bool   `json:"verified"` // the email address is verified
	}
	err := api.Get(ctx, api.provider.UserInfoURL, &u)
	return Profile{Subject: u.ID, Email: u.Email, EmailVerified: u.Verified, FullName: cmp.Or(u.GlobalName, u.Username)}, err
}
