package dashboard_test

import (
	"net/http"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/host"
)

// A denied attempt by a form is in the audit log, as one by the API is.
func TestDeniedFormsAreRecorded(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids := o.ids()
	if _, err := o.adm.CreateRole(t.Context(), admin.System("test").Accepting(), admin.CreateRoleParams{Name: "looks-on", Permissions: []string{admin.PermUsersRead}}); err != nil {
		t.Fatal(err)
	}
	op := o.user("looks-on@example.com", "looks-on")
	denied := func() int {
		if err := host.Of(o).Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		p, err := o.adm.AuditLog(t.Context(), admin.System("test").Accepting(), admin.AuditLogParams{EventFilter: admin.EventFilter{Action: string(auth.EventAdminDenied), Actor: op.ID}, Limit: 200})
		if err != nil {
			t.Fatal(err)
		}
		return len(p.Events)
	}
	b := o.signedIn("looks-on@example.com")
	refused := 0
	for _, deed := range deeds {
		before := denied()
		b.post("/dashboard"+ids.Replace(deed.at), deed.form)
		if b.status != http.StatusForbidden {
			continue
		}
		refused++
		if n := denied() - before; n != 1 {
			t.Errorf("%s is refused, and recorded %d times", deed.at, n)
		}
		before = denied()
		if b.get("/dashboard" + ids.Replace(deed.at)); denied() != before {
			t.Errorf("a look at %s is recorded", deed.at)
		}
		if refused%20 == 0 { // the limit of records per actor and minute
			o.Clock.Advance(60e9)
		}
	}
	if refused < 20 {
		t.Errorf("%d of %d forms are refused", refused, len(deeds))
	}
}
