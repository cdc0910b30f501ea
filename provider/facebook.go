package provider

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
)

// Facebook signs in with Facebook accounts. Facebook does not report whether an email
// address is verified, so its addresses always count as unverified.
//
// https://developers.facebook.com/documentation/facebook-login/guides/advanced/manual-flow,
// https://developers.facebook.com/docs/graph-api/changelog (v26.0, July 2026),
// https://developers.facebook.com/docs/graph-api/guides/secure-requests for
// appsecret_proof (November 2026).
func Facebook(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "facebook", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"email", "public_profile"},
		AuthURL:     "https://www.facebook.com/v26.0/dialog/oauth",
		TokenURL:    "https://graph.facebook.com/v26.0/oauth/access_token",
		UserInfoURL: "https://graph.facebook.com/v26.0/me",
		DeniedBy:    []string{"user_denied"},
		Profile:     facebookProfile,
	}.with(opts)
}

// facebookProfile sends appsecret_proof with each call, which shows that the caller knows
// the app's secret, so that a token stolen from the app is invalid elsewhere.
func facebookProfile(ctx context.Context, api *API) (Profile, error) {
	mac := hmac.New(sha256.New, []byte(api.provider.ClientSecret))
	mac.Write([]byte(api.accessToken))
	var u struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Email string `json:"email"`
	}
	err := api.Get(ctx, withQuery(api.provider.UserInfoURL, url.Values{
		"fields": {"id,name,email"}, "appsecret_proof": {hex.EncodeToString(mac.Sum(nil))},
	}), &u)
	return Profile{Subject: u.ID, Email: u.Email, FullName: u.Name}, err
}
