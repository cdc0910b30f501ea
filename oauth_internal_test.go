package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"

	"github.com/authmount/auth/internal/journal"
	"github.com/authmount/auth/internal/oidc"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// A provider without a configured timeout uses the default.
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

// The accepted parameters of a sign-in, and values just above their limits.
func TestStartOAuthParams(t *testing.T) {
	a := &Auth{}
	a.settings.now.Store(&inForce{redirects: []redirect.Pattern{{Scheme: "https", Host: "app.test", Path: "/", Below: true}}})
	challenge := base64.RawURLEncoding.EncodeToString(make([]byte, sha256.Size))
	const to = "https://app.test/in"
	type row struct {
		in    StartOAuthParams
		field string // refused field
	}
	rows := []row{
		{StartOAuthParams{Browser: "b"}, ""},
		{StartOAuthParams{}, "code_challenge"},
		{StartOAuthParams{RedirectTo: to}, "code_challenge"},
		{StartOAuthParams{CodeChallenge: challenge}, "code_challenge"},
		{StartOAuthParams{RedirectTo: to, CodeChallenge: challenge}, ""},
		{StartOAuthParams{Browser: "b", CodeChallenge: challenge}, ""},
		{StartOAuthParams{Browser: "b", CodeChallenge: challenge[1:]}, "code_challenge"},
		{StartOAuthParams{Browser: "b", Remote: true}, "code_challenge"},
		{StartOAuthParams{Browser: "b", Remote: true, RedirectTo: to}, "code_challenge"},
		{StartOAuthParams{Browser: "b", Remote: true, CodeChallenge: challenge}, ""},
		{StartOAuthParams{Browser: "b", LoginHint: strings.Repeat("h", 320)}, ""},
		{StartOAuthParams{Browser: "b", LoginHint: strings.Repeat("h", 321)}, "login_hint"},
		{StartOAuthParams{Browser: "b", LoginHint: "\x1f"}, "login_hint"},
		{StartOAuthParams{Browser: "b", LoginHint: " é\u0080"}, ""},
		{StartOAuthParams{Browser: "b", LoginHint: "\x7f"}, "login_hint"},
		{StartOAuthParams{Browser: "b", Prompt: "both"}, "prompt"},
		{StartOAuthParams{Browser: "b", Scopes: slices.Repeat([]string{"s"}, 20)}, ""},
		{StartOAuthParams{Browser: "b", Scopes: slices.Repeat([]string{"s"}, 21)}, "scopes"},
		{StartOAuthParams{Browser: "b", Scopes: []string{strings.Repeat("s", 256), "!#[]~"}}, ""},
	}
	for _, prompt := range []string{"none", "login", "consent", "select_account"} {
		rows = append(rows, row{StartOAuthParams{Browser: "b", Prompt: prompt}, ""})
	}
	for _, scope := range []string{"", strings.Repeat("s", 257), "a b", "a\x00", "a\x7f", `a"`, `a\`, "é"} {
		rows = append(rows, row{StartOAuthParams{Browser: "b", Scopes: []string{"openid", scope}}, "scopes"})
	}
	for _, r := range rows {
		err := a.checkStartOAuthParams(&r.in)
		var e *Error
		if r.field == "" && err != nil || r.field != "" && (!errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[r.field] == "") {
			t.Errorf("%+v: %v, want %q", r.in, err, r.field)
		}
	}
	if err := a.checkStartOAuthParams(&StartOAuthParams{Browser: "b", RedirectTo: "https://evil.test/"}); !errors.Is(err, CodeRedirectNotAllowed) {
		t.Error(err)
	}
}

// The sender of a token knows its nonce, or the text that was hashed for it. A nonce on
// only one side never matches, even as the hash of an empty one.
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

// Of a provider's error, only the code is logged, and only if it has the form of a code.
func TestErrorToken(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"invalid_grant", "AADSTS50011", "access.denied-2", "A", "Z", "a", "z", "0", "9"} {
		if got := errorToken(code); got != code {
			t.Errorf("the code %q is told as %q", code, got)
		}
	}
	for _, text := range []string{"two words", "a@b", "x[y", "`", "{", "/", ":", "é", "a\nb", "sécret"} {
		if got := errorToken(text); got == text {
			t.Errorf("%q is told as it is", text)
		}
	}
}

// A client secret is sent in the header if the provider requires that, however the secret
// is created. A public client has no secret and sends its id in the body.
func TestClientsSecret(t *testing.T) {
	t.Parallel()
	now := time.Unix(1767323045, 0)
	made := func(p *provider.Provider, at time.Time) (string, error) {
		if p.ClientID != "id" || !at.Equal(now) {
			return "", errors.New("not as it should be called")
		}
		return "made", nil
	}
	for name, c := range map[string]struct {
		header bool
		secret string
		make   func(*provider.Provider, time.Time) (string, error)
		style  oauth2.AuthStyle
		want   string
	}{
		"in the body":                  {false, "s", nil, oauth2.AuthStyleInParams, "s"},
		"in the header":                {true, "s", nil, oauth2.AuthStyleInHeader, "s"},
		"made, in the body":            {false, "", made, oauth2.AuthStyleInParams, "made"},
		"made, in the header":          {true, "", made, oauth2.AuthStyleInHeader, "made"},
		"made in place of another":     {true, "s", made, oauth2.AuthStyleInHeader, "made"},
		"none":                         {false, "", nil, oauth2.AuthStyleInParams, ""},
		"none, where headers are used": {true, "", nil, oauth2.AuthStyleInParams, ""},
	} {
		p := &oauthClient{Provider: provider.Provider{ClientID: "id", ClientSecret: c.secret, Secret: c.make}, callback: "https://auth.test/back", now: func() time.Time { return now }}
		got, err := p.config(endpoints{auth: "https://idp.test/a", token: "https://idp.test/t", basicAuth: c.header})
		want := oauth2.Config{ClientID: "id", ClientSecret: c.want, RedirectURL: "https://auth.test/back", Endpoint: oauth2.Endpoint{AuthURL: "https://idp.test/a", TokenURL: "https://idp.test/t", AuthStyle: c.style}}
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Only valid fields of a profile are used, and an invalid email address is not verified.
// The subject must be certain.
func TestProfilesAreCleaned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ is, want provider.Profile }{
		"in order":           {provider.Profile{Subject: "1", Email: "Ada@Example.com", EmailVerified: true, FullName: " Ada "}, provider.Profile{Subject: "1", Email: "Ada@example.com", EmailVerified: true, FullName: "Ada"}},
		"not verified":       {provider.Profile{Subject: "1", Email: "ada@example.com"}, provider.Profile{Subject: "1", Email: "ada@example.com"}},
		"no such address":    {provider.Profile{Subject: "1", Email: "no address", EmailVerified: true, FullName: "Ada"}, provider.Profile{Subject: "1", FullName: "Ada"}},
		"no address":         {provider.Profile{Subject: "1", EmailVerified: true}, provider.Profile{Subject: "1"}},
		"a name that is not": {provider.Profile{Subject: "1", Email: "ada@example.com", FullName: "A\x00"}, provider.Profile{Subject: "1", Email: "ada@example.com"}},
	} {
		if err := cleanProfile(&c.is); err != nil || c.is != c.want {
			t.Errorf("%s: %+v, want %+v, %v", name, c.is, c.want, err)
		}
	}
	for _, subject := range []string{"", "a\nb", strings.Repeat("x", 256)} {
		if cleanProfile(&provider.Profile{Subject: subject, Email: "ada@example.com"}) == nil {
			t.Errorf("%q is somebody", subject)
		}
	}
}

// ID tokens are accepted only with the algorithms that their provider declares.
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
		p := &oauthClient{}
		want := p.expected(endpoints{jwks: served.URL, issuer: "https://op.test", algorithms: c.says}, "app")
		_, err := oidc.NewKeySet(served.Client(), time.Now, time.Minute).Verify(t.Context(), raw, want)
		if (err == nil) != c.good {
			t.Errorf("%v: %v", c.says, err)
		}
	}
}

