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
	return seal(r.sealing, plain, ad)
}

// Open decrypts what Seal made with the same associated data. If it was not made
// under the current secret, it should be sealed again while the previous one is
// still known. Error: ErrSealed.
func (r *Ring) Open(sealed, ad []byte) (plain []byte, current bool, err error) {
	return open(r.sealing, sealed, ad)
}

// SealMessage is Seal for messages that wait to be sent, under a key of their own.
func (r *Ring) SealMessage(plain, ad []byte) []byte { return seal(r.messages, plain, ad) }

// OpenMessage is Open for what SealMessage made.
func (r *Ring) OpenMessage(sealed, ad []byte) ([]byte, error) {
	plain, _, err := open(r.messages, sealed, ad)
	return plain, err
}

func seal(keys []cipher.AEAD, plain, ad []byte) []byte {
	return keys[0].Seal(nil, nil, plain, ad) //nolint:gosec // G407: the nonce is random, and the cipher's own affair
}

func open(keys []cipher.AEAD, sealed, ad []byte) (plain []byte, current bool, err error) {
	for i, aead := range keys {
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
