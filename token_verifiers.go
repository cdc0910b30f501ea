package auth

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/authmount/auth/store"
)

// What access tokens look like to those who verify them without this package.

// WithSharedSecret signs access tokens by HS256 with a secret that others know, too,
// for verifiers that take no public key, such as PostgREST with a jwt-secret: at
// least 32 random bytes, and none of WithSecret's. Previous ones, behind it, are
// still accepted. The key itself signs; nothing is derived from it, and it is
// published nowhere. It and WithSigningKeys replace each other, the last one counts.
// The default is a key pair. A second call replaces the first.
//
// Whoever has this secret can make tokens in anybody's name, with any role, which
// Require lets in; with [CheckSession], and at the endpoints, only where they know
// the id of a live session of that user. So share it only with what you would let
// act as everybody, and prefer the public keys at /.well-known/jwks.json where the
// verifier can read them. Accepted are only tokens of this service's own form: with
// "kid", "typ", issuer and audience as here, a subject and a session. A verifier's
// own service tokens, for instance PostgREST's for anon, are none. Tokens that were
// signed before by another key are refused, and clients refresh.
func WithSharedSecret(key []byte, previous ...[]byte) Option {
	return func(c *config) {
		c.shared, c.signer, c.verifiers = nil, nil, nil
		for _, s := range append([][]byte{key}, previous...) {
			if len(s) < 32 {
				c.fail("WithSharedSecret", fmt.Errorf("a secret needs at least 32 bytes, this one has %d", len(s)))
			}
			c.shared = append(c.shared, bytes.Clone(s))
		}
	}
}

// checkTokens collects what does not go together about access tokens.
func (c *config) checkTokens() {
	if c.tokens.Life < 0 || c.tokens.Life > maxAccessLife {
		c.fail("WithTokens", errors.New("an access token lives at most 24 hours"))
	}
	if t := c.tokens.TokenType; t != "" && t != tokenType && t != plainTokenType {
		c.fail("WithTokens", fmt.Errorf("TokenType %q is neither %q nor %q", t, tokenType, plainTokenType))
	}
	if c.shared == nil {
		return
	}
	if alg := c.tokens.Algorithm; alg != "" && alg != "HS256" {
		c.fail("WithSharedSecret", fmt.Errorf("it signs by HS256, and WithTokens asks for %s", alg))
	}
	for _, s := range c.shared {
		if slices.ContainsFunc(c.secrets, func(own []byte) bool { return bytes.Equal(own, s) }) {
			c.fail("WithSharedSecret", errors.New("it is one of WithSecret's: whoever knew it could make sessions, too"))
		}
	}
}

// plainTokenType is the "typ" of any JWT.
const plainTokenType = "JWT"

// accepts tells whether a token's "typ" is one of ours: what new tokens get, or the
// stricter default, which tokens of before a change of it have.
func (o TokenOptions) accepts(typ string) bool {
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	return typ == tokenType || (o.TokenType == plainTokenType && typ == strings.ToLower(plainTokenType))
}

// typ is the "typ" of new tokens.
func (o TokenOptions) typ() string { return cmp.Or(o.TokenType, tokenType) }

// amrClaim is the "amr" of a token, and its "auth_time", which is there if amr does
// not say when.
func (o TokenOptions) amrClaim(s Session) (amr any, at *int64) {
	if !o.AMRStrings {
		return orEmpty(s.AMR), nil
	}
	values := []string{}
	for _, m := range s.AMR {
		if v := amrValue(m.Method); !slices.Contains(values, v) {
			values = append(values, v)
		}
		if at == nil || m.Timestamp > *at {
			at = &m.Timestamp
		}
	}
	if s.AAL == store.LevelAAL2 {
		values = append(values, "mfa")
	}
	return values, at
}

// amrValue is a method by its registered name (RFC 8176), if it has one.
func amrValue(method string) string {
	switch method {
	case methodPassword:
		return "pwd"
	case methodPhoneCode:
		return "sms"
	case methodTOTP, methodRecovery:
		return "otp"
	}
	return method
}

// amrOf reads both forms of the claim. Where it holds strings, every proof counts
// for as old as the newest one, which is all that is known.
func amrOf(claim any, authTime float64) []AMR {
	var out []AMR
	list, _ := claim.([]any)
	for _, v := range list {
		switch v := v.(type) {
		case string:
			out = append(out, AMR{Method: v, Timestamp: int64(authTime)})
		case map[string]any:
			method, _ := v["method"].(string)
			at, _ := v["timestamp"].(float64)
			out = append(out, AMR{Method: method, Timestamp: int64(at)})
		default:
			out = append(out, AMR{})
		}
	}
	return out
}

// handleDiscovery is GET /.well-known/openid-configuration: enough for verifiers
// that take an issuer to find the keys (OpenID Connect Discovery, section 3).
func (a *Auth) handleDiscovery(w http.ResponseWriter, _ *http.Request) error {
	doc, err := json.Marshal(map[string]any{
		"issuer":                                a.cfg.tokens.Issuer,
		"jwks_uri":                              a.publicURL().JoinPath("/.well-known/jwks.json").String(),
		"id_token_signing_alg_values_supported": []string{a.keys.signing.Algorithm},
		"subject_types_supported":               []string{"public"},
		"response_types_supported":              []string{},
	})
	if err != nil {
		return fail(CodeInternal, err)
	}
	return writeDocument(w, doc)
}
