package provider

import (
	"cmp"
	"context"
	"net/url"
)

// Twitter signs in with X accounts, under the name "twitter". The email address requires
// "Request email from users" in the developer portal; without it accounts have none.
//
// https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code,
// https://docs.x.com/x-api/users/get-my-user (November 2026): users/me also needs
// tweet.read; confirmed_email is only present once it was confirmed. The field "verified"
// is the blue tick, not about the email address.
func Twitter(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "twitter", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"users.read", "tweet.read", "users.email"},
		AuthURL:     "https://x.com/i/oauth2/authorize",
		TokenURL:    "https://api.x.com/2/oauth2/token",
		UserInfoURL: "https://api.x.com/2/users/me",
		BasicAuth:   true,
		Profile:     twitterProfile,
	}.with(opts)
}

func twitterProfile(ctx context.Context, api *API) (Profile, error) {
	var u struct {
		Data struct {
			ID       string `json:"id"`
			Name     string `json:"name"`
			Username string `json:"username"`
			Email    string `json:"confirmed_email"`
		} `json:"data"`
	}
	err := api.Get(ctx, withQuery(api.provider.UserInfoURL, url.Values{"user.fields": {"confirmed_email"}}), &u)
	d := u.Data
	return Profile{Subject: d.ID, Email: d.Email, EmailVerified: d.Email != "", FullName: cmp.Or(d.Name, d.Username)}, err
}
