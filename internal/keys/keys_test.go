package keys

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"strings"
	"testing"
)

func secret(c string) []byte { return []byte(strings.Repeat(c, 32)) }

func ring(t testing.TB, secrets ...string) *Ring {
	t.Helper()
	p := Params{}
	for _, s := range secrets {
		p.Secrets = append(p.Secrets, secret(s))
	}
	r, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNewRefuses(t *testing.T) {
	good := [][]byte{secret("s")}
	nowhere := &ecdsa.PublicKey{Curve: elliptic.P256(), X: one(), Y: one()} //nolint:staticcheck // no other way makes a key that is on no curve
	for name, c := range map[string]struct {
		p    Params
		says string
	}{
		"no secret":          {Params{}, "WithSecret: no secret"},
		"short secret":       {Params{Secrets: [][]byte{secret("s")[:31]}}, "WithSecret: a secret needs"},
		"short old secret":   {Params{Secrets: [][]byte{secret("s"), nil}}, "WithSecret: a secret needs"},
		"RS256":              {Params{Secrets: good, Algorithm: "RS256"}, "WithTokens: algorithm \"RS256\""},
		"none":               {Params{Secrets: good, Algorithm: "none"}, "WithTokens: algorithm \"none\""},
		"another curve":      {Params{Secrets: good, Signer: ecKey(t, elliptic.P384())}, "WithSigningKeys: an ECDSA key"},
		"short RSA":          {Params{Secrets: good, Signer: rsaKey(t, 1024)}, "WithSigningKeys: an RSA key"},
		"foreign signer":     {Params{Secrets: good, Signer: foreign{}}, "WithSigningKeys: keys of type keys.foreign"},
		"nil EC":             {Params{Secrets: good, Signer: nilEC()}, "WithSigningKeys: the key of type *ecdsa.PrivateKey is empty"},
		"nil RSA":            {Params{Secrets: good, Signer: nilRSA()}, "WithSigningKeys: the key of type *rsa.PrivateKey is empty"},
		"cut Ed25519":        {Params{Secrets: good, Signer: edKey(1)[:31]}, "WithSigningKeys: the key of type ed25519.PrivateKey is empty or incomplete"},
		"previous of a type": {Params{Secrets: good, Signer: edKey(1), Verifiers: public("a string")}, "WithSigningKeys: keys of type string"},
		"previous nil":       {Params{Secrets: good, Signer: edKey(1), Verifiers: public(nil)}, "WithSigningKeys: keys of type <nil>"},
		"previous HMAC":      {Params{Secrets: good, Signer: edKey(1), Verifiers: public(secret("k"))}, "WithSigningKeys: keys of type []uint8"},
		"previous cut":       {Params{Secrets: good, Signer: edKey(1), Verifiers: public(edPublic(1)[:31])}, "WithSigningKeys: an Ed25519 key"},
		"previous off curve": {Params{Secrets: good, Signer: edKey(1), Verifiers: public(nowhere)}, "WithSigningKeys: the ECDSA key is not a point"},
		"previous nil EC":    {Params{Secrets: good, Signer: edKey(1), Verifiers: public((*ecdsa.PublicKey)(nil))}, "WithSigningKeys: an ECDSA key"},
		"previous nil RSA":   {Params{Secrets: good, Signer: edKey(1), Verifiers: public((*rsa.PublicKey)(nil))}, "WithSigningKeys: an RSA key"},
		"short shared":       {Params{Secrets: good, Shared: [][]byte{secret("k"), secret("k")[:31]}}, "WithSharedSecret: a secret needs"},
		"previous empty":     {Params{Secrets: good, Signer: edKey(1), Verifiers: public(emptyRSA())}, "WithSigningKeys: an RSA key"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(c.p); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one about %q", err, c.says)
			} else if bytes.Contains([]byte(err.Error()), secret("s")[:8]) {
				t.Errorf("a secret is in the error: %v", err)
			}
		})
	}
}

// These values exist outside or in stores, under the secret of 32 times "s". A change
// would sign everyone out or break flows in progress.
func TestDerivedKeysAreStable(t *testing.T) {
	r := ring(t, "s")
	refresh, err := r.RefreshToken("01a1fb4c-2b13-7a71-806e-d67843451400", 7)
	if err != nil {
		t.Fatal(err)
	}
	kid := func(algorithm string, shared ...[]byte) string {
		other, err := New(Params{Secrets: [][]byte{secret("s")}, Algorithm: algorithm, Shared: shared})
		if err != nil {
			t.Fatal(err)
		}
		return other.Signing().ID
	}
	for name, c := range map[string]struct{ got, want string }{
		"EdDSA":   {kid("EdDSA"), "jfnhg-Yziqe8aKeq6AwY0L7SCGPYzGhsl79bhZ_7Z6Q"},
		"HS256":   {kid("HS256"), "8EVJjDN4lAqLidGUPOR8RA"},
		"shared":  {kid("", secret("k")), "iV1P0IvmWsAQLQ5wvyg_5Q"},
		"kid":     {r.Signing().ID, "PPojeYb4YzSbe-BBPS7m24Klfg_axiStsSzaqgnB5fk"},
		"refresh": {refresh, "v1.AaH7TCsTenGAbtZ4Q0UUAAAAAAdBdWi9xqdMJZjVJLq5LGuT3fhkfuLyixI9jNdYMtP_sw"},
		"phone":   {hexOf(r.PhoneCode("login", "+431234567", "123456")[0]), "fdda19ac184600e894b4a19f12a98d913c03a712ef6f91dfc561155737acf10e"},
		"code":    {hexOf(r.RecoveryCode("u", "abcde-fghjk")[0]), "2b97806d4254fb4225359af8e185b7d6812f379015f612fc91b690c32f9709d7c7f946b9a4a7d0f9"},
		"id":      {hexOf([]byte(r.IDs()[0])), "2b97806d4254fb42"},
		"limit":   {r.RateLimit("login", "ada@example.com"), "login:IH8uY65k31ptlSbsjwZfpw"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
	plain, current, err := r.Open(bytesOf(t, sealedForAda), []byte("ada"))
	if string(plain) != "secret" || !current || err != nil {
		t.Errorf("sealed: %q, %v, %v", plain, current, err)
	}
}

// Every purpose and every secret has its own key.
func TestKeysDiffer(t *testing.T) {
	r, seen := ring(t, "a", "b"), map[string]string{}
	sealed := [][]byte{r.Seal(nil, nil), r.SealMessage(nil, nil), r.SealJob(nil, nil)}
	for i, open := range []func([]byte) error{
		func(b []byte) error { _, _, err := r.Open(b, nil); return err },
		func(b []byte) error { _, err := r.OpenMessage(b, nil); return err },
		func(b []byte) error { _, err := r.OpenJob(b, nil); return err },
	} {
		for j, b := range sealed {
			if opened := open(b) == nil; opened != (i == j) {
				t.Errorf("what %d sealed opens with %d: %v", j, i, opened)
			}
		}
	}
	all := map[string][][]byte{"refresh": r.refresh, "phone": r.codes, "recovery": r.recovery, "requests": r.requests, "limits": {r.limits}}
	for purpose, keys := range all {
		for _, k := range keys {
			if other := seen[string(k)]; other != "" || len(k) != keySize {
				t.Errorf("%s has %d bytes, and the same key as %q", purpose, len(k), other)
			}
			seen[string(k)] = purpose
		}
	}
	if len(seen) != 9 {
		t.Errorf("%d keys", len(seen))
	}
}
