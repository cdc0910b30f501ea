package keys

import (
	"bytes"
	"errors"
	"testing"
)

// A sealed value is bound to its owner and its secret.
func TestSealIsBound(t *testing.T) {
	sealed := ring(t, "a").Seal([]byte("secret"), []byte("ada"))
	damaged := func(at int) []byte {
		b := bytes.Clone(sealed)
		b[at] ^= 1
		return b
	}
	for name, c := range map[string]struct {
		r       *Ring
		sealed  []byte
		ad      string
		ok      bool
		current bool
	}{
		"as it was":          {ring(t, "a"), sealed, "ada", true, true},
		"after a rotation":   {ring(t, "b", "a"), sealed, "ada", true, false},
		"after two":          {ring(t, "c", "b", "a"), sealed, "ada", true, false},
		"rotated back":       {ring(t, "a", "b"), sealed, "ada", true, true},
		"another owner":      {ring(t, "a"), sealed, "eve", false, false},
		"no owner":           {ring(t, "a"), sealed, "", false, false},
		"dropped secret":     {ring(t, "b"), sealed, "ada", false, false},
		"nothing":            {ring(t, "a"), nil, "ada", false, false},
		"less than a nonce":  {ring(t, "a"), sealed[:5], "ada", false, false},
		"id alone":           {ring(t, "a"), sealed[:IDSize], "ada", false, false},
		"nonce alone":        {ring(t, "a"), sealed[:IDSize+12], "ada", false, false},
		"without its id":     {ring(t, "a"), sealed[IDSize:], "ada", false, false},
		"id changed":         {ring(t, "a"), damaged(0), "ada", false, false},
		"under another id":   {ring(t, "b", "a"), append([]byte(ring(t, "b").IDs()[0]), sealed[IDSize:]...), "ada", false, false},
		"cut short":          {ring(t, "a"), sealed[:len(sealed)-1], "ada", false, false},
		"a byte more":        {ring(t, "a"), append(bytes.Clone(sealed), 0), "ada", false, false},
		"nonce changed":      {ring(t, "a"), damaged(IDSize), "ada", false, false},
		"ciphertext changed": {ring(t, "a"), damaged(IDSize + 12), "ada", false, false},
		"tag changed":        {ring(t, "a"), damaged(len(sealed) - 1), "ada", false, false},
	} {
		plain, current, err := c.r.Open(c.sealed, []byte(c.ad))
		if (err == nil) != c.ok || current != c.current || (string(plain) == "secret") != c.ok {
			t.Errorf("%s: %q, %v, %v", name, plain, current, err)
		}
		if err != nil && !errors.Is(err, ErrSealed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// sealedForAda is "secret" sealed under the secret "s".
const sealedForAda = "2b97806d4254fb42eaa9bff32ccd0392800dbe4002a38ad87e0ac7435b29c4d1a39acf7544a520b625f9"

// Sealing the same secret twice gives different results, which do not contain it.
func TestSealHides(t *testing.T) {
	r := ring(t, "a")
	one, two := r.Seal([]byte("secret"), []byte("ada")), r.Seal([]byte("secret"), []byte("ada"))
	if bytes.Equal(one, two) || bytes.Contains(one, []byte("secret")) {
		t.Errorf("%x, %x", one, two)
	}
	if plain, _, err := r.Open(r.Seal(nil, nil), nil); len(plain) != 0 || err != nil {
		t.Errorf("nothing sealed: %q, %v", plain, err)
	}
}

func FuzzOpen(f *testing.F) {
	r := ring(f, "s", "b")
	good := bytesOf(f, sealedForAda) // the same in every process of the fuzzer
	for _, b := range [][]byte{good, good[:12], good[:27], nil, append(bytes.Clone(good), good...)} {
		f.Add(b, []byte("ada"))
	}
	f.Fuzz(func(t *testing.T, sealed, ad []byte) {
		plain, current, err := r.Open(sealed, ad)
		if err == nil && (!bytes.Equal(sealed, good) || string(ad) != "ada" || string(plain) != "secret" || !current) {
			t.Errorf("%x opens for %q: %q", sealed, ad, plain)
		}
	})
}
