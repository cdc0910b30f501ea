package auth

import (
	"fmt"

	"github.com/authmount/auth/internal/keys"
)

// keyring is the ring of keys, and some of what it does under the names that the
// flows know.
type keyring struct {
	*keys.Ring
	signing *tokenSigner
	jwks    []byte // the public keys, as served

	codes, limits []byte        // MAC keys of phone codes and of the names of rate limits
	recovery      []recoveryKey // of each secret, the current one first
}

// recoveryKey makes what is stored of a user's recovery code.
type recoveryKey func(userID, code string) []byte

func newKeyring(c *config) (*keyring, error) {
	ring, err := keys.New(keys.Params{Secrets: c.secrets, Algorithm: c.tokens.Algorithm, Signer: c.signer, Verifiers: c.verifiers})
	if err != nil {
		return nil, err
	}
	k := &keyring{
		Ring: ring, signing: newTokenSigner(ring.Signing()), jwks: ring.JWKS(),
		// MACs under the current secret are keys that nobody can guess.
		codes: ring.PhoneCode("key", "", "")[0], limits: []byte(ring.RateLimit("key", "")),
	}
	for i := range c.secrets {
		k.recovery = append(k.recovery, func(userID, code string) []byte { return ring.RecoveryCode(userID, code)[i] })
	}
	return k, nil
}

func recoveryHash(key recoveryKey, userID, code string) []byte { return key(userID, code) }

// seal encrypts a secret and binds it to its user: moved to another account it
// cannot be opened.
func (k *keyring) seal(plain []byte, userID string) []byte { return k.Seal(plain, []byte(userID)) }

func (k *keyring) open(sealed []byte, userID string) ([]byte, error) {
	plain, _, err := k.Open(sealed, []byte(userID))
	return plain, err
}

func (k *keyring) refreshToken(sessionID string, counter uint32) string {
	token, err := k.RefreshToken(sessionID, counter)
	if err != nil {
		panic(fmt.Errorf("auth: session %q of the store: %w", sessionID, err)) // ids are made here, or UUIDs by the contract of stores
	}
	return token
}

func (k *keyring) parseRefreshToken(token string) (sessionID string, counter uint32, ok bool) {
	return k.ParseRefreshToken(token)
}
