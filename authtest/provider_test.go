package authtest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/authmount/auth/authtest"
)

// The provider signs in anyone as anyone, so nobody but a developer reaches it, also where
// a public server mounts it by mistake.
func TestProviderServesOnlyThisMachine(t *testing.T) {
	idp := authtest.NewProvider("http://localhost:8080/idp")
	for name, c := range map[string]struct {
		host, from, header string
		want               int
	}{
		"a developer":           {"localhost:8080", "127.0.0.1:5000", "", 200},
		"by IPv6":               {"[::1]:8080", "[::1]:5000", "", 200},
		"from outside a box":    {"localhost:8080", "172.17.0.1:5000", "", 200},
		"a public host":         {"app.example.com", "127.0.0.1:5000", "", 403},
		"a forged host":         {"localhost:8080", "203.0.113.9:5000", "", 403},
		"through a proxy":       {"localhost:8080", "127.0.0.1:5000", "X-Forwarded-For", 403},
		"a proxy of the field":  {"localhost:8080", "127.0.0.1:5000", "Forwarded", 403},
		"no address of a peer":  {"localhost:8080", "", "", 403},
		"a name that begins so": {"localhost.example.com", "127.0.0.1:5000", "", 403},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.host+"/idp/keys", nil)
		if r.RemoteAddr = c.from; c.header != "" {
			r.Header.Set(c.header, "203.0.113.9")
		}
		rec := httptest.NewRecorder()
		if idp.ServeHTTP(rec, r); rec.Code != c.want {
			t.Errorf("%s: %d", name, rec.Code)
		}
	}
}
