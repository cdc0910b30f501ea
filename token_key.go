package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/golang-jwt/jwt/v5"
)

// keyring holds every key. Each is derived for one purpose, so that none of
// them can be used, or leaked, as another.
type keyring struct {
	signing  *signingKey
	byID     map[string]*signingKey // what verification accepts
	refresh  [][]byte               // MAC keys of refresh tokens, the current one first
	codes    []byte                 // MAC key of phone codes
	recovery [][]byte               // MAC keys of recovery codes, the current one first
	factors  [][]byte               // seal TOTP secrets, the current one first
	limits   []byte                 // hides addresses in the keys of rate limits
	jwks     []byte                 // the public keys, as served
}

// signingKey is one key of access tokens, pinned to its one algorithm.
type signingKey struct {
	id     string
	method jwt.SigningMethod
	sign   any    // nil: verifies only
	head   []byte // of the tokens it signs, encoded and with its dot
	verify any
	public crypto.PublicKey // nil for HS256, which is never published
}

// derive makes a key for one purpose from a secret (HKDF-SHA-256, RFC 5869).
func derive(secret []byte, purpose string, n int) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "authmount v1 "+purpose, n)
	if err != nil {
		panic(err) // only for a length no caller asks for
	}
	return key
}

func newKeyring(c *config) (*keyring, error) {
	k := &keyring{byID: map[string]*signingKey{}, limits: derive(c.secrets[0], "rate limit keys", 32), codes: derive(c.secrets[0], "phone code", 32)}
	var keys []*signingKey
	for _, s := range c.secrets {
		k.refresh = append(k.refresh, derive(s, "refresh token", 32))
		k.factors = append(k.factors, derive(s, "TOTP secret", 32))
		k.recovery = append(k.recovery, derive(s, "recovery code", 32))
		if c.signer == nil {
			sk, err := derivedSigningKey(s, c.tokens.Algorithm)
			if err != nil {
				return nil, err
			}
			keys = append(keys, sk)
		}
	}
	if c.signer != nil {
		sk, err := ownSigningKey(c.signer)
		if err != nil {
			return nil, fmt.Errorf("WithSigningKeys: %w", err)
		}
		keys = append(keys, sk)
		for _, pub := range c.verifiers {
			if s, ok := pub.(crypto.Signer); ok {
				pub = s.Public()
			}
			vk, err := verifyingKey(pub)
			if err != nil {
				return nil, fmt.Errorf("WithSigningKeys: %w", err)
			}
			keys = append(keys, vk)
		}
	}
	k.signing = keys[0]
	k.signing.head = k.signing.header()
	set := struct {
		Keys []map[string]string `json:"keys"`
	}{Keys: []map[string]string{}}
	for _, sk := range keys {
		if k.byID[sk.id] == nil && sk.public != nil {
			set.Keys = append(set.Keys, sk.jwk())
		}
		k.byID[sk.id] = sk
	}
	var err error
	k.jwks, err = json.Marshal(set)
	return k, err
}

// derivedSigningKey makes the same key in every instance that has the secret.
func derivedSigningKey(secret []byte, alg string) (*signingKey, error) {
	switch alg {
	case "", "ES256":
		// Candidates are tried until one is a valid scalar (FIPS 186-5, A.2.2);
		// for P-256 the first one nearly always is.
		for i := 0; ; i++ {
			seed := derive(secret, fmt.Sprintf("signing ES256 %d", i), 32)
			if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed); err == nil {
				return ownSigningKey(key)
			}
		}
	case "EdDSA":
		return ownSigningKey(ed25519.NewKeyFromSeed(derive(secret, "signing EdDSA", ed25519.SeedSize)))
	case "HS256":
		key := derive(secret, "signing HS256", 32)
		id := base64.RawURLEncoding.EncodeToString(derive(secret, "signing HS256 key id", 16))
		return &signingKey{id: id, method: jwt.SigningMethodHS256, sign: key, verify: key}, nil
	}
	return nil, fmt.Errorf("WithTokens: algorithm %q cannot be derived: use ES256, EdDSA or HS256, or WithSigningKeys", alg)
}

func ownSigningKey(s crypto.Signer) (*signingKey, error) {
	switch s.(type) {
	case *ecdsa.PrivateKey, *rsa.PrivateKey, ed25519.PrivateKey:
	default:
		return nil, fmt.Errorf("keys of type %T are not supported", s)
	}
	k, err := verifyingKey(s.Public())
	if err == nil {
		k.sign = s
	}
	return k, err
}

func verifyingKey(pub crypto.PublicKey) (*signingKey, error) {
	k := &signingKey{verify: pub, public: pub}
	switch p := pub.(type) {
	case *ecdsa.PublicKey:
		if p.Curve != elliptic.P256() {
			return nil, errors.New("an ECDSA key has to be on P-256")
		}
		k.method = jwt.SigningMethodES256
	case *rsa.PublicKey:
		if p.N.BitLen() < 2048 {
			return nil, errors.New("an RSA key needs at least 2048 bits")
		}
		k.method = jwt.SigningMethodRS256
	case ed25519.PublicKey:
		k.method = jwt.SigningMethodEdDSA
	default:
		return nil, fmt.Errorf("keys of type %T are not supported", pub)
	}
	k.id = k.thumbprint()
	return k, nil
}

// header is the JOSE header of access tokens.
func (k *signingKey) header() []byte {
	o := object{}
	o.text("alg", k.method.Alg())
	o.text("kid", k.id)
	o.text("typ", tokenType)
	header, _ := o.end() // strings can be encoded
	return append(base64.RawURLEncoding.AppendEncode(nil, header), '.')
}

// jwt signs encoded claims.
func (k *signingKey) jwt(claims []byte) (string, error) {
	b64 := base64.RawURLEncoding
	b := make([]byte, 0, len(k.head)+b64.EncodedLen(len(claims))+b64.EncodedLen(512)) // of an RSA signature of 4096 bits
	b = b64.AppendEncode(append(b, k.head...), claims)
	signature, err := k.method.Sign(string(b), k.sign)
	if err != nil {
		return "", err
	}
	return string(b64.AppendEncode(append(b, '.'), signature)), nil
}

// jwk is the public key as RFC 7517 and 8037 write it.
func (k *signingKey) jwk() map[string]string {
	m := k.required()
	m["kid"], m["use"], m["alg"] = k.id, "sig", k.method.Alg()
	return m
}

// required are the members that RFC 7638 hashes.
func (k *signingKey) required() map[string]string {
	b64 := base64.RawURLEncoding.EncodeToString
	switch p := k.public.(type) {
	case *ecdsa.PublicKey:
		raw, err := p.Bytes() // 4 || X || Y
		if err != nil {
			panic(err) // checked to be on P-256
		}
		return map[string]string{"kty": "EC", "crv": "P-256", "x": b64(raw[1:33]), "y": b64(raw[33:])}
	case *rsa.PublicKey:
		return map[string]string{"kty": "RSA", "n": b64(p.N.Bytes()), "e": b64(big.NewInt(int64(p.E)).Bytes())}
	case ed25519.PublicKey:
		return map[string]string{"kty": "OKP", "crv": "Ed25519", "x": b64(p)}
	}
	panic("auth: no public key")
}

// thumbprint is the key's id (RFC 7638): JSON with sorted members, hashed.
func (k *signingKey) thumbprint() string {
	canonical, err := json.Marshal(k.required())
	if err != nil {
		panic(err) // a map of strings
	}
	sum := sha256.Sum256(canonical)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
