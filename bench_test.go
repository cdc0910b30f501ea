package auth_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
)

// Compare BareParse with VerifyCold, BareHandler with RequireWarm, and
// BareHash with Login, side by side in one run.

func benchEnv(b *testing.B, opts ...auth.Option) (*authtest.Env, *authtest.SignedIn) {
	b.Helper()
	env := harness.NewEnv(b, append([]auth.Option{auth.WithSigningKeys(harness.SigningKey), auth.WithRateLimits(auth.RateLimits{Off: true}), auth.WithPasswords(auth.PasswordOptions{Argon2id: harness.UsualCost})}, opts...)...)
	return env, env.LoginAs(b, "ada@example.com")
}

func BenchmarkBareParse(b *testing.B) {
	env, ada := benchEnv(b)
	key := func(*jwt.Token) (any, error) { return &harness.SigningKey.PublicKey, nil }
	parser := jwt.NewParser(jwt.WithTimeFunc(env.Clock.Now))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parser.Parse(ada.AccessToken, key); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyCold(b *testing.B) {
	env, ada := benchEnv(b, auth.WithTokens(auth.TokenOptions{Remember: -1}))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := env.Verify(ada.AccessToken); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyWarm(b *testing.B) {
	env, ada := benchEnv(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := env.Verify(ada.AccessToken); err != nil {
			b.Fatal(err)
		}
	}
}

// silent is a response writer without a cost.
type silent struct{ header http.Header }

func (s silent) Header() http.Header { return s.header }

func (silent) Write(p []byte) (int, error) { return len(p), nil }

func (silent) WriteHeader(int) {}

func benchHandler(b *testing.B, wrap func(*authtest.Env, http.Handler) http.Handler) {
	env, ada := benchEnv(b)
	h := wrap(env, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/notes", nil)
	ada.Sign(r)
	w := silent{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

func BenchmarkBareHandler(b *testing.B) {
	benchHandler(b, func(_ *authtest.Env, h http.Handler) http.Handler { return h })
}

func BenchmarkRequireWarm(b *testing.B) {
	benchHandler(b, func(env *authtest.Env, h http.Handler) http.Handler { return env.Require(h) })
}

func BenchmarkLogin(b *testing.B) {
	env, _ := benchEnv(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := env.Login(b.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefreshHandler(b *testing.B) {
	env, ada := benchEnv(b)
	token := ada.RefreshToken
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/auth/v1/refresh", strings.NewReader(`{"refresh_token":"`+token+`"}`))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		env.Handler().ServeHTTP(rec, r)
		var s harness.Session
		if err := json.Unmarshal(rec.Body.Bytes(), &s); err != nil || s.RefreshToken == "" {
			b.Fatalf("%d %s", rec.Code, rec.Body)
		}
		token = s.RefreshToken
	}
}

func BenchmarkMeHandler(b *testing.B) {
	env, ada := benchEnv(b)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/auth/v1/me", nil)
		ada.Sign(r)
		rec := httptest.NewRecorder()
		env.Handler().ServeHTTP(rec, r)
		if rec.Code != http.StatusOK {
			b.Fatalf("%d %s", rec.Code, rec.Body)
		}
	}
}
