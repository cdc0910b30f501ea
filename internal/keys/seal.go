package keys

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"slices"
)

// ErrSealed is the error of Open.
var ErrSealed = errors.New("it was not sealed here under this secret or a previous one (WithSecret), or not for this owner")

// Seal encrypts a secret under the current key and binds it to its associated
// data, such as its owner's id: moved elsewhere it cannot be opened (AES-256-GCM
// with the secret's id and a random nonce in front).
func (r *Ring) Seal(plain, ad []byte) []byte {
	return r.seal(r.sealing, plain, ad)
}

// Open decrypts what Seal made with the same associated data. If it was not made
// under the current secret, it should be sealed again while the previous one is
// still known. Error: ErrSealed.
func (r *Ring) Open(sealed, ad []byte) (plain []byte, current bool, err error) {
	return r.open(r.sealing, sealed, ad)
}

// SealMessage is Seal for messages that wait to be sent, under a key of their own.
func (r *Ring) SealMessage(plain, ad []byte) []byte { return r.seal(r.messages, plain, ad) }

// OpenMessage is Open for what SealMessage made.
func (r *Ring) OpenMessage(sealed, ad []byte) ([]byte, error) {
	plain, _, err := r.open(r.messages, sealed, ad)
	return plain, err
}

// SealJob is Seal for what jobs have still to do, under a key of their own.
func (r *Ring) SealJob(plain, ad []byte) []byte { return r.seal(r.jobs, plain, ad) }

// OpenJob is Open for what SealJob made.
func (r *Ring) OpenJob(sealed, ad []byte) ([]byte, error) {
	plain, _, err := r.open(r.jobs, sealed, ad)
	return plain, err
}

func (r *Ring) seal(keys []cipher.AEAD, plain, ad []byte) []byte {
	return append(slices.Clone(r.ids[0]), keys[0].Seal(nil, nil, plain, ad)...) //nolint:gosec // G407: the nonce is random, and the cipher's own affair
}

func (r *Ring) open(keys []cipher.AEAD, sealed, ad []byte) (plain []byte, current bool, err error) {
	for i, id := range r.ids {
		if under, ok := bytes.CutPrefix(sealed, id); ok {
			if plain, err := keys[i].Open(nil, nil, under, ad); err == nil {
				return plain, i == 0, nil
			}
		}
	}
	return nil, false, ErrSealed
}

func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // keys have 32 bytes
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has the block size it needs
	}
	return aead
}
