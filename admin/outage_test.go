package admin_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// If any call of the store fails, the operation that made it reports that: no operation
// takes an error for an empty list, or continues without unread data. The operation can be
// repeated. The results of imports and bulk operations report each row, see
// TestOutagesWithinImports and TestOutagesAmongMany.
func TestOutagesOfOperations(t *testing.T) {
	t.Parallel()
	for _, row := range admin.Table() {
		if row.Pattern == "POST /users/import" || row.Pattern == "POST /users/bulk" {
			continue
		}
		t.Run(row.Pattern, func(t *testing.T) {
			t.Parallel()
			failsAtEachCall(t, row)
		})
	}
}

// failsAtEachCall has each call of the store in the example of an operation fail in turn.
// A change that the store refused has not happened, and is not recorded.
func failsAtEachCall(t *testing.T, row admin.Row) {
	t.Helper()
	tap := storetap.New(memstore.New())
	o, _ := newScene(t, tap)
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	o.hasPhone(owner, "+4930123456")
	o.Clock.Advance(time.Minute) // the gap between two messages
	for k := 1; k < 40; k++ {
		target := o.LoginAs(t, fmt.Sprintf("try%d@example.com", k)) // the attempt on some targets fails after its effect
		o.arm(target)
		var mu sync.Mutex
		failed := ""
		o.sending = func() {
			tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, n int) storetap.Fault {
				mu.Lock()
				defer mu.Unlock()
				if n != k {
					return storetap.NoFault
				}
				failed = method
				return storetap.FailsBefore
			}, Draws: func(draws []store.Draw) []store.Draw { // ignores the draws of the failed attempts
				draws = slices.Clone(draws)
				for i := range draws {
					draws[i].Key = fmt.Sprint("try ", k, draws[i].Key)
				}
				return draws
			}})
		}
		a := o.try(owner, row, target)
		tap.Reset(storetap.Hooks{})
		o.sending = nil
		mu.Lock()
		switch {
		case failed == "":
			defer mu.Unlock()
			a.want(examples[row.Pattern].status)
			return
		case failed == "Take": // a notice is sent although its limit cannot be drawn from
		case a.status != 503 || a.body["code"] != string(auth.CodeUnavailable):
			t.Errorf("%d %v where the call %d, %s, fails", a.status, a.body, k, failed)
		}
		mu.Unlock()
	}
	t.Error("it makes more calls than are looked at")
}
