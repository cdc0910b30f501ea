package authclient

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/store"
)

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// forged signs altered claims of a valid token again, with a key of the server.
func forged(tb testing.TB, key *ecdsa.PrivateKey, good string, head, claims map[string]any) string {
	tb.Helper()
	c := jwt.MapClaims{}
	parsed, _, err := jwt.NewParser().ParseUnverified(good, c)
	if err != nil {
		tb.Fatal(err)
	}
	for k, v := range claims {
		c[k] = v
	}
	t := jwt.NewWithClaims(jwt.SigningMethodES256, c)
	t.Header["kid"], t.Header["typ"] = parsed.Header["kid"], parsed.Header["typ"]
	for k, v := range head {
		t.Header[k] = v
	}
	s, err := t.SignedString(key)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Tokens of other issuers, audiences and types, and expired ones, are refused, although
// the right key signed them.
func TestVerifierChecksIssuerAudienceTypeAndTimes(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	s := newService(t, auth.WithSigningKeys(key))
	good := accessToken(t, signedIn(t, s, "ada@example.com"))
	v := newVerifier(t, s)
	if c, err := v.Verify(t.Context(), good); err != nil || c.Email != "ada@example.com" {
		t.Fatal(c, err)
	}
	if _, err := v.Verify(t.Context(), forged(t, key, good, nil, nil)); err != nil {
		t.Fatal("a token as the server's own:", err)
	}
	for name, bad := range map[string]string{
		"issuer":     forged(t, key, good, nil, map[string]any{"iss": "https://other.example"}),
		"audience":   forged(t, key, good, nil, map[string]any{"aud": "other"}),
		"type":       forged(t, key, good, map[string]any{"typ": "JWT"}, nil),
		"expired":    forged(t, key, good, nil, map[string]any{"exp": s.clock.Now().Add(-time.Minute).Unix()}),
		"future":     forged(t, key, good, nil, map[string]any{"iat": s.clock.Now().Add(time.Hour).Unix()}),
		"no session": forged(t, key, good, nil, map[string]any{"session_id": ""}),
		"other key":  forged(t, newKey(t), good, nil, nil),
		"none":       strings.Join(append(strings.Split(forged(t, key, good, map[string]any{"alg": "none"}, nil), ".")[:2], ""), "."),
		"garbage":    "a.b.c",
	} {
		if _, err := v.Verify(t.Context(), bad); !errors.Is(err, auth.CodeBadToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Require's answers, and the values that handlers find, are those of the server's own
// Require.
func TestVerifierRequiresAsTheServerDoes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	v := newVerifier(t, s)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(ClaimsFrom(r.Context()))
	})
	for name, reqs := range map[string][]auth.Requirement{
		"nothing": nil, "role": {auth.HasRole("editor")}, "permission": {auth.HasPermission("notes.write")},
		"aal2": {auth.AAL2()}, "fresh": {auth.FreshAuth(time.Hour)}, "live": {auth.CheckSession()}, "not impersonated": {auth.NotImpersonated()},
	} {
		for _, bearer := range []string{"", "Bearer x", "Basic x", "Bearer " + accessToken(t, c)} {
			var got [2]*httptest.ResponseRecorder
			for i, guarded := range []http.Handler{s.Require(h, reqs...), v.Require(h, reqs...)} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
				r.Header.Set("X-Request-Id", "test-request-0001")
				if bearer != "" {
					r.Header.Set("Authorization", bearer)
				}
				got[i] = httptest.NewRecorder()
				guarded.ServeHTTP(got[i], r)
			}
			if got[0].Code != got[1].Code || got[0].Body.String() != got[1].Body.String() || got[0].Header().Get("WWW-Authenticate") != got[1].Header().Get("WWW-Authenticate") {
				t.Errorf("%s, %.10q: server %d %s, verifier %d %s", name, bearer, got[0].Code, got[0].Body, got[1].Code, got[1].Body)
			}
		}
	}
}

// The token of an ended session passes until it expires, unless the route checks the
// session or Revoke was called.
func TestVerifierLearnsOfRevocations(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	v, bearer := newVerifier(t, s), accessToken(t, c)
	status := func(reqs ...auth.Requirement) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+bearer)
		w := httptest.NewRecorder()
		v.Require(http.NotFoundHandler(), reqs...).ServeHTTP(w, r)
		return w.Code
	}
	if err := c.SignOut(t.Context(), ScopeLocal); err != nil {
		t.Fatal(err)
	}
	if got := status(auth.CheckSession()); got != http.StatusUnauthorized {
		t.Error("CheckSession:", got)
	}
	s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusBadGateway) })
	if got := status(auth.CheckSession()); got != http.StatusServiceUnavailable {
		t.Error("an outage is no sign-out, and lets nobody in:", got)
	}
	claims, err := v.Verify(t.Context(), bearer)
	if err != nil {
		t.Fatal(err)
	}
	v.Revoke(store.Revocation{SessionID: claims.SessionID, UserID: claims.UserID, At: s.clock.Now()})
	if _, err := v.Verify(t.Context(), bearer); !errors.Is(err, auth.CodeSessionEnded) {
		t.Error("Revoke:", err)
	}
	s.set(nil)
	v.mu.Lock()
	v.jwks = "" // so that the keys are read again
	v.mu.Unlock()
	if err := v.wait(t.Context(), v.read()); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), bearer); !errors.Is(err, auth.CodeSessionEnded) {
		t.Error("new keys forgot the revocation:", err)
	}
}

