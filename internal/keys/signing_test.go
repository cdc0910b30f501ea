package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

func ecKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func rsaKey(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0") // allows a key that is too short
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func edKey(n byte) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	return ed25519.NewKeyFromSeed(seed)
}

func edPublic(n byte) ed25519.PublicKey { return ed25519.PublicKey(edKey(n)[ed25519.SeedSize:]) }

func nilEC() *ecdsa.PrivateKey                        { return nil }
func nilRSA() *rsa.PrivateKey                         { return nil }
func emptyRSA() *rsa.PublicKey                        { return &rsa.PublicKey{} }
func one() *big.Int                                   { return big.NewInt(1) }
func public(k ...crypto.PublicKey) []crypto.PublicKey { return k }

type foreign struct{}

func (foreign) Public() crypto.PublicKey { return edPublic(1) }

func (foreign) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { return nil, nil }

func hexOf(b []byte) string { return hex.EncodeToString(b) }

func bytesOf(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func b64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func jwks(t testing.TB, r *Ring) []map[string]string {
	t.Helper()
	var set struct {
		Keys []map[string]string `json:"keys"` // with strings only
	}
	if err := json.Unmarshal(r.JWKS(), &set); err != nil {
		t.Fatal(err)
	}
	if set.Keys == nil {
		t.Fatalf("the keys are no list: %s", r.JWKS())
	}
	return set.Keys
}

// The examples of RFC 7638, section 3.1, and RFC 8037, appendix A.3.
func TestThumbprint(t *testing.T) {
	const n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
	for want, pub := range map[string]crypto.PublicKey{
		"NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs": &rsa.PublicKey{N: new(big.Int).SetBytes(b64(t, n)), E: 65537},
		"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k": ed25519.PublicKey(b64(t, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")),
	} {
		r, err := New(Params{Secrets: [][]byte{secret("s")}, Signer: edKey(1), Verifiers: public(pub)})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := r.byID[want]; !ok {
			t.Errorf("no key %q among %v", want, slices.Collect(maps.Keys(r.byID)))
		}
	}
}

// The set has the members of RFC 7517, 7518 and 8037 for each key, and nothing of a
// private one.
func TestJWKS(t *testing.T) {
	rsaSigner, ecSigner := rsaKey(t, 2048), ecKey(t, elliptic.P256())
	r, err := New(Params{
		Secrets: [][]byte{secret("s")}, Signer: rsaSigner,
		Verifiers: public(ecSigner, &ecSigner.PublicKey, edPublic(1), edKey(2), rsaSigner.Public()), // some keys twice
	})
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	point, err := ecSigner.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]string{
		{"kty": "RSA", "alg": "RS256", "n": text(rsaSigner.N.Bytes()), "e": "AQAB"},
		{"kty": "EC", "alg": "ES256", "crv": "P-256", "x": text(point[1:33]), "y": text(point[33:])},
		{"kty": "OKP", "alg": "EdDSA", "crv": "Ed25519", "x": text(edPublic(1))},
		{"kty": "OKP", "alg": "EdDSA", "crv": "Ed25519", "x": text(edPublic(2))},
	}
	got := jwks(t, r)
	for i, k := range got {
		if b := b64(t, k["kid"]); len(b) != 32 || r.byID[k["kid"]] == nil || k["use"] != "sig" {
			t.Errorf("number %d: kid %q, use %q", i, k["kid"], k["use"])
		}
		delete(k, "kid")
		delete(k, "use")
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the set is %v, want %v", got, want)
	}
	if got := r.Signing(); got.Algorithm != "RS256" || got.Key != crypto.Signer(rsaSigner) {
		t.Errorf("%s signs", got.Algorithm)
	}
	for _, k := range r.byID {
		if k.Key != nil && k.ID != r.Signing().ID {
			if _, private := k.verify.(crypto.Signer); private {
				t.Errorf("a private key verifies: %T", k.verify)
			}
		}
	}
	changed := r.JWKS()
	changed[0] = 'x'
	if r.JWKS()[0] == 'x' {
		t.Error("the set is shared")
	}
}

// A coordinate with leading zeros keeps them (RFC 7518, section 6.2.1.2). Among 2000
// secrets some derive one.
func TestCoordinatesKeepTheirLength(t *testing.T) {
	short := 0
	for i := range 2000 {
		k, err := derivedKey(append(secret("s"), byte(i), byte(i>>8)), "ES256")
		if err != nil {
			t.Fatal(err)
		}
		point, err := k.public.(*ecdsa.PublicKey).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if point[1] != 0 && point[33] != 0 {
			continue
		}
		short++
		r := &Ring{}
		if err := r.publish([]*signingKey{k}); err != nil {
			t.Fatal(err)
		}
		if got := jwks(t, r)[0]; string(b64(t, got["x"]))+string(b64(t, got["y"])) != string(point[1:]) {
			t.Errorf("%v, want %x", got, point[1:])
		}
	}
	if short == 0 {
		t.Error("no short coordinate was seen")
	}
}

// Instances derive the same keys, each algorithm verifies its signatures, and previous
// secrets only verify.
func TestDerivedSigningKeys(t *testing.T) {
	for algorithm, published := range map[string]int{"": 2, "ES256": 2, "EdDSA": 2, "HS256": 0} {
		t.Run("alg "+algorithm, func(t *testing.T) {
			p := Params{Algorithm: algorithm, Secrets: [][]byte{secret("a"), secret("b")}}
			r, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			again, err := New(p)
			if err != nil || string(again.JWKS()) != string(r.JWKS()) || again.Signing().ID != r.Signing().ID {
				t.Errorf("another instance has other keys: %v", err)
			}
			p.Secrets = p.Secrets[1:]
			before, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			if keys := jwks(t, r); len(keys) != published {
				t.Errorf("%d keys are published", len(keys))
			}
			for _, signer := range []*Ring{r, before} {
				k := signer.Signing()
				method := jwt.GetSigningMethod(k.Algorithm)
				signature, err := method.Sign("text", k.Key)
				if err != nil {
					t.Fatal(err)
				}
				verify, ok := r.Verifier(k.ID, k.Algorithm)
				if !ok || method.Verify("text", signature, verify) != nil || method.Verify("texts", signature, verify) == nil {
					t.Errorf("%s does not verify: %v", k.ID, ok)
				}
			}
			if _, ok := before.Verifier(r.Signing().ID, r.Signing().Algorithm); ok {
				t.Error("a dropped secret verifies")
			}
		})
	}
}

// With a configured key no derived key is accepted.
func TestOwnKeyReplacesDerived(t *testing.T) {
	r, err := New(Params{Secrets: [][]byte{secret("s")}, Signer: edKey(1)})
	if err != nil {
		t.Fatal(err)
	}
	if derived := ring(t, "s").Signing(); len(r.byID) != 1 || r.byID[derived.ID] != nil {
		t.Errorf("%d keys", len(r.byID))
	}
}

// Algorithm confusion (RFC 8725, section 3.1): a key is only used with its algorithm,
// before any signature is checked.
func TestKeyIsPinnedToItsAlgorithm(t *testing.T) {
	for _, algorithm := range []string{"ES256", "EdDSA", "HS256"} {
		r, err := New(Params{Secrets: [][]byte{secret("s")}, Algorithm: algorithm})
		if err != nil {
			t.Fatal(err)
		}
		for _, asked := range []string{"ES256", "EdDSA", "HS256", "RS256", "PS256", "ES384", "none", "es256", ""} {
			if key, ok := r.Verifier(r.Signing().ID, asked); ok != (asked == algorithm) || (key != nil) != ok {
				t.Errorf("%s as %q: %v", algorithm, asked, ok)
			}
		}
		for _, id := range []string{"", "other", r.Signing().ID[1:]} {
			if _, ok := r.Verifier(id, algorithm); ok {
				t.Errorf("%q names a key", id)
			}
		}
	}
}
