package pgstore_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authclient"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pgstore"
)

// served is an instance of the service on a real server.
type served struct {
	*authtest.Env
	adm *admin.Admin
	srv *http.Server
	end context.CancelFunc // of its feed
	st  *pgstore.Store
}

// twoInstances returns instances that share a database, and the address of a proxy that
// sends connections to the first one that is up.
func twoInstances(t *testing.T) (one, two *served, url string) {
	t.Helper()
	return twoInstancesOn(t, open(t), "")
}

// twoInstancesOn has the feeds connect to another address of the database.
func twoInstancesOn(t *testing.T, st *pgstore.Store, direct string) (one, two *served, url string) {
	t.Helper()
	secret := auth.WithSecret([]byte("a secret of more than thirty-two bytes"))
	var targets []string
	serve := func(opts ...auth.Option) *served {
		s := &served{st: st, Env: authtest.NewOn(t, st, append(opts, secret, auth.WithClock(time.Now))...)}
		var err error
		if s.adm, err = admin.New(t.Context(), s.Auth, admin.Options{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		s.end = cancel
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = st.WatchRevocations(ctx, pgstore.WatchParams{Direct: direct, Notify: s.Revoke, Logger: slog.New(slog.DiscardHandler)})
		}()
		t.Cleanup(func() { cancel(); <-done })
		mux := http.NewServeMux()
		mux.Handle("/auth/v1/admin/", s.adm.Handler())
		mux.Handle("/auth/v1/", s.Handler())
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.srv = &http.Server{Handler: mux, ReadTimeout: time.Second, WriteTimeout: time.Second}
		go func() { _ = s.srv.Serve(l) }()
		t.Cleanup(func() { _ = s.srv.Close() })
		targets = append(targets, l.Addr().String())
		return s
	}
	one = serve()
	two = serve(one.SameKeys())
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go passOn(c, targets)
		}
	}()
	return one, two, "http://" + l.Addr().String()
}

// passOn connects a connection to the first target that answers.
func passOn(c net.Conn, targets []string) {
	defer func() { _ = c.Close() }()
	for _, target := range targets {
		up, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", target)
		if err != nil {
			continue
		}
		var once sync.Once
		end := func() { once.Do(func() { _, _ = up.Close(), c.Close() }) }
		go func() { defer end(); _, _ = bufio.NewReader(up).WriteTo(c) }()
		defer end()
		_, _ = bufio.NewReader(c).WriteTo(up)
		return
	}
}

