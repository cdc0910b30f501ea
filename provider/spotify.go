package provider

import "context"

// Spotify signs in with Spotify accounts. Spotify does not verify email addresses, so its
// addresses always count as unverified.
//
// https://developer.spotify.com/documentation/web-api/tutorials/code-flow,
// https://developer.spotify.com/documentation/web-api/reference/get-current-users-profile
// (November 2026): "This email address is unverified; there is no proof that it actually
// belongs to the user." It is absent for newer apps.
func Spotify(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "spotify", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"user-read-email"},
		AuthURL:     "https://accounts.spotify.com/authorize",
		TokenURL:    "https://accounts.spotify.com/api/token",
		UserInfoURL: "https://api.spotify.com/v1/me",
		BasicAuth:   true,
		Profile:     spotifyProfile,
	}.with(opts)
}

func spotifyProfile(ctx context.Context, api *API) (Profile, error) {
	var u struct {
		ID          string `json:"id"`
		DisplayName string `json:"display_name"`
		Email       string `json:"email"`
	}
	err := api.Get(ctx, api.provider.UserInfoURL, &u)
	return Profile{Subject: u.ID, Email: u.Email, FullName: u.DisplayName}, err
}
