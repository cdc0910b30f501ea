package keys

import (
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// jwk returns a key as in a set, with changed members; nil removes a member.
func jwk(t *testing.T, key any, change map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(jose.JSONWebKey{Key: key, KeyID: "k", Use: "sig"})
	if err != nil {
		t.Fatal(err)
	}
	var k map[string]any
	if err := json.Unmarshal(raw, &k); err != nil {
		t.Fatal(err)
	}
	maps.Copy(k, change)
	maps.DeleteFunc(k, func(_ string, v any) bool { return v == nil })
	return k
}

// Parse accepts only keys of a published set that verify signatures, with their own id
// and one algorithm.
func TestParse(t *testing.T) {
	ec, rs := ecKey(t, elliptic.P256()), rsaKey(t, 2048)
	short := rsaKey(t, 1024)
	for name, c := range map[string]struct {
		key       map[string]any
		algorithm string // "" if the key is skipped
	}{
		"EC":               {jwk(t, ec.Public(), nil), "ES256"},
		"RSA":              {jwk(t, rs.Public(), nil), "RS256"},
		"Ed25519":          {jwk(t, edPublic(1), map[string]any{"alg": "EdDSA"}), "EdDSA"},
		"of no use named":  {jwk(t, ec.Public(), map[string]any{"use": nil}), "ES256"},
		"for encryption":   {jwk(t, ec.Public(), map[string]any{"use": "enc"}), ""},
		"nameless":         {jwk(t, ec.Public(), map[string]any{"kid": nil}), ""},
		"another's alg":    {jwk(t, rs.Public(), map[string]any{"alg": "PS256"}), ""},
		"symmetric":        {jwk(t, secret("s"), nil), ""},
		"private":          {jwk(t, ec, nil), ""},
		"short RSA":        {jwk(t, short.Public(), nil), ""},
		"RSA without e":    {jwk(t, rs.Public(), map[string]any{"e": base64.RawURLEncoding.EncodeToString([]byte{0})}), ""},
		"another curve":    {jwk(t, ecKey(t, elliptic.P384()).Public(), nil), ""},
		"of no known kind": {map[string]any{"kty": "PQC", "kid": "k"}, ""},
		"no key at all":    {map[string]any{"kid": "k", "n": 7}, ""},
	} {
		raw, err := json.Marshal(map[string]any{"keys": []any{c.key, jwk(t, edPublic(2), map[string]any{"kid": "other"})}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Parse(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := 1
		if _, ok := r.Verifier("k", c.algorithm); ok {
			want = 2
		}
		if want != len(r.byID) || (want == 2) != (c.algorithm != "") {
			t.Errorf("%s: %d keys of %v", name, len(r.byID), slices.Collect(maps.Keys(r.byID)))
		}
		if _, ok := r.Verifier("other", "EdDSA"); !ok {
			t.Errorf("%s: the next one is lost", name)
		}
	}
}

// A set without usable keys is an error, not a ring that rejects all tokens.
func TestParseRefuses(t *testing.T) {
	for set, says := range map[string]string{
		"": "not a JSON Web Key Set", "{": "not a JSON Web Key Set", "[]": "not a JSON Web Key Set", `{"keys":7}`: "not a JSON Web Key Set", `{"keys":[7]}`: "has no key",
		"{}": "has no key", `{"keys":[]}`: "has no key", `{"keys":[{"kty":"oct","kid":"k","k":"AAAA"}]}`: "has no key",
	} {
		if r, err := Parse([]byte(set)); r != nil || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// A shared secret replaces the derived key: the first signs, all verify, and none is
// published.
func TestSharedSecrets(t *testing.T) {
	r, err := New(Params{Secrets: [][]byte{secret("s")}, Shared: [][]byte{secret("k")}})
	if err != nil {
		t.Fatal(err)
	}
	k := r.Signing()
	if key, ok := k.Key.([]byte); !ok || k.Algorithm != "HS256" || string(key) != string(secret("k")) || len(r.byID) != 1 || len(jwks(t, r)) != 0 {
		t.Errorf("%s signs, of %d keys, %d published", k.Algorithm, len(r.byID), len(jwks(t, r)))
	}
	next, err := New(Params{Secrets: [][]byte{secret("s")}, Shared: [][]byte{secret("l"), secret("k")}})
	if err != nil {
		t.Fatal(err)
	}
	if key, ok := next.Verifier(k.ID, "HS256"); !ok || string(key.([]byte)) != string(secret("k")) || next.Signing().ID == k.ID {
		t.Errorf("after a rotation: %v", ok)
	}
}
