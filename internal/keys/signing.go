package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// SigningKey signs access tokens with one algorithm.
type SigningKey struct {
	ID        string // "kid"; the thumbprint of a key pair (RFC 7638)
	Algorithm string // "alg": ES256, EdDSA, RS256 or HS256
	Key       any    // *ecdsa.PrivateKey, ed25519.PrivateKey, *rsa.PrivateKey or []byte
}

// signingKey is one key of access tokens with its one algorithm.
type signingKey struct {
	SigningKey                  // Key is nil if it only verifies
	verify     any              // the public key or, for HS256, the key
	public     crypto.PublicKey // nil for HS256, which is never published
}

// Signing returns the key that signs new tokens.
func (r *Ring) Signing() SigningKey { return r.signing }

// Verifier returns the ring's key with an id, if it has this algorithm (RFC 8725, section
// 3.1): an *ecdsa.PublicKey, an ed25519.PublicKey, an *rsa.PublicKey or, for HS256, a
// []byte.
func (r *Ring) Verifier(id, algorithm string) (key any, ok bool) {
	k := r.byID[id]
	if k == nil || k.Algorithm != algorithm {
		return nil, false
	}
	return k.verify, true
}

// JWKS returns the set of public keys (RFC 7517) as JSON. The caller may change it.
func (r *Ring) JWKS() []byte { return slices.Clone(r.jwks) }

// publish sets the ring's signing keys. The first one signs.
func (r *Ring) publish(keys []*signingKey) error {
	r.signing, r.byID = keys[0].SigningKey, map[string]*signingKey{}
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}} // an empty list, not null
	for _, k := range keys {
		if r.byID[k.ID] != nil {
			continue // configured twice
		}
		r.byID[k.ID] = k
		if k.public != nil {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.public, KeyID: k.ID, Algorithm: k.Algorithm, Use: "sig"})
		}
	}
	var err error
	if r.jwks, err = json.Marshal(set); err != nil {
		return fmt.Errorf("encode the key set: %w", err)
	}
	return nil
}

// signingKeys returns the key that signs, then the keys that only verify.
func signingKeys(p Params) ([]*signingKey, error) {
	var keys []*signingKey
	for _, s := range p.Shared {
		if len(s) < minSecret {
			return nil, errors.New("WithSharedSecret: a secret needs at least 32 bytes")
		}
		id := base64.RawURLEncoding.EncodeToString(derive(s, "shared secret id", 16))
		keys = append(keys, &signingKey{SigningKey: SigningKey{ID: id, Algorithm: string(jose.HS256), Key: s}, verify: s})
	}
	if len(keys) > 0 {
		return keys, nil
	}
	if p.Signer == nil {
		for _, s := range p.Secrets {
			k, err := derivedKey(s, p.Algorithm)
			if err != nil {
				return nil, err
			}
			keys = append(keys, k)
		}
		return keys, nil
	}
	k, err := privateSigningKey(p.Signer)
	if err != nil {
		return nil, fmt.Errorf("WithSigningKeys: %w", err)
	}
	keys = append(keys, k)
	for _, pub := range p.Verifiers {
		if s, ok := pub.(crypto.Signer); ok {
			k, err = privateSigningKey(s)
		} else {
			k, err = publicSigningKey(pub)
		}
		if err != nil {
			return nil, fmt.Errorf("WithSigningKeys: %w", err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// derivedKey returns the same key in every instance with the same secret.
func derivedKey(secret []byte, algorithm string) (*signingKey, error) {
	switch algorithm {
	case "", string(jose.ES256):
		// Use the first candidate that is a valid scalar (FIPS 186-5, A.2.2); for P-256
		// that is nearly always the first one.
		for i := 0; ; i++ {
			seed := derive(secret, fmt.Sprintf("signing ES256 %d", i), 32)
			if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed); err == nil {
				return privateSigningKey(key)
			}
		}
	case string(jose.EdDSA):
		return privateSigningKey(ed25519.NewKeyFromSeed(derive(secret, "signing EdDSA", ed25519.SeedSize)))
	case string(jose.HS256):
		key := derive(secret, "signing HS256", keySize)
		id := base64.RawURLEncoding.EncodeToString(derive(secret, "signing HS256 key id", 16))
		return &signingKey{SigningKey: SigningKey{ID: id, Algorithm: algorithm, Key: key}, verify: key}, nil
	}
	return nil, fmt.Errorf("WithTokens: algorithm %q cannot be derived: use ES256, EdDSA or HS256, or WithSigningKeys", algorithm)
}

// privateSigningKey returns the signing key of a private key. It rejects an incomplete key, because
// Public would panic.
func privateSigningKey(s crypto.Signer) (*signingKey, error) {
	broken := false
	switch s := s.(type) {
	case *ecdsa.PrivateKey:
		broken = s == nil
	case *rsa.PrivateKey:
		broken = s == nil
	case ed25519.PrivateKey:
		broken = len(s) != ed25519.PrivateKeySize
	default:
		return nil, fmt.Errorf("keys of type %T are not supported", s)
	}
	if broken {
		return nil, fmt.Errorf("the key of type %T is empty or incomplete", s)
	}
	k, err := publicSigningKey(s.Public())
	if err != nil {
		return nil, err
	}
	k.Key = s
	return k, nil
}

// publicSigningKey returns the signing key of a public key.
func publicSigningKey(pub crypto.PublicKey) (*signingKey, error) {
	k := &signingKey{verify: pub, public: pub}
	switch p := pub.(type) {
	case *ecdsa.PublicKey:
		if p == nil || p.Curve != elliptic.P256() {
			return nil, errors.New("an ECDSA key must be on P-256")
		}
		if _, err := p.Bytes(); err != nil {
			return nil, fmt.Errorf("the ECDSA key is not a point of P-256: %w", err)
		}
		k.Algorithm = string(jose.ES256)
	case *rsa.PublicKey:
		if p == nil || p.N == nil || p.N.BitLen() < 2048 {
			return nil, errors.New("an RSA key needs at least 2048 bits")
		}
		k.Algorithm = string(jose.RS256)
	case ed25519.PublicKey:
		if len(p) != ed25519.PublicKeySize {
			return nil, errors.New("an Ed25519 key has 32 bytes")
		}
		k.Algorithm = string(jose.EdDSA)
	default:
		return nil, fmt.Errorf("keys of type %T are not supported", pub)
	}
	sum, err := (&jose.JSONWebKey{Key: pub}).Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("thumbprint: %w", err)
	}
	k.ID = base64.RawURLEncoding.EncodeToString(sum)
	return k, nil
}

// Parse reads a set of public keys (RFC 7517) into a ring that only verifies. It skips
// keys of unknown kinds, keys for encryption, and symmetric and private keys, which do
// not belong in a public set. It is an error if no key remains.
func Parse(jwks []byte) (*Ring, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(jwks, &set); err != nil {
		return nil, errors.New("the key set is not a JSON Web Key Set")
	}
	r := &Ring{byID: map[string]*signingKey{}}
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) != nil || !key.Valid() || !key.IsPublic() || key.Use == "enc" {
			continue
		}
		k, err := publicSigningKey(key.Key)
		if err != nil || key.KeyID == "" || (key.Algorithm != "" && key.Algorithm != k.Algorithm) {
			continue
		}
		k.ID = key.KeyID
		r.byID[k.ID] = k
	}
	if len(r.byID) == 0 {
		return nil, errors.New("the key set has no key that verifies ES256, RS256 or EdDSA")
	}
	return r, nil
}
