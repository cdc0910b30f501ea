package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth/internal/oidc"
)

// ID tokens are taken by the algorithms that their provider says it signs with, and by no
// other.
func TestIDTokensByTheProvidersAlgorithms(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256", "kid": "k", "use": "sig", "x": part(point[1:33]), "y": part(point[33:])}}})
	}))
	t.Cleanup(served.Close)
	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{"iss": "https://op.test", "aud": "app", "sub": "ada", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()})
	token.Header["kid"] = "k"
	raw, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says []string
		good bool
	}{{[]string{"ES256"}, true}, {[]string{"RS256", "ES256"}, true}, {[]string{"RS256"}, false}, {[]string{"EdDSA"}, false}} {
		p := &oauthClient{keys: oidc.NewKeySet(served.Client(), time.Now, time.Minute)}
		_, err := p.verify(t.Context(), endpoints{jwks: served.URL, issuer: "https://op.test", algorithms: c.says}, raw, []string{"app"})
		if (err == nil) != c.good {
			t.Errorf("%v: %v", c.says, err)
		}
	}
}
