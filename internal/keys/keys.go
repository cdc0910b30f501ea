// Package keys holds every key of the service and what is done with them:
// signing keys of access tokens and their public set, refresh tokens, sealed
// secrets, and MACs of codes and of rate limits.
//
// All keys come from one secret, each derived for one purpose (HKDF-SHA-256,
// RFC 5869), so that none of them can be used, or leaked, as another. After a
// rotation the previous secrets still open, verify and find what was made under
// them; what is new is made under the current one.
package keys

import (
	"crypto"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
)

// Params are what a Ring is made of.
type Params struct {
	Secrets   [][]byte // the current one first, then previous ones; at least 32 bytes each
	Algorithm string   // of the derived signing key: ES256, which is also the default, EdDSA or HS256

	Signer    crypto.Signer      // signs in place of a derived key: ECDSA on P-256, Ed25519 or RSA
	Shared    [][]byte           // secrets that others know, too: the first signs by HS256 in place of a derived key
	Verifiers []crypto.PublicKey // previous keys of Signer's kind, still accepted; private ones do too
}

// Ring holds the keys. It never changes, and is safe for concurrent use.
type Ring struct {
	signing SigningKey
	byID    map[string]*signingKey // what verification accepts
	jwks    []byte                 // the public keys, as served

	// One key for each secret, that of the current one first, and what names it.
	ids      [][]byte
	refresh  [][]byte
	phone    [][]byte
	recovery [][]byte
	requests [][]byte
	sealing  []cipher.AEAD
	messages []cipher.AEAD
	jobs     []cipher.AEAD

	limits []byte
}

// minSecret is the least length of a secret in bytes.
const minSecret = 32

const keySize = 32

// New derives the keys. The errors say which option has to be mended.
func New(p Params) (*Ring, error) {
	if len(p.Secrets) == 0 {
		return nil, errors.New("WithSecret: there is no secret")
	}
	r := &Ring{}
	for _, s := range p.Secrets {
		if len(s) < minSecret {
			return nil, errors.New("WithSecret: a secret needs at least 32 bytes")
		}
		r.ids = append(r.ids, derive(s, "id", IDSize))
		r.refresh = append(r.refresh, derive(s, "refresh token", keySize))
		r.phone = append(r.phone, derive(s, "phone code", keySize))
		r.recovery = append(r.recovery, derive(s, "recovery code", keySize))
		r.requests = append(r.requests, derive(s, "request", keySize))
		r.sealing = append(r.sealing, newAEAD(derive(s, "sealing", keySize)))
		r.messages = append(r.messages, newAEAD(derive(s, "messages", keySize)))
		r.jobs = append(r.jobs, newAEAD(derive(s, "jobs", keySize)))
	}
	r.limits = derive(p.Secrets[len(p.Secrets)-1], "rate limit keys", keySize)
	signing, err := signingKeys(p)
	if err != nil {
		return nil, err
	}
	return r, r.publish(signing)
}

// IDSize is how many bytes name a secret. What is sealed begins with them, and so
// do the MACs of recovery codes, so that it can be counted what depends on which.
const IDSize = 8

// IDs name the secrets, the current one first. They tell nothing about them.
func (r *Ring) IDs() []string {
	var list []string
	for _, id := range r.ids {
		list = append(list, string(id))
	}
	return list
}

// derive makes a key for one purpose from a secret.
func derive(secret []byte, purpose string, n int) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "authmount v1 "+purpose, n)
	if err != nil {
		panic(err) // only for a length no caller asks for
	}
	return key
}
