package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

// Whoever may not do an operation learns nothing else about it: neither which parameters it
// has, nor which accounts exist.
func TestPermissionComesFirst(t *testing.T) {
	o, target := newScene(t, memstore.New())
	mere := o.LoginAs(t, "mere@example.com")
	other := o.operator("other@example.com", notes, admin.PermStatsRead)
	for _, row := range admin.Table() {
		if row.Pattern == "GET /me" {
			continue
		}
		method, path, _ := strings.Cut(row.Pattern, " ")
		path = strings.NewReplacer("{id}", target.User.ID, "{role}", "no-such-role", "{factor}", "x", "{identity}", "x", "{name}", "nobody").Replace(path)
		requests := []string{path, path + "?limit=x&cursor=x&nonsense=1&format=pdf", strings.Replace(path, target.User.ID, "no-id", 1)}
		bodies := []string{"", "{", "[]", `{"nonsense":1}`, `{"action":"?","type":"?","user_id":7,"email":"?","reason":7}`}
		if method == http.MethodGet {
			bodies = bodies[:1]
		}
		for _, at := range requests {
			for _, body := range bodies {
				for _, headers := range [][]string{nil, {"If-Match: x"}, {"Content-Type: text/plain"}, {"Idempotency-Key: \x01"}} {
					o.do(mere, method+" "+at, body, headers...).want(403, auth.CodeNotAdmin)
					if row.Permission != "" && row.Permission != admin.PermStatsRead {
						o.do(other, method+" "+at, body, headers...).want(403, auth.CodeMissingPermission)
					}
				}
			}
		}
	}
	support := o.LoginAs(t, "support@example.com", authtest.Roles(admin.RoleSupport), authtest.AAL2())
	o.do(support, "POST /users/bulk", `{"action":"?"}`).want(422) // who may do it learns what is wrong
	o.do(support, "POST /users/bulk", `{"action":"delete","ids":[]}`).want(403, auth.CodeMissingPermission)
}
