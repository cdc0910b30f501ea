package authclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/memstore"
)

const (
	password  = "correct horse battery 7"
	secretKey = "sk_test_0123456789abcdef"
)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// service is a real one in this process, behind an entry point that tests can make
// misbehave.
type service struct {
	*auth.Auth
	adm   *admin.Admin
	url   string
	clock *clock

	mu    sync.Mutex
	asked []string
	door  func(w http.ResponseWriter, r *http.Request, next http.Handler)
}

func (s *service) set(door func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.door = door
}

// count returns the number of requests for a path.
func (s *service) count(path string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.asked {
		if p == path {
			n++
		}
	}
	return n
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/auth/v1"))
	door := s.door
	s.mu.Unlock()
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", s.Handler())
	mux.Handle("/auth/v1/admin/", s.adm.Handler())
	if door != nil {
		door(w, r, mux)
		return
	}
	mux.ServeHTTP(w, r)
}

func newService(tb testing.TB, opts ...auth.Option) *service {
	tb.Helper()
	s := &service{clock: &clock{at: time.Now().Truncate(time.Second)}}
	srv := httptest.NewServer(s)
	tb.Cleanup(srv.Close)
	s.url = srv.URL
	var err error
	s.Auth, err = auth.New(tb.Context(), memstore.New(), append([]auth.Option{
		auth.WithDevMode(), auth.WithBaseURL(srv.URL + "/auth/v1"), auth.WithClock(s.clock.Now), auth.WithRateLimits(auth.RateLimits{Off: true}),
		auth.WithRedirectURLs("http://127.0.0.1/*"), auth.WithSecretKeys(auth.SecretKey{Key: secretKey, Scopes: []string{"*"}}),
		auth.WithSettings(auth.Settings{AccountDeletion: auth.On}),
	}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := host.Of(s).CheapPasswords(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close(context.Background()) })
	if s.adm, err = admin.New(tb.Context(), s.Auth, admin.Options{RequireMFA: auth.Off}); err != nil {
		tb.Fatal(err)
	}
	return s
}

// quick makes pauses end at once.
func quick(w *wire, c *clock) {
	w.pause = func(ctx context.Context, d time.Duration) error {
		c.Advance(d)
		return ctx.Err()
	}
}

func newClient(tb testing.TB, s *service, opts ...Option) *Client {
	tb.Helper()
	c, err := NewClient(s.url, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	c.wire.now = s.clock.Now
	quick(c.wire, s.clock)
	return c
}

// signedIn returns a client of a new account.
func signedIn(tb testing.TB, s *service, email string, opts ...Option) *Client {
	tb.Helper()
	c := newClient(tb, s, opts...)
	r, err := c.SignUp(tb.Context(), SignUpParams{Email: email, Password: password})
	if err != nil || r.Session == nil {
		tb.Fatal(r, err)
	}
	return c
}

func newVerifier(tb testing.TB, s *service, opts ...Option) *Verifier {
	tb.Helper()
	opts = append(opts, func(c *config) { c.now = s.clock.Now })
	v, err := NewVerifier(tb.Context(), s.url, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func accessToken(tb testing.TB, c *Client) string {
	tb.Helper()
	t, err := c.Token(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func answer(w http.ResponseWriter, status int, code auth.Code, header ...string) {
	w.Header().Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		w.Header().Set(header[i], header[i+1])
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"code": string(code), "message": "m", "request_id": "r"})
}
