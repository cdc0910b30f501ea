package auth

import (
	"crypto/sha256"
	"encoding/base64"
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
