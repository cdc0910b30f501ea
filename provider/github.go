package provider

import (
	"cmp"
	"context"
	"encoding/json"
)

// GitHub signs in with GitHub accounts. For GitHub Enterprise Server change AuthURL,
// TokenURL, UserInfoURL (…/api/v3/user) and Issuer.
//
// https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps,
// https://docs.github.com/en/rest/users/emails (November 2026). PKCE is supported with
// S256 only, since July 2025. Errors of the token endpoint have status 200. The callback
// has had iss on and off since April 2026.
func GitHub(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "github", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"read:user", "user:email"},
		Issuer:      "https://github.com/login/oauth",
		AuthURL:     "https://github.com/login/oauth/authorize",
		TokenURL:    "https://github.com/login/oauth/access_token",
		UserInfoURL: "https://api.github.com/user",
		Profile:     githubProfile,
	}.with(opts)
}

// githubProfile reads the primary address from the list of email addresses, because the
// profile has the address that the user chose to show, verified or not.
func githubProfile(ctx context.Context, api *API) (Profile, error) {
	var u struct {
		ID    json.Number `json:"id"`
		Login string      `json:"login"`
		Name  string      `json:"name"`
	}
	if err := api.Get(ctx, api.provider.UserInfoURL, &u); err != nil {
		return Profile{}, err
	}
	var list []struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	if err := api.Get(ctx, api.provider.UserInfoURL+"/emails", &list); err != nil && !withheld(err) {
		return Profile{}, err // withheld: the user did not grant user:email
	}
	p := Profile{Subject: u.ID.String(), FullName: cmp.Or(u.Name, u.Login)}
	for _, e := range list {
		if e.Primary {
			p.Email, p.EmailVerified = e.Email, e.Verified
		}
	}
	return p, nil
}
