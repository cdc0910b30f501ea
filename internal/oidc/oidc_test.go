package oidc

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// clock is a clock that the test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(c.at.Load(), 0) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d / time.Second)) }

func newClock() *clock {
	c := &clock{}
	c.at.Store(1795262400)
	return c
}

// document serves a JSON document and counts requests.
func document(t *testing.T, doc func(self string) any) (string, *atomic.Int32) {
	t.Helper()
	var fetches atomic.Int32
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetches.Add(1)
		if r.URL.Path != "/.well-known/openid-configuration" && r.URL.Path != "/keys" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(doc(srv.URL))
	}))
	t.Cleanup(srv.Close)
	return srv.URL, &fetches
}

func good(self string) map[string]any {
	return map[string]any{
		"issuer": self, "authorization_endpoint": self + "/a", "token_endpoint": self + "/t", "jwks_uri": self + "/k", "userinfo_endpoint": self + "/u",
	}
}

func TestDiscovery(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]any
		want   func(self string) Document
		err    string
	}{
		"least": {nil, func(s string) Document {
			return Document{s + "/a", s + "/t", s + "/u", s + "/k", true, false, []string{"RS256"}}
		}, ""},
		"all": {map[string]any{
			"token_endpoint_auth_methods_supported": []string{"client_secret_post"}, "authorization_response_iss_parameter_supported": true,
			"id_token_signing_alg_values_supported": []string{"none", "HS256", "ES256", "made up", "PS512"}, "userinfo_endpoint": nil,
		}, func(s string) Document {
			return Document{s + "/a", s + "/t", "", s + "/k", false, true, []string{"ES256", "PS512"}}
		}, ""},
		"every algorithm": {map[string]any{"id_token_signing_alg_values_supported": []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA", "HS384", "HS512"}}, func(s string) Document {
			return Document{s + "/a", s + "/t", s + "/u", s + "/k", true, false, []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA"}}
		}, ""},
		"basic among others": {map[string]any{"token_endpoint_auth_methods_supported": []string{"private_key_jwt", "client_secret_basic"}}, func(s string) Document {
			return Document{s + "/a", s + "/t", s + "/u", s + "/k", true, false, []string{"RS256"}}
		}, ""},
		"another issuer":     {map[string]any{"issuer": "https://evil.test"}, nil, "is not the configured one"},
		"no issuer":          {map[string]any{"issuer": nil}, nil, "is not the configured one"},
		"no token endpoint":  {map[string]any{"token_endpoint": nil}, nil, "token_endpoint is not an absolute URL"},
		"no keys":            {map[string]any{"jwks_uri": ""}, nil, "jwks_uri is not an absolute URL"},
		"keys in the clear":  {map[string]any{"jwks_uri": "http://evil.test/k"}, nil, "jwks_uri is not https"},
		"user in the URL":    {map[string]any{"authorization_endpoint": "https://u:p@evil.test/"}, nil, "authorization_endpoint is not an absolute URL"},
		"userinfo elsewhere": {map[string]any{"userinfo_endpoint": "ftp://evil.test/k"}, nil, "userinfo_endpoint is not https"},
		"other types":        {map[string]any{"issuer": []string{"evil.test"}}, nil, "a value of the wrong type at byte"},
	} {
		self, _ := document(t, func(self string) any {
			doc := good(self)
			maps.Copy(doc, c.change)
			return doc
		})
		got, err := NewDiscovery(http.DefaultClient, self, newClock().now, time.Minute).Document(t.Context())
		switch {
		case c.err == "" && (err != nil || !reflect.DeepEqual(got, c.want(self))):
			t.Errorf("%s: %+v, %v", name, got, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "evil.test")):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The most likely mistake has its own error text.
func TestDiscoverySlash(t *testing.T) {
	self, _ := document(t, func(self string) any { return good(self) })
	_, err := NewDiscovery(http.DefaultClient, self+"/", newClock().now, time.Minute).Document(t.Context())
	if err == nil || !strings.Contains(err.Error(), "a slash at the end") {
		t.Error(err)
	}
}

// One fetch serves all waiting callers and is cached for an hour. A failure is not
// repeated at once, and does not remove the old document.
func TestDiscoveryIsKept(t *testing.T) {
	c, down := newClock(), atomic.Bool{}
	self, fetches := document(t, func(self string) any {
		if down.Load() {
			return map[string]any{}
		}
		return good(self)
	})
	d := NewDiscovery(http.DefaultClient, self, c.now, time.Minute)
	fetch := func(want int32) {
		t.Helper()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if doc, err := d.Document(t.Context()); err != nil || doc.TokenURL != self+"/t" {
					t.Errorf("%+v, %v", doc, err)
				}
			})
		}
		wg.Wait()
		if n := fetches.Load(); n != want {
			t.Errorf("fetched %d times, want %d", n, want)
		}
	}
	fetch(1)
	c.advance(59 * time.Minute)
	fetch(1)
	c.advance(time.Minute)
	fetch(2)
	down.Store(true)
	c.advance(time.Hour)
	fetch(3)
	fetch(3)
	c.advance(time.Minute)
	down.Store(false)
	fetch(4)
	fetch(4)
}