func feedKey(t *testing.T, s *served, scopes ...string) admin.NewKey {
	t.Helper()
	k, err := s.adm.CreateKey(t.Context(), admin.System("test"), admin.CreateKeyParams{Name: "a service", Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func remote(t *testing.T, s *served, url string, o authclient.RevocationOptions, opts ...authclient.Option) *authclient.Verifier {
	t.Helper()
	key := feedKey(t, s, admin.PermRevocationsRead)
	v, err := authclient.NewVerifier(t.Context(), url, append([]authclient.Option{authclient.WithLogger(slog.New(slog.DiscardHandler)), authclient.WithSecretKey(key.Secret.Reveal()), authclient.WithRevocations(o)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// refusedSoon waits until a verifier refuses a token with a code, and logs how long that took.
func refusedSoon(t *testing.T, v *authclient.Verifier, token string, want auth.Code) {
	t.Helper()
	var err error
	for began := time.Now(); time.Since(began) < 20*time.Second; pause(10 * time.Millisecond) {
		if _, err = v.Verify(t.Context(), token); errors.Is(err, want) {
			t.Logf("refused after %s", time.Since(began))
			return
		}
	}
	t.Errorf("%v, want %s", err, want)
}

func accepted(t *testing.T, v *authclient.Verifier, token string) {
	t.Helper()
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Error(err)
	}
}

func (s *served) signOut(t *testing.T, of *authtest.SignedIn) {
	t.Helper()
	if err := s.Logout(t.Context(), auth.LogoutParams{Caller: auth.Caller{UserID: of.User.ID, SessionID: of.SessionID}}); err != nil {
		t.Fatal(err)
	}
}

// A service without the database refuses revoked and stale tokens within a second, and
// accepts those of the next sign-in and refresh.
func TestRevocationsOverHTTP(t *testing.T) {
	one, two, url := twoInstances(t)
	ada, bob, eve := one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "bob@example.com"), one.LoginAs(t, "eve@example.com")
	two.signOut(t, eve) // before the service starts
	v := remote(t, one, url, authclient.RevocationOptions{})
	refusedSoon(t, v, eve.AccessToken, auth.CodeSessionEnded)
	accepted(t, v, ada.AccessToken)
	pause(3 * time.Second) // longer than the server's time limits
	two.signOut(t, ada)
	refusedSoon(t, v, ada.AccessToken, auth.CodeSessionEnded)
	accepted(t, v, one.LoginAs(t, "ada@example.com").AccessToken)
	accepted(t, v, bob.AccessToken)
	if _, err := two.adm.CreateRole(t.Context(), admin.System("test").Accepting(), admin.CreateRoleParams{Name: "editor"}); err != nil {
		t.Fatal(err)
	}
	if _, err := two.adm.SetRoles(t.Context(), admin.System("test").Accepting(), admin.SetRolesParams{UserID: bob.User.ID, Roles: []string{"editor"}}); err != nil {
		t.Fatal(err)
	}
	refusedSoon(t, v, bob.AccessToken, auth.CodeTokenStale)
	fresh, err := one.Refresh(t.Context(), auth.RefreshParams{RefreshToken: bob.RefreshToken})
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, v, fresh.AccessToken)
	ban(t, one.st, bob.User.ID)
	refusedSoon(t, v, fresh.AccessToken, auth.CodeTokenStale)
	if err := v.RevocationsError(); err != nil {
		t.Error(err)
	}
}

// A verifier goes on at another instance and misses nothing. The Shutdown of a server ends
// its streams.
func TestRevocationsAtAnotherInstance(t *testing.T) {
	one, two, url := twoInstances(t)
	ada, bob := one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "bob@example.com")
	v := remote(t, one, url, authclient.RevocationOptions{FailClosed: true})
	one.end() // its feed ends: it learns nothing of what follows
	two.signOut(t, ada)
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := one.srv.Shutdown(ctx); err != nil || time.Since(begin) > 2*time.Second {
		t.Fatalf("shutdown took %s: %v", time.Since(begin), err)
	}
	refusedSoon(t, v, ada.AccessToken, auth.CodeSessionEnded)
	accepted(t, v, bob.AccessToken)
	two.signOut(t, bob)
	refusedSoon(t, v, bob.AccessToken, auth.CodeSessionEnded)

	eve := two.LoginAs(t, "eve@example.com")
	accepted(t, v, eve.AccessToken)
	_ = two.srv.Close()
	refusedSoon(t, v, eve.AccessToken, auth.CodeRevocationsUnavailable)
	if err := v.RevocationsError(); err == nil {
		t.Error("the outage is not reported")
	}
}

// While the feed is down, a verifier accepts tokens until they expire, unless it fails
// closed; it logs the outage once.
func TestRevocationsOutage(t *testing.T) {
	one, two, url := twoInstances(t)
	ada := one.LoginAs(t, "ada@example.com")
	var log lockedText
	v := remote(t, one, url, authclient.RevocationOptions{}, authclient.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	_, _ = one.srv.Close(), two.srv.Close()
	for end := time.Now().Add(12 * time.Second); v.RevocationsError() == nil && time.Now().Before(end); {
		pause(50 * time.Millisecond)
	}
	pause(4 * time.Second)
	accepted(t, v, ada.AccessToken)
	if n := strings.Count(log.String(), "feed of revocations is down"); n != 1 || v.RevocationsError() == nil {
		t.Errorf("logged %d times: %v", n, v.RevocationsError())
	}
}

// lockedText is a strings.Builder for several goroutines.
type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Only keys with the scope may follow; a key that is revoked ends its streams; an instance
// without a feed says so; streams are bounded.
func TestRevocationStreams(t *testing.T) {
	one, _, url := twoInstances(t)
	get := func(key string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/auth/v1/admin/revocations", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Accept", "text/event-stream")
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	if res := get(feedKey(t, one, admin.PermKeysVerify).Secret.Reveal()); res.StatusCode != http.StatusForbidden { //nolint:bodyclose // closed at the end of the test
		t.Errorf("without the scope: %d", res.StatusCode)
	}
	if _, err := authclient.NewVerifier(t.Context(), url, authclient.WithSecretKey(feedKey(t, one, admin.PermKeysVerify).Secret.Reveal()), authclient.WithRevocations(authclient.RevocationOptions{})); !errors.Is(err, auth.CodeMissingPermission) {
		t.Errorf("a verifier without the scope: %v", err)
	}
	key := feedKey(t, one, admin.PermRevocationsRead)
	var last *http.Response
	for range 200 {
		if last = get(key.Secret.Reveal()); last.StatusCode != http.StatusOK { //nolint:bodyclose // closed at the end of the test
			t.Fatal(last.StatusCode)
		}
	}
	if h := last.Header; h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" || !strings.Contains(h.Get("Cache-Control"), "no-store") {
		t.Error(h)
	}
	if res := get(key.Secret.Reveal()); res.StatusCode != http.StatusServiceUnavailable { //nolint:bodyclose // closed at the end of the test
		t.Errorf("one more stream: %d", res.StatusCode)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(last.Body); lines.Scan(); {
			continue
		}
	}()
	select {
	case <-ended:
		t.Error("the server's time limits ended a stream")
	case <-time.After(2500 * time.Millisecond):
	}
	if err := one.adm.RevokeKey(t.Context(), admin.System("test"), admin.RevokeKeyParams{ID: key.ID}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the stream of a revoked key goes on")
	}

	alone := authtest.New(t)
	adm, err := admin.New(t.Context(), alone.Auth, admin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := adm.Revocations(t.Context(), admin.System("test"), admin.RevocationsParams{}); !errors.Is(err, auth.CodeRevocationsUnavailable) {
		t.Errorf("without a feed: %v", err)
	}
}

// Behind a proxy that holds streams back, a verifier polls. Close ends streams, and a key
// that loses the scope loses its stream.
func TestRevocationsWithoutStreams(t *testing.T) {
	one, _, url := twoInstances(t)
	target, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	passes := httputil.NewSingleHostReverseProxy(target)
	polls := make(chan struct{}, 1000)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "text/event-stream" {
			<-r.Context().Done()
			return
		}
		if strings.HasSuffix(r.URL.Path, "/revocations") {
			polls <- struct{}{}
		}
		passes.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	ada, bob := one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "bob@example.com")
	v := remote(t, one, proxy.URL, authclient.RevocationOptions{FailClosed: true})
	<-polls
	accepted(t, v, ada.AccessToken)
	one.signOut(t, ada)
	refusedSoon(t, v, ada.AccessToken, auth.CodeSessionEnded)
	accepted(t, v, bob.AccessToken)

	key := feedKey(t, one, admin.PermRevocationsRead, admin.PermUsersRead)
	ends := func(why string, f func() error) {
		t.Helper()
		ended := make(chan struct{})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/auth/v1/admin/revocations", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key.Secret.Reveal())
		r.Header.Set("Accept", "text/event-stream")
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		defer func() { _ = res.Body.Close() }()
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, res.Body)
		}()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Errorf("a stream outlasts %s", why)
		}
	}
	scopes := []string{admin.PermUsersRead}
	ends("the scope", func() error {
		_, err := one.adm.UpdateKey(t.Context(), admin.System("test"), admin.UpdateKeyParams{ID: key.ID, Scopes: &scopes})
		return err
	})
	key = feedKey(t, one, admin.PermRevocationsRead)
	ends("Close", func() error { return one.Close(t.Context()) })
}
