package admin_test

import (
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/store"
)

// An account whose address has changed since its acceptance waits for new permissions at
// every instance, also at one whose clock is behind the clock of the instance that gave them.
func TestWaitsAtInstanceWithSlowClock(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		secret := auth.WithSecret(testsecret.Of("slow"))
		o := newOffice(t, st, secret)
		slow := newOffice(t, st, secret, o.SameKeys(), auth.WithClock(func() time.Time { return o.Clock.Now().Add(-2 * time.Second) }))
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		ada := o.LoginAs(t, "ada@example.com", authtest.Roles(admin.RoleSupport))
		thiefs := "thief@example.com"
		o.patchAs(ada, store.UserPatch{Email: &thiefs}) // as by the link to a new address, within a stolen session
		o.Clock.Advance(time.Minute)
		ada = o.renewed(ada)
		o.do(owner, "PUT /users/"+ada.User.ID+"/roles", `{"roles":["admin","support"],"address":"`+thiefs+`"}`).want(200)
		if !o.waits(ada.User.ID) {
			t.Fatal("does not wait")
		}
		s := slow.renewed(ada)
		if held := o.powers(&s.Tokens); len(held) > 0 {
			t.Errorf("without an acceptance, at an instance that is 2 s behind: %v, until %s", held, s.ExpiresAt)
		}
		// Any other change of the roles through that instance makes it final.
		o.permit("editor", notes)
		slow.do(owner, "PUT /users/"+ada.User.ID+"/roles", `{"roles":["admin","editor","support"]}`)
		o.Clock.Advance(time.Hour)
		if u := o.read(ada.User.ID); !o.waits(u.ID) {
			t.Errorf("an hour later it has the permissions for good: accepted at %d until %v", u.AcceptedSequence, u.AcceptedUntil)
		}
	})
}