func TestPanicOverDocument(t *testing.T) {
	l := latest[int]{timeout: time.Minute}
	_, err := l.get(t.Context(), time.Now(), time.Hour, func(context.Context) (int, error) { panic("s3cr3t") })
	if err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Error(err)
	}
}

// signer is a provider's key.
type signer struct {
	kid    string
	key    crypto.Signer
	method jwt.SigningMethod
}

func (s signer) jwk() jose.JSONWebKey {
	return jose.JSONWebKey{Key: s.key.Public(), KeyID: s.kid, Use: "sig", Algorithm: s.method.Alg()}
}

func (s signer) sign(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(s.method, claims)
	if s.kid != "" {
		token.Header["kid"] = s.kid
	}
	raw, err := token.SignedString(s.key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func signers(t *testing.T) (rs, es, ed signer) {
	t.Helper()
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, d, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{"rs", r, jwt.SigningMethodRS256}, signer{"es", e, jwt.SigningMethodES256}, signer{"ed", d, jwt.SigningMethodEdDSA}
}

// keysOf serves key sets that also contain keys that are not for ID tokens.
func keysOf(t *testing.T, list ...signer) (string, *atomic.Int32) {
	return document(t, func(string) any {
		keys := []any{map[string]string{"kty": "oct", "kid": "sym", "k": "c2VjcmV0"}, map[string]string{"kty": "new"}, 7}
		for _, s := range list {
			keys = append(keys, s.jwk())
		}
		return map[string]any{"keys": keys}
	})
}

func TestVerify(t *testing.T) {
	rs, es, ed := signers(t)
	stranger, _, _ := signers(t)
	stranger.kid = "rs"
	at, _ := keysOf(t, rs, es, ed)
	c := newClock()
	now := c.now()
	symmetric, err := x509.MarshalPKIXPublicKey(rs.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	claims := func(change jwt.MapClaims) jwt.MapClaims {
		m := jwt.MapClaims{"iss": "https://op.test", "sub": "1", "aud": "app", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "nonce": "n"}
		for name, v := range change {
			if m[name] = v; v == nil {
				delete(m, name)
			}
		}
		return m
	}
	hmacToken := func() string {
		token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims(nil))
		token.Header["kid"] = "rs"
		raw, err := token.SignedString(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: symmetric}))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	unsigned, err := jwt.NewWithClaims(jwt.SigningMethodNone, claims(nil)).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	anonymous := rs
	anonymous.kid = ""
	unknown := rs
	unknown.kid = "unpublished"
	signed := func(change jwt.MapClaims) string { return rs.sign(t, claims(change)) }
	parts := strings.Split(signed(nil), ".")
	twice := parts[0] + "." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iss":"https://op.test","aud":"app","sub":"2","sub":"1","exp":%d}`, now.Add(time.Hour).Unix()))
	signature, err := rs.method.Sign(twice, rs.key)
	if err != nil {
		t.Fatal(err)
	}
	twice += "." + base64.RawURLEncoding.EncodeToString(signature)
	for name, tc := range map[string]struct{ raw, reason string }{
		"RS256":             {signed(nil), ""},
		"ES256":             {es.sign(t, claims(nil)), ""},
		"EdDSA":             {ed.sign(t, claims(nil)), ""},
		"no key id":         {anonymous.sign(t, claims(nil)), ""},
		"another app's":     {signed(jwt.MapClaims{"aud": "native"}), ""},
		"two audiences":     {signed(jwt.MapClaims{"aud": []string{"other", "app"}, "azp": "app"}), ""},
		"no azp":            {signed(jwt.MapClaims{"aud": []string{"other", "app"}}), "was issued to another party"},
		"azp of another":    {signed(jwt.MapClaims{"aud": []string{"other", "app"}, "azp": "other"}), "was issued to another party"},
		"another audience":  {signed(jwt.MapClaims{"aud": "s3cr3t"}), "is for another audience"},
		"no audience":       {signed(jwt.MapClaims{"aud": nil}), "is for another audience"},
		"another issuer":    {signed(jwt.MapClaims{"iss": "https://s3cr3t.test"}), "names another issuer"},
		"another case":      {signed(jwt.MapClaims{"iss": "https://OP.test"}), "names another issuer"},
		"no issuer":         {signed(jwt.MapClaims{"iss": nil}), "names another issuer"},
		"expired":           {signed(jwt.MapClaims{"exp": now.Add(-time.Second).Unix()}), "is expired"},
		"without end":       {signed(jwt.MapClaims{"exp": nil}), "is expired"},
		"of tomorrow":       {signed(jwt.MapClaims{"nbf": now.Add(time.Hour).Unix()}), "not valid yet"},
		"a stranger's":      {stranger.sign(t, claims(nil)), "has a wrong signature"},
		"unpublished key":   {unknown.sign(t, claims(nil)), "names a key that is not published"},
		"HS256":             {hmacToken(), "not accepted"},
		"none":              {unsigned, "not accepted"},
		"a claim twice":     {twice, "has claims that are not a valid object"},
		"no signature":      {parts[0] + "." + parts[1] + ".", "has a wrong signature"},
		"another's payload": {parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://op.test","aud":"app","sub":"2","exp":9999999999}`)) + "." + parts[2], "has a wrong signature"},
		"empty":             {"", "malformed"},
		"not a token":       {"s3cr3t", "malformed"},
	} {
		// Each case has its own key set, because lookups of unknown keys are limited.
		got, err := NewKeySet(http.DefaultClient, c.now, time.Minute).Verify(t.Context(), tc.raw, Expected{
			KeysURL: at + "/keys", Algorithms: []string{"RS256", "ES256", "EdDSA", "HS256", "none"}, Audiences: []string{"app", "native"},
			Issuer: func(c map[string]any) string {
				if c["sub"] != "1" {
					t.Errorf("%s: claims that nobody signed: %v", name, c)
				}
				return "https://op.test"
			},
		})
		var fault *TokenError
		switch {
		case tc.reason == "" && (err != nil || got.Nonce != "n" || got.Claims["sub"] != "1" || got.HasAccessTokenHash() || got.VerifyAccessToken("x") == nil):
			t.Errorf("%s: %+v, %v", name, got, err)
		case tc.reason != "" && (!errors.As(err, &fault) || !strings.Contains(err.Error(), tc.reason) || strings.Contains(err.Error(), "s3cr3t")):
			t.Errorf("%s: %v", name, err)
		}
	}
	// An algorithm that the provider does not list, and an unknown issuer.
	for name, want := range map[string]Expected{
		"algorithm": {Algorithms: []string{"RS256"}, Audiences: []string{"app"}, Issuer: func(map[string]any) string { return "https://op.test" }},
		"issuer":    {Algorithms: []string{"ES256"}, Audiences: []string{"app"}, Issuer: func(map[string]any) string { return "" }},
	} {
		want.KeysURL = at + "/keys"
		if _, err := NewKeySet(http.DefaultClient, c.now, time.Minute).Verify(t.Context(), es.sign(t, claims(nil)), want); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAccessTokenHash(t *testing.T) {
	rs, _, _ := signers(t)
	at, _ := keysOf(t, rs)
	c := newClock()
	sum := sha256.Sum256([]byte("theirs"))
	raw := rs.sign(t, jwt.MapClaims{
		"iss": "i", "sub": "1", "aud": "app", "exp": c.now().Add(time.Hour).Unix(), "at_hash": base64.RawURLEncoding.EncodeToString(sum[:16]),
	})
	token, err := NewKeySet(http.DefaultClient, c.now, time.Minute).Verify(t.Context(), raw, Expected{
		KeysURL: at + "/keys", Algorithms: []string{"RS256"}, Audiences: []string{"app"}, Issuer: func(map[string]any) string { return "i" },
	})
	if err != nil || !token.HasAccessTokenHash() || token.VerifyAccessToken("theirs") != nil || token.VerifyAccessToken("another's") == nil {
		t.Errorf("%+v, %v", token, err)
	}
}

// Invented key ids do not flood the provider; a new key is found.
func TestUnknownKeys(t *testing.T) {
	rs, es, _ := signers(t)
	at, fetches := keysOf(t, rs)
	c := newClock()
	keys := NewKeySet(http.DefaultClient, c.now, time.Minute)
	raw := es.sign(t, jwt.MapClaims{"iss": "i", "aud": "app", "exp": c.now().Add(24 * time.Hour).Unix()})
	forged := func(times int, want int32) {
		t.Helper()
		for range times {
			_, err := keys.Verify(t.Context(), raw, Expected{KeysURL: at + "/keys", Algorithms: []string{"ES256"}})
			var fault *TokenError
			if !errors.As(err, &fault) {
				t.Fatal(err)
			}
		}
		if n := fetches.Load(); n != want {
			t.Errorf("fetched %d times, want %d", n, want)
		}
	}
	forged(20, 6) // one, and five for the unknown id
	c.advance(time.Minute)
	forged(5, 7)
	c.advance(5 * time.Minute)
	forged(20, 12)
	c.advance(59 * time.Minute)
	forged(1, 13)
}

// Unavailable keys are not an error of the token.
func TestKeysUnreachable(t *testing.T) {
	rs, _, _ := signers(t)
	c := newClock()
	raw := rs.sign(t, jwt.MapClaims{"iss": "i", "aud": "app", "exp": c.now().Add(time.Hour).Unix()})
	at, _ := keysOf(t, rs)
	_, err := NewKeySet(http.DefaultClient, c.now, time.Minute).Verify(t.Context(), raw, Expected{KeysURL: at + "/missing", Algorithms: []string{"RS256"}})
	var fault *TokenError
	if err == nil || errors.As(err, &fault) || !strings.Contains(err.Error(), "keys: status 404") {
		t.Error(err)
	}
}

func TestParseClaims(t *testing.T) {
	for doc, want := range map[string]map[string]any{
		`{}`:                      {},
		` {"a":1,"b":[{"a":2}]} `: {"a": 1.0, "b": []any{map[string]any{"a": 2.0}}},
		`{"a":1,"A":2}`:           {"a": 1.0, "A": 2.0},
		`{"a":1,"a":1}`:           nil,
		`{"a":1,"\u0061":2}`:      nil,
		`{"a":1}{}`:               nil,
		`{1:2}`:                   nil,
		`{"a":1,}`:                nil,
		`{"a":1`:                  nil,
		`{"a"}`:                   nil,
		`[]`:                      nil,
		`null`:                    nil,
		``:                        nil,
		"{\"a\":\"\xff\"}":        nil,
	} {
		if got, err := ParseClaims([]byte(doc)); (err != nil) != (want == nil) || (want != nil && !reflect.DeepEqual(got, want)) {
			t.Errorf("%s: %v, %v", doc, got, err)
		}
	}
}

func FuzzParseClaims(f *testing.F) {
	for _, s := range []string{`{"sub":"1","email_verified":true}`, `{"a":1,"a":2}`, `{"a":{"a":{}}}`, `{} x`, "{\"\xff\":1}", `[]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseClaims(b)
		if err != nil {
			return
		}
		// Other parsers read accepted claims the same way.
		var loose map[string]any
		if err := json.Unmarshal(b, &loose); err != nil || !reflect.DeepEqual(got, loose) {
			t.Errorf("%q: %v and %v, %v", b, got, loose, err)
		}
	})
}
