package authclient

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// serve runs the server, and returns its address and a function that kills it.
func serve(t *testing.T, bin, addr string, args ...string) (at string, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, append([]string{"-addr", addr, "-memory", "-dev-inbox", "-admin-mfa=false", "-secret-key", secretKey + "=*"}, args...)...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	lines := bufio.NewReader(log)
	for at == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if m := regexp.MustCompile(`listening.*addr=(127\.0\.0\.1:\d+)`).FindStringSubmatch(line); m != nil {
			at = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return at, kill
}

// The server is another process that is killed, restarts with other keys, is slow, and
// answers 429 and 503.
func TestOtherProcess(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bin := filepath.Join(t.TempDir(), "server")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "../examples/server").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first, second := "the-first-secret-of-32-bytes-and-more", "the-second-secret-of-32-bytes-and-more"
	addr, kill := serve(t, bin, "127.0.0.1:0", "-secret", first)
	base := "http://" + addr

	v, err := NewVerifier(ctx, base)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.SignUp(ctx, SignUpParams{Email: "ada@example.com", Password: password}); err != nil {
		t.Fatal(err)
	}
	old := accessToken(t, c)
	if claims, err := v.Verify(ctx, old); err != nil || claims.Email != "ada@example.com" {
		t.Fatal(claims, err)
	}
	adm, err := NewAdmin(base, secretKey)
	if err != nil {
		t.Fatal(err)
	}
	for u, err := range adm.Users(ctx, UserQuery{}) {
		if err != nil || *u.Email != "ada@example.com" {
			t.Fatal(u, err)
		}
	}

	// A proxy in front of it delays and refuses requests.
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	var refusals atomic.Int32
	var status atomic.Int32
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch s := int(status.Load()); {
		case s == http.StatusGatewayTimeout: // never answers
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the handler does not see that the client leaves
			<-r.Context().Done()
			return
		case s != 0 && refusals.Add(-1) >= 0:
			answer(w, s, auth.CodeOverloaded, "Retry-After", "1")
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	far, err := NewClient(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []int32{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		status.Store(s)
		refusals.Store(1)
		if _, err := far.SignInWithPassword(ctx, PasswordParams{Email: "ada@example.com", Password: password}); err != nil {
			t.Error(s, err)
		}
	}
	status.Store(http.StatusGatewayTimeout)
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if err := far.Refresh(soon); !errors.Is(err, context.DeadlineExceeded) || far.State().Status != StatusSignedIn {
		t.Error("a slow server:", err, far.State())
	}
	status.Store(0)
	if err := far.Refresh(ctx); err != nil {
		t.Error(err)
	}

	kill()
	if err := c.Refresh(ctx); !errors.Is(err, CodeNetwork) || c.State().User == nil {
		t.Error("a killed server:", err, c.State())
	}
	if _, err := v.Verify(ctx, old); err != nil {
		t.Error("the keys went with the server:", err)
	}

	_, kill = serve(t, bin, addr, "-secret", second+","+first)
	fresh, err := NewClient(base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.SignUp(ctx, SignUpParams{Email: "bob@example.com", Password: password}); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(ctx, accessToken(t, fresh)); err != nil {
		t.Error("the keys rotated:", err)
	}
	if _, err := v.Verify(ctx, old); err != nil {
		t.Error("the previous key is published still:", err)
	}
	kill()
	serve(t, bin, addr, "-secret", second)
	if err := v.wait(ctx, v.read()); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(ctx, old); !errors.Is(err, auth.CodeBadToken) {
		t.Error("a withdrawn key:", err)
	}
}
