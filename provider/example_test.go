package provider_test

import (
	"context"
	"fmt"
	"net/url"

	"github.com/authmount/auth/provider"
)

// An option may change any field.
func ExampleOption() {
	p := provider.Microsoft("client id", "client secret", func(p *provider.Provider) {
		p.Tenant = "organizations"                       // no personal accounts
		p.Scopes = append(p.Scopes, "User.Read")         // for the application, see auth.Hooks.OnProviderToken
		p.Audiences = []string{"client id of the phone"} // ID tokens for it are also accepted
	})
	fmt.Println(p.Validate())
	// Output: <nil>
}

// A provider without its own function, with an API that needs a POST.
func ExampleOAuth2() {
	const api = "https://api.chat.example.com"
	p := provider.OAuth2("chat", provider.OAuth2Options{
		ClientID: "client id", ClientSecret: "client secret",
		AuthURL: "https://chat.example.com/oauth/authorize", TokenURL: api + "/oauth/token",
		Scopes: []string{"me"},
		Profile: func(ctx context.Context, a *provider.API) (provider.Profile, error) {
			var me struct {
				ID       string `json:"id"`
				Mail     string `json:"mail"`
				Verified bool   `json:"mail_verified"`
			}
			err := a.PostForm(ctx, api+"/call", url.Values{"method": {"me"}}, &me)
			return provider.Profile{Subject: me.ID, Email: me.Mail, EmailVerified: me.Verified}, err
		},
	})
	fmt.Println(p.Validate())
	// Output: <nil>
}
