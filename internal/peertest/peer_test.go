//go:build peers

// Package peertest signs in through a real OpenID provider, with its own pages,
// in a real browser, at a real server. Run it with make test-peers, which sees
// to it that Node.js and the provider are there.
package peertest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/authmount/auth/internal/browsertest"
)

const (
	clientID     = "peer client"
	clientSecret = "s3cret: with/characters+that%need&encoding-in-the-header" //nolint:gosec // for tests
)

// freePort returns an unused loopback port.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// output collects a process's output and lets the test wait for a line.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) follow(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		o.mu.Lock()
		o.text.WriteString(lines.Text() + "\n")
		o.mu.Unlock()
	}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// run starts a process for the length of the test and waits until it says ready.
func run(t *testing.T, ready string, name string, args ...string) *output {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	o := &output{}
	go o.follow(r)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = r.Close()
	})
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(o.String(), ready); {
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready:\n%s", name, o)
		}
		<-time.After(20 * time.Millisecond)
	}
	return o
}

// peers starts the provider and the server, and returns the server's mount.
func peers(t *testing.T) (mount string, provider *output) {
	t.Helper()
	for _, need := range []string{"node", "node_modules/oidc-provider/package.json"} {
		if _, err := exec.LookPath(need); err != nil && need == "node" {
			t.Fatal("Node.js is missing: run make test-peers, which says what to do")
		}
		if _, err := os.Stat(need); err != nil && need != "node" {
			t.Fatal("the provider is not installed: run make test-peers")
		}
	}
	op, rp := freePort(t), freePort(t)
	mount = "http://127.0.0.1:" + rp + "/auth/v1"
	provider = run(t, "listening", "node", "provider.mjs", op, mount+"/oauth/oidc/callback", clientID, clientSecret)
	bin := filepath.Join(t.TempDir(), "server")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../../examples/server").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run(t, "listening", bin, "-addr", "127.0.0.1:"+rp, "-memory", "-dev-inbox",
		"-oidc-issuer", "http://127.0.0.1:"+op, "-oidc-client-id", clientID, "-oidc-client-secret", clientSecret)
	return mount, provider
}

// logIn fills in the provider's own login page, and consents on its next one.
func logIn(name string) chromedp.Tasks {
	return chromedp.Tasks{
		browsertest.Visible(`input[name="login"]`), browsertest.Type(`input[name="login"]`, name), browsertest.Type(`input[name="password"]`, "anything"),
		browsertest.Click(`button[type="submit"]`),
		browsertest.Visible(`//button[contains(., "Continue")]`), browsertest.Click(`//button[contains(., "Continue")]`),
	}
}

type session struct {
	AccessToken string `json:"access_token"`
	User        struct {
		Email         string `json:"email"`
		EmailVerified bool   `json:"email_verified"`
		FullName      string `json:"full_name"`
		Identities    []struct{ Provider, Subject string }
	} `json:"user"`
}

// arrive waits until the browser shows a page for which the JavaScript condition
// holds. A page that is left meanwhile is no error.
func arrive(ctx context.Context, t *testing.T, condition string) {
	t.Helper()
	for there := false; !there; {
		if err := chromedp.Run(ctx, chromedp.Evaluate(condition+` && document.readyState === 'complete'`, &there)); err != nil && ctx.Err() != nil {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// page reads the JSON that the browser shows.
func page(ctx context.Context, t *testing.T) (s session) {
	t.Helper()
	var text string
	arrive(ctx, t, `location.pathname.startsWith('/auth/v1/')`)
	browsertest.Do(ctx, t, browsertest.Text("body", &text))
	if err := json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &s); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return s
}

// refused reads the page that shows a person an error.
func refused(ctx context.Context, t *testing.T, want string) {
	t.Helper()
	arrive(ctx, t, `location.pathname.startsWith('/auth/v1/') && document.getElementById('title') !== null`)
	var text string
	browsertest.Do(ctx, t, browsertest.Text("body", &text))
	if !strings.Contains(text, "Something went wrong") || !strings.Contains(text, want) {
		t.Errorf("%s, want %s", text, want)
	}
}

// TestSignIn goes through the provider's login and consent pages.
func TestSignIn(t *testing.T) {
	mount, provider := peers(t)
	ctx := browsertest.New(t, 900, 900)
	do := func(steps ...chromedp.Action) { t.Helper(); browsertest.Do(ctx, t, steps...) }

	do(chromedp.Navigate(mount+"/oauth/oidc"), logIn("ada"))
	s := page(ctx, t)
	if s.AccessToken == "" || s.User.Email != "ada@example.com" || !s.User.EmailVerified || s.User.FullName != "ada of the peer" || s.User.Identities[0].Subject != "ada" {
		t.Errorf("session %+v", s)
	}
	if asked := provider.String(); !strings.Contains(asked, `{"nonce":43,"code_challenge_method":"S256"}`) {
		t.Errorf("the request lacked nonce or PKCE: %s", asked)
	}

	// With a redirect the application gets a code. The provider remembers the browser and asks
	// nothing.
	target := mount + "/healthz"
	verifier := strings.Repeat("a-code-verifier-", 3)
	sum := sha256.Sum256([]byte(verifier))
	do(chromedp.Navigate(mount + "/oauth/oidc?redirect_to=" + url.QueryEscape(target) + "&code_challenge=" + base64.RawURLEncoding.EncodeToString(sum[:])))
	arrive(ctx, t, `location.search.includes('code=')`)
	var at string
	do(chromedp.Location(&at))
	u, err := url.Parse(at)
	if err != nil || u.Path != "/auth/v1/healthz" {
		t.Fatalf("%s: %v", at, err)
	}
	body, _ := json.Marshal(map[string]string{"code": u.Query().Get("code"), "code_verifier": verifier})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, mount+"/exchange", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var again session
	if err := json.NewDecoder(res.Body).Decode(&again); err != nil || again.User.Identities[0].Subject != "ada" {
		t.Errorf("exchange: %d %+v %v", res.StatusCode, again, err)
	}

	// The state is used up: going back in the browser's history signs no one in.
	do(chromedp.Navigate(mount + "/oauth/oidc/callback?state=x&code=y"))
	refused(ctx, t, "This sign-in is no longer valid")
}

// TestCancel turns back at the provider's login page.
func TestCancel(t *testing.T) {
	mount, _ := peers(t)
	ctx := browsertest.New(t, 900, 900)
	browsertest.Do(ctx, t, chromedp.Navigate(mount+"/oauth/oidc"), browsertest.Visible(`input[name="login"]`),
		browsertest.Click(`//a[contains(., "Cancel")]`))
	refused(ctx, t, "The sign-in was cancelled.")
}

// TestUnverified: the provider does not vouch for this address, so neither do we.
func TestUnverified(t *testing.T) {
	mount, _ := peers(t)
	ctx := browsertest.New(t, 900, 900)
	browsertest.Do(ctx, t, chromedp.Navigate(mount+"/oauth/oidc"), logIn("unverified"))
	if s := page(ctx, t); s.AccessToken == "" || s.User.EmailVerified {
		t.Errorf("session %+v", s)
	}
}
