package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"golang.org/x/oauth2"

	"github.com/authmount/auth/internal/oidc"
	"github.com/authmount/auth/provider"
)

// verify checks an ID token against what the provider's tokens have to be. The
// nonce is left to the caller.
func (p *oauthClient) verify(ctx context.Context, e endpoints, raw string, audiences []string) (*oidc.Token, error) {
	return p.keys.Verify(ctx, raw, oidc.Expected{
		KeysURL: e.jwks, Algorithms: e.algorithms, Audiences: audiences,
		Issuer: func(claims map[string]any) string {
			if p.IssuerOf != nil {
				return p.IssuerOf(&p.Provider, claims)
			}
			return e.issuer
		},
	})
}

// whoByIDToken reads who has signed in from the tokens of a code. A provider
// that keeps its ID tokens short is asked for the rest.
func (p *oauthClient) whoByIDToken(ctx context.Context, e endpoints, t *oauth2.Token, nonce string) (provider.Profile, error) {
	raw, _ := t.Extra("id_token").(string)
	if raw == "" {
		return provider.Profile{}, errors.New("the token response has no ID token")
	}
	idt, err := p.verify(ctx, e, raw, []string{p.ClientID})
	if err != nil {
		return provider.Profile{}, err
	}
	if subtle.ConstantTimeCompare([]byte(idt.Nonce), []byte(nonce)) != 1 {
		return provider.Profile{}, &oidc.TokenError{Reason: "has the nonce of another sign-in"}
	}
	if idt.HasAccessTokenHash() {
		if err := idt.VerifyAccessToken(t.AccessToken); err != nil {
			return provider.Profile{}, err
		}
	}
	who, err := p.profileOf(idt.Claims)
	if err != nil || who.Email != "" || p.ProfileOf != nil || e.userInfo == "" {
		return who, err
	}
	return p.userInfo(ctx, e, t.AccessToken, who)
}

// profileOf reads the claims of a verified ID token.
func (p *oauthClient) profileOf(c provider.Claims) (provider.Profile, error) {
	if p.ProfileOf != nil {
		return p.ProfileOf(&p.Provider, c)
	}
	return c.Profile(), nil
}

// userInfo completes a profile from the userinfo endpoint (OpenID Connect Core
// 1.0, section 5.3).
func (p *oauthClient) userInfo(ctx context.Context, e endpoints, accessToken string, who provider.Profile) (provider.Profile, error) {
	res, err := p.api(accessToken).Do(ctx, provider.Request{URL: e.userInfo, Header: http.Header{"Accept": {"application/json"}}})
	if err != nil {
		return provider.Profile{}, fmt.Errorf("userinfo: %w", err)
	}
	if res.Status != http.StatusOK {
		return provider.Profile{}, fmt.Errorf("userinfo: status %d", res.Status)
	}
	claims, err := oidc.ParseClaims(res.Body)
	if err != nil {
		return provider.Profile{}, fmt.Errorf("userinfo: %w", err)
	}
	more := provider.Claims(claims).Profile()
	if more.Subject != who.Subject { // section 5.3.2
		return provider.Profile{}, errors.New("userinfo: about somebody else")
	}
	if more.FullName == "" {
		more.FullName = who.FullName
	}
	return more, nil
}

// IDTokenParams are a sign-in with an ID token that a native app got from the
// provider's own library.
type IDTokenParams struct {
	Provider    string
	IDToken     string
	Nonce       string // as the app chose it; needed if the token has one
	AccessToken string // of the provider, for OnProviderToken; left out unless the token's at_hash vouches for it
}

// LogValue keeps the tokens out of the log.
func (p IDTokenParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("provider", p.Provider), slog.String("tokens", redacted))
}

