package auth

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/authmount/auth/internal/keys"
	"github.com/authmount/auth/internal/seal"
	"github.com/authmount/auth/store"
)

// KitVerifier verifies the access tokens of a service that runs elsewhere, by its
// public keys, as [Auth.Verify] does: for package authclient. It has neither a store
// nor secrets.
type KitVerifier struct{ a *Auth }

// KitVerifierParams are what the service's tokens have to be.
type KitVerifierParams struct {
	Tokens TokenOptions                // Issuer, Audience, TokenType and Remember
	URL    *url.URL                    // of the service
	JWKS   []byte                      // the service's public keys (RFC 7517)
	Live   func(r *http.Request) error // asks the service, for CheckSession
	Log    *slog.Logger
	Now    func() time.Time
}

// NewKitVerifier makes one; a key can be made in this module only. The error says what
// is wrong with the key set.
func NewKitVerifier(key seal.Key, p KitVerifierParams) (KitVerifier, error) {
	key.Check()
	p.Tokens.Life = maxAccessLife // the service's is not known, and what was revoked has to be remembered as long
	a := &Auth{cfg: config{baseURL: p.URL, log: p.Log, now: p.Now, tokens: p.Tokens}, askLive: p.Live}
	a.parser = newParser(&a.cfg)
	a.revoked = &denylist{now: a.now, life: maxAccessLife + leeway, until: map[string]entry{}}
	return KitVerifier{a}.WithKeys(p.JWKS)
}

// WithKeys is a verifier with other keys, and what the old one was told of
// revocations. It remembers nothing of tokens: their key may be gone.
func (v KitVerifier) WithKeys(jwks []byte) (KitVerifier, error) {
	ring, err := keys.Parse(jwks)
	if err != nil {
		return KitVerifier{}, err
	}
	old := v.a
	return KitVerifier{&Auth{
		cfg: old.cfg, askLive: old.askLive, parser: old.parser, revoked: old.revoked,
		keys: &keyring{Ring: ring, options: old.cfg.tokens}, remember: newClaimsCache(old.cfg.tokens.Remember),
	}}, nil
}

// Verify is Auth.Verify.
func (v KitVerifier) Verify(token string) (*Claims, error) { return v.a.Verify(token) }

// Revoke is Auth.Revoke.
func (v KitVerifier) Revoke(r store.Revocation) { v.a.Revoke(r) }

// Admit judges a request as Auth.Require does, and returns it with its claims.
func (v KitVerifier) Admit(r *http.Request, reqs []Requirement) (*http.Request, error) {
	c, err := v.a.admitted(r)
	if err == nil {
		err = v.a.meets(r, c, reqs)
	}
	if err != nil {
		return nil, err
	}
	return withClaimsOf(r, c), nil
}

// WriteError is Auth.WriteError.
func (v KitVerifier) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	v.a.WriteError(w, r, err)
}

// NamesOtherKey tells of an error of Verify or Admit that the token is in the issuer's
// name and names a key that is not among the keys: it may be a new one.
func (KitVerifier) NamesOtherKey(err error) bool { return errors.Is(err, errOtherKey) }
