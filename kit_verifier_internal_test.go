package auth

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth/internal/seal"
	"github.com/authmount/auth/store"
)

// A verifier of another service's tokens that is given other keys is the same verifier:
// of the same service and clock, it asks the same for live sessions, and knows of what
// has ended. Of tokens it knows nothing any more, as their key may be gone.
func TestVerifierWithOtherKeys(t *testing.T) {
	now := time.Unix(1767323045, 0)
	service := func(secret string) *Auth {
		keys, err := newKeyring(&config{secrets: [][]byte{[]byte(secret)}})
		if err != nil {
			t.Fatal(err)
		}
		return &Auth{keys: keys, cfg: config{now: func() time.Time { return now }, tokens: TokenOptions{Issuer: "https://auth.test"}}}
	}
	one, two := service("a secret of the tests', 32 bytes"), service("another of the tests', 32 bytes.")
	token := func(a *Auth, session string) string {
		text, _, err := a.accessToken(t.Context(), User{ID: "ada"}, Session{ID: session, AAL: store.LevelAAL1}, map[string]any{"plan": "free"}, now)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var asked int
	v, err := NewKitVerifier(seal.New(), KitVerifierParams{
		Tokens: TokenOptions{Issuer: "https://auth.test"}, URL: &url.URL{Scheme: "https", Host: "auth.test"}, JWKS: one.keys.jwks,
		Live: func(*http.Request) error { asked++; return fail(CodeSessionEnded, nil) }, Log: slog.New(slog.DiscardHandler), Now: one.cfg.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	good, ended := token(one, "s1"), token(one, "s2")
	want, err := v.Verify(good)
	if err != nil || want.UserID != "ada" || want.SessionID != "s1" || want.Custom["plan"] != "free" {
		t.Fatalf("%+v, %v", want, err)
	}
	if _, err := v.Verify(ended); err != nil {
		t.Fatal(err)
	}
	v.Revoke(store.Revocation{SessionID: "s2", At: now})
	if _, err := v.WithKeys([]byte("{}")); err == nil {
		t.Error("a set without keys is taken")
	}
	for name, v := range map[string]KitVerifier{"before": v, "with the same keys": withKeysOf(t, v, one), "with the same keys again": withKeysOf(t, withKeysOf(t, v, two), one)} {
		if got, err := v.Verify(good); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if _, err := v.Verify(ended); !errors.Is(err, CodeSessionEnded) {
			t.Errorf("%s, what has ended: %v", name, err)
		}
		if _, err := v.Verify(token(two, "s1")); !errors.Is(err, CodeBadToken) || !v.NamesOtherKey(err) {
			t.Errorf("%s, by another key: %v", name, err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+good)
		if admitted, err := v.Admit(r, nil); err != nil || !reflect.DeepEqual(ClaimsFrom(admitted.Context()), want) {
			t.Errorf("%s: %v", name, err)
		}
		before := asked
		if admitted, err := v.Admit(r, []Requirement{CheckSession()}); !errors.Is(err, CodeSessionEnded) || admitted != nil || asked != before+1 {
			t.Errorf("%s: %v, asked %d times", name, err, asked-before)
		}
	}
	other := withKeysOf(t, v, two)
	if _, err := other.Verify(good); !errors.Is(err, CodeBadToken) || !other.NamesOtherKey(err) {
		t.Errorf("a token whose key is gone: %v", err)
	}
	if _, err := other.Verify(token(two, "s2")); !errors.Is(err, CodeSessionEnded) {
		t.Errorf("what has ended, by the new key: %v", err)
	}
	if c, err := other.Verify(token(two, "s3")); err != nil || c.SessionID != "s3" {
		t.Errorf("by the new key: %+v, %v", c, err)
	}
}

func withKeysOf(t *testing.T, v KitVerifier, a *Auth) KitVerifier {
	t.Helper()
	next, err := v.WithKeys(a.keys.jwks)
	if err != nil {
		t.Fatal(err)
	}
	return next
}
