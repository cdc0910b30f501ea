package harness

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/memstore"
)

// NewWorldOn is NewWorld on a store.
func NewWorldOn(t *testing.T, store auth.Store, opts ...auth.Option) *World {
	t.Helper()
	w := &World{T: t, Log: &SyncBuffer{}}
	base := []auth.Option{WithPasskeys(), auth.WithLogger(slog.New(slog.NewTextHandler(w.Log, &slog.HandlerOptions{Level: slog.LevelDebug})))}
	w.Env = authtest.NewOn(t, store, append(base, opts...)...)
	return w
}

// PermissionClaims returns n permissions of 21 characters.
func PermissionClaims(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("permission-%05d.read", i)
	}
	return list
}

var SigningKey = func() *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return k
}()

func NewPlain(t *testing.T, opts ...auth.Option) *auth.Auth {
	t.Helper()
	return NewPlainOn(t, memstore.New(), opts...)
}

// NewPlainOn is a service without authtest's signing key.
func NewPlainOn(t *testing.T, store auth.Store, opts ...auth.Option) *auth.Auth {
	t.Helper()
	base := []auth.Option{
		auth.WithSecret(testsecret.Of("s")), auth.WithBaseURL("https://auth.test/auth/v1"), auth.WithMailer(NoMail{}),
	}
	a, err := auth.New(t.Context(), store, append(base, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(context.Background()) })
	return a
}

// TokenPart returns the header (0) or the claims (1) of a token.
func TokenPart(t *testing.T, token string, part int) map[string]any {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[part])
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// StatusOf returns the status that a handler with Require answers to a token.
func (w *World) StatusOf(token string, reqs ...auth.Requirement) int {
	w.T.Helper()
	h := w.Require(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }), reqs...)
	return w.DoOn(h, "GET", "/notes", nil, Bearer(token)).Status
}

func ToJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
