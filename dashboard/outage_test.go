package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
)

// If a read fails during a dry run, the page does not report that something was done.
func TestDryRunInAnOutage(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap, admin.Options{})
	if _, err := o.adm.CreateRole(t.Context(), admin.System("test").Accepting(), admin.CreateRoleParams{Name: "editor", Permissions: []string{"notes.write"}}); err != nil {
		t.Fatal(err)
	}
	b := o.signedIn("owner@example.com")
	try := func(fails int32) (calls int32) {
		b.get("/dashboard/roles/editor/edit")
		b.want(http.StatusOK)
		var n atomic.Int32
		tap.Reset(storetap.Hooks{Fault: func(context.Context, string, int) storetap.Fault {
			if n.Add(1) == fails {
				return storetap.FailsBefore
			}
			return storetap.NoFault
		}})
		b.post("/dashboard/roles/editor/edit", url.Values{"patterns": {"notes.*"}})
		tap.Reset(storetap.Hooks{})
		return n.Load()
	}
	calls := try(0)
	b.want(http.StatusOK, "This affects")
	if calls < 3 {
		t.Fatalf("%d calls of the store", calls)
	}
	failed := 0
	for k := int32(1); k <= calls; k++ {
		try(k)
		if b.at.Path != "/dashboard/roles/editor/edit" {
			t.Errorf("with call %d failing it leads to %s, %d", k, b.at, b.status)
		}
		if b.status == http.StatusServiceUnavailable {
			failed++
		}
	}
	if failed == 0 {
		t.Errorf("none of %d failures failed", calls)
	}
}
