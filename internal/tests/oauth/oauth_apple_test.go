package oauth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/provider"
)

// Apple's ID tokens name one of two issuers (supabase/auth #2051). Both are the same
// identity; a token of a third issuer or by another key is invalid.
func TestAppleIssuers(t *testing.T) {
	newKey := func() *rsa.PrivateKey {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	key, stranger := newKey(), newKey()
	client, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(client)
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Use: "sig"}}})
	}))
	t.Cleanup(served.Close)
	apple := provider.Apple("app", "team", "key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), func(p *provider.Provider) {
		p.JWKSURL = served.URL
	})
	w := harness.NewWorld(t, auth.WithProvider(apple))
	post := func(issuer string, by *rsa.PrivateKey, verified any) *harness.Answer {
		w.Clock.Advance(time.Second) // each token is used once
		now := w.Clock.Now()
		token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
			"iss": issuer, "aud": "app", "sub": "001.ada", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
			"email": "ada@example.com", "email_verified": verified,
		})
		token.Header["kid"] = "k"
		raw, err := token.SignedString(by)
		if err != nil {
			t.Fatal(err)
		}
		return w.Do("POST", "/oauth/apple/id-token", map[string]any{"id_token": raw})
	}
	user := func(issuer string, verified any) string {
		return post(issuer, key, verified).Session().User.ID
	}
	first := user("https://appleid.apple.com", "true")
	if second := user("https://account.apple.com", true); second != first {
		t.Errorf("the other issuer's token signs in %s instead of %s", second, first)
	}
	if again := user("https://appleid.apple.com", true); again != first {
		t.Errorf("the first issuer's token signs in %s instead of %s", again, first)
	}
	for _, issuer := range []string{"https://account.apple.com/", "http://account.apple.com", "https://account.apple.test", ""} {
		post(issuer, key, true).Want(400, auth.CodeInvalidToken)
	}
	post("https://account.apple.com", stranger, true).Want(400, auth.CodeInvalidToken)
}
