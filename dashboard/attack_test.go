package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"golang.org/x/net/html"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/dashboard"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// harmless fails if the page has anything that would run, except the module.
func (b *browser) harmless() {
	b.t.Helper()
	for n := range b.doc.Descendants() {
		if n.Data == "script" && (n.FirstChild != nil || !strings.HasPrefix(attr(n.Attr, "src"), "/dashboard/assets/")) {
			b.t.Errorf("%s has a script of somebody else's", b.at)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || strings.HasPrefix(strings.ToLower(strings.TrimSpace(a.Val)), "javascript:") {
				b.t.Errorf("%s has the attribute %s=%q", b.at, a.Key, a.Val)
			}
		}
		if n.Data == "img" || n.Data == "iframe" || n.Data == "style" {
			b.t.Errorf("%s has a <%s>", b.at, n.Data)
		}
	}
}

func attr(list []html.Attribute, name string) string {
	for _, a := range list {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// No other origin can have a visitor's browser change anything, including those of
// WithCORS and hosts of the same site.
func TestCrossSiteRequests(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{}, auth.WithCORS("https://app.example.com"))
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	posts := []string{"/sign-out", "/sign-in", "/users/export", "/audit/export"}
	for _, deed := range deeds {
		posts = append(posts, ids.Replace(deed.at))
	}
	for _, at := range posts {
		for _, from := range []http.Header{
			{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}},
			{"Sec-Fetch-Site": {"same-site"}, "Origin": {"https://app.example.com"}},
			{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://app.example.com"}},
			{"Origin": {"https://evil.example"}}, {"Origin": {"null"}},
		} {
			b.header.Del("Sec-Fetch-Site")
			b.header.Del("Origin")
			for name, list := range from {
				b.header[name] = list
			}
			b.post("/dashboard"+at, url.Values{"reason": {"x"}})
			if b.status != http.StatusForbidden {
				t.Errorf("POST %s with %v is %d, want 403", at, from, b.status)
			}
		}
	}
	b.header = http.Header{"Accept": {"text/html"}}
	b.get("/dashboard/users")
	b.want(http.StatusOK, "ada@example.com")
}

// The dashboard's cookies open nothing but the dashboard, and no other session opens it.
func TestCookiesOpenNothingElse(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	b := o.signedIn("owner@example.com")
	for _, at := range []string{"/auth/v1/me", "/auth/v1/sessions", "/auth/v1/admin/users"} {
		b.get(at)
		if b.status != http.StatusUnauthorized {
			t.Errorf("with the dashboard's cookies %s is %d, want 401", at, b.status)
		}
	}
	login := o.LoginAs(t, "owner@example.com")
	at, err := url.Parse(o.url)
	if err != nil {
		t.Fatal(err)
	}
	other := o.browser()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"authmount-access": login.AccessToken, "authmount-refresh": login.RefreshToken} {
		jar.SetCookies(at, []*http.Cookie{{Name: name, Value: value, Path: "/"}}) //nolint:gosec // of a browser on http
	}
	other.client.Jar = jar
	other.get("/auth/v1/me")
	if other.status != http.StatusOK {
		t.Fatalf("the application's cookies open /me with %d, so that this test shows nothing", other.status)
	}
	other.get("/dashboard/users")
	if other.at.Path != "/dashboard/sign-in" {
		t.Errorf("with the application's cookies the dashboard shows %s", other.at)
	}
	for _, c := range b.client.Jar.Cookies(at) {
		if !strings.Contains(c.Name, "admin-") && !strings.HasSuffix(c.Name, "device") {
			t.Errorf("the dashboard set the cookie %s", c.Name)
		}
	}
}

