// Package proxy_test runs an application behind a real nginx, in the layouts in which
// services are deployed.
package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/dashboard"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/pages"
)

// layout is a way in which nginx forwards requests.
type layout struct {
	public   string // the path of the application in the browser, "" for the root
	location string // of nginx
	mounted  string // the path of the application behind nginx
	opts     func(base string) []auth.Option
	pages    pages.Options
	dash     dashboard.Options
}

var layouts = map[string]layout{
	"the same paths": {location: "location / { proxy_pass http://UP; proxy_set_header Host $http_host; }"},
	"another host":   {location: "location / { proxy_pass http://UP; }"}, // the application sees nginx's name for it
	"a stripped path": {
		public: "/app", location: "location /app/ { proxy_pass http://UP/; proxy_set_header Host $http_host; }",
		opts: func(base string) []auth.Option {
			return []auth.Option{auth.WithBaseURL(base + "/app/auth/v1"), auth.WithPrefix("/auth/v1"), auth.WithCookies(auth.CookieOptions{})}
		},
	},
	"a path that stays": {
		public: "/app", location: "location /app/ { proxy_pass http://UP; proxy_set_header Host $http_host; }", mounted: "/app",
		opts: func(base string) []auth.Option {
			return []auth.Option{auth.WithBaseURL(base + "/app/auth/v1"), auth.WithCookies(auth.CookieOptions{SignInURL: "/app/account/sign-in"})}
		},
		pages: pages.Options{Prefix: "/app/account", Home: "/app/"}, dash: dashboard.Options{Prefix: "/app/dashboard"},
	},
}

// A visitor signs up, is returned to the page that asked, signs out and in; an operator
// uses the dashboard; a program uses the endpoints.
func TestBehindNginx(t *testing.T) {
	for name, l := range layouts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, id := serve(t, l)
			v := &visitor{t: t, url: base, id: id}
			v.reset()
			v.get(l.public + "/notes?page=2")
			v.at("/account/sign-in", l.public)
			v.wants(200, "Sign in")
			to := v.now.Query().Get("return_to")
			if to != l.public+"/notes?page=2" {
				t.Fatalf("return_to=%s", to)
			}
			v.post(l.public+"/account/sign-up?"+v.now.RawQuery, url.Values{"email": {"ada@example.com"}, "password": {authtest.Password}})
			v.at("/account/email/code", l.public)
			v.get(v.now.Query().Get("return_to"))
			v.wants(200, "notes of ada@example.com, page 2")
			v.get(l.public + "/account/")
			v.wants(200, "ada@example.com")
			v.post(l.public+"/account/sign-out", url.Values{})
			v.at("/account/signed-out", l.public)
			v.get(l.public + "/notes")
			v.post(v.now.RequestURI(), url.Values{"login": {"ada@example.com"}, "password": {authtest.Password}})
			v.wants(200, "notes of ada@example.com")

			v.reset()
			v.get(l.public + "/dashboard/users")
			v.at("/dashboard/sign-in", l.public)
			v.post(v.now.RequestURI(), url.Values{"login": {"owner@example.com"}, "password": {authtest.Password}})
			v.at("/dashboard/users", l.public)
			v.wants(200, "ada@example.com")
			for _, part := range strings.Split(v.body, `"`) {
				if strings.Contains(part, "/assets/") {
					v.get(part)
					v.wants(200, "")
				}
			}
			v.get(l.public + "/dashboard/users/" + v.id + "/impersonate")
			v.post(v.now.RequestURI(), url.Values{"reason": {"ticket 7"}, "return_to": {l.public + "/notes"}})
			v.wants(200, "Act as this user")
			link := actLink.FindStringSubmatch(v.body)
			if link == nil {
				t.Fatalf("no link:\n%.3000s", v.body)
			}
			v.get(strings.TrimPrefix(link[1], v.url))
			v.at("/account/act", l.public)
			v.post(v.now.Path, url.Values{"code": {v.now.Query().Get("code")}})
			v.wants(200, "notes of eve@example.com")

			v.reset()
			v.get(l.public + "/auth/v1/settings")
			v.wants(200, `"signup_enabled":true`)
		})
	}
}

var actLink = regexp.MustCompile(`href="([^"]+/act\?code=[^"]+)"`)

