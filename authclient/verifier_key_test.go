package authclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/harness"
)

// programKey is a secret key in the store, with scopes.
func programKey(t *testing.T, s *service, p admin.CreateKeyParams) admin.NewKey {
	t.Helper()
	p.Name = "a program"
	k, err := s.adm.CreateKey(t.Context(), admin.System("test"), p)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// keyVerifier is a verifier that may ask about secret keys.
func keyVerifier(t *testing.T, s *service, opts ...Option) *Verifier {
	t.Helper()
	own := programKey(t, s, admin.CreateKeyParams{Scopes: []string{admin.PermKeysVerify}}).Secret.Reveal()
	return newVerifier(t, s, append(opts, WithSecretKey(own))...)
}

func visit(t *testing.T, h http.Handler, bearer string, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("X-Request-Id", "test-request-0001")
	r.Header.Set("Authorization", "Bearer "+bearer)
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var whoCalls = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_ = json.NewEncoder(w).Encode([]any{auth.KeyFrom(r.Context()), ClaimsFrom(r.Context())})
})

const verifyPath = "POST /admin/keys/verify"

// A verifier takes the secret keys that the server's own routes take, with the same
// answers, except keys that are bound to networks.
func TestVerifierTakesKeysAsTheServerDoes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	v, deaf := keyVerifier(t, s), newVerifier(t, s)
	reads := programKey(t, s, admin.CreateKeyParams{Scopes: []string{admin.PermUsersRead}}).Secret.Reveal()
	short := programKey(t, s, admin.CreateKeyParams{Scopes: []string{admin.PermUsersRead}, ExpiresAt: s.clock.Now().Add(time.Hour)}).Secret.Reveal()
	public := programKey(t, s, admin.CreateKeyParams{Public: true}).Secret.Reveal()
	user := accessToken(t, signedIn(t, s, "ada@example.com"))
	browser := func(r *http.Request) { r.Header.Set("Origin", "https://app.example.com") }
	answers := map[int]int{}
	compare := func(name, bearer string, edit ...func(*http.Request)) {
		t.Helper()
		for i, reqs := range [][]auth.Requirement{
			nil, {auth.AllowKeys()}, {auth.HasPermission(admin.PermUsersRead), auth.AllowKeys()}, {auth.AllowKeys(), auth.HasPermission("auth.audit.read")},
			{auth.AllowKeys(), auth.FreshAuth(time.Hour)}, {auth.AllowKeys(), auth.CheckSession()},
		} {
			want, got := visit(t, s.Require(whoCalls, reqs...), bearer, edit...), visit(t, v.Require(whoCalls, reqs...), bearer, edit...)
			if got.Code != want.Code || got.Body.String() != want.Body.String() || got.Header().Get("WWW-Authenticate") != want.Header().Get("WWW-Authenticate") {
				t.Errorf("%s, %d: verifier %d %s, server %d %s", name, i, got.Code, got.Body, want.Code, want.Body)
			}
			answers[got.Code]++
		}
	}
	for name, bearer := range map[string]string{"a key": reads, "of the options": secretKey, "public": public, "invented": "sk_live_invented", "user": user} {
		compare(name, bearer)
	}
	compare("browser", reads, browser)
	compare("not expired", short)
	s.clock.Advance(time.Hour)
	compare("expired", short)
	if answers[200] < 10 || answers[401] < 10 || answers[403] < 5 {
		t.Error(answers)
	}
	bound := programKey(t, s, admin.CreateKeyParams{Scopes: []string{admin.PermUsersRead}, Networks: []string{"0.0.0.0/0", "::/0"}}).Secret.Reveal()
	if w := visit(t, v.Require(whoCalls, auth.AllowKeys()), bound); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), string(auth.CodeInvalidAPIKey)) || !strings.Contains(w.Body.String(), "bound to networks (cidrs)") {
		t.Error("bound to networks:", w.Code, w.Body)
	}
	if w := visit(t, deaf.Require(whoCalls, auth.AllowKeys()), reads); w.Code != http.StatusUnauthorized {
		t.Error("without WithSecretKey:", w.Code, w.Body)
	}
}

