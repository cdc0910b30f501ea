package admin_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
)

// A store that fails at any call of an operation is told of: no operation takes an
// error for an empty list, or goes on without what it could not read.
func TestOutagesAreTold(t *testing.T) {
	t.Parallel()
	for _, row := range admin.Table() {
		if row.Pattern == "POST /users/import" || row.Pattern == "POST /users/bulk" {
			continue // their results tell of each row
		}
		t.Run(row.Pattern, func(t *testing.T) {
			t.Parallel()
			tap := storetap.New(memstore.New())
			o, target := newScene(t, tap)
			owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
			for k := 1; k < 40; k++ {
				var met atomic.Value
				o.sending = func() {
					tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, n int) storetap.Fault {
						if n != k {
							return storetap.NoFault
						}
						met.Store(method)
						return storetap.FailsBefore
					}})
				}
				a := o.try(owner, row, target)
				tap.Reset(storetap.Hooks{})
				o.sending = nil
				method, ok := met.Load().(string)
				if !ok {
					return
				}
				if method == "Take" { // a notice goes out all the same where its limit cannot be drawn
					continue
				}
				if a.status < 500 {
					t.Errorf("%s answers %d where the call %d, %s, fails: %s", row.Pattern, a.status, k, method, fmt.Sprint(a.body))
				}
			}
		})
	}
}
