package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"
)

// discover reads the discovery document (OpenID Connect Discovery 1.0, section
// 4) and holds it to the issuer configured.
func (p *provider) discover(ctx context.Context) (endpoints, error) {
	var d struct {
		Issuer   string   `json:"issuer"`
		Auth     string   `json:"authorization_endpoint"`
		Token    string   `json:"token_endpoint"`
		UserInfo string   `json:"userinfo_endpoint"`
		JWKS     string   `json:"jwks_uri"`
		Methods  []string `json:"token_endpoint_auth_methods_supported"`
		Algs     []string `json:"id_token_signing_alg_values_supported"`
		Issues   bool     `json:"authorization_response_iss_parameter_supported"`
	}
	err := getJSON(ctx, p.client, strings.TrimSuffix(p.Issuer, "/")+"/.well-known/openid-configuration", "", &d)
	switch {
	case err != nil:
		return endpoints{}, fmt.Errorf("discovery: %w", err)
	case d.Issuer != p.Issuer:
		return endpoints{}, fmt.Errorf("discovery: the issuer calls itself %.200q and is configured as %q", d.Issuer, p.Issuer)
	case d.Auth == "" || d.Token == "" || d.JWKS == "":
		return endpoints{}, errors.New("discovery: the document lacks an endpoint")
	}
	for _, s := range []string{d.Auth, d.Token, d.UserInfo, d.JWKS} {
		err := safeEndpoint(s)
		if err == nil && strings.HasPrefix(p.Issuer, "https:") && strings.HasPrefix(s, "http:") {
			err = fmt.Errorf("%q is not https", s) // loopback is for issuers that are there, too
		}
		if err != nil {
			return endpoints{}, fmt.Errorf("discovery: %w", err)
		}
	}
	return endpoints{
		auth: d.Auth, token: d.Token, userInfo: d.UserInfo, jwks: d.JWKS, issues: d.Issues,
		// Absent means client_secret_basic (Discovery, section 3).
		basic: d.Methods == nil || slices.Contains(d.Methods, "client_secret_basic"),
		algs:  asymmetric(d.Algs),
	}, nil
}

// signatures are the algorithms that ID tokens may be signed with. The symmetric
// ones and "none" are never among them, whatever a provider says.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512, jose.EdDSA,
}

func asymmetric(named []string) []string {
	algs := slices.DeleteFunc(slices.Clone(named), func(alg string) bool {
		return !slices.Contains(signatures, jose.SignatureAlgorithm(alg))
	})
	if len(algs) == 0 {
		return []string{"RS256"} // which every provider has to support
	}
	return algs
}

// flag is a claim that some providers write as a boolean and others as a
// string. What is not plainly true is false: "false" is a string that is not
// empty, too.
type flag bool

func (f *flag) UnmarshalJSON(b []byte) error {
	*f = flag(slices.Contains([]string{"true", `"true"`, "1", `"1"`}, string(b)))
	return nil
}

// idClaims are the claims of an ID token, or of the userinfo endpoint.
type idClaims struct {
	Issuer        string `json:"iss"`
	Subject       string `json:"sub"`
	Authorized    string `json:"azp"`
	Email         string `json:"email"`
	EmailVerified flag   `json:"email_verified"`
	Name          string `json:"name"`
	GivenName     string `json:"given_name"`
	FamilyName    string `json:"family_name"`

	TenantID            string `json:"tid"`      // Microsoft
	DomainOwnerVerified flag   `json:"xms_edov"` // Microsoft
}

func (c *idClaims) profile() Profile {
	name := cmp.Or(c.Name, strings.TrimSpace(c.GivenName+" "+c.FamilyName))
	return Profile{Subject: c.Subject, Email: c.Email, EmailVerified: bool(c.EmailVerified), FullName: name}
}

// clean makes a profile fit to keep. Who somebody is must be certain; the rest
// is left out if it is not in order.
func (w *Profile) clean() error {
	if w.Subject == "" || len(w.Subject) > maxSubject || strings.ContainsFunc(w.Subject, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return errors.New("no usable subject")
	}
	email, err := NormalizeEmail(w.Email)
	if err != nil {
		email, w.EmailVerified = "", false
	}
	w.Email = email
	if w.FullName, err = cleanName(w.FullName); err != nil {
		w.FullName = ""
	}
	return nil
}

