package auth

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/authmount/auth/provider"
)

// A provider's odd lifetime of its access token does not prevent the sign-in, and a
// malformed response stays an error.
func TestOddLifetimesOfProviderTokens(t *testing.T) {
	var expiry string
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"theirs","token_type":"Bearer","x":1%s}`, expiry)
	}))
	t.Cleanup(served.Close)
	p := &oauthClient{
		Provider: provider.OAuth2("own", provider.OAuth2Options{
			ClientID: "id", ClientSecret: "s",
			Profile: func(_ context.Context, api *provider.API) (provider.Profile, error) {
				return provider.Profile{Subject: api.AccessToken()}, nil
			},
		}),
		http: served.Client(), now: time.Now,
	}
	const none = time.Duration(0)
	for text, want := range map[string]time.Duration{
		``: none, `,"expires_in":3600`: time.Hour, `,"expires_in":"3600"`: time.Hour, `,"expires_in":null`: none, `,"expires_in":0`: none,
		`,"expires_in":""`: none, `,"expires_in":" "`: none, `,"expires_in":3599.5`: 3599 * time.Second, `,"expires_in":"3599.5"`: 3599 * time.Second,
		`,"expires_in":3.6e3`: time.Hour, `,"expires_in":" 3600 "`: time.Hour, `,"Expires_In":3599.5`: 3599 * time.Second, `,"expires_in":1e300`: (1<<31 - 1) * time.Second,
		`,"expires_in":"soon"`: none, `,"expires_in":"NaN"`: none, `,"expires_in":"null"`: none, `,"expires_in":"007"`: 7 * time.Second, `,"expires_in":-0.5`: none, `,"expires_in":{}`: none, `,"expires_in":[3600]`: none, `,"expires_in":true`: none,
	} {
		expiry = text
		profile, token, err := p.redeem(t.Context(), endpoints{token: served.URL}, "code", oauthState{Verifier: "v"})
		if err != nil || profile.Subject != "theirs" || token.Extra("x") != 1.0 {
			t.Errorf("%s: %+v, %v", text, profile, err)
			continue
		}
		if want == none && !token.Expiry.IsZero() {
			t.Errorf("%s: expires at %v", text, token.Expiry)
		}
		if left := time.Until(token.Expiry); want != none && (left > want || left < want-time.Minute) {
			t.Errorf("%s: expires in %v, want %v", text, left, want)
		}
	}
	for _, text := range []string{`,`, `,"expires_in":`, `,"expires_in":3599.5,`} {
		expiry = text
		if _, _, err := p.redeem(t.Context(), endpoints{token: served.URL}, "code", oauthState{Verifier: "v"}); err == nil {
			t.Errorf("%s: accepted", text)
		}
	}
}
