package signin_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/memstore"
)

// A verifier with only the secret accepts the tokens. Because the holder of the secret can
// create tokens, these must have the form of the service's own, and a live session where the
// store is read.
func TestSharedSecret(t *testing.T) {
	key, old, other := testsecret.Of("k"), testsecret.Of("o"), testsecret.Of("x")
	w := harness.NewWorld(t, auth.WithSharedSecret(key, old))
	ada := w.LoginAs(t, "ada@example.com")
	_, err := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithAudience("authenticated"), jwt.WithTimeFunc(w.Clock.Now)).
		Parse(ada.AccessToken, func(*jwt.Token) (any, error) { return key, nil })
	if err != nil {
		t.Errorf("for PostgREST: %v", err)
	}
	if w.StatusOf(ada.AccessToken) != 200 || !w.Alive(ada.AccessToken) {
		t.Error("not for ourselves")
	}
	if string(w.JWKS()) != `{"keys":[]}` {
		t.Errorf("published: %s", w.JWKS())
	}
	head, claims := harness.TokenPart(t, ada.AccessToken, 0), harness.TokenPart(t, ada.AccessToken, 1)
	oldID := harness.TokenPart(t, harness.NewWorld(t, auth.WithSharedSecret(old)).LoginAs(t, "bob@example.com").AccessToken, 0)["kid"]
	sign := func(key any, method jwt.SigningMethod, edit func(h, c map[string]any)) string {
		t.Helper()
		tok := jwt.NewWithClaims(method, jwt.MapClaims{})
		for k, v := range head {
			tok.Header[k] = v
		}
		c := jwt.MapClaims{}
		for k, v := range claims {
			c[k] = v
		}
		tok.Header["alg"] = method.Alg()
		edit(tok.Header, c)
		tok.Claims = c
		s, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"made by another who knows it":   {sign(key, jwt.SigningMethodHS256, func(_, c map[string]any) { c["roles"] = []string{"owner"} }), 200},
		"of a previous one":              {sign(old, jwt.SigningMethodHS256, func(h, _ map[string]any) { h["kid"] = oldID }), 200},
		"of another":                     {sign(other, jwt.SigningMethodHS256, func(_, _ map[string]any) {}), 401},
		"previous key, present id":       {sign(old, jwt.SigningMethodHS256, func(_, _ map[string]any) {}), 401},
		"no id of a key":                 {sign(key, jwt.SigningMethodHS256, func(h, _ map[string]any) { delete(h, "kid") }), 401},
		"no type":                        {sign(key, jwt.SigningMethodHS256, func(h, _ map[string]any) { h["typ"] = "JWT" }), 401},
		"no session, as a service token": {sign(key, jwt.SigningMethodHS256, func(_, c map[string]any) { delete(c, "session_id") }), 401},
		"another issuer":                 {sign(key, jwt.SigningMethodHS256, func(_, c map[string]any) { c["iss"] = "https://other.test" }), 401},
		"another audience":               {sign(key, jwt.SigningMethodHS256, func(_, c map[string]any) { c["aud"] = "anon" }), 401},
		"HS512":                          {sign(key, jwt.SigningMethodHS512, func(_, _ map[string]any) {}), 401},
		"none":                           {sign(jwt.UnsafeAllowNoneSignatureType, jwt.SigningMethodNone, func(_, _ map[string]any) {}), 401},
		"of a key pair":                  {sign(harness.SigningKey, jwt.SigningMethodES256, func(_, _ map[string]any) {}), 401},
		"before it was shared":           {harness.NewWorld(t).LoginAs(t, "ada@example.com").AccessToken, 401},
	} {
		if got := w.StatusOf(c.token); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	made := sign(key, jwt.SigningMethodHS256, func(_, c map[string]any) { c["sub"], c["jti"] = "018f0000-0000-7000-8000-000000000000", "x" })
	if w.StatusOf(made) != 200 || w.StatusOf(made, auth.CheckSession()) != 401 || w.Alive(made) {
		t.Error("a token for somebody else on her session")
	}
	if got := w.StatusOf(harness.NewWorld(t, auth.WithSharedSecret(key), auth.WithSigningKeys(harness.SigningKey)).LoginAs(t, "ada@example.com").AccessToken); got != 401 {
		t.Errorf("WithSigningKeys, given last: %d", got)
	}
}

func TestSharedSecretRefused(t *testing.T) {
	secret := testsecret.Of("s")
	for name, opts := range map[string][]auth.Option{
		"short":            {auth.WithSharedSecret([]byte("short"))},
		"short previous":   {auth.WithSharedSecret(testsecret.Of("k"), []byte("short"))},
		"the own secret":   {auth.WithSharedSecret(secret)},
		"a previous one's": {auth.WithSecret(testsecret.Of("n"), secret), auth.WithSharedSecret(secret)},
		"another kind":     {auth.WithSharedSecret(testsecret.Of("k")), auth.WithTokens(auth.TokenOptions{Algorithm: "EdDSA"})},
	} {
		a, err := auth.New(t.Context(), memstore.New(), append([]auth.Option{auth.WithDevMode(), auth.WithSecret(secret)}, opts...)...)
		if err == nil || !strings.Contains(err.Error(), "WithSharedSecret") {
			t.Errorf("%s: %v", name, err)
		}
		if a != nil {
			_ = a.Close(t.Context())
		}
	}
	if _, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithTokens(auth.TokenOptions{TokenType: "id+jwt"})); err == nil || !strings.Contains(err.Error(), "TokenType") {
		t.Errorf("a type of no verifier: %v", err)
	}
}

