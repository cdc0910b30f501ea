package oidc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// TokenError reports an invalid ID token. A provider that cannot be reached is another
// error.
type TokenError struct{ Reason string }

func (e *TokenError) Error() string { return "the ID token " + e.Reason }

// Expected describes a valid ID token.
type Expected struct {
	KeysURL    string
	Algorithms []string
	Audiences  []string // one of these
	// Secret is the client secret that may sign the token with HS256; nil: none may. Keys
	// of KeysURL never verify HS256, and the secret verifies nothing else.
	Secret []byte
	// Issuer returns the issuer that a token with these claims must name, or "" if there
	// is none. The claims are signed but not checked yet.
	Issuer func(claims map[string]any) string
}

// Token is a valid ID token.
type Token struct {
	Claims  map[string]any
	Nonce   string    // the caller must compare it
	Expires time.Time // when the token expires
	// Sum is the SHA-256 of the signed claims. It identifies the token, because a token's
	// own text has several encodings.
	Sum [sha256.Size]byte

	token     *gooidc.IDToken
	symmetric bool // signed with HS256
}

// Verify checks an ID token's signature, issuer, audience and time (OpenID Connect Core
// 1.0, section 3.1.3.7). The error is a *TokenError, or the reason why the keys are
// unavailable.
func (s *KeySet) Verify(ctx context.Context, raw string, want Expected) (*Token, error) {
	keys := &lookup{set: s, url: want.KeysURL, secret: want.Secret}
	algorithms := asymmetric(want.Algorithms) // go-oidc would accept any algorithm that the caller lists
	if want.Secret != nil {
		algorithms = append(algorithms, string(jose.HS256))
	}
	t, err := gooidc.NewVerifier("", keys, &gooidc.Config{
		SkipClientIDCheck: true, // several are accepted, see below
		SkipIssuerCheck:   true, // want.Issuer decides, see below

		SupportedSigningAlgs: algorithms, Now: s.now,
	}).Verify(ctx, raw)
	if keys.err != nil {
		return nil, keys.err
	}
	var expired *gooidc.TokenExpiredError
	switch {
	case errors.As(err, &expired):
		return nil, &TokenError{"is expired"}
	case err != nil:
		return nil, &TokenError{"is malformed, not valid yet, or signed with an algorithm that is not accepted"}
	}
	var payload json.RawMessage
	if err := t.Claims(&payload); err != nil {
		return nil, &TokenError{"has no claims"}
	}
	claims, err := ParseClaims(payload)
	if err != nil {
		return nil, &TokenError{"has claims that are not a valid object"}
	}
	accepted := func(id string) bool { return slices.Contains(want.Audiences, id) }
	authorized, _ := claims["azp"].(string)
	switch issuer, _ := claims["iss"].(string); {
	case issuer == "" || issuer != want.Issuer(claims):
		return nil, &TokenError{"names another issuer"}
	case !slices.ContainsFunc(t.Audience, accepted):
		return nil, &TokenError{"is for another audience"}
	case len(t.Audience) > 1 && !accepted(authorized):
		return nil, &TokenError{"was issued to another party"}
	}
	nonce, _ := claims["nonce"].(string)
	return &Token{Claims: claims, Nonce: nonce, Expires: t.Expiry, Sum: sha256.Sum256(payload), token: t, symmetric: keys.symmetric}, nil
}

// VerifyUserInfo checks a signed userinfo response (OpenID Connect Core 1.0, section
// 5.3.2) and returns its claims. Issuer, audience and expiry are optional there; they are
// checked if they are present. The algorithm may be any that the keys allow, because a
// provider may sign ID tokens with another one. Errors are as for Verify.
func (s *KeySet) VerifyUserInfo(ctx context.Context, raw string, want Expected) (map[string]any, error) {
	keys := &lookup{set: s, url: want.KeysURL, secret: want.Secret}
	payload, err := keys.VerifySignature(ctx, raw)
	if err != nil {
		return nil, err
	}
	claims, err := ParseClaims(payload)
	if err != nil {
		return nil, &TokenError{"has claims that are not a valid object"}
	}
	if issuer, ok := claims["iss"]; ok && issuer != want.Issuer(claims) {
		return nil, &TokenError{"names another issuer"}
	}
	if audience, ok := claims["aud"]; ok && !slices.ContainsFunc(want.Audiences, func(id string) bool { return names(audience, id) }) {
		return nil, &TokenError{"is for another audience"}
	}
	if expires, ok := claims["exp"]; ok {
		if at, ok := expires.(float64); !ok || at <= float64(s.now().Unix()) {
			return nil, &TokenError{"is expired"}
		}
	}
	return claims, nil
}

// names reports whether an "aud" claim, a string or a list of strings, has an audience.
func names(audience any, id string) bool {
	list, _ := audience.([]any)
	return audience == any(id) || slices.Contains(list, any(id))
}

// HasAccessTokenHash reports whether the token has a hash of an access token (Core 1.0,
// section 3.1.3.6).
func (t *Token) HasAccessTokenHash() bool { return t.token.AccessTokenHash != "" }

// VerifyAccessToken checks an access token against the hash in the ID token. It is an
// error if there is no hash.
func (t *Token) VerifyAccessToken(access string) error {
	if t.symmetric { // go-oidc refuses HS256
		sum := sha256.Sum256([]byte(access))
		if t.token.AccessTokenHash == base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2]) {
			return nil
		}
	}
	if t.token.VerifyAccessToken(access) != nil {
		return &TokenError{"belongs to another access token"}
	}
	return nil
}

// ParseClaims reads a JSON object without duplicate names, because parsers that read
// duplicates differently would be a security hole.
func ParseClaims(payload []byte) (map[string]any, error) {
	malformed := errors.New("malformed claims")
	if !utf8.Valid(payload) {
		return nil, malformed
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, malformed
	}
	claims := map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, malformed
		}
		if _, twice := claims[name]; twice {
			return nil, errors.New("duplicate claim")
		}
		var v any
		if err := dec.Decode(&v); err != nil {
			return nil, malformed
		}
		claims[name] = v
	}
	if _, err := dec.Token(); err != nil {
		return nil, malformed
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, malformed
	}
	return claims, nil
}
