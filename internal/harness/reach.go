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
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// HashWorks counts the password hashes that were computed, for tests that
// compare the work done for known and unknown accounts.
func HashWorks(a *auth.Auth) uint64 { return host.Of(a).Hashes() }

// Refund gives back to the store at once what right attempts counted.
func Refund(a *auth.Auth) error { return host.Of(a).Refund(context.Background()) }

// HoldRefunds leaves refunds to Refund and to the next attempts.
func HoldRefunds(a *auth.Auth) { host.Of(a).DelayRefunds() }

// Lease is for how long a message is left to the process that recorded it.
func Lease(a *auth.Auth) time.Duration { return host.Of(a).Lease() }

// OpenMessage returns the kind and the recipient of a sealed message.
func OpenMessage(a *auth.Auth, m store.SealedMessage) (auth.Kind, string, error) {
	return host.Of(a).OpenMessage(m)
}

// NoticeOf is the kind of message that reports an event.
func NoticeOf(e auth.EventType) (auth.Kind, bool) { return host.Of(new(auth.Auth)).NoticeOf(e) }

// WithBodyWait sets how long a client may take to send a body.
func WithBodyWait(d time.Duration) auth.Option {
	return host.Of(new(auth.Auth)).WithBodyWait(d).(auth.Option)
}

// ErrorStatuses is the error table without its messages.
func ErrorStatuses() map[auth.Code]int {
	m := map[auth.Code]int{}
	for code, status := range host.Of(new(auth.Auth)).Statuses() {
		m[auth.Code(code)] = status
	}
	return m
}

// CheapPasswords makes hashing cost next to nothing, for tests about anything but
// that. Call it before the first password.
func CheapPasswords(a *auth.Auth) error {
	_, err := host.Of(a).CheapPasswords()
	return err
}

// NewID makes an id as the flows do.
func NewID(a *auth.Auth) string { return host.Of(a).NewID() }

// routesThat lists the routes that f selects, as "METHOD /path".
func routesThat(a *auth.Auth, f func(host.RouteInfo) bool) []string {
	var list []string
	for _, r := range host.Of(a).RouteTable() {
		if f(r) {
			list = append(list, r.Pattern)
		}
	}
	return list
}

// Routes lists the route table as "METHOD /path".
func Routes(a *auth.Auth) []string {
	return routesThat(a, func(host.RouteInfo) bool { return true })
}

// RouteLimits maps the routes that rate limits may refuse to the names of those.
func RouteLimits(a *auth.Auth) map[string][]string {
	m := map[string][]string{}
	for _, r := range host.Of(a).RouteTable() {
		if len(r.Limits) > 0 {
			m[r.Pattern] = r.Limits
		}
	}
	return m
}

// RoutesWith are the routes that list a code among their errors.
func RoutesWith(a *auth.Auth, c auth.Code) []string {
	return routesThat(a, func(r host.RouteInfo) bool { return slices.Contains(r.Errors, string(c)) })
}

// SessionRoutes are the routes that act within a live session, or may.
func SessionRoutes(a *auth.Auth) []string {
	return routesThat(a, func(r host.RouteInfo) bool { return r.Session })
}

// FormRoutes are the routes that take a page's form.
func FormRoutes(a *auth.Auth) []string {
	return routesThat(a, func(r host.RouteInfo) bool { return r.Form })
}

// IsOpen reports whether a route is for navigations, which anybody may make.
func IsOpen(a *auth.Auth, pattern string) bool {
	return slices.Contains(routesThat(a, func(r host.RouteInfo) bool { return r.Open }), pattern)
}

// SignInRoutes are the routes at which a session may begin: those that a second
// factor may hold up, and those that go on from there.
func SignInRoutes(a *auth.Auth) []string {
	return routesThat(a, func(r host.RouteInfo) bool {
		return slices.Contains(r.Errors, string(auth.CodeMFAEnrollmentRequired)) || strings.HasPrefix(r.Pattern, "POST /2fa/verify")
	})
}

// Document is the OpenAPI document, as a service returns it that is mounted at
// /auth/v1 and has nothing but the root's routes.
func Document() []byte {
	a, err := auth.New(context.Background(), memstore.New(),
		auth.WithSecret(make([]byte, 32)), auth.WithBaseURL("https://auth.test/auth/v1"), auth.WithMailer(NoMail{}))
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

// Root is the repository's root folder, for tests that read files of it.
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
