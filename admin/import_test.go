package admin_test

import (
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/memstore"
)

// An import reports which email addresses have accounts, so only readers of accounts may
// start one, or see the results of another operator's.
func TestImportNeedsThePermissionToRead(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New())
	o.LoginAs(t, "ada@example.com")
	blind := o.operator("blind@example.com", admin.PermUsersImport)
	reader := o.operator("reader@example.com", admin.PermUsersImport, admin.PermUsersRead)
	const row = `{"email":"ada@example.com"}`
	key := program(o.key(admin.System("test").Accepting(), admin.PermUsersImport))
	for _, query := range []string{"", "?on_conflict=skip", "?on_conflict=update"} {
		for _, who := range []string{"blind", "key"} {
			by := blind
			if who == "key" {
				by = key
			}
			a := o.do(by, "POST /users/import"+query, row, ndjson).want(403, auth.CodeMissingPermission)
			if d, _ := a.body["details"].(map[string]any); d["permission"] != admin.PermUsersRead {
				t.Errorf("%s: the refusal names %v", who, a.body)
			}
		}
	}
	id := o.do(reader, "POST /users/import", row, ndjson).want(202).body["job_id"].(string)
	wantResults(t, o.done(id), "failed user_already_exists email")
	for _, at := range []string{"", "/results"} {
		o.do(blind, "GET /jobs/"+id+at, "").want(403, auth.CodeMissingPermission)
		o.do(reader, "GET /jobs/"+id+at, "").want(200)
	}
}
