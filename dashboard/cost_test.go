package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

// Deeply nested metadata costs no more than detecting it.
func TestDeepMetadata(t *testing.T) { // alone: the allocations of others would count
	o := newOffice(t, memstore.New(), admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	deep := `{"a":` + strings.Repeat("[", 9900) + strings.Repeat("]", 9900) + `}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.send(http.MethodPost, "/dashboard"+ids.Replace("/users/{ada}/metadata"), url.Values{"app_metadata": {`{"a":[[1]]}`}, "user_metadata": {"{}"}})
	runtime.ReadMemStats(&after)
	plain := after.TotalAlloc - before.TotalAlloc
	runtime.ReadMemStats(&before)
	b.raw("/dashboard"+ids.Replace("/users/{ada}/metadata"), "app_metadata="+deep+"&user_metadata="+deep)
	runtime.ReadMemStats(&after)
	if b.status < 400 || b.status >= 500 {
		t.Errorf("%d: %.300s", b.status, b.text())
	}
	if cost := after.TotalAlloc - before.TotalAlloc; cost > plain+64<<20 {
		t.Errorf("it took %d MB, and what is allowed %d", cost>>20, plain>>20)
	}
	b.raw("/dashboard/settings/texts/edit", "value="+deep)
	if b.status < 400 || b.status >= 500 {
		t.Errorf("as a setting %d: %.300s", b.status, b.text())
	}
}

// raw posts an encoded form, unchanged.
func (b *browser) raw(target, body string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.o.url+target, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header = b.header.Clone()
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	b.do(r)
}

// Other parameters of a page's URL are not repeated for each of its rows.
func TestLongAddresses(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), admin.Options{})
	ada := o.scene()
	b := o.signedIn("owner@example.com")
	at := "/dashboard/users/" + ada.ID + "?tab=sessions"
	b.get(at)
	short := len(b.body)
	b.get(at + "&x=" + strings.Repeat("y", 20_000))
	b.want(http.StatusOK)
	if len(b.body) > short+25_000 {
		t.Errorf("%d bytes more for 20,000 of the address", len(b.body)-short)
	}
}

// While the service is off, the dashboard sends no link to choose a password either.
func TestNoResetsWhileOff(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), admin.Options{})
	o.user("ada@example.com")
	b := o.browser()
	b.post("/dashboard/forgot-password", url.Values{"email": {"ada@example.com"}})
	b.want(http.StatusOK)
	o.Mail(t, "ada@example.com", auth.KindResetPassword)
	if _, err := o.adm.SetSettings(t.Context(), admin.System("test").Accepting(), admin.SetSettingsParams{Set: map[string]any{"enabled": false}}); err != nil {
		t.Fatal(err)
	}
	before := len(o.Inbox.Messages())
	b.post("/dashboard/forgot-password", url.Values{"email": {"ada@example.com"}})
	if b.status != http.StatusNotFound || len(o.Inbox.Messages()) != before {
		t.Errorf("%d, and %d messages", b.status, len(o.Inbox.Messages())-before)
	}
	o.signedIn("owner@example.com")
}

// Paths that would name another page once they are cleaned or unescaped are not found.
func TestPathsAreExact(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), admin.Options{})
	ada := o.scene()
	b := o.signedIn("owner@example.com")
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, at := range []string{"/users/%2e/export", "/users/%2e%2e/export"} {
		b.post("/dashboard"+at, url.Values{})
		if b.status != http.StatusNotFound || b.got.Get("Location") != "" || b.got.Get("Content-Disposition") != "" {
			t.Errorf("%s is %d %v", at, b.status, b.got)
		}
	}
	login := o.LoginAs(t, "owner@example.com")
	for name, h := range map[string]http.Handler{"whole": o.dash, "stripped": http.StripPrefix("/dashboard", o.dash)} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, o.url+"/dashboard/users%2f"+ada.ID, nil)
		r.Header.Set("Authorization", "Bearer "+login.AccessToken)
		h.ServeHTTP(w, r)
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

// The banner of an impersonation ends with its session.
func TestActingEndsWithItsSession(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), admin.Options{})
	ids := o.ids()
	o.user("auditor@example.com", "auditor")
	b := o.signedIn("owner@example.com")
	b.post("/dashboard"+ids.Replace("/users/{ada}/impersonate"), url.Values{"reason": {"ticket 7"}, "redirect_to": {o.url + "/app"}, "code_challenge": {actChallenge}})
	b.want(http.StatusOK, "The link is valid for one minute.")
	b.post("/dashboard/sign-out", url.Values{})
	b.get("/dashboard/")
	b.post(b.at.RequestURI(), url.Values{"login": {"auditor@example.com"}, "password": {authtest.Password}})
	b.get("/dashboard/roles")
	b.want(http.StatusOK, "auditor@example.com")
	if strings.Contains(b.text(), "you act as") {
		t.Error("the next operator at this browser is told that they act as somebody")
	}
}

// An account's own text never replaces its email address.
func TestNamesAreNoAddresses(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), admin.Options{})
	u, err := o.ImportUser(t.Context(), auth.ImportUserParams{FullName: "owner@example.com", Identities: []auth.Identity{{Provider: "acme", Subject: "9"}}})
	if err != nil {
		t.Fatal(err)
	}
	b := o.signedIn("owner@example.com")
	b.get("/dashboard/users/" + u.ID + "/delete")
	b.want(http.StatusOK, "Type "+u.ID)
}