// tokenFault is an ID token that is not in order, as opposed to a provider that
// cannot be reached.
type tokenFault struct{ error }

func (f tokenFault) Unwrap() error { return f.error }

// verify checks an ID token's signature, issuer, audience and time (OpenID
// Connect Core 1.0, section 3.1.3.7). The nonce is left to the caller.
func (p *provider) verify(ctx context.Context, e endpoints, raw string, audiences []string) (*oidc.IDToken, *idClaims, error) {
	keys := &keyLookup{set: p.keys, client: p.client, url: e.jwks}
	t, err := oidc.NewVerifier(e.issuer, keys, &oidc.Config{
		SkipClientIDCheck: true, // checked below: there may be several
		SkipIssuerCheck:   p.judge != nil, SupportedSigningAlgs: e.algs, Now: p.now,
	}).Verify(ctx, raw)
	if keys.err != nil {
		return nil, nil, keys.err
	}
	if err != nil {
		return nil, nil, tokenFault{err}
	}
	var payload json.RawMessage
	c := &idClaims{}
	if err := t.Claims(&payload); err != nil {
		return nil, nil, tokenFault{err}
	}
	if err := decodeJSON(payload, c); err != nil {
		return nil, nil, tokenFault{fmt.Errorf("claims: %w", err)}
	}
	ours := func(id string) bool { return slices.Contains(audiences, id) }
	switch {
	case !slices.ContainsFunc(t.Audience, ours):
		return nil, nil, tokenFault{fmt.Errorf("audience %.200q", t.Audience)}
	case len(t.Audience) > 1 && !ours(c.Authorized):
		return nil, nil, tokenFault{fmt.Errorf("authorized party %.200q", c.Authorized)}
	}
	if p.judge != nil {
		if err := p.judge(&p.Provider, c); err != nil {
			return nil, nil, tokenFault{err}
		}
	}
	return t, c, nil
}

// whoByIDToken reads who has signed in from the tokens of a code. A provider
// that keeps its ID tokens short is asked for the rest.
func (p *provider) whoByIDToken(ctx context.Context, e endpoints, t *oauth2.Token, nonce string) (Profile, error) {
	raw, _ := t.Extra("id_token").(string)
	idt, c, err := p.verify(ctx, e, raw, []string{p.ClientID})
	if err != nil {
		return Profile{}, fmt.Errorf("ID token: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(idt.Nonce), []byte(nonce)) != 1 {
		return Profile{}, errors.New("ID token: the nonce is not the one of this sign-in")
	}
	if idt.AccessTokenHash != "" {
		if err := idt.VerifyAccessToken(t.AccessToken); err != nil {
			return Profile{}, fmt.Errorf("ID token: %w", err)
		}
	}
	if c.Email != "" || p.idOnly || e.userInfo == "" {
		return c.profile(), nil
	}
	var payload json.RawMessage
	if err := getJSON(ctx, p.client, e.userInfo, t.AccessToken, &payload); err != nil {
		return Profile{}, err
	}
	more := &idClaims{}
	if err := decodeJSON(payload, more); err != nil {
		return Profile{}, fmt.Errorf("userinfo: %w", err)
	}
	if more.Subject != c.Subject { // OpenID Connect Core 1.0, section 5.3.2
		return Profile{}, errors.New("userinfo: about somebody else")
	}
	more.Name = cmp.Or(more.Name, c.Name)
	return more.profile(), nil
}

// keySet remembers a provider's public keys. A token with an unknown key id
// makes it ask again, but not more often than unknownKeys allows: anybody can
// make up key ids.
type keySet struct {
	now  func() time.Time
	kept latest[[]jose.JSONWebKey]

	mu  sync.Mutex
	tat time.Time // of the bucket
}

var unknownKeys = Rate{Burst: 5, Per: 5 * time.Minute}

const keysLife = time.Hour

// keyLookup verifies one token, as go-oidc asks. go-oidc drops the reason of a
// failure, so err keeps that the keys could not be had.
type keyLookup struct {
	set    *keySet
	client *http.Client
	url    string
	err    error
}

// VerifySignature answers the payload of a token that one of the keys signed.
func (k *keyLookup) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(raw, signatures)
	if err != nil {
		return nil, err
	}
	id := jws.Signatures[0].Header.KeyID
	for _, life := range []time.Duration{keysLife, 0} {
		if life == 0 && !k.set.mayAsk() {
			break
		}
		keys, err := k.set.kept.get(ctx, k.set.now(), life, k.fetch)
		if err != nil {
			k.err = fmt.Errorf("keys: %w", err)
			return nil, k.err
		}
		known := false
		for _, key := range keys {
			if key.Use == "enc" || (id != "" && key.KeyID != id) {
				continue
			}
			known = true
			if payload, err := jws.Verify(key); err == nil {
				return payload, nil
			}
		}
		if known {
			return nil, errors.New("the signature is wrong")
		}
	}
	return nil, fmt.Errorf("no key has the id %.100q", id)
}

