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
	Nonce       string // as the app chose it; needed if the token has one. Of a token with its SHA-256, it is what was hashed
	AccessToken string // of the provider, for OnProviderToken; left out unless the token's at_hash vouches for it
}

// LogValue keeps the tokens out of the log.
func (p IDTokenParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("provider", p.Provider), slog.String("tokens", redacted))
}

// SignInWithIDToken signs in with an ID token whose audience is the provider's
// ClientID or one of its Audiences. A token is good once, and
// not at all if it is good for more than 30 days. Errors: CodeUnknownProvider (also
// for providers without ID tokens), CodeMethodDisabled, CodeValidationFailed,
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
	if err := a.take(ctx, a.perIP(ctx, a.cfg.limits.OAuthPerIP, "oauth")); err != nil {
		return nil, err
	}
	tokens, err := a.signInWithIDToken(ctx, p, in)
	if err != nil {
		a.oauthFailed(ctx, p.Name, err)
	}
	return tokens, err
}

func (a *Auth) signInWithIDToken(ctx context.Context, p *oauthClient, in IDTokenParams) (*Tokens, error) {
	t, err := p.judgeIDToken(ctx, in)
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
	tokens, err := a.signInAs(ctx, p, t)
	var e *Error
	if errors.As(err, &e) && e.Status >= http.StatusInternalServerError {
		a.returnIDToken(ctx, p, t)
	}
	return tokens, err
}

// signInAs signs in whom a token is about.
func (a *Auth) signInAs(ctx context.Context, p *oauthClient, t nativeToken) (*Tokens, error) {
	u, err := a.userOf(ctx, p, t.who)
	if err != nil {
		return nil, err
	}
	a.deliverProviderToken(ctx, u, p, t.who, t.access)
	return a.completeSignIn(ctx, signIn{user: u, by: provenBy{Provider: p.Name, Subject: t.who.Subject}, amr: a.proof(methodOAuth), gone: CodeInvalidToken})
}

// nativeToken is an ID token from an app that was found to be in order.
type nativeToken struct {
	who     provider.Profile
	access  *oauth2.Token // of the provider, if it was given and vouched for
	sum     [sha256.Size]byte
	expires time.Time
}

// maxIDTokenLife bounds for how long a token has to be remembered. Providers give
// them minutes to a day.
const maxIDTokenLife = 30 * 24 * time.Hour

// use is the bucket of one token, from which only one sign-in can be drawn for as
// long as the token is good.
func (a *Auth) use(p *oauthClient, t nativeToken, cost int) store.Draw {
	life := max(t.expires.Sub(a.now()), 0) + time.Minute
	return a.draw(Rate{Burst: 1, Per: life}, "id_token", p.Name+":"+hex.EncodeToString(t.sum[:]), cost)
}

// useIDToken uses a token up: whoever steals it afterwards gains nothing.
func (a *Auth) useIDToken(ctx context.Context, p *oauthClient, t nativeToken) error {
	if t.expires.After(a.now().Add(maxIDTokenLife)) {
		return &oidc.TokenError{Reason: "lives too long"}
	}
	err := a.take(ctx, a.use(p, t, 1))
	if errors.Is(err, CodeRateLimited) {
		return &oidc.TokenError{Reason: "was used already"}
	}
	return err
}

// returnIDToken makes a token good again, for a sign-in that failed by a fault of
// ours.
func (a *Auth) returnIDToken(ctx context.Context, p *oauthClient, t nativeToken) {
	if err := a.take(context.WithoutCancel(ctx), a.use(p, t, -1)); err != nil {
		a.cfg.log.WarnContext(ctx, "auth: an ID token stays used up", "error", err)
	}
}

func (p *oauthClient) judgeIDToken(ctx context.Context, in IDTokenParams) (nativeToken, error) {
	ctx, cancel := p.bounded(ctx)
	defer cancel()
	e, err := p.endpoints(ctx)
	if err != nil {
		return nativeToken{}, err
	}
	t, err := p.verify(ctx, e, in.IDToken, append([]string{p.ClientID}, p.Audiences...))
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
	out.who, err = p.profileOf(t.Claims)
	if err == nil {
		err = cleanProfile(&out.who)
	}
	var refusal *Error
	if err != nil && !errors.As(err, &refusal) {
		err = &oidc.TokenError{Reason: "signs nobody in: " + err.Error()}
	}
	return out, err
}

// knowsNonce tells whether an app that posts a token knows the nonce that it
// chose. Where the provider was given the nonce's SHA-256, as Apple's and Google's
// libraries often are, what was hashed is asked for, which is in no token: whoever
// stole the token has read the hash. A nonce that is itself in the token proves
// less, and a nonce on one side only is a token meant for somebody else's sign-in.
func knowsNonce(inToken, given string) bool {
	if given == "" {
		return inToken == "" // and not if it is the hash of nothing
	}
	if want := sha256In(inToken); want != nil {
		sum := sha256.Sum256([]byte(given))
		return subtle.ConstantTimeCompare(want, sum[:]) == 1
	}
	return subtle.ConstantTimeCompare([]byte(inToken), []byte(given)) == 1
}

// sha256In is the SHA-256 that a nonce spells in hex or base64, with or without
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
	return a.writeTokens(w, r, tokens)
}
