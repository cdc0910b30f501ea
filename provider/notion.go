package provider

import (
	"context"
	"net/http"
)

// Notion signs in with Notion accounts, through a public integration with the capability
// "Read user information including email addresses". Notion does not report whether an
// email address is verified, so its addresses always count as unverified. The user also
// chooses pages that the integration may read.
//
// https://developers.notion.com/guides/get-started/authorization,
// https://developers.notion.com/reference/get-self and
// https://developers.notion.com/reference/user (November 2026), which describe no PKCE,
// see NoPKCE.
func Notion(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "notion", ClientID: clientID, ClientSecret: clientSecret,
		AuthURL:     "https://api.notion.com/v1/oauth/authorize",
		TokenURL:    "https://api.notion.com/v1/oauth/token",
		UserInfoURL: "https://api.notion.com/v1/users/me",
		AuthParams:  map[string]string{"owner": "user"},
		BasicAuth:   true, NoPKCE: true,
		Profile: notionProfile,
	}.with(opts)
}

// notionProfile reads the user who authorized the integration's bot. A bot that belongs to
// a workspace has no user, and is refused.
func notionProfile(ctx context.Context, api *API) (Profile, error) {
	var bot struct {
		Bot struct {
			Owner struct {
				User struct {
					ID     string `json:"id"`
					Name   string `json:"name"`
					Person struct {
						Email string `json:"email"`
					} `json:"person"`
				} `json:"user"`
			} `json:"owner"`
		} `json:"bot"`
	}
	err := api.json(ctx, Request{URL: api.provider.UserInfoURL, Header: http.Header{"Notion-Version": {"2022-06-28"}}}, &bot)
	u := bot.Bot.Owner.User
	return Profile{Subject: u.ID, Email: u.Person.Email, FullName: u.Name}, err
}