// Invented key ids do not make the verifier request the keys each time, and a failing
// server does not make it forget its keys.
func TestVerifierKeepsItsKeys(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	s := newService(t, auth.WithSigningKeys(key))
	good := accessToken(t, signedIn(t, s, "ada@example.com"))
	v := newVerifier(t, s, WithRemember(-1))
	const set = "GET /.well-known/jwks.json"
	for range 50 {
		if _, err := v.Verify(t.Context(), good); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.count(set); n != 1 {
		t.Errorf("the hot path asked for the keys %d times", n)
	}
	for range 50 {
		if _, err := v.Verify(t.Context(), forged(t, newKey(t), good, map[string]any{"kid": rand.Text()}, nil)); !errors.Is(err, auth.CodeBadToken) {
			t.Fatal(err)
		}
	}
	if n := s.count(set); n != 1+unknownKeys {
		t.Errorf("unknown keys made it ask %d times", n-1)
	}
	s.clock.Advance(5 * time.Second) // the longest that such a flood delays new keys
	for range 50 {
		if _, err := v.Verify(t.Context(), forged(t, newKey(t), good, map[string]any{"kid": rand.Text()}, nil)); !errors.Is(err, auth.CodeBadToken) {
			t.Fatal(err)
		}
	}
	if n := s.count(set); n != 2+unknownKeys {
		t.Errorf("five seconds after the flood it has asked %d times", n-1)
	}
	s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s.clock.Advance(keysRefresh + time.Second)
	for range 20 { // each may start a read in the background
		if _, err := v.Verify(t.Context(), good); err != nil {
			t.Fatal("an outage made it forget:", err)
		}
	}
	s.clock.Advance(keysPause)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Verify(ctx, good); err != nil {
		t.Error("a context that has ended is none of the keys' business:", err)
	}
}

// A key that was withdrawn is not valid for cached tokens either.
func TestVerifierFollowsRotation(t *testing.T) {
	t.Parallel()
	first, second := newKey(t), newKey(t)
	old, next := newService(t, auth.WithSigningKeys(first)), newService(t, auth.WithSigningKeys(second))
	was := accessToken(t, signedIn(t, old, "ada@example.com"))
	v := newVerifier(t, old)
	if _, err := v.Verify(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	old.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) { next.Handler().ServeHTTP(w, r) })
	set := struct{ Keys []struct{ Kid string } }{}
	if err := json.Unmarshal(next.JWKS(), &set); err != nil {
		t.Fatal(err)
	}
	now := forged(t, second, was, map[string]any{"kid": set.Keys[0].Kid}, nil)
	if _, err := v.Verify(t.Context(), now); err != nil {
		t.Error("the new key:", err)
	}
	if _, err := v.Verify(t.Context(), was); err == nil {
		t.Error("the withdrawn key is good still")
	}
}

// Without keys NewVerifier fails, or with WithLateStart the verifier answers 503 until
// there are some. It never answers 401, which would sign users out.
func TestVerifierStartsLate(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusBadGateway) })
	if _, err := NewVerifier(t.Context(), s.url); !errors.Is(err, CodeBadResponse) {
		t.Error(err)
	}
	v := newVerifier(t, s, WithLateStart())
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+accessToken(t, c))
	v.Require(http.NotFoundHandler()).ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Error(w.Code, w.Header())
	}
	if _, err := v.Verify(t.Context(), accessToken(t, c)); !errors.Is(err, auth.CodeUnavailable) {
		t.Error(err)
	}
	s.set(nil)
	s.clock.Advance(keysPause)
	if _, err := v.Verify(t.Context(), accessToken(t, c)); err != nil {
		t.Error(err)
	}
	if _, err := NewVerifier(t.Context(), newService(t, auth.WithSharedSecret(testsecret.Of("s"))).url); err == nil || !strings.Contains(err.Error(), "key") {
		t.Error("a shared secret publishes no keys:", err)
	}
}

func BenchmarkVerify(b *testing.B) {
	for name, n := range map[string]int{"cold": -1, "warm": 0} {
		s := newService(b, auth.WithTokens(auth.TokenOptions{Remember: n}))
		t := accessToken(b, signedIn(b, s, "ada@example.com"))
		v := newVerifier(b, s, WithRemember(n))
		b.Run(name+"/auth.Verify", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Verify(t); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/Verifier", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(b.Context(), t); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