// An ID token can be used once. A token that lives too long to be remembered is refused
// with a reason of its own. A store failure is neither error. After an internal failure
// the use is refunded as it was drawn.
func TestIDTokensAreUsedUp(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	p := &oauthClient{Provider: provider.Provider{Name: "google"}}
	for name, c := range map[string]struct {
		left   time.Duration
		d      store.Decision
		err    error
		draws  int
		reason string
		code   Code
	}{
		"good":                     {maxIDTokenLife, store.Decision{Allowed: true, Remaining: []int{0}}, nil, 1, "", ""},
		"over already":             {-time.Second, store.Decision{Allowed: true, Remaining: []int{0}}, nil, 1, "", ""},
		"of a store that is away":  {time.Hour, store.Decision{}, errors.New("away"), 1, "", CodeUnavailable},
		"used":                     {time.Hour, store.Decision{Remaining: []int{0}, RetryAfter: time.Hour}, nil, 1, "was used already", ""},
		"that lives for too long":  {maxIDTokenLife + 1, store.Decision{Allowed: true, Remaining: []int{0}}, nil, 0, "lives too long", ""},
		"used, and lives too long": {maxIDTokenLife + time.Hour, store.Decision{Remaining: []int{0}}, nil, 0, "lives too long", ""},
	} {
		var drawn []store.Draw
		st := &drawing{take: func(draws []store.Draw) (store.Decision, error) { drawn = append(drawn, draws...); return c.d, c.err }}
		a := &Auth{keys: testKeys(t), store: st, counter: &journal.Counter{}, cfg: config{now: func() time.Time { return now }}}
		token := nativeToken{expires: now.Add(c.left), sum: [32]byte{1}}
		err := a.useIDToken(t.Context(), p, token)
		var fault *oidc.TokenError
		switch {
		case len(drawn) != c.draws:
			t.Errorf("%s: drew %+v", name, drawn)
		case c.reason != "" && (!errors.As(err, &fault) || fault.Reason != c.reason || !strings.HasSuffix(err.Error(), c.reason)):
			t.Errorf("%s: %v", name, err)
		case c.reason == "" && c.code == "" && err != nil, c.code != "" && !errors.Is(err, c.code):
			t.Errorf("%s: %v", name, err)
		}
		if c.draws == 0 {
			continue
		}
		c.err, c.d = nil, store.Decision{Allowed: true, Remaining: []int{1}}
		a.refundIDToken(t.Context(), p, token)
		if back := drawn[len(drawn)-1]; len(drawn) != 2 || drawn[0].Cost != 1 || back.Cost != -1 || back.Key != drawn[0].Key || back.Rate != drawn[0].Rate {
			t.Errorf("%s: drew %+v", name, drawn)
		}
	}
}

// A used ID token is remembered until a minute after its expiry.
func TestUsedIDTokensAreRememberedLongEnough(t *testing.T) {
	now := time.Unix(1767323045, 0)
	a := &Auth{keys: testKeys(t), cfg: config{now: func() time.Time { return now }}}
	p := &oauthClient{}
	for left, want := range map[time.Duration]time.Duration{-20 * time.Second: time.Minute, 0: time.Minute, time.Hour: 61 * time.Minute} {
		if d := a.idTokenDraw(p, nativeToken{expires: now.Add(left)}, 1); d.Rate != (Rate{Burst: 1, Per: want}) || d.Cost != 1 {
			t.Errorf("%v left: %+v", left, d)
		}
	}
}

// A nonce that only starts like a SHA-256 hash is not one.
func TestNonceThatBeginsLikeAHash(t *testing.T) {
	sum := sha256.Sum256([]byte("x"))
	whole := hex.EncodeToString(sum[:])
	if !slices.Equal(sha256In(whole), sum[:]) {
		t.Error("a hash is not seen")
	}
	for _, more := range []string{"0", "zz", "=", "!"} {
		if got := sha256In(whole + more); got != nil {
			t.Errorf("%q: %x", more, got)
		}
	}
}
