package signin_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

func TestAccessTokenContents(t *testing.T) {
	w := harness.NewWorld(t, auth.WithClaims(func(_ context.Context, u auth.User) (map[string]any, error) {
		return map[string]any{"plan": "pro", "sub": "somebody else", "role": "postgres", "aal": "aal2"}, nil
	}))
	ada := w.LoginAs(t, "ada@example.com", authtest.Roles("editor"), authtest.AppMetadata(map[string]any{"team": 7.0}))
	parts := strings.Split(ada.AccessToken, ".")
	read := func(part string) map[string]any {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	head, body := read(parts[0]), read(parts[1])
	if head["alg"] != "ES256" || head["typ"] != "at+jwt" || head["kid"] == "" {
		t.Errorf("header %v", head)
	}
	for name, want := range map[string]any{
		"iss": authtest.BaseURL, "sub": ada.User.ID, "aud": "authenticated", "session_id": ada.SessionID, "role": "authenticated",
		"email": "ada@example.com", "email_verified": true, "phone": nil, "aal": "aal1", "plan": "pro",
	} {
		if body[name] != want {
			t.Errorf("%s: %v, want %v", name, body[name], want)
		}
	}
	for _, name := range []string{"iat", "exp", "jti", "roles", "permissions", "amr", "app_metadata"} {
		if body[name] == nil {
			t.Errorf("no %s", name)
		}
	}
	if body["user_metadata"] != nil {
		t.Error("user_metadata in the token")
	}
	c, err := w.Verify(ada.AccessToken)
	if err != nil || !c.HasRole("editor") || c.Custom["plan"] != "pro" || c.AppMetadata["team"] != 7.0 || c.AMR[0].Method != "password" ||
		c.UserID != ada.User.ID || c.SessionID != ada.SessionID || c.Email != "ada@example.com" || !c.EmailVerified || c.Phone != "" || c.AAL != store.LevelAAL1 {
		t.Errorf("claims %+v, %v", c, err)
	}
	c, err = w.Verify(w.LoginAs(t, "eve@example.com", authtest.Unverified()).AccessToken)
	if err != nil || c.EmailVerified {
		t.Errorf("claims of an address that is not proved: %+v, %v", c, err)
	}
}

// JWT (RFC 8725): each of these attacks has worked somewhere.
func TestVerifyRefuses(t *testing.T) {
	w := harness.NewWorld(t)
	valid := w.MintToken(t, nil)
	if _, err := w.Verify(valid); err != nil {
		t.Fatal(err)
	}
	parsed, _, err := jwt.NewParser().ParseUnverified(valid, jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	public := w.JWKS()
	sign := func(method jwt.SigningMethod, key any, edit func(*jwt.Token)) string {
		tok := jwt.NewWithClaims(method, parsed.Claims)
		for k, v := range parsed.Header {
			tok.Header[k] = v
		}
		tok.Header["alg"] = method.Alg()
		if edit != nil {
			edit(tok)
		}
		s, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	other, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	now := w.Clock.Now().Unix()
	for name, token := range map[string]string{
		"none":                    sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"HMAC with the key set":   sign(jwt.SigningMethodHS256, public, nil),
		"RSA under an EC kid":     sign(jwt.SigningMethodRS256, rsaKey, nil),
		"another key, same kid":   sign(jwt.SigningMethodES256, other, nil),
		"another key, own kid":    sign(jwt.SigningMethodES256, other, func(t *jwt.Token) { t.Header["kid"] = "other" }),
		"key brought along":       sign(jwt.SigningMethodES256, other, func(t *jwt.Token) { t.Header["jwk"] = map[string]any{"kty": "EC"}; t.Header["kid"] = "x" }),
		"jku":                     sign(jwt.SigningMethodES256, other, func(t *jwt.Token) { t.Header["jku"] = "https://evil.test/jwks"; t.Header["kid"] = "x" }),
		"no kid":                  sign(jwt.SigningMethodES256, other, func(t *jwt.Token) { delete(t.Header, "kid") }),
		"typ JWT":                 sign(jwt.SigningMethodES256, other, func(t *jwt.Token) { t.Header["typ"] = "JWT" }),
		"expired":                 w.MintToken(t, map[string]any{"exp": now - 30}),
		"no expiry":               w.MintToken(t, map[string]any{"exp": nil}),
		"from the future":         w.MintToken(t, map[string]any{"iat": now + 31}),
		"not yet":                 w.MintToken(t, map[string]any{"nbf": now + 31}),
		"another issuer":          w.MintToken(t, map[string]any{"iss": "https://evil.test"}),
		"no issuer":               w.MintToken(t, map[string]any{"iss": nil}),
		"another audience":        w.MintToken(t, map[string]any{"aud": "other"}),
		"no audience":             w.MintToken(t, map[string]any{"aud": nil}),
		"no session":              w.MintToken(t, map[string]any{"session_id": nil}),
		"no subject":              w.MintToken(t, map[string]any{"sub": nil}),
		"subject of another type": w.MintToken(t, map[string]any{"sub": 7}),
		"a byte more":             valid + "A",
		"a part more":             valid + ".x",
		"trailing bits":           flipLastBit(valid),
		"empty":                   "",
		"huge":                    strings.Repeat("a", 20<<10),
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := w.Verify(token); !errors.Is(err, auth.CodeBadToken) {
				t.Errorf("claims %+v, error %v", c, err)
			}
		})
	}
	for name, token := range map[string]string{
		"expired 29 s ago": w.MintToken(t, map[string]any{"exp": now - 29}),
		"29 s early":       w.MintToken(t, map[string]any{"iat": now + 29}),
	} {
		if _, err := w.Verify(token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// flipLastBit changes the unused bits of the last base64 character.
func flipLastBit(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	i := strings.IndexByte(alphabet, token[len(token)-1])
	return token[:len(token)-1] + string(alphabet[i^1])
}

// The same with the right type and key: typ alone decides.
func TestOtherTokensAreNoAccessTokens(t *testing.T) {
	env := harness.NewEnv(t, auth.WithSigningKeys(harness.SigningKey))
	s := env.LoginAs(t, "ada@example.com")
	parsed, _, err := jwt.NewParser().ParseUnverified(s.AccessToken, jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []any{"JWT", "id+jwt", "", nil} {
		tok := jwt.NewWithClaims(jwt.SigningMethodES256, parsed.Claims)
		tok.Header = map[string]any{"alg": "ES256", "kid": parsed.Header["kid"], "typ": typ}
		signed, err := tok.SignedString(harness.SigningKey)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := env.Verify(signed); !errors.Is(err, auth.CodeBadToken) {
			t.Errorf("typ %v passes: %v", typ, err)
		}
	}
	tok := jwt.NewWithClaims(jwt.SigningMethodES256, parsed.Claims)
	tok.Header = map[string]any{"alg": "ES256", "kid": parsed.Header["kid"], "typ": "at+jwt", "crit": []string{"exp"}}
	signed, _ := tok.SignedString(harness.SigningKey)
	if _, err := env.Verify(signed); !errors.Is(err, auth.CodeBadToken) {
		t.Errorf("a critical header passes: %v", err)
	}
}

// A remembered token ends when it expires.
func TestRememberedTokenExpires(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.LoginAs(t, "ada@example.com")
	for range 2 {
		if _, err := w.Verify(ada.AccessToken); err != nil {
			t.Fatal(err)
		}
	}
	w.Clock.Advance(15*time.Minute + 30*time.Second)
	if _, err := w.Verify(ada.AccessToken); !errors.Is(err, auth.CodeBadToken) {
		t.Errorf("error %v", err)
	}
}

func TestAlgorithms(t *testing.T) {
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	for name, opt := range map[string]auth.Option{
		"EdDSA":   auth.WithTokens(auth.TokenOptions{Algorithm: "EdDSA"}),
		"HS256":   auth.WithTokens(auth.TokenOptions{Algorithm: "HS256"}),
		"ES256":   auth.WithTokens(auth.TokenOptions{}),
		"own RSA": auth.WithSigningKeys(rsaKey),
		"own Ed":  auth.WithSigningKeys(ed),
	} {
		t.Run(name, func(t *testing.T) {
			a := harness.NewPlain(t, opt)
			tokens := login(t, a)
			c, err := a.Verify(tokens.AccessToken)
			if err != nil || c.UserID != tokens.User.ID {
				t.Errorf("claims %+v, %v", c, err)
			}
			var set struct{ Keys []map[string]string }
			if err := json.Unmarshal(a.JWKS(), &set); err != nil {
				t.Fatal(err)
			}
			if want := name != "HS256"; (len(set.Keys) == 1) != want {
				t.Errorf("keys %v", set.Keys)
			}
			for _, k := range set.Keys {
				if k["d"] != "" || k["k"] != "" {
					t.Error("a private key is published")
				}
			}
		})
	}
}

// Rotation: tokens of the previous secret or key are valid until they expire, tokens of a
// dropped one are not, and instances agree without key files.
func TestRotation(t *testing.T) {
	one, two := testsecret.Of("1"), testsecret.Of("2")
	store := memstore.New()
	start := func(current []byte, previous ...[]byte) *auth.Auth {
		return harness.NewPlainOn(t, store, auth.WithSecret(current, previous...))
	}
	before := start(one)
	tokens := login(t, before)
	if string(before.JWKS()) != string(start(one).JWKS()) {
		t.Error("two instances have different keys")
	}
	rotated := start(two, one)
	if _, err := rotated.Verify(tokens.AccessToken); err != nil {
		t.Errorf("access token after rotation: %v", err)
	}
	next, err := rotated.Refresh(t.Context(), auth.RefreshParams{RefreshToken: tokens.RefreshToken})
	if err != nil {
		t.Fatalf("refresh token after rotation: %v", err)
	}
	done := start(two)
	if _, err := done.Verify(tokens.AccessToken); !errors.Is(err, auth.CodeBadToken) {
		t.Errorf("access token of a dropped secret: %v", err)
	}
	if _, err := done.Refresh(t.Context(), auth.RefreshParams{RefreshToken: tokens.RefreshToken}); !errors.Is(err, auth.CodeInvalidRefreshToken) {
		t.Errorf("refresh token of a dropped secret: %v", err)
	}
	if _, err := done.Refresh(t.Context(), auth.RefreshParams{RefreshToken: next.RefreshToken}); err != nil {
		t.Errorf("refresh token of the new secret: %v", err)
	}
}

func TestClaimsFailure(t *testing.T) {
	broken := true
	w := harness.NewWorld(t, auth.WithClaims(func(context.Context, auth.User) (map[string]any, error) {
		if broken {
			return nil, errors.New("no database")
		}
		return nil, nil
	}))
	w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(503, auth.CodeUnavailable)
	broken = false
	s := w.PostSignUp("ada@example.com") // nothing was stored at the first attempt
	broken = true
	w.PostRefresh(s.RefreshToken).Want(503, auth.CodeUnavailable)
	broken = false
	w.PostRefresh(s.RefreshToken).Want(200) // no one was logged out
}

func TestRequire(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.LoginAs(t, "ada@example.com", authtest.Roles("editor"))
	inner := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if c := auth.ClaimsFrom(r.Context()); c != nil {
			_, _ = rw.Write([]byte(c.Email))
		}
	})
	call := func(h http.Handler, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec
	}
	for name, c := range map[string]struct {
		h      http.Handler
		token  string
		status int
		body   string
	}{
		"good":               {w.Require(inner), ada.AccessToken, 200, "ada@example.com"},
		"none":               {w.Require(inner), "", 401, ""},
		"bad":                {w.Require(inner), "x", 401, ""},
		"role":               {w.Require(inner, auth.HasRole("editor")), ada.AccessToken, 200, "ada@example.com"},
		"not the role":       {w.Require(inner, auth.HasRole("admin")), ada.AccessToken, 403, ""},
		"not the permission": {w.Require(inner, auth.HasPermission("notes:read")), ada.AccessToken, 403, ""},
		"permission":         {w.Require(inner, auth.HasPermission("notes:read")), w.MintToken(t, map[string]any{"permissions": []string{"notes:read"}}), 200, "minted@example.com"},
		"live session":       {w.Require(inner, auth.CheckSession()), ada.AccessToken, 200, "ada@example.com"},
		"no session":         {w.Require(inner, auth.CheckSession()), w.MintToken(t, nil), 401, ""},
		"optional, none":     {w.Optional(inner), "", 200, ""},
		"optional, good":     {w.Optional(inner), ada.AccessToken, 200, "ada@example.com"},
		"optional, bad":      {w.Optional(inner), "x", 401, ""},
	} {
		rec := call(c.h, c.token)
		if rec.Code != c.status || (c.status == 200 && rec.Body.String() != c.body) {
			t.Errorf("%s: %d %q", name, rec.Code, rec.Body)
		}
	}
}

func login(t *testing.T, a *auth.Auth) *auth.Tokens {
	t.Helper()
	res, err := a.SignUp(t.Context(), auth.SignUpParams{Email: "ada@example.com", Password: harness.GoodPassword})
	if err != nil {
		t.Fatal(err)
	}
	return res.Tokens
}

// The derived key is stable: a change would invalidate every deployment's
// tokens.
func TestDerivedKeyIsStable(t *testing.T) {
	const want = "iM1_cD19qq98FmQZcBG9v0Q6TKfGlAfudRRLjPzsdEo"
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(harness.NewPlain(t).JWKS(), &set); err != nil {
		t.Fatal(err)
	}
	if set.Keys[0]["kid"] != want {
		t.Errorf("kid %q, want %q", set.Keys[0]["kid"], want)
	}
}