// A revoked key works at a verifier for less than ten seconds after the revocation, and the
// server is asked once in that time.
func TestVerifierForgetsKeysInTime(t *testing.T) {
	t.Parallel()
	s := newService(t)
	v := keyVerifier(t, s)
	route := v.Require(whoCalls, auth.AllowKeys())
	k := programKey(t, s, admin.CreateKeyParams{Scopes: []string{admin.PermUsersRead}})
	status := func() int { t.Helper(); return visit(t, route, k.Secret.Reveal()).Code }
	for range 20 {
		if got := status(); got != http.StatusOK {
			t.Fatal(got)
		}
		s.clock.Advance(time.Second / 4)
	}
	if n := s.count(verifyPath); n != 1 {
		t.Errorf("the server was asked %d times in 5 seconds", n)
	}
	if err := s.adm.RevokeKey(t.Context(), admin.System("test"), admin.RevokeKeyParams{ID: k.ID}); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(5*time.Second - 1)
	if got := status(); got != http.StatusOK {
		t.Error("the answer was used for less than ten seconds:", got)
	}
	for range 20 { // requests in between do not prolong it
		s.clock.Advance(1)
		if got := status(); got != http.StatusUnauthorized {
			t.Fatal("ten seconds after the answer:", got)
		}
	}
	if n := s.count(verifyPath); n != 2 {
		t.Errorf("the server was asked %d times about a wrong key", n-1)
	}
}

// The age of an answer counts from its request, because the key may end while it is on its
// way.
func TestVerifierCountsTheTimeOfTheCall(t *testing.T) {
	t.Parallel()
	s := newService(t)
	v := keyVerifier(t, s)
	route := v.Require(whoCalls, auth.AllowKeys())
	k := programKey(t, s, admin.CreateKeyParams{Scopes: []string{admin.PermUsersRead}})
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(w, r)
		s.clock.Advance(3 * time.Second)
		if err := s.adm.RevokeKey(r.Context(), admin.System("test"), admin.RevokeKeyParams{ID: k.ID}); err != nil {
			t.Error(err)
		}
	})
	if w := visit(t, route, k.Secret.Reveal()); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	s.set(nil)
	s.clock.Advance(7 * time.Second)
	if w := visit(t, route, k.Secret.Reveal()); w.Code != http.StatusUnauthorized {
		t.Error(w.Code, w.Body)
	}
}

// An outage or a refusal of the verifier's own key lets nobody in, and is no 401. Invented
// keys do not displace valid ones.
func TestVerifierWithoutAnswersAboutKeys(t *testing.T) {
	t.Parallel()
	s := newService(t)
	v := keyVerifier(t, s)
	k := programKey(t, s, admin.CreateKeyParams{Scopes: []string{admin.PermUsersRead}}).Secret.Reveal()
	route := v.Require(whoCalls, auth.AllowKeys())
	for _, status := range []int{http.StatusBadGateway, http.StatusUnauthorized, http.StatusForbidden, http.StatusFound} {
		s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(status) })
		if w := visit(t, route, k); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d: %d %s", status, w.Code, w.Body)
		}
		s.clock.Advance(questionRest)
	}
	s.set(nil)
	if w := visit(t, newVerifier(t, s, WithSecretKey(k)).Require(whoCalls, auth.AllowKeys()), k); w.Code != http.StatusServiceUnavailable {
		t.Error("without the scope:", w.Code, w.Body)
	}
	if w := visit(t, route, k); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		_, _ = w.Write([]byte(`{"active":false}`))
	})
	for i := range 3 * keysKept {
		if _, err := v.key(t.Context(), fmt.Sprint("sk_", i)); err == nil {
			t.Fatal("an invented key is valid")
		}
	}
	if w := visit(t, route, k); w.Code != http.StatusOK {
		t.Error("invented keys displaced a valid one:", w.Code)
	}
}