func (s *keySet) mayAsk() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ok bool
	s.tat, ok, _, _ = unknownKeys.Apply(s.tat, s.now(), 1)
	return ok
}

func (k *keyLookup) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := getJSON(ctx, k.client, k.url, "", &set); err != nil {
		return nil, err
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		// A key of a kind that is not known here is for others; a symmetric or
		// private one has no business there.
		if key.UnmarshalJSON(raw) == nil && key.Valid() && key.IsPublic() {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// IDTokenParams are a sign-in with an ID token that a native app got from the
// provider's own library.
type IDTokenParams struct {
	Provider    string
	IDToken     string
	Nonce       string // as the app chose it; needed if the token has one
	AccessToken string // of the provider, for OnProviderToken; left out unless the token's at_hash vouches for it
}

// SignInWithIDToken signs in with an ID token whose audience is the provider's
// ClientID or one of its Audiences. Errors: CodeUnknownProvider (also for
// providers without ID tokens), CodeMethodDisabled, CodeValidationFailed,
// CodeInvalidToken, CodeProviderError, CodeRateLimited, those of the linking
// rules, CodeAccountExists, CodeSignupDisabled, CodeEmailNotVerified, and those
// of any sign-in, CodeUserBanned, CodeMFARequired, CodeMFAEnrollmentRequired.
func (a *Auth) SignInWithIDToken(ctx context.Context, in IDTokenParams) (*Tokens, error) {
	p, err := a.provider(in.Provider)
	if err != nil {
		return nil, err
	}
	if !p.openID {
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

func (a *Auth) signInWithIDToken(ctx context.Context, p *provider, in IDTokenParams) (*Tokens, error) {
	who, token, err := p.judgeIDToken(ctx, in)
	var fault tokenFault
	switch {
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
	a.handOver(ctx, u, p, who, token)
	return a.completeSignIn(ctx, signIn{user: u, by: provenBy{Provider: p.Name, Subject: who.Subject}, amr: a.proof(methodOAuth), gone: CodeInvalidToken})
}

func (p *provider) judgeIDToken(ctx context.Context, in IDTokenParams) (Profile, *oauth2.Token, error) {
	ctx, cancel := p.bounded(ctx)
	defer cancel()
	e, err := p.endpoints(ctx)
	if err != nil {
		return Profile{}, nil, err
	}
	t, c, err := p.verify(ctx, e, in.IDToken, append([]string{p.ClientID}, p.Audiences...))
	if err != nil {
		return Profile{}, nil, err
	}
	if !sameNonce(t.Nonce, in.Nonce) {
		return Profile{}, nil, tokenFault{errors.New("the nonce is not the one given")}
	}
	var token *oauth2.Token
	if in.AccessToken != "" && t.AccessTokenHash != "" {
		if err := t.VerifyAccessToken(in.AccessToken); err != nil {
			return Profile{}, nil, tokenFault{err}
		}
		token = &oauth2.Token{AccessToken: in.AccessToken}
	}
	who := c.profile()
	if err := who.clean(); err != nil {
		return Profile{}, nil, tokenFault{err}
	}
	return who, token, nil
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
