package admin_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// posts are the operations that an Idempotency-Key makes happen once.
func posts() []admin.Row {
	var rows []admin.Row
	for _, row := range admin.Table() {
		if strings.HasPrefix(row.Pattern, "POST ") && row.Pattern != "POST /check" {
			rows = append(rows, row)
		}
	}
	return rows
}

// Every POST happens once under a key: who repeats it is answered as before, or told
// that a secret is not shown again, and whoever uses the key for something else is
// refused.
func TestIdempotencyKey(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, _ := newScene(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		other := o.LoginAs(t, "other@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.hasPhone(owner, "+4930123456")
		o.hasPhone(other, "+4930123457")
		for i, row := range posts() {
			t.Run(row.Pattern, func(t *testing.T) {
				name := fmt.Sprintf("n%d", i)
				target := o.LoginAs(t, name+"@example.com")
				o.invited(row, target)
				key, before := "Idempotency-Key: "+name, len(o.audit())
				o.try(owner, row, target, key).want(examples[row.Pattern].status)
				again := o.try(owner, row, target, key)
				if row.Secret {
					again.want(409, auth.CodeIdempotencyReplayed)
				} else {
					again.want(examples[row.Pattern].status)
				}
				if n := len(o.audit()) - before; n != 1 {
					t.Errorf("done %d times", n)
				}
				o.try(owner, row, target, key, `If-Match: "4711"`).want(422, auth.CodeValidationFailed)
				o.try(owner, row, target, "Idempotency-Key: with space").want(422, auth.CodeValidationFailed)

				target = o.LoginAs(t, name+"-again@example.com")
				o.invited(row, target)
				before = len(o.audit())
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() { o.try(other, row, target, key) })
				}
				all.Wait()
				if n := len(o.audit()) - before; n != 1 {
					t.Errorf("of four at once, %d were done", n)
				}
			})
		}
	})
}
