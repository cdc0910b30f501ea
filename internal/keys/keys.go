// Package keys holds every key of the service and the operations on them: signing keys of
// access tokens and their public set, refresh tokens, sealed secrets, and MACs of codes
// and rate limits.
//
// All keys are derived from one secret, each for one purpose (HKDF-SHA-256, RFC 5869), so
// that no key can be used as, or reveals, another. After a rotation the previous secrets
// still open, verify and find existing values; new values use the current secret.
package keys

import (
	"bytes"
	"crypto"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// Params configure a Ring.
type Params struct {
	Secrets   [][]byte // the current one first, then previous ones; at least 32 bytes each
	Algorithm string   // of the derived signing key: ES256, which is also the default, EdDSA or HS256

	Signer    crypto.Signer      // signs in place of a derived key: ECDSA on P-256, Ed25519 or RSA
	Shared    [][]byte           // secrets shared with other services: the first replaces the derived key and signs with HS256
	Verifiers []crypto.PublicKey // previous keys of Signer's kind, still accepted; may be private keys
}

// Ring holds the keys. It is immutable, and safe for concurrent use.
type Ring struct {
	signing SigningKey
	byID    map[string]*signingKey // keys that verification accepts
	jwks    []byte                 // the public keys, as served

	// One key and one id per secret, the current secret first.
	ids      [][]byte
	refresh  [][]byte
	codes    [][]byte
	recovery [][]byte
	requests [][]byte
	sealing  []cipher.AEAD
	messages []cipher.AEAD
	jobs     []cipher.AEAD

	limits []byte
}

// minSecret is the minimum length of a secret in bytes.
const minSecret = 32

// CheckSecret reports a secret that is too short, or that nobody drew at random. Of 32
// random bytes, even as hexadecimal digits, at least 8 are different, but for fewer than one
// in a million.
func CheckSecret(s []byte) error {
	if len(s) < minSecret {
		return fmt.Errorf("a secret needs at least %d bytes, this one has %d", minSecret, len(s))
	}
	different := map[byte]bool{}
	for _, b := range s {
		different[b] = true
	}
	if len(different) < 8 {
		return errors.New("a secret needs random bytes, this one has fewer than 8 different ones")
	}
	for period := 1; period <= len(s)/2; period++ {
		if bytes.Equal(s[period:], s[:len(s)-period]) {
			return errors.New("a secret needs random bytes, this one repeats itself")
		}
	}
	return nil
}

const keySize = 32

// New derives the keys. Its errors name the option to fix.
func New(p Params) (*Ring, error) {
	if len(p.Secrets) == 0 {
		return nil, errors.New("WithSecret: no secret")
	}
	r := &Ring{}
	for _, s := range p.Secrets {
		if len(s) < minSecret {
			return nil, errors.New("WithSecret: a secret needs at least 32 bytes")
		}
		r.ids = append(r.ids, derive(s, "id", IDSize))
		r.refresh = append(r.refresh, derive(s, "refresh token", keySize))
		r.codes = append(r.codes, derive(s, "phone code", keySize))
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

// IDSize is the length of a secret's id in bytes. Sealed values and MACs of recovery
// codes start with the id, so that values that depend on a secret can be counted.
const IDSize = 8

// IDs returns the ids of the secrets, the current one first. They reveal nothing about
// the secrets.
func (r *Ring) IDs() []string {
	var list []string
	for _, id := range r.ids {
		list = append(list, string(id))
	}
	return list
}

// derive derives a key for one purpose from a secret.
func derive(secret []byte, purpose string, n int) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "authmount v1 "+purpose, n)
	if err != nil {
		panic(err) // only for lengths that no caller passes
	}
	return key
}
