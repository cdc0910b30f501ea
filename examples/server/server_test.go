package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/memstore"
)

// secret is one that New accepts.
const secret = "a-secret-of-the-tests-32-bytes-at-least"

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// start builds and runs the server, and returns its URL and a function that stops it.
func start(t *testing.T, env []string, args ...string) (url string, stop func() error) {
	t.Helper()
	url, _, stop = launch(t, env, args...)
	return url, stop
}

// launch is start that also returns the output before the server listens.
func launch(t *testing.T, env []string, args ...string) (url, shown string, stop func() error) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "server")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), bin, append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env, cmd.Dir = append(cmd.Environ(), env...), t.TempDir()
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(log)
	for url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s%q: %v", shown, line, err)
		}
		shown += line
		if m := regexp.MustCompile(`listening.*addr=(127\.0\.0\.1:\d+)`).FindStringSubmatch(line); m != nil {
			url = "http://" + m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return url, shown, func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return cmd.Wait()
	}
}

func call(t *testing.T, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestServer(t *testing.T) {
	url, stop := start(t, []string{"AUTH_API_KEY=pk_from_environment", "AUTH_DEV_INBOX=true"},
		"-require-confirmation", "-redirect-urls", "http://localhost/*", "-secret", secret)
	key := []string{"apikey", "pk_from_environment"}
	if status, body := call(t, "GET", url+"/auth/v1/settings", ""); status != 401 {
		t.Errorf("no key: %d %s", status, body)
	}
	if status, body := call(t, "GET", url+"/auth/v1/settings", "", key...); status != 200 || !strings.Contains(body, `"email_confirmation_required":true`) {
		t.Errorf("settings: %d %s", status, body)
	}
	status, body := call(t, "POST", url+"/auth/v1/signup", `{"email":"ada@example.com","password":"correct horse battery"}`, key...)
	if status != 200 || !strings.Contains(body, `"confirmation_required":true`) {
		t.Fatalf("sign-up: %d %s", status, body)
	}
	if status, body := verify(t, url, key...); status != 200 {
		t.Errorf("verify: %d %s", status, body)
	}
	if status, body := call(t, "POST", url+"/auth/v1/login", `{"email":"ada@example.com","password":"correct horse battery"}`, key...); status != 200 {
		t.Errorf("login: %d %s", status, body)
	}
	if status, _ := call(t, "GET", url+"/debug/pprof/", ""); status != 404 {
		t.Errorf("pprof is on: %d", status)
	}
	if err := stop(); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// mailedLink returns the link of the sent message.
func mailedLink(t *testing.T, url string) string {
	t.Helper()
	for { // the message is being sent
		_, body := call(t, "GET", url+"/dev/messages", "")
		var list []struct{ Link string }
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		if len(list) > 0 {
			return list[0].Link
		}
	}
}

// verify posts the token of the verification link.
func verify(t *testing.T, url string, headers ...string) (int, string) {
	t.Helper()
	_, token, _ := strings.Cut(mailedLink(t, url), "token=")
	return call(t, "POST", url+"/auth/v1/verify-email", `{"token":"`+token+`","password":"correct horse battery"}`, headers...)
}

// The user with the email address of -owner becomes owner once the address is verified,
// not before.
func TestOwner(t *testing.T) {
	url, stop := start(t, nil, "-dev-inbox", "-owner", "ada@example.com", "-admin-mfa=false")
	me := func() (int, string) {
		_, body := call(t, "POST", url+"/auth/v1/login", `{"email":"ada@example.com","password":"correct horse battery"}`)
		var session struct {
			AccessToken string `json:"access_token"`
		}
		if err := json.Unmarshal([]byte(body), &session); err != nil || session.AccessToken == "" {
			t.Fatalf("%v: %s", err, body)
		}
		return call(t, "GET", url+"/auth/v1/admin/me", "", "Authorization", "Bearer "+session.AccessToken)
	}
	if status, body := call(t, "POST", url+"/auth/v1/signup", `{"email":"ada@example.com","password":"correct horse battery"}`); status != 200 {
		t.Fatalf("sign-up: %d %s", status, body)
	}
	if status, body := me(); status != 403 || !strings.Contains(body, "not_admin") {
		t.Errorf("before: %d %s", status, body)
	}
	if status, body := verify(t, url); status != 200 {
		t.Errorf("verify: %d %s", status, body)
	}
	if status, body := me(); status != 200 || !strings.Contains(body, `"permissions":["*"]`) {
		t.Errorf("after: %d %s", status, body)
	}
	if err := stop(); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// Programs use secret keys, each limited to its scopes.
func TestSecretKey(t *testing.T) {
	const all, reads = "sk_test_0123456789", "sk_test_reads_0123"
	url, stop := start(t, []string{"AUTH_SECRET_KEY=sk_test_of_environment=*"}, "-dev-inbox", "-secret-key", all+"=*", "-secret-key", reads+"=auth.users.read,auth.audit.read")
	call(t, "POST", url+"/auth/v1/signup", `{"email":"ada@example.com","password":"correct horse battery"}`)
	users := func(key string) (int, string) {
		return call(t, "GET", url+"/auth/v1/admin/users", "", "Authorization", "Bearer "+key)
	}
	for _, key := range []string{all, reads, "sk_test_of_environment"} {
		if status, body := users(key); status != 200 || !strings.Contains(body, "ada@example.com") {
			t.Errorf("%d %s", status, body)
		}
	}
	if status, body := users(all + "0"); status != 401 {
		t.Errorf("%d %s", status, body)
	}
	_, body := users(all)
	var page struct{ Users []struct{ ID string } }
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{reads: 403, all: 200} {
		if status, body := call(t, "POST", url+"/auth/v1/admin/users/"+page.Users[0].ID+"/ban", `{"reason":"spam"}`, "Authorization", "Bearer "+key); status != want {
			t.Errorf("%d %s", status, body)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestProviders(t *testing.T) {
	url, _ := start(t, []string{"AUTH_GITHUB_CLIENT_SECRET=from environment"}, "-dev-inbox", "-github-client-id", "gh", "-google-client-id", "g", "-google-client-secret", "s",
		"-microsoft-client-id", "ms", "-microsoft-client-secret", "s", "-microsoft-tenant", "organizations", "-facebook-client-id", "f", "-facebook-client-secret", "s",
		"-twitter-client-id", "t", "-twitter-client-secret", "s", "-discord-client-id", "d", "-discord-client-secret", "s")
	status, body := call(t, "GET", url+"/auth/v1/settings", "")
	if want := `"providers":["discord","facebook","github","google","microsoft","twitter"]`; status != 200 || !strings.Contains(body, want) {
		t.Errorf("settings: %d %s", status, body)
	}
	challenge := strings.Repeat("A", 43)
	for name, host := range map[string]string{
		"google": "accounts.google.com/o/oauth2", "github": "github.com/login/oauth/authorize", "microsoft": "login.microsoftonline.com/organizations/oauth2/v2.0/authorize",
		"facebook": "www.facebook.com/", "twitter": "x.com/i/oauth2/authorize", "discord": "discord.com/",
	} {
		status, body := call(t, "GET", url+"/auth/v1/oauth/"+name+"?code_challenge="+challenge, "", "Accept", "application/json")
		if status != 200 || !strings.Contains(body, host) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

func TestRefusesNonsense(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{
		{"-dev-inbox", "-hash", "md5"}, {"-dev-inbox", "extra"}, {"-nonsense"}, {"-base-url", "https://app.test/auth/v1", "-secret", secret}, {"-dev-inbox", "-smtp-url", "smtp://localhost?from=a@example.com"},
		{"-dev-inbox", "-secret", "short"}, {"-dev-inbox", "-base-url", "https://app.test/auth/v1"}, {"-dev-inbox", "-base-url", "https://localhost/auth/v1", "-secret", secret}, {"-smtp-url", "nonsense"}, {"-dev-inbox", "-oidc-issuer", "https://op.example.com"}, {"-dev-inbox", "-oidc-client-id", "x"},
		{"-dev-inbox", "-apple-client-id", "x", "-apple-private-key", "/nonexistent"}, {"-dev-inbox", "-microsoft-client-id", "x", "-microsoft-tenant", "contoso"}, {"-dev-inbox", "-base-url", "http://app.test/auth/v1"},
		{"-dev-inbox", "-memory", "-database-url", "postgres://127.0.0.1:1/x"}, {"-dev-inbox", "-file", "none/auth.db"}, {"-dev-inbox", "-file", "a.db", "-memory"}, {"-demo", "-file", "a.db"},
		{"-dev-inbox", "-secret-key", "sk_test_0123456789"}, {"-dev-inbox", "-secret-key", "sk_test_0123456789="}, {"-dev-inbox", "-secret-key", "pk_test_0123456789=*"}, {"-dev-inbox", "-secret-key", "sk_test_0123456789=nonsense"},
	} {
		if err := run(append([]string{"-addr", "127.0.0.1:0"}, args...)); err == nil {
			t.Errorf("%v: started", args)
		} else {
			t.Log(fmt.Sprint(args, ": ", err))
		}
	}
}

// Sessions survive a restart, because the data is in a file and the secret beside it. In
// memory nothing is kept.
func TestRestart(t *testing.T) {
	for _, memory := range []bool{false, true} {
		dir := t.TempDir()
		args := []string{"-dev-inbox", "-base-url", "http://127.0.0.1:8080/auth/v1"}
		if memory {
			args = append(args, "-memory")
		} else {
			args = append(args, "-file", filepath.Join(dir, "notes.db"))
		}
		url, shown, stop := launch(t, nil, args...)
		if strings.Contains(shown, filepath.Join(dir, "notes.db")) == memory {
			t.Errorf("memory %v: %s", memory, shown)
		}
		status, body := call(t, http.MethodPost, url+"/auth/v1/signup", `{"email":"ada@example.com","password":"correct horse battery"}`)
		if status != 200 && status != 201 {
			t.Fatal(status, body)
		}
		session := decode(t, body)
		if err := stop(); err != nil {
			t.Error(err)
		}
		url, stop = start(t, nil, args...)
		bearer, _ := session["access_token"].(string)
		refresh, _ := session["refresh_token"].(string)
		me, shownMe := call(t, http.MethodGet, url+"/auth/v1/me", "", "Authorization", "Bearer "+bearer)
		again, _ := call(t, http.MethodPost, url+"/auth/v1/refresh", `{"refresh_token":"`+refresh+`"}`)
		if (me == 200) == memory || (again == 200) == memory {
			t.Errorf("memory %v: %d %s, refresh %d", memory, me, shownMe, again)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		files, err := os.ReadDir(dir)
		if err != nil || memory == (len(files) > 0) {
			t.Errorf("memory %v: files %v, %v", memory, files, err)
		}
		for _, f := range files {
			if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
			}
		}
	}
}

// A missing value is reported as a flag, not as a Go option.
func TestNamesFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	for flag, args := range map[string][]string{"-secret": nil, "-smtp-url": {"-secret", secret}} {
		err := run(append([]string{"-addr", "127.0.0.1:0", "-base-url", "https://app.test/auth/v1"}, args...))
		if err == nil || !strings.HasPrefix(err.Error(), flag+" is required") {
			t.Errorf("without %s: %v", flag, err)
		}
	}
}

// A client that neither sends nor reads is disconnected, and a pprof profile of 30
// seconds still works.
func TestServerBounds(t *testing.T) {
	srv := newServer(nil)
	for name, d := range map[string]time.Duration{
		"ReadHeaderTimeout": srv.ReadHeaderTimeout, "ReadTimeout": srv.ReadTimeout, "WriteTimeout": srv.WriteTimeout, "IdleTimeout": srv.IdleTimeout,
	} {
		if d <= 0 || d > 2*time.Minute {
			t.Errorf("%s: %v", name, d)
		}
	}
	if srv.WriteTimeout < 31*time.Second || srv.MaxHeaderBytes <= 0 || srv.MaxHeaderBytes > 1<<20 {
		t.Errorf("WriteTimeout %v, MaxHeaderBytes %d", srv.WriteTimeout, srv.MaxHeaderBytes)
	}
}

// The link for the first owner is printed on a terminal until there is an owner.
func TestOwnerLink(t *testing.T) {
	ctx := t.Context()
	a, err := auth.New(ctx, memstore.New(), auth.WithSecret([]byte(secret)), auth.WithBaseURL("http://127.0.0.1:8080/auth/v1"), auth.WithDevMode(), auth.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	adm, err := newAdmin(ctx, a, settings{})
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	if err := printOwnerLink(ctx, adm, &shown); err != nil || !strings.Contains(shown.String(), "http://127.0.0.1:8080/auth/v1/admin/first-owner?token=") {
		t.Errorf("%q, %v", shown.String(), err)
	}
	u, err := a.ImportUser(ctx, auth.ImportUserParams{Email: "ada@example.com", EmailVerified: true, Accepted: true, Roles: []string{auth.RoleOwner}})
	if err != nil || u.ID == "" {
		t.Fatal(err)
	}
	shown.Reset()
	if err := printOwnerLink(ctx, adm, &shown); err != nil || shown.String() != "" {
		t.Errorf("with an owner: %q, %v", shown.String(), err)
	}
}
