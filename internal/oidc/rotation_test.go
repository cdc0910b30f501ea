package oidc

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// rotation serves the key set of one signer, which the test replaces.
type rotation struct {
	url     string
	current atomic.Pointer[signer]
	fetches atomic.Int32
	crowd   atomic.Pointer[sync.WaitGroup] // if set, a fetch is answered once all of it have arrived
	keys    *KeySet
	clock   *clock
}

func newRotation(t *testing.T, first signer) *rotation {
	t.Helper()
	r := &rotation{clock: newClock()}
	r.current.Store(&first)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.fetches.Add(1)
		if crowd := r.crowd.Load(); crowd != nil {
			crowd.Wait()
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{r.current.Load().jwk()}})
	}))
	t.Cleanup(srv.Close)
	r.url, r.keys = srv.URL, NewKeySet(http.DefaultClient, r.clock.now, time.Minute)
	return r
}

// verify verifies a token that s signs.
func (r *rotation) verify(t *testing.T, s signer) error {
	t.Helper()
	raw := s.sign(t, jwt.MapClaims{"iss": "i", "sub": "1", "aud": "app", "exp": r.clock.now().Add(24 * time.Hour).Unix()})
	_, err := r.keys.Verify(t.Context(), raw, Expected{
		KeysURL: r.url, Algorithms: []string{"RS256"}, Audiences: []string{"app"}, Issuer: func(map[string]any) string { return "i" },
	})
	return err
}

// A provider replaces its key under the same key id, or publishes none. The crowd that
// signs in afterwards is verified with the new key at once, by few requests.
func TestKeyReplacedUnderItsID(t *testing.T) {
	old, _, _ := signers(t)
	replacement, _, _ := signers(t)
	for _, kid := range []string{"one", ""} {
		old.kid, replacement.kid = kid, kid
		r := newRotation(t, old)
		if err := r.verify(t, old); err != nil {
			t.Fatalf("kid %q: before: %v", kid, err)
		}
		r.current.Store(&replacement)
		var crowd, arrived sync.WaitGroup
		arrived.Add(30)
		r.crowd.Store(&arrived)
		for range 30 {
			crowd.Go(func() {
				arrived.Done()
				if err := r.verify(t, replacement); err != nil {
					t.Errorf("kid %q: after: %v", kid, err)
				}
			})
		}
		crowd.Wait()
		if n := r.fetches.Load(); n > 1+unknownKeys {
			t.Errorf("kid %q: %d requests", kid, n)
		}
		var fault *TokenError
		if err := r.verify(t, old); !errors.As(err, &fault) {
			t.Errorf("kid %q: the withdrawn key: %v", kid, err)
		}
	}
}

// Forged signatures do not flood the provider, and honest users keep signing in.
func TestForgedSignatures(t *testing.T) {
	rs, _, _ := signers(t)
	forger, _, _ := signers(t)
	forger.kid = rs.kid
	r := newRotation(t, rs)
	for range 20 {
		var fault *TokenError
		if err := r.verify(t, forger); !errors.As(err, &fault) || fault.Reason != "has a wrong signature" {
			t.Fatal(err)
		}
		if err := r.verify(t, rs); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.fetches.Load(); n != 1+unknownKeys {
		t.Errorf("fetched %d times, want %d", n, 1+unknownKeys)
	}
}
