package harness

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// HashWorks counts the password hashes that were computed, for tests that
// compare the work done for known and unknown accounts.
func HashWorks(a *auth.Auth) uint64 { return host.Of(a).Hashes() }

// Refund immediately refunds the counts of successful attempts in the store.
func Refund(a *auth.Auth) error { return host.Of(a).Refund(context.Background()) }

// HoldRefunds delays refunds until Refund is called or the next attempt.
func HoldRefunds(a *auth.Auth) { host.Of(a).DelayRefunds() }

// Lease returns how long a message is reserved for the process that recorded it.
func Lease(a *auth.Auth) time.Duration { return host.Of(a).Lease() }

// OpenMessage returns the kind and the recipient of a sealed message.
func OpenMessage(a *auth.Auth, m store.SealedMessage) (auth.Kind, string, error) {
	return host.Of(a).OpenMessage(m)
}

// NoticeOf returns the kind of message that reports an event.
func NoticeOf(e auth.EventType) (auth.Kind, bool) { return host.Of(new(auth.Auth)).NoticeOf(e) }

// WithBodyWait sets how long a client may take to send a body.
func WithBodyWait(d time.Duration) auth.Option {
	return host.Of(new(auth.Auth)).WithBodyWait(d).(auth.Option)
}

// ErrorStatuses returns the status of each error code.
func ErrorStatuses() map[auth.Code]int {
	m := map[auth.Code]int{}
	for code, status := range host.Of(new(auth.Auth)).Statuses() {
		m[auth.Code(code)] = status
	}
	return m
}

// CheapPasswords makes hashing cheap, for tests that do not measure it. Call it before
// the first password.
func CheapPasswords(a *auth.Auth) error {
	_, err := host.Of(a).CheapPasswords()
	return err
}

// NewID returns an id in the flows' format.
func NewID(a *auth.Auth) string { return host.Of(a).NewID() }

// routesThat returns the routes that f selects, as "METHOD /path".
func routesThat(a *auth.Auth, f func(host.RouteInfo) bool) []string {
	var list []string
	for _, r := range host.Of(a).RouteTable() {
		if f(r) {
			list = append(list, r.Pattern)
		}
	}
	return list
}

// Routes returns all routes as "METHOD /path".
func Routes(a *auth.Auth) []string {
	return routesThat(a, func(host.RouteInfo) bool { return true })
}

// RouteLimits maps routes to the names of their rate limits.
func RouteLimits(a *auth.Auth) map[string][]string {
	m := map[string][]string{}
	for _, r := range host.Of(a).RouteTable() {
		if len(r.Limits) > 0 {
			m[r.Pattern] = r.Limits
		}
	}
	return m
}

// RoutesWith returns the routes that list a code among their errors.
func RoutesWith(a *auth.Auth, c auth.Code) []string {
	return routesThat(a, func(r host.RouteInfo) bool { return slices.Contains(r.Errors, string(c)) })
}

// SessionRoutes returns the routes that require or accept a session.
func SessionRoutes(a *auth.Auth) []string {
	return routesThat(a, func(r host.RouteInfo) bool { return r.Session })
}

// FormRoutes returns the routes that accept a page's form.
func FormRoutes(a *auth.Auth) []string {
	return routesThat(a, func(r host.RouteInfo) bool { return r.Form })
}

// IsOpen reports whether a route serves navigations, which need no key.
func IsOpen(a *auth.Auth, pattern string) bool {
	return slices.Contains(routesThat(a, func(r host.RouteInfo) bool { return r.Open }), pattern)
}

// SignInRoutes returns the routes that may create a session: those that may require a
// second factor, and those that complete such a sign-in. Two others continue a session.
func SignInRoutes(a *auth.Auth) []string {
	return routesThat(a, func(r host.RouteInfo) bool {
		return r.Pattern != "POST /refresh" && r.Pattern != "POST /me/confirm" && slices.Contains(r.Errors, string(auth.CodeMFAEnrollmentRequired)) || strings.HasPrefix(r.Pattern, "POST /2fa/verify") || r.Pattern == "POST /me/passkeys"
	})
}

// Document returns the OpenAPI document of a service that is mounted at /auth/v1 and has
// only the root's routes.
func Document() []byte {
	a, err := auth.New(context.Background(), memstore.New(),
		auth.WithSecret(testsecret.Of("document")), auth.WithBaseURL("https://auth.test/auth/v1"), auth.WithMailer(NoMail{}))
	if err != nil {
		panic(err)
	}
	defer func() { _ = a.Close(context.Background()) }()
	rec := httptest.NewRecorder()
	a.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "https://auth.test/auth/v1/openapi.json", http.NoBody))
	if rec.Code != http.StatusOK {
		panic(rec.Body.String())
	}
	return rec.Body.Bytes()
}

// Root returns the repository's root folder, for tests that read its files.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.sum")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	tb.Fatal("no go.sum above the working directory", err)
	return ""
}
