package dashboard_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/dashboard"
	"github.com/authmount/auth/memstore"
)

// No answer of the dashboard (pages, refusals, redirects, files) may be framed or kept by
// a shared cache. The style and the module are the same for all users: they come without
// cookies, so that a cache may keep them.
func TestNobodyFramesOrKeepsPages(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), admin.Options{})
	ids := o.ids()
	o.user("auditor@example.com", "auditor")
	owner, auditor, nobody := o.signedIn("owner@example.com"), o.signedIn("auditor@example.com"), o.browser()
	for _, b := range []*browser{owner, auditor, nobody} {
		b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	paths := []string{"/sign-in", "/sign-in?reason=reauthentication_needed", "/forgot-password", "/signed-out", "/nothing-is-here", "/users/00000000-0000-7000-8000-000000000000", "/users?sort=wrong"}
	for at := range dashboard.Routes() {
		paths = append(paths, strings.NewReplacer("{$}", "", "{role}", "editor", "{id}", "{ada}", "{factor}", "{ada}", "{identity}", "{ada}", "{name}", "enabled").Replace(at))
	}
	for _, at := range paths {
		for who, b := range map[string]*browser{"an owner": owner, "an auditor": auditor, "nobody": nobody} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				var form url.Values
				if method == http.MethodPost {
					if strings.HasPrefix(at, "/sign") || strings.Contains(at, "{") || strings.HasPrefix(at, "/sessions") {
						continue // would end the session of the next requests
					}
					form = url.Values{}
				}
				b.send(method, "/dashboard"+ids.Replace(at), form)
				if cache := b.got.Get("Cache-Control"); !strings.Contains(cache, "no-store") {
					t.Errorf("%s %s for %s is %d with Cache-Control %q", method, at, who, b.status, cache)
				}
				if !strings.HasPrefix(b.got.Get("Content-Type"), "text/html") {
					continue
				}
				if p := b.got.Get("Content-Security-Policy"); !strings.Contains(p, "frame-ancestors 'none'") || b.got.Get("X-Frame-Options") != "DENY" {
					t.Errorf("%s %s for %s is %d with %v", method, at, who, b.status, b.got)
				}
			}
		}
	}
	for _, file := range []string{"dashboard.css", "dashboard.js"} {
		owner.get("/dashboard/assets/" + file)
		if owner.status != http.StatusOK || owner.got.Get("Set-Cookie") != "" || strings.Contains(owner.got.Get("Cache-Control"), "no-store") {
			t.Errorf("%s: %d %v", file, owner.status, owner.got)
		}
	}
}

// Another host of the domain can neither plant a cookie that the dashboard accepts nor
// receive one, because browsers let only the host itself set cookies with these names.
func TestCookiesOfSiblingHosts(t *testing.T) {
	t.Parallel()
	e := authtest.New(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	adm, err := admin.New(t.Context(), e.Auth, admin.Options{RequireMFA: auth.Off})
	if err != nil {
		t.Fatal(err)
	}
	d, err := dashboard.New(adm, dashboard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner))
	send := func(method, target string, form url.Values, cookies ...string) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), method, "https://auth.test"+target, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Cookie", strings.Join(cookies, "; "))
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		return w.Result()
	}
	res := send(http.MethodPost, "/dashboard/sign-in", url.Values{"login": {"owner@example.com"}, "password": {authtest.Password}}) //nolint:bodyclose // a recorder's
	var access string
	for _, c := range res.Cookies() {
		if !strings.HasPrefix(c.Name, "__Host-") || c.Domain != "" || c.Path != "/" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
			t.Errorf("a cookie that another host could set or get: %v", c)
		}
		if strings.HasSuffix(c.Name, "admin-access") {
			access = c.Name + "=" + c.Value
		}
	}
	if access == "" {
		t.Fatalf("not signed in: %d %v", res.StatusCode, res.Header)
	}
	name, value, _ := strings.Cut(access, "=")
	for what, cookies := range map[string][]string{
		"its own":                            {access},
		"without the prefix":                 {strings.TrimPrefix(name, "__Host-") + "=" + value},
		"of the other prefix":                {"__Secure-" + strings.TrimPrefix(name, "__Host-") + "=" + value},
		"two of one name":                    {access, name + "=planted"},
		"two of one name, planted one first": {name + "=planted", access},
	} {
		got := send(http.MethodGet, "/dashboard/users", nil, cookies...).StatusCode //nolint:bodyclose // likewise
		if want := map[bool]int{true: http.StatusOK, false: http.StatusSeeOther}[what == "its own"]; got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
}

// The content of the notice cookie is shown as text, even if it is forged.
func TestForgedNotices(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), admin.Options{})
	for _, value := range []string{
		hostile, "<script>alert(1)</script>", `[{"l":7}]`, `{"l":7}`, "null", strings.Repeat("x", 3000), "\x00\xff",
	} {
		b := o.signedIn("owner@example.com")
		b.header.Set("Cookie", "authmount-admin-notice="+base64.RawURLEncoding.EncodeToString([]byte(value)))
		b.get("/dashboard/roles")
		b.want(http.StatusOK, "Roles and permissions")
		b.harmless()
		if strings.HasPrefix(value, "<script>") && !strings.Contains(b.text(), value) {
			t.Error("the notice is not shown, so that this test shows nothing")
		}
	}
}

// During an impersonation every page of the operator shows it, until it ends.
func TestActing(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	b.post("/dashboard"+ids.Replace("/users/{ada}/impersonate"), url.Values{"reason": {"ticket 7"}, "redirect_to": {o.url + "/app"}, "code_challenge": {actChallenge}})
	b.want(http.StatusOK, "The link is valid for one minute.")
	const says = "In the application you act as ada@example.com."
	b.get("/dashboard/roles")
	b.want(http.StatusOK, says)
	o.Clock.Advance(10 * time.Minute)
	b.post("/dashboard/users/"+o.user("cyd@example.com").ID+"/impersonate", url.Values{"reason": {"ticket 8"}, "redirect_to": {o.url + "/app"}, "code_challenge": {actChallenge}})
	b.want(http.StatusOK, "The link is valid for one minute.")
	b.get("/dashboard/roles")
	b.want(http.StatusOK, says, "In the application you act as cyd@example.com.")
	var end string
	for _, to := range b.links() {
		if strings.HasPrefix(to, "/dashboard/impersonations/") && end == "" {
			end = to
		}
	}
	b.post(end, url.Values{})
	b.want(http.StatusOK, "It has ended.")
	b.get("/dashboard/roles")
	b.want(http.StatusOK, "In the application you act as cyd@example.com.")
	if strings.Contains(b.text(), says) {
		t.Error("it is over, and every page says otherwise")
	}
	o.Clock.Advance(16 * time.Minute)
	b.get("/dashboard/roles")
	if strings.Contains(b.text(), "you act as") {
		t.Error("all are over, and a page says otherwise")
	}
}
