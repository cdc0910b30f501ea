package auth

import (
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// Algorithm confusion (RFC 8725, 3.1): a key serves its one algorithm, before
// any signature is looked at.
func TestKeyIsPinnedToItsAlgorithm(t *testing.T) {
	k, err := newKeyring(&config{secrets: [][]byte{[]byte("a secret of the tests', 32 bytes")}})
	if err != nil {
		t.Fatal(err)
	}
	header := map[string]any{"kid": k.Signing().ID, "typ": tokenType}
	for method, ok := range map[jwt.SigningMethod]bool{
		jwt.SigningMethodES256: true, jwt.SigningMethodHS256: false, jwt.SigningMethodRS256: false, jwt.SigningMethodEdDSA: false, jwt.SigningMethodNone: false,
	} {
		if _, err := k.find(&jwt.Token{Header: header, Method: method}); (err == nil) != ok {
			t.Errorf("%s: %v", method.Alg(), err)
		}
	}
}