// SignInWithIDToken signs in with an ID token whose audience is the provider's
// ClientID or one of its Audiences. Errors: CodeUnknownProvider (also for
// providers without ID tokens), CodeMethodDisabled, CodeValidationFailed,
// CodeInvalidToken, CodeProviderError, CodeRateLimited, those of the linking
// rules, CodeAccountExists, CodeSignupDisabled, CodeEmailNotVerified, and those
// of any sign-in, CodeUserBanned, CodeMFARequired, CodeMFAEnrollmentRequired.
func (a *Auth) SignInWithIDToken(ctx context.Context, in IDTokenParams) (*Tokens, error) {
	p, err := a.provider(ctx, in.Provider)
	if err != nil {
		return nil, err
	}
	if !p.OpenID {
		return nil, fail(CodeUnknownProvider, errors.New("the provider has no ID tokens"))
	}
	if in.IDToken == "" {
		return nil, invalid("id_token", "is required")
	}
	if _, err := a.take(ctx, a.perIP(ctx, a.cfg.limits.OAuthPerIP, "oauth", 1)); err != nil {
		return nil, err
	}
	tokens, err := a.signInWithIDToken(ctx, p, in)
	if err != nil {
		a.oauthFailed(ctx, p.Name, err)
	}
	return tokens, err
}

func (a *Auth) signInWithIDToken(ctx context.Context, p *oauthClient, in IDTokenParams) (*Tokens, error) {
	who, token, err := p.judgeIDToken(ctx, in)
	var fault *oidc.TokenError
	var refusal *Error // of a ProfileOf function
	switch {
	case errors.As(err, &refusal):
		return nil, refusal
	case errors.As(err, &fault):
		e := fail(CodeInvalidToken, err)
		e.Message = "The ID token is not valid."
		return nil, e
	case err != nil:
		return nil, fail(CodeProviderError, fmt.Errorf("%s: %w", p.Name, err))
	}
	u, err := a.userOf(ctx, p, who)
	if err != nil {
		return nil, err
	}
	a.deliverProviderToken(ctx, u, p, who, token)
	return a.completeSignIn(ctx, signIn{user: u, by: provenBy{Provider: p.Name, Subject: who.Subject}, amr: a.proof(methodOAuth), gone: CodeInvalidToken})
}

func (p *oauthClient) judgeIDToken(ctx context.Context, in IDTokenParams) (provider.Profile, *oauth2.Token, error) {
	ctx, cancel := p.bounded(ctx)
	defer cancel()
	e, err := p.endpoints(ctx)
	if err != nil {
		return provider.Profile{}, nil, err
	}
	t, err := p.verify(ctx, e, in.IDToken, append([]string{p.ClientID}, p.Audiences...))
	if err != nil {
		return provider.Profile{}, nil, err
	}
	if !sameNonce(t.Nonce, in.Nonce) {
		return provider.Profile{}, nil, &oidc.TokenError{Reason: "has another nonce than the one given"}
	}
	var token *oauth2.Token
	if in.AccessToken != "" && t.HasAccessTokenHash() {
		if err := t.VerifyAccessToken(in.AccessToken); err != nil {
			return provider.Profile{}, nil, err
		}
		token = &oauth2.Token{AccessToken: in.AccessToken}
	}
	who, err := p.profileOf(t.Claims)
	if err == nil {
		err = cleanProfile(&who)
	}
	var refusal *Error
	if err != nil && !errors.As(err, &refusal) {
		err = &oidc.TokenError{Reason: "signs nobody in: " + err.Error()}
	}
	return who, token, err
}

// sameNonce compares a token's nonce with the one the app chose. Apple's and
// Google's libraries are often given its SHA-256 instead of itself. A nonce on one
// side only is a token meant for somebody else's sign-in.
func sameNonce(inToken, given string) bool {
	if inToken == "" || given == "" {
		return inToken == given
	}
	sum := sha256.Sum256([]byte(given))
	same := subtle.ConstantTimeCompare([]byte(inToken), []byte(given)) |
		subtle.ConstantTimeCompare([]byte(strings.ToLower(inToken)), []byte(hex.EncodeToString(sum[:])))
	return same == 1
}

func (a *Auth) handleIDToken(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		IDToken     string `json:"id_token"`
		Nonce       string `json:"nonce"`
		AccessToken string `json:"access_token"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	tokens, err := a.SignInWithIDToken(r.Context(), IDTokenParams{
		Provider: r.PathValue("provider"), IDToken: p.IDToken, Nonce: p.Nonce, AccessToken: p.AccessToken,
	})
	if err != nil {
		return err
	}
	return a.writeTokens(w, tokens)
}
