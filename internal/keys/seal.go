package keys

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"slices"
)

// ErrSealed is the error of Open.
var ErrSealed = errors.New("the value was not encrypted under the current or a previous secret (WithSecret), or belongs to another owner")

// Seal encrypts a secret under the current key and binds it to its associated data, such
// as its owner's id: it cannot be opened with other data. The result is the secret's id,
// a random nonce and the AES-256-GCM ciphertext.
func (r *Ring) Seal(plain, ad []byte) []byte {
	return r.seal(r.sealing, plain, ad)
}

// Open decrypts a result of Seal with the same associated data. If current is false, seal
// the value again while the previous secret is still configured. Error: ErrSealed.
func (r *Ring) Open(sealed, ad []byte) (plain []byte, current bool, err error) {
	return r.open(r.sealing, sealed, ad)
}

// SealMessage is Seal for queued messages, under a separate key.
func (r *Ring) SealMessage(plain, ad []byte) []byte { return r.seal(r.messages, plain, ad) }

// OpenMessage decrypts a result of SealMessage.
func (r *Ring) OpenMessage(sealed, ad []byte) ([]byte, error) {
	plain, _, err := r.open(r.messages, sealed, ad)
	return plain, err
}

// SealJob is Seal for the remaining work of jobs, under a separate key.
func (r *Ring) SealJob(plain, ad []byte) []byte { return r.seal(r.jobs, plain, ad) }

// OpenJob decrypts a result of SealJob.
func (r *Ring) OpenJob(sealed, ad []byte) ([]byte, error) {
	plain, _, err := r.open(r.jobs, sealed, ad)
	return plain, err
}

func (r *Ring) seal(keys []cipher.AEAD, plain, ad []byte) []byte {
	return append(slices.Clone(r.ids[0]), keys[0].Seal(nil, nil, plain, ad)...) //nolint:gosec // G407: the cipher generates a random nonce
}

func (r *Ring) open(keys []cipher.AEAD, sealed, ad []byte) (plain []byte, current bool, err error) {
	for i, id := range r.ids {
		if ciphertext, ok := bytes.CutPrefix(sealed, id); ok {
			if plain, err := keys[i].Open(nil, nil, ciphertext, ad); err == nil {
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
		panic(err) // AES has the required block size
	}
	return aead
}
