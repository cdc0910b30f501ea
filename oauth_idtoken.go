package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/authmount/auth/internal/oidc"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// expected describes the provider's ID tokens for one of these audiences.
func (p *oauthClient) expected(e endpoints, audiences ...string) oidc.Expected {
	return oidc.Expected{
		KeysURL: e.jwks, Algorithms: e.algorithms, Audiences: audiences,
		Issuer: func(claims map[string]any) string {
			if p.IssuerOf != nil {
				return p.IssuerOf(&p.Provider, claims)
			}
			return e.issuer
		},
	}
}

// expectedHere describes the tokens that the provider sends to this service itself. Only
// these may be signed with the client secret: an app that can post such a token may have
// learned the secret.
func (p *oauthClient) expectedHere(e endpoints) oidc.Expected {
	want := p.expected(e, p.ClientID)
	if p.HS256 {
		want.Secret = []byte(p.ClientSecret)
	}
	return want
}

// profileByIDToken returns the profile in the ID token of a code's tokens. If the ID
// token is short, it asks the userinfo endpoint for the rest.
func (p *oauthClient) profileByIDToken(ctx context.Context, e endpoints, t *oauth2.Token, nonce string) (provider.Profile, error) {
	raw, _ := t.Extra("id_token").(string)
	if raw == "" {
		return provider.Profile{}, errors.New("the token response has no ID token")
	}
	idt, err := p.keys.Verify(ctx, raw, p.expectedHere(e)) // nonce below
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
	profile, err := p.profileOf(idt.Claims)
	if err != nil || profile.Email != "" || e.userInfo == "" {
		return profile, err
	}
	more, err := p.userInfo(ctx, e, t.AccessToken, provider.Claims(idt.Claims).Text("sub"))
	if err == nil && more.FullName == "" {
		more.FullName = profile.FullName
	}
	return more, err
}

// profileOf returns the profile in the claims of a verified ID token or of the userinfo
// endpoint.
func (p *oauthClient) profileOf(c provider.Claims) (provider.Profile, error) {
	if p.ProfileOf != nil {
		return p.ProfileOf(&p.Provider, c)
	}
	return c.Profile(), nil
}

// userInfo returns the profile of a subject from the userinfo endpoint (OpenID Connect
// Core 1.0, section 5.3).
func (p *oauthClient) userInfo(ctx context.Context, e endpoints, accessToken, subject string) (provider.Profile, error) {
	accept := "application/json"
	if p.UserInfoJWT {
		accept = "application/jwt"
	}
	res, err := p.api(accessToken).Do(ctx, provider.Request{URL: e.userInfo, Header: http.Header{"Accept": {accept}}})
	if err != nil {
		return provider.Profile{}, fmt.Errorf("userinfo: %w", err)
	}
	if res.Status != http.StatusOK {
		return provider.Profile{}, fmt.Errorf("userinfo: status %d", res.Status)
	}
	var claims provider.Claims
	if p.UserInfoJWT {
		claims, err = p.keys.VerifyUserInfo(ctx, strings.TrimSpace(string(res.Body)), p.expectedHere(e))
	} else {
		claims, err = oidc.ParseClaims(res.Body)
	}
	if err != nil {
		return provider.Profile{}, fmt.Errorf("userinfo: %w", err)
	}
	if claims.Text("sub") != subject { // section 5.3.2
		return provider.Profile{}, errors.New("userinfo: the subject is another user")
	}
	return p.profileOf(claims)
}

// IDTokenParams are the parameters of SignInWithIDToken. A native app gets the ID token
// from the provider's own library.
type IDTokenParams struct {
	Provider    string
	IDToken     string
	Nonce       string // as the app chose it; required if the token has one. If the token has its SHA-256, this is the value before hashing
	AccessToken string // of the provider, for OnProviderToken; ignored if the ID token has no at_hash

	ConfirmationCode string // as StartOAuthParams.ConfirmationCode
}

// LogValue keeps the tokens out of the log.
func (p IDTokenParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("provider", p.Provider), slog.String("tokens", redacted))
}

// SignInWithIDToken signs a user in with an ID token for the audience ClientID or one
// of the provider's Audiences. A token is accepted once, and not at all if it is valid
// for more than 30 days. Errors: CodeUnknownProvider (also for providers without ID
// tokens), CodeMethodDisabled, CodeValidationFailed, CodeInvalidToken,
// CodeProviderError, CodeRateLimited, those of the linking rules, CodeAccountExists,
// CodeSignupDisabled, CodeEmailNotVerified, CodeInvalidCode (ConfirmationCode), and those
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
	if err := a.take(ctx, a.perIP(ctx, a.cfg.limits.OAuthPerIP, "oauth")...); err != nil {
		return nil, err
	}
	tokens, err := a.signInWithIDToken(ctx, p, in)
	if err != nil {
		a.oauthFailed(ctx, p.Name, err)
	}
	return tokens, err
}

func (a *Auth) signInWithIDToken(ctx context.Context, p *oauthClient, in IDTokenParams) (*Tokens, error) {
	t, err := p.checkIDToken(ctx, in)
	if err == nil {
		err = a.useIDToken(ctx, p, t)
	}
	var fault *oidc.TokenError
	var refusal *Error // of a ProfileOf function, or of the store
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
	tokens, err := a.signInAs(ctx, p, t, in.ConfirmationCode)
	var e *Error
	if errors.As(err, &e) && e.Status >= http.StatusInternalServerError {
		a.refundIDToken(ctx, p, t)
	}
	return tokens, err
}