func TestWithSecretKeyIsForVerifiers(t *testing.T) {
	t.Parallel()
	s := newService(t)
	if _, err := NewVerifier(t.Context(), s.url, WithSecretKey("pk_live_x")); err == nil {
		t.Error("a public key was taken for a secret one")
	}
	if _, err := NewAdmin(s.url, secretKey, WithSecretKey(secretKey)); err == nil {
		t.Error("NewAdmin took the option")
	}
}

// While the server does not answer, a request waits for it at most once a second, and the log
// says so once a minute, however many requests come. Keys in the cache work on.
func TestVerifierAsksOneAtATimeDuringAnOutage(t *testing.T) {
	t.Parallel()
	s := newService(t)
	var log harness.SyncBuffer
	v := keyVerifier(t, s, WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	route := v.Require(whoCalls, auth.AllowKeys())
	k := programKey(t, s, admin.CreateKeyParams{Scopes: []string{admin.PermUsersRead}}).Secret.Reveal()
	if w := visit(t, route, k); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	asked := s.count(verifyPath)
	s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusBadGateway) })
	for second := range 9 {
		for i := range 20 {
			if w := visit(t, route, fmt.Sprint("sk_live_", second, i)); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
				t.Fatal(w.Code, w.Body)
			}
		}
		if w := visit(t, route, k); w.Code != http.StatusOK {
			t.Fatal("a key in the cache:", w.Code, w.Body)
		}
		s.clock.Advance(questionRest)
	}
	if n := s.count(verifyPath) - asked; n != 9 {
		t.Errorf("asked %d times in nine seconds", n)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "level=WARN msg=\"authclient: the server cannot be asked about secret keys") {
		t.Errorf("%d lines: %s", n, log.String())
	}
	s.clock.Advance(outageLogged)
	visit(t, route, "sk_live_x")
	if n := strings.Count(log.String(), "cannot be asked"); n != 2 {
		t.Errorf("%d lines after a minute: %s", n, log.String())
	}
	// One request asks again, and others do not wait for it.
	s.clock.Advance(questionRest)
	here, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		close(here)
		<-goOn
		next.ServeHTTP(w, r)
	})
	go func() {
		defer close(over)
		if w := visit(t, route, k); w.Code != http.StatusOK {
			t.Error(w.Code, w.Body)
		}
	}()
	<-here
	if w := visit(t, route, "sk_live_y"); w.Code != http.StatusServiceUnavailable {
		t.Error(w.Code, w.Body)
	}
	close(goOn)
	<-over
	s.set(nil)
	if w := visit(t, route, "sk_live_y"); w.Code != http.StatusUnauthorized {
		t.Error("afterwards:", w.Code, w.Body)
	}
}

// Clients cause no outage for others: neither by leaving, nor by a key that the server
// cannot read.
func TestClientsCauseNoOutageOfKeys(t *testing.T) {
	t.Parallel()
	s := newService(t)
	v := keyVerifier(t, s)
	route := v.Require(whoCalls, auth.AllowKeys())
	k := programKey(t, s, admin.CreateKeyParams{Scopes: []string{admin.PermUsersRead}}).Secret.Reveal()
	ctx, leave := context.WithCancel(t.Context())
	s.set(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices that a client leaves only afterwards
		leave()
		<-r.Context().Done()
	})
	visit(t, route, "sk_live_x", func(r *http.Request) { *r = *r.WithContext(ctx) })
	s.set(nil)
	visit(t, route, "sk_live_"+strings.Repeat("x", 200_000))
	if w := visit(t, route, k); w.Code != http.StatusOK {
		t.Error(w.Code, w.Body)
	}
}
