package admin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

// No operation uses the token, the secret key or the application's own login of a request
// with two Authorization headers, because a proxy may have checked the other one.
func TestTwoAuthorizationHeaders(t *testing.T) {
	t.Parallel()
	const key = "sk_0123456789abcdef0123456789abcdef"
	for name, o := range map[string]*office{
		"accounts":          newOffice(t, memstore.New(), auth.WithSecretKeys(auth.SecretKey{Key: key, Scopes: []string{"*"}})),
		"application login": newOfficeWith(t, memstore.New(), admin.Options{Authenticate: authorize}, auth.WithSecretKeys(auth.SecretKey{Key: key, Scopes: []string{"*"}})),
	} {
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		for _, row := range admin.Table() {
			method, path, _ := strings.Cut(row.Pattern, " ")
			for _, part := range []string{"{id}", "{sid}"} {
				path = strings.ReplaceAll(path, part, uuid.NewString())
			}
			for _, headers := range [][]string{{"Bearer " + key, "Bearer x"}, {"Bearer x", "Bearer " + key}, {"Bearer " + owner.AccessToken, "Bearer " + key}, {"Bearer " + key, "Bearer " + key}} {
				r := httptest.NewRequestWithContext(t.Context(), method, "/auth/v1/admin"+path, strings.NewReader("{}"))
				r.Header["Authorization"], r.Header["Content-Type"] = headers, []string{"application/json"}
				r.Header.Set(staffHeader, `{"ID":"4711","Permissions":["*"],"AAL":"aal2"}`)
				rec := httptest.NewRecorder()
				if o.mux.ServeHTTP(rec, r); rec.Code != http.StatusUnauthorized || !strings.Contains(rec.Body.String(), string(auth.CodeBadToken)) {
					t.Errorf("%s, %s: %d %s", name, row.Pattern, rec.Code, rec.Body)
				}
			}
		}
	}
}
