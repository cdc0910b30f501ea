package admin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

// A key that is bound to the proxies' network works from there alone: a header forged by a
// client and passed on by the proxy does not turn the client into the proxy.
func TestKeysBehindProxies(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithTrustedProxies("10.0.0.0/16"))
		k, err := o.adm.CreateKey(t.Context(), admin.System("test").Accepting(), admin.CreateKeyParams{Name: "job", Scopes: []string{admin.PermUsersRead}, Networks: []string{"10.0.0.0/8"}})
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			remote        string
			xff, standard string
			want          int
		}{
			"on a proxy":                         {remote: "10.0.0.1:1", want: 200},
			"in the network":                     {remote: "10.1.0.1:1", want: 200},
			"in the network, behind a proxy":     {remote: "10.0.0.1:1", xff: "10.1.0.1", want: 200},
			"in the network, both headers":       {remote: "10.0.0.1:1", xff: "10.1.0.1", standard: "for=10.1.0.1", want: 200},
			"on a proxy, behind another":         {remote: "10.0.0.1:1", xff: "10.0.0.2", want: 200},
			"elsewhere":                          {remote: "203.0.113.9:1", want: 401},
			"elsewhere, with a header":           {remote: "203.0.113.9:1", xff: "10.1.0.1", want: 401},
			"elsewhere, behind a proxy":          {remote: "10.0.0.1:1", xff: "203.0.113.9", want: 401},
			"elsewhere, with the other header":   {remote: "10.0.0.1:1", xff: "203.0.113.9", standard: "for=1.1.1.1", want: 401},
			"elsewhere, with the other's proxy":  {remote: "10.0.0.1:1", xff: "203.0.113.9", standard: "for=10.0.0.1", want: 401},
			"elsewhere, with a made-up header":   {remote: "10.0.0.1:1", xff: "x", standard: "for=203.0.113.9", want: 401},
			"elsewhere, with an empty header":    {remote: "10.0.0.1:1", xff: " ", standard: "for=203.0.113.9", want: 401},
			"hidden by the proxy":                {remote: "10.0.0.1:1", standard: "for=_hidden", want: 401},
			"unknown to the proxy":               {remote: "10.0.0.1:1", xff: "unknown", want: 401},
			"unknown beyond the proxy's network": {remote: "10.0.0.1:1", xff: "unknown, 10.0.0.2", want: 401},
		} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth/v1/admin/users", nil)
			r.RemoteAddr = c.remote
			r.Header.Set("Authorization", "Bearer "+k.Secret.Reveal())
			if c.xff != "" {
				r.Header.Set("X-Forwarded-For", c.xff)
			}
			if c.standard != "" {
				r.Header.Set("Forwarded", c.standard)
			}
			w := httptest.NewRecorder()
			o.mux.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%s: %d, want %d", name, w.Code, c.want)
			}
		}
	})
}

// A change of a public key takes effect as soon as the server answers: each change clears
// the server's cache of keys.
func TestPublicKeysChangeAtOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), auth.WithAPIKeys("pk_test_12345678"))
	const option = "Apikey: pk_test_12345678"
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	want := func(status int, text string) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth/v1/settings", nil)
		r.Header.Set("Apikey", text)
		rec := httptest.NewRecorder()
		o.Auth.Handler().ServeHTTP(rec, r)
		if rec.Code != status {
			t.Errorf("%d, want %d: %s", rec.Code, status, rec.Body)
		}
	}
	for range 3 { // one of them within the lifetime of the key cache
		want(401, "pk_live_of_nobody_at_all")
		made := o.do(owner, "POST /keys", `{"name":"x","kind":"public"}`, option).want(200).body
		first, path := made["key"].(string), "/keys/"+made["id"].(string)
		want(200, first)
		second := o.do(owner, "POST "+path+"/rotate", `{"overlap":0}`, option).want(200).body["key"].(string)
		want(401, first)
		want(200, second)
		o.do(owner, "DELETE "+path, "", option).want(204)
		want(401, second)
	}
}
