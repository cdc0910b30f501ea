package auth

import (
	"encoding/base64"
	"encoding/json"

	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth/internal/keys"
)

// keyring is the ring of keys that are derived from the secret, with what signs
// access tokens.
type keyring struct {
	*keys.Ring
	signing keys.SigningKey
	method  jwt.SigningMethod // of signing
	head    string            // of access tokens, encoded
	jwks    []byte            // the public keys, as served
	options TokenOptions
}

func newKeyring(c *config) (*keyring, error) {
	ring, err := keys.New(keys.Params{Secrets: c.secrets, Algorithm: c.tokens.Algorithm, Signer: c.signer, Verifiers: c.verifiers, Shared: c.shared})
	if err != nil {
		return nil, err
	}
	key := ring.Signing()
	head, err := json.Marshal(map[string]string{"alg": key.Algorithm, "kid": key.ID, "typ": c.tokens.typ()})
	if err != nil {
		return nil, err
	}
	return &keyring{
		Ring: ring, signing: key, method: jwt.GetSigningMethod(key.Algorithm),
		head: base64.RawURLEncoding.EncodeToString(head), jwks: ring.JWKS(), options: c.tokens,
	}, nil
}

// jwt is an access token with these claims, an object in JSON. It is put together
// here because a token of the jwt package would encode its header anew, and a map
// of claims, which takes longer than to sign them with HS256.
func (k *keyring) jwt(claims []byte) (string, error) {
	token := k.head + "." + base64.RawURLEncoding.EncodeToString(claims)
	signature, err := k.method.Sign(token, k.signing.Key)
	if err != nil {
		return "", err
	}
	return token + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