// A verifier that knows only the issuer finds the keys and accepts a token, at any path of
// the service.
func TestDiscovery(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		tokens auth.TokenOptions
	}{
		"usual path": {"/auth/v1", auth.TokenOptions{}},
		"no path":    {"", auth.TokenOptions{}},
		"EdDSA":      {"/api/auth", auth.TokenOptions{Algorithm: "EdDSA"}},
		"plain":      {"/api/auth", auth.TokenOptions{TokenType: "JWT"}},
	} {
		srv := httptest.NewUnstartedServer(nil)
		issuer := "http://" + srv.Listener.Addr().String() + c.path
		a, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithBaseURL(issuer), auth.WithTokens(c.tokens))
		if err != nil {
			t.Fatal(err)
		}
		srv.Config.Handler = a.Handler()
		srv.Start()
		res, err := a.SignUp(t.Context(), auth.SignUpParams{Email: "ada@example.com", Password: harness.GoodPassword})
		if err != nil {
			t.Fatal(err)
		}
		p, err := oidc.NewProvider(t.Context(), issuer)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		token, err := p.Verifier(&oidc.Config{ClientID: "authenticated"}).Verify(t.Context(), res.Tokens.AccessToken)
		if err != nil || token.Subject != res.User.ID {
			t.Errorf("%s: %v", name, err)
		}
		srv.Close()
		_ = a.Close(context.Background())
	}
	w := harness.NewWorld(t, auth.WithTokens(auth.TokenOptions{Issuer: "https://issuer.test"}))
	doc := w.Do("GET", "/.well-known/openid-configuration", nil).Want(200)
	got := harness.DecodeAs[map[string]any](doc)
	if got["issuer"] != "https://issuer.test" || got["jwks_uri"] != authtest.BaseURL+"/.well-known/jwks.json" {
		t.Errorf("%s", doc.Body)
	}
}

// "amr" as strings lists the factors, and "auth_time" their time.
func TestAMRStrings(t *testing.T) {
	w := harness.NewWorld(t, auth.WithTokens(auth.TokenOptions{AMRStrings: true}))
	ada := w.LoginAs(t, "ada@example.com")
	signedIn := float64(w.Clock.Now().Unix())
	if c := harness.TokenPart(t, ada.AccessToken, 1); !slices.Equal(c["amr"].([]any), []any{"pwd"}) || c["auth_time"] != signedIn {
		t.Errorf("amr %v, auth_time %v", c["amr"], c["auth_time"])
	}
	w.Enrol(ada.AccessToken)
	w.Clock.Advance(10 * time.Minute)
	tokens := w.Do("POST", "/refresh", map[string]any{"refresh_token": ada.RefreshToken}).Session()
	if c := harness.TokenPart(t, tokens.AccessToken, 1); !slices.Equal(c["amr"].([]any), []any{"pwd", "otp", "mfa"}) || c["auth_time"] != signedIn {
		t.Errorf("amr %v, auth_time %v", c["amr"], c["auth_time"])
	}
	for d, want := range map[time.Duration]int{11 * time.Minute: 403, 12 * time.Minute: 200} {
		if got := w.StatusOf(tokens.AccessToken, auth.FreshAuth(d)); got != want {
			t.Errorf("FreshAuth(%v): %d, want %d", d, got, want)
		}
	}
	if got := w.StatusOf(tokens.AccessToken, auth.AAL2()); got != 200 {
		t.Errorf("AAL2: %d", got)
	}
	plain := harness.NewWorld(t)
	c := harness.TokenPart(t, plain.LoginAs(t, "ada@example.com").AccessToken, 1)
	if _, there := c["auth_time"]; there || !strings.Contains(harness.ToJSON(t, c["amr"]), `"method":"password"`) {
		t.Errorf("by default: amr %v, auth_time %v", c["amr"], c["auth_time"])
	}
}

// "JWT" is for verifiers that know no other type. Tokens of before go on; back at
// the default, plain ones are refused.
func TestTokenType(t *testing.T) {
	signing := auth.WithSigningKeys(harness.SigningKey)
	plain, usual := harness.NewWorld(t, signing, auth.WithTokens(auth.TokenOptions{TokenType: "JWT"})), harness.NewWorld(t, signing)
	is, was := plain.LoginAs(t, "ada@example.com").AccessToken, usual.LoginAs(t, "ada@example.com").AccessToken
	if typ := harness.TokenPart(t, is, 0)["typ"]; typ != "JWT" {
		t.Errorf("typ %v", typ)
	}
	for name, got := range map[string][2]int{
		"plain at plain": {plain.StatusOf(is), 200}, "usual at plain": {plain.StatusOf(was), 200},
		"usual at usual": {usual.StatusOf(was), 200}, "plain at usual": {usual.StatusOf(is), 401},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d, want %d", name, got[0], got[1])
		}
	}
}
