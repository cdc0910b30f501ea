package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/provider"
)

// A provider whose configuration names no timeout has one all the same.
func TestProviderTimeout(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Second: time.Second} {
		p := provider.Google("id", "secret")
		p.Timeout = given
		a := &Auth{cfg: config{baseURL: &url.URL{Scheme: "https", Host: "auth.test"}, providers: []provider.Provider{p}}}
		all, _ := a.newProviders()
		began := time.Now()
		ctx, cancel := all["google"].bounded(t.Context())
		deadline, ok := ctx.Deadline()
		cancel()
		if left := deadline.Sub(began); !ok || left < want || left > want+time.Second {
			t.Errorf("%s: %s, %v", given, left, ok)
		}
	}
}

// Who posts a token knows its nonce, or what was hashed for it; a nonce on one side
// only fits nothing, also where it is the hash of none.
func TestKnowsNonce(t *testing.T) {
	sum := func(s string) []byte { h := sha256.Sum256([]byte(s)); return h[:] }
	std, raw := base64.StdEncoding.EncodeToString, base64.RawURLEncoding.EncodeToString
	for _, c := range []struct {
		inToken, given string
		want           bool
	}{
		{"", "", true}, {"", "n", false}, {"n", "", false}, {"n", "n", true}, {"n", "m", false},
		{hex.EncodeToString(sum("n")), "n", true}, {strings.ToUpper(hex.EncodeToString(sum("n"))), "n", true},
		{raw(sum("n")), "n", true}, {std(sum("n")), "n", true}, {std(sum("0")), "0", true}, {base64.URLEncoding.EncodeToString(sum("0")), "0", true},
		{hex.EncodeToString(sum("n")), "m", false}, {raw(sum("n")), "m", false},
		{hex.EncodeToString(sum("n")), hex.EncodeToString(sum("n")), false}, {raw(sum("n")), raw(sum("n")), false},
		{hex.EncodeToString(sum("")), "", false}, {raw(sum("")), "", false}, {"", hex.EncodeToString(sum("")), false},
		{hex.EncodeToString(sum("n")[:31]), hex.EncodeToString(sum("n")[:31]), true}, {raw(sum("n")[:31]), raw(sum("n")[:31]), true},
	} {
		if got := knowsNonce(c.inToken, c.given); got != c.want {
			t.Errorf("a token with %q, given %q: %v", c.inToken, c.given, got)
		}
	}
}

// Verifiers are 43 to 128 unreserved characters (RFC 7636, section 4.1).
func TestVerifierLength(t *testing.T) {
	for verifier, ok := range map[string]bool{
		strings.Repeat("v", 42): false, strings.Repeat("v", 43): true, strings.Repeat("v", 128): true, strings.Repeat("v", 129): false,
		strings.Repeat("v", 42) + "-": true, strings.Repeat("v", 42) + "+": false, strings.Repeat("v", 42) + " ": false, "": false,
	} {
		sum := sha256.Sum256([]byte(verifier))
		if err := checkVerifier(base64.RawURLEncoding.EncodeToString(sum[:]), verifier); (err == nil) != ok {
			t.Errorf("%d characters, %q: %v", len(verifier), verifier, err)
		}
		if verifier != "" && checkVerifier("", verifier) == nil {
			t.Errorf("%q without a challenge", verifier)
		}
	}
	if err := checkVerifier("", ""); err != nil {
		t.Error(err)
	}
}