// A user who may only read is refused every form, with the API's answer.
func TestWhoMayOnlyLook(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	o.user("auditor@example.com", "auditor")
	o.user("nobody@example.com")
	b := o.signedIn("auditor@example.com")
	before, err := o.adm.AuditLog(t.Context(), admin.System("test").Accepting(), admin.AuditLogParams{})
	if err != nil {
		t.Fatal(err)
	}
	for at, deed := range deeds {
		if deed.at == "" {
			continue
		}
		form := url.Values{"typed": {"ada@example.com"}}
		for name, list := range deed.form {
			form[name] = list
		}
		b.post("/dashboard"+ids.Replace(deed.at), form)
		if b.status != http.StatusForbidden {
			t.Errorf("an auditor's POST of %s is %d, want 403", at, b.status)
		}
		b.get("/dashboard" + ids.Replace(deed.at))
		if b.status != http.StatusForbidden && at != "/users/bulk" {
			t.Errorf("an auditor sees the form %s: %d", at, b.status)
		}
	}
	after, err := o.adm.AuditLog(t.Context(), admin.System("test").Accepting(), admin.AuditLogParams{EventFilter: admin.EventFilter{Outcome: store.EventDone}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range after.Events {
		if e.At.After(before.Events[0].At) && e.Actor.Kind == store.ActorUser && e.Type != auth.EventSignedIn {
			t.Errorf("an auditor did %s", e.Type)
		}
	}
	n := o.browser()
	n.get("/dashboard/")
	n.post(n.at.RequestURI(), url.Values{"login": {"nobody@example.com"}, "password": {authtest.Password}})
	n.want(http.StatusForbidden, "none of your roles opens the dashboard", "Sign out")
	for at := range dashboard.Routes() {
		if strings.Contains(at, "{") && at != "/{$}" || at == "/first-owner" {
			continue
		}
		n.get("/dashboard" + strings.TrimSuffix(at, "{$}"))
		if n.status != http.StatusForbidden && n.status != http.StatusMethodNotAllowed {
			t.Errorf("somebody without a role sees %s: %d", at, n.status)
		}
	}
}

// Pages that require a sign-in are shown to nobody who is not signed in.
func TestNobodySeesAnything(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	for at, methods := range dashboard.Routes() {
		at = strings.NewReplacer("{$}", "", "{role}", "editor", "{id}", "{ada}", "{factor}", "{ada}", "{identity}", "{ada}", "{name}", "enabled").Replace(at)
		for _, method := range methods {
			b := o.browser()
			b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			var form url.Values
			if method == http.MethodPost {
				form = url.Values{"reason": {"x"}}
			}
			b.send(method, "/dashboard"+ids.Replace(at), form)
			if at == "/first-owner" && method != http.MethodPost { // says what the link does
				if strings.Contains(b.text(), "owner@example.com") || b.got.Get("Location") != "" {
					t.Errorf("%s %s without a session: %s", method, at, b.text())
				}
				continue
			}
			if to := b.got.Get("Location"); b.status != http.StatusSeeOther || !strings.HasPrefix(to, "/dashboard/sign-in") {
				t.Errorf("%s %s without a session is %d to %q", method, at, b.status, to)
			}
		}
	}
}

// An action always leads back to the dashboard.
func TestBackStaysHere(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, back := range []string{"//evil.example", `/\evil.example`, "https://evil.example", "javascript:alert(1)", "/\t/evil.example", "@evil.example", "/%0d%0aSet-Cookie:x=y"} {
		b.post("/dashboard"+ids.Replace("/sessions/{session}/end?")+url.Values{"back": {back}}.Encode(), url.Values{})
		if to := b.got.Get("Location"); !strings.HasPrefix(to, "/dashboard/") {
			t.Errorf("back=%q leads to %q", back, to)
		}
		b.get("/dashboard/sign-in?" + url.Values{"return_to": {back}}.Encode())
		if to := b.got.Get("Location"); to != "" && !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.HasPrefix(to, `/\`) {
			t.Errorf("return_to=%q leads to %q", back, to)
		}
	}
}

// A visitor who opens the first owner's link signs in and becomes the owner, once.
func TestFirstOwner(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	if _, err := o.dash.FirstOwnerLink(t.Context()); !errors.Is(err, auth.CodeRoleInUse) {
		t.Errorf("where there is an owner: %v", err)
	}
	e := authtest.New(t, auth.WithDevMode(), auth.WithBaseURL("http://localhost/auth/v1"))
	adm, err := admin.New(t.Context(), e.Auth, admin.Options{RequireMFA: auth.Off})
	if err != nil {
		t.Fatal(err)
	}
	d, err := dashboard.New(adm, dashboard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(d)
	t.Cleanup(srv.Close)
	e.LoginAs(t, "ada@example.com")
	e.LoginAs(t, "eve@example.com")
	link, err := d.FirstOwnerLink(t.Context())
	if err != nil || !strings.HasPrefix(link, "http://localhost/dashboard/first-owner?token=") {
		t.Fatalf("the link is %s, %v", link, err)
	}
	at := strings.TrimPrefix(link, "http://localhost")
	n := &office{Env: e, t: t, url: srv.URL}
	for i, email := range []string{"ada@example.com", "eve@example.com"} {
		b := n.browser()
		b.get(at)
		b.want(http.StatusOK, "This link makes one account the owner")
		for _, l := range b.links() {
			if strings.HasPrefix(l, "/dashboard/sign-in") {
				b.get(l)
			}
		}
		b.post(b.at.RequestURI(), url.Values{"login": {email}, "password": {authtest.Password}})
		if i == 0 {
			b.want(http.StatusOK, "This service has no owner yet.", "Become the owner")
			form := b.form()
			b.post(at, form)
			b.want(http.StatusOK, "You are the owner.", "Users")
			b.get(at) // the owner opens it again
			b.wantOwned(form)
			continue
		}
		b.wantOwned(url.Values{"token": {strings.TrimPrefix(at, "/dashboard/first-owner?token=")}})
	}
}

// wantOwned checks the page of a first owner's link in a service with an owner, before and
// after its form is posted.
func (b *browser) wantOwned(form url.Values) {
	b.t.Helper()
	for range 2 {
		if b.want(http.StatusConflict, "This service already has, or had, an owner."); strings.Contains(b.text(), "no owner yet") || strings.Contains(b.text(), "Become the owner") {
			b.t.Errorf("an owned service has no owner: %s", b.text())
		}
		b.post(b.at.RequestURI(), form)
	}
}

// An owner without a second factor sets one up before any page is shown, if admins need
// one.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{RequireMFA: auth.On})
	b := o.browser()
	b.get("/dashboard/users")
	b.post(b.at.RequestURI(), url.Values{"login": {"owner@example.com"}, "password": {authtest.Password}})
	if b.at.Path != "/dashboard/second-factor" {
		t.Fatalf("an owner without a factor is led to %s\n%s", b.at, b.text())
	}
	b.post(b.at.RequestURI(), url.Values{})
	form := b.form()
	code, err := totp.GenerateCode(form.Get("secret"), o.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	form.Set("code", code)
	form.Set("do", "enable")
	b.post("/dashboard/second-factor", form)
	b.want(http.StatusOK)
	b.get("/dashboard/users")
	if b.at.Path != "/dashboard/users" {
		t.Fatalf("an owner with a factor is led to %s", b.at)
	}
}

// While the service is off, users who may switch it on can use the dashboard.
func TestWhileTheServiceIsOff(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	if _, err := o.adm.SetSettings(t.Context(), admin.System("test").Accepting(), admin.SetSettingsParams{Set: map[string]any{"enabled": false}}); err != nil {
		t.Fatal(err)
	}
	b := o.signedIn("owner@example.com")
	b.get("/dashboard/settings/enabled/edit")
	form := b.form()
	form.Set("value", "1")
	b.post("/dashboard/settings/enabled/edit", form)
	b.want(http.StatusOK, "Saved")
	if !o.Settings(t.Context()).Enabled.On() {
		t.Error("the service is still off")
	}
}

// A form that needs recent authentication asks for a new one, and comes back.
func TestStepUp(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	o.Clock.Advance(16 * time.Minute)
	b.get("/dashboard" + ids.Replace("/users/{ada}/password"))
	if b.at.Path != "/dashboard/sign-in" || b.at.Query().Get("reason") != string(auth.CodeReauthNeeded) {
		t.Fatalf("after 16 minutes the form leads to %s", b.at)
	}
	b.post(b.at.RequestURI(), url.Values{"login": {"owner@example.com"}, "password": {authtest.Password}})
	if b.at.Path != "/dashboard"+ids.Replace("/users/{ada}/password") {
		t.Errorf("signing in again leads to %s", b.at)
	}
}

// With an admin login of the application's own there is no sign-in, and the login's
// identity counts.
func TestOwnAdminLogin(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{Authenticate: func(r *http.Request) (admin.Identity, error) {
		if r.Header.Get("X-Staff") == "" {
			return admin.Identity{}, errors.New("nobody")
		}
		return admin.Identity{ID: "7", Label: "Grace", Permissions: []string{"auth.users.read"}, AAL: store.LevelAAL2, AuthTime: time.Now()}, nil
	}})
	b := o.browser()
	b.get("/dashboard/users")
	b.want(http.StatusUnauthorized)
	b.header.Set("X-Staff", "1")
	b.get("/dashboard/users")
	b.want(http.StatusOK, "Grace", "owner@example.com")
	b.get("/dashboard/keys")
	b.want(http.StatusForbidden)
	b.get("/dashboard/sign-in")
	b.want(http.StatusNotFound)
	b.get("/dashboard/first-owner?token=x") // for accounts only; this visitor has none
	b.want(http.StatusOK)
	b.post("/dashboard/first-owner", b.form())
	b.want(http.StatusUnauthorized, "This needs an access token.")
}

// Any prefix works, and a proxy may remove it.
func TestPrefix(t *testing.T) {
	t.Parallel()
	a := authtest.New(t)
	adm, err := admin.New(t.Context(), a.Auth, admin.Options{RequireMFA: auth.Off})
	if err != nil {
		t.Fatal(err)
	}
	d, err := dashboard.New(adm, dashboard.Options{Prefix: "/a/b/ops", Brand: "Ops"})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []http.Handler{d, http.StripPrefix("/a/b", d), http.StripPrefix("/a/b/ops", d)} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/a/b/ops/users?q=x", nil))
		if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/a/b/ops/sign-in?return_to=%2Fa%2Fb%2Fops%2Fusers%3Fq%3Dx" {
			t.Errorf("the answer is %d to %s", w.Code, to)
		}
	}
	if _, err := dashboard.New(adm, dashboard.Options{Prefix: "no path", Accent: "red"}); err == nil || !strings.Contains(err.Error(), "Prefix") || !strings.Contains(err.Error(), "red") {
		t.Errorf("New with wrong options: %v", err)
	}
}

// An export is a file that has no cells for a spreadsheet to calculate.
func TestExports(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), admin.Options{})
	if _, err := o.adm.CreateUser(t.Context(), admin.System("test").Accepting(), admin.CreateUserParams{Email: "f@example.com", FullName: "=1+1"}); err != nil {
		t.Fatal(err)
	}
	b := o.signedIn("owner@example.com")
	b.post("/dashboard/users/export", url.Values{})
	if !strings.Contains(b.got.Get("Content-Disposition"), "attachment") || !strings.Contains(b.body, "'=1+1") || strings.Contains(b.body, ",=1+1") {
		t.Errorf("the export is %v %.500s", b.got, b.body)
	}
	b.post("/dashboard/audit/export", url.Values{})
	if b.status != http.StatusOK || !strings.HasPrefix(b.body, "id,at,type") {
		t.Errorf("the export of the audit log is %d %.200s", b.status, b.body)
	}
}

// The whole dashboard is small, and so is its first screen.
func TestSize(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	o.scene()
	b := o.signedIn("owner@example.com")
	all := 0
	for _, file := range []string{"dashboard.css", "dashboard.js"} {
		b.get("/dashboard/assets/" + file)
		b.want(http.StatusOK)
		all += packed(t, b.body)
	}
	b.get("/dashboard/")
	first := all + packed(t, b.body)
	t.Logf("style and module %d bytes packed, with the first screen %d", all, first)
	if first > 25_000 {
		t.Errorf("the first screen is %d bytes", first)
	}
}

func packed(t *testing.T, text string) int {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

// Every screen is in the navigation of an owner, and an auditor's navigation has no
// forbidden one.
func TestNavigation(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	o.user("support@example.com", "support")
	owner, support := o.signedIn("owner@example.com").links(), o.signedIn("support@example.com").links()
	for _, at := range []string{"/dashboard/", "/dashboard/users", "/dashboard/sessions", "/dashboard/roles", "/dashboard/audit", "/dashboard/invitations", "/dashboard/messages", "/dashboard/keys", "/dashboard/settings"} {
		if !slices.Contains(owner, at) {
			t.Errorf("the owner's navigation lacks %s", at)
		}
	}
	for _, at := range []string{"/dashboard/keys", "/dashboard/settings", "/dashboard/roles"} {
		if slices.Contains(support, at) {
			t.Errorf("the navigation of support has %s", at)
		}
	}
}
