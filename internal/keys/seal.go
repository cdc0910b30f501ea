package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
)

// ErrSealed is the error of Open.
var ErrSealed = errors.New("it was not sealed here under this secret or a previous one (WithSecret), or not for this owner")

// Seal encrypts a secret under the current key and binds it to its associated
// data, such as its owner's id: moved elsewhere it cannot be opened (AES-256-GCM
// with a random nonce in front).
func (r *Ring) Seal(plain, ad []byte) []byte {
	return r.sealing[0].Seal(nil, nil, plain, ad) //nolint:gosec // G407: the nonce is random, and the cipher's own affair
}

// Open decrypts what Seal made with the same associated data. If it was not made
// under the current secret, it should be sealed again while the previous one is
// still known. Error: ErrSealed.
func (r *Ring) Open(sealed, ad []byte) (plain []byte, current bool, err error) {
	for i, aead := range r.sealing {
		if plain, err := aead.Open(nil, nil, sealed, ad); err == nil {
			return plain, i == 0, nil
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
