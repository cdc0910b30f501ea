package auth

import (
	"fmt"
	"testing"
	"time"
)

// The vectors of RFC 4226, appendix D, and RFC 6238, appendix B (last six of the
// eight digits).
func TestTOTPVectors(t *testing.T) {
	c := &config{secrets: [][]byte{[]byte("a secret of the tests', 32 bytes")}}
	keys, err := newKeyring(c)
	if err != nil {
		t.Fatal(err)
	}
	a := &Auth{keys: keys}
	f := Factor{UserID: "u", Secret: keys.seal([]byte("12345678901234567890"), "u")}
	for step, want := range []string{"755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"} {
		at := time.Unix(int64(step)*totpPeriod, 0)
		if m, _ := a.matchTOTP(f, want, at); step > 0 && (!m.ok || m.step != int64(step)) {
			t.Errorf("RFC 4226, count %d: %+v", step, m)
		}
	}
	for at, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		if m, _ := a.matchTOTP(f, want, time.Unix(at, 0)); !m.ok || m.step != at/totpPeriod {
			t.Errorf("RFC 6238, time %d: %+v", at, m)
		}
		if m, _ := a.matchTOTP(f, fmt.Sprintf("%06d", 0), time.Unix(at, 0)); m.ok {
			t.Errorf("time %d: zeros match", at)
		}
	}
}

// A sealed secret belongs to its user and to the secret it was sealed under.
func TestSealIsBound(t *testing.T) {
	keyring := func(secrets ...string) *keyring {
		c := &config{}
		for _, s := range secrets {
			c.secrets = append(c.secrets, []byte(s))
		}
		k, err := newKeyring(c)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	const one, two = "the first secret, of 32 bytes...", "the second secret, of 32 bytes.."
	sealed := keyring(one).seal([]byte("secret"), "ada")
	if plain, err := keyring(two, one).open(sealed, "ada"); err != nil || string(plain) != "secret" {
		t.Errorf("after rotation: %q, %v", plain, err)
	}
	if _, err := keyring(one).open(sealed, "eve"); err == nil {
		t.Error("opened for another user")
	}
	if _, err := keyring(two).open(sealed, "ada"); err == nil {
		t.Error("opened under another secret")
	}
	for _, damaged := range [][]byte{nil, sealed[:5], append([]byte{sealed[0] ^ 1}, sealed[1:]...)} {
		if _, err := keyring(one).open(damaged, "ada"); err == nil {
			t.Error("opened though damaged")
		}
	}
}
