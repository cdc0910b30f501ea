package auth

import (
	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth/internal/keys"
)

// keyring is the ring of keys that are derived from the secret, with what signs
// access tokens.
type keyring struct {
	*keys.Ring
	signing keys.SigningKey
	method  jwt.SigningMethod // of signing
	jwks    []byte            // the public keys, as served
}

func newKeyring(c *config) (*keyring, error) {
	ring, err := keys.New(keys.Params{Secrets: c.secrets, Algorithm: c.tokens.Algorithm, Signer: c.signer, Verifiers: c.verifiers})
	if err != nil {
		return nil, err
	}
	key := ring.Signing()
	return &keyring{Ring: ring, signing: key, method: jwt.GetSigningMethod(key.Algorithm), jwks: ring.JWKS()}, nil
}