// serve runs the application of a layout behind nginx, and returns nginx's URL and the id of
// the account of Eve.
func serve(t *testing.T, l layout) (base, eve string) {
	t.Helper()
	port := freePort(t)
	base = "http://127.0.0.1:" + port
	opts := []auth.Option{auth.WithBaseURL(base + "/auth/v1"), auth.WithCookies(auth.CookieOptions{})}
	if l.opts != nil {
		opts = l.opts(base)
	}
	env := authtest.NewOn(t, memstore.New(), append(opts, auth.WithDevMode())...)
	adm, err := admin.New(t.Context(), env.Auth, admin.Options{RequireMFA: auth.Off})
	if err != nil {
		t.Fatal(err)
	}
	dash, err := dashboard.New(adm, l.dash)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = adm.CreateUser(t.Context(), admin.System("test").Accepting(), admin.CreateUserParams{Email: "owner@example.com", EmailVerified: true, Password: authtest.Password, Roles: []string{auth.RoleOwner}}); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(l.mounted+"/auth/v1/", env.Handler())
	mux.Handle(l.mounted+"/account/", pages.Must(env.Auth, l.pages))
	mux.Handle(l.mounted+"/dashboard/", dash)
	mux.Handle(l.mounted+"/notes", env.RequirePage(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "notes of %s, page %s", auth.ClaimsFrom(r.Context()).Email, r.FormValue("page")) //nolint:gosec // the test's own text
	})))
	u, err := adm.CreateUser(t.Context(), admin.System("test"), admin.CreateUserParams{Email: "eve@example.com", EmailVerified: true})
	if err != nil {
		t.Fatal(err)
	}
	app := httptest.NewServer(mux)
	t.Cleanup(app.Close)
	nginx(t, port, strings.ReplaceAll(l.location, "UP", strings.TrimPrefix(app.URL, "http://")))
	return base, u.ID
}

// nginx runs until the test ends.
func nginx(t *testing.T, port, location string) {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx"
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr notice;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	server { listen 127.0.0.1:%[2]s; %[3]s }
}
`, dir, port, location)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-c", conf, "-p", dir, "-e", "stderr") //nolint:noctx // stopped below
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run scripts/ensure-nginx.sh (make test does)", err)
	}
	ready, ended := make(chan struct{}), make(chan string, 1)
	go func() {
		var out strings.Builder
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if out.WriteString(lines.Text() + "\n"); strings.Contains(lines.Text(), "event method") { // it listens
				close(ready)
			}
		}
		ended <- out.String()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		out := <-ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out)
		}
	})
	select {
	case <-ready:
	case out := <-ended:
		ended <- out
		t.Fatal("nginx ended")
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

// visitor is a browser without scripts.
type visitor struct {
	t      *testing.T
	url    string
	id     string // of the account of Eve
	client *http.Client
	now    *url.URL
	status int
	body   string
}

// reset makes the visitor another browser.
func (v *visitor) reset() {
	v.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		v.t.Fatal(err)
	}
	v.client = &http.Client{Jar: jar}
}

func (v *visitor) get(to string) { v.t.Helper(); v.send(http.MethodGet, to, nil) }

func (v *visitor) post(to string, form url.Values) { v.t.Helper(); v.send(http.MethodPost, to, form) }

func (v *visitor) send(method, to string, form url.Values) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(v.t.Context()), method, v.url+to, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html, */*")
	r.Header.Set("Accept-Language", "en")
	if form != nil { // a browser that sends no Sec-Fetch-Site
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", v.url)
	}
	res, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	v.now, v.status, v.body = res.Request.URL, res.StatusCode, string(body)
}

// at fails unless the browser is at a path below the public one.
func (v *visitor) at(path, public string) {
	v.t.Helper()
	if v.now.Path != public+path || v.status != http.StatusOK {
		v.t.Fatalf("at %s, %d; want %s", v.now, v.status, public+path)
	}
}

func (v *visitor) wants(status int, text string) {
	v.t.Helper()
	if v.status != status || !strings.Contains(v.body, text) {
		v.t.Fatalf("%s: %d, want %d and %q\n%.3000s", v.now, v.status, status, text, v.body)
	}
}