// signInAs signs in the user of a token.
func (a *Auth) signInAs(ctx context.Context, p *oauthClient, t nativeToken, code string) (*Tokens, error) {
	u, err := a.userOf(ctx, p, t.profile, code)
	if err != nil {
		return nil, err
	}
	a.deliverProviderToken(ctx, u, p, t.profile, t.access)
	return a.completeSignIn(ctx, signIn{user: u, by: byIdentity(u, p.Name, t.profile.Subject), amr: a.newAMR(methodOAuth), gone: CodeInvalidToken})
}

// nativeToken is a valid ID token from an app.
type nativeToken struct {
	profile provider.Profile
	access  *oauth2.Token // of the provider, if it was sent and matched at_hash
	sum     [sha256.Size]byte
	expires time.Time
}

// maxIDTokenLife limits how long a used token has to be remembered. Providers issue
// them for minutes to a day.
const maxIDTokenLife = 30 * 24 * time.Hour

// idTokenDraw returns the draw on the bucket of one token. The bucket permits one
// sign-in while the token is valid.
func (a *Auth) idTokenDraw(p *oauthClient, t nativeToken, cost int) store.Draw {
	life := max(t.expires.Sub(a.now()), 0) + time.Minute
	return a.draw(Rate{Burst: 1, Per: life}, "id_token", p.Name+":"+hex.EncodeToString(t.sum[:]), cost)
}

// useIDToken consumes a token, so that it is useless to a thief afterwards.
func (a *Auth) useIDToken(ctx context.Context, p *oauthClient, t nativeToken) error {
	if t.expires.After(a.now().Add(maxIDTokenLife)) {
		return &oidc.TokenError{Reason: "lives too long"}
	}
	err := a.take(ctx, a.idTokenDraw(p, t, 1))
	if errors.Is(err, CodeRateLimited) {
		return &oidc.TokenError{Reason: "was used already"}
	}
	return err
}

// refundIDToken makes a token usable again after a sign-in that failed with a server
// error.
func (a *Auth) refundIDToken(ctx context.Context, p *oauthClient, t nativeToken) {
	if err := a.take(context.WithoutCancel(ctx), a.idTokenDraw(p, t, -1)); err != nil {
		a.cfg.log.WarnContext(ctx, "auth: the use of an ID token was not refunded", "error", err)
	}
}

func (p *oauthClient) checkIDToken(ctx context.Context, in IDTokenParams) (nativeToken, error) {
	ctx, cancel := p.bounded(ctx)
	defer cancel()
	e, err := p.endpoints(ctx)
	if err != nil {
		return nativeToken{}, err
	}
	t, err := p.keys.Verify(ctx, in.IDToken, p.expected(e, append([]string{p.ClientID}, p.Audiences...)...))
	if err != nil {
		return nativeToken{}, err
	}
	if !knowsNonce(t.Nonce, in.Nonce) {
		return nativeToken{}, &oidc.TokenError{Reason: "has another nonce than the one given"}
	}
	out := nativeToken{sum: t.Sum, expires: t.Expires}
	if in.AccessToken != "" && t.HasAccessTokenHash() {
		if err := t.VerifyAccessToken(in.AccessToken); err != nil {
			return nativeToken{}, err
		}
		out.access = &oauth2.Token{AccessToken: in.AccessToken}
	}
	out.profile, err = p.profileOf(t.Claims)
	if err == nil {
		err = cleanProfile(&out.profile)
	}
	var refusal *Error
	if err != nil && !errors.As(err, &refusal) {
		err = &oidc.TokenError{Reason: "is not valid for a sign-in: " + err.Error()}
	}
	return out, err
}

// knowsNonce reports whether an app that posts a token knows the nonce that it chose.
// If the token has the nonce's SHA-256, as with Apple's and Google's libraries, the app
// must send the value before hashing. That value is in no token, and a thief who reads
// the token knows only the hash. A nonce that is itself in the token is weaker
// evidence. A nonce on one side only means a token for another sign-in.
func knowsNonce(inToken, given string) bool {
	if given == "" {
		return inToken == "" // also not the hash of ""
	}
	if want := sha256In(inToken); want != nil {
		sum := sha256.Sum256([]byte(given))
		return subtle.ConstantTimeCompare(want, sum[:]) == 1
	}
	return subtle.ConstantTimeCompare([]byte(inToken), []byte(given)) == 1
}

// sha256In returns the SHA-256 that a nonce contains in hex or base64, with or without
// padding; nil if it has no such form.
func sha256In(nonce string) []byte {
	sum, err := hex.DecodeString(nonce)
	if len(sum) != sha256.Size {
		plain := strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(nonce, "="))
		sum, err = base64.RawURLEncoding.DecodeString(plain)
	}
	if err != nil || len(sum) != sha256.Size {
		return nil
	}
	return sum
}

func (a *Auth) handleIDToken(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		IDToken     string `json:"id_token"`
		Nonce       string `json:"nonce"`
		AccessToken string `json:"access_token"`

		ConfirmationCode string `json:"confirmation_code"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	tokens, err := a.SignInWithIDToken(r.Context(), IDTokenParams{
		Provider: r.PathValue("provider"), IDToken: p.IDToken, Nonce: p.Nonce, AccessToken: p.AccessToken, ConfirmationCode: p.ConfirmationCode,
	})
	if err != nil {
		return err
	}
	return a.writeTokens(w, r, tokens)
}
