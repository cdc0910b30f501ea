package provider

import (
	"context"
	"encoding/json"
)

// Kakao signs in with Kakao accounts. clientID is the app's REST API key. Activate Kakao
// Login and the client secret, and add the consent items account_email and
// profile_nickname.
//
// https://developers.kakao.com/docs/latest/en/kakaologin/rest-api (November 2026). An
// email address counts as verified if is_email_verified ("whether email is verified") and
// is_email_valid, which becomes false when another Kakao account takes the address over.
func Kakao(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "kakao", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"account_email", "profile_nickname"},
		AuthURL:     "https://kauth.kakao.com/oauth/authorize",
		TokenURL:    "https://kauth.kakao.com/oauth/token",
		UserInfoURL: "https://kapi.kakao.com/v2/user/me",
		Profile:     kakaoProfile,
	}.with(opts)
}

func kakaoProfile(ctx context.Context, api *API) (Profile, error) {
	var u struct {
		ID      json.Number `json:"id"`
		Account struct {
			Email    string `json:"email"`
			Valid    bool   `json:"is_email_valid"`
			Verified bool   `json:"is_email_verified"`
			Profile  struct {
				Nickname string `json:"nickname"`
			} `json:"profile"`
		} `json:"kakao_account"`
	}
	err := api.Get(ctx, api.provider.UserInfoURL, &u)
	a := u.Account
	return Profile{Subject: u.ID.String(), Email: a.Email, EmailVerified: a.Valid && a.Verified, FullName: a.Profile.Nickname}, err
}
