package admin_test

import (
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// A link to accept that was sent to a former address before the account accepted in another
// way accepts nothing after a recovery link of that address moved the account back: an
// operator whom a recovery link gives the address back waits for a new acceptance.
func TestOldLinkToAcceptAfterRecovery(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		ada := o.LoginAs(t, "old@example.com")
		at := "/users/" + ada.User.ID
		o.do(owner, "PUT "+at+"/roles", `{"roles":["admin"],"address":"old@example.com"}`).want(200)
		link := o.invitedToken("old@example.com") // stays unread in the old mailbox
		_, err := o.adm.SetRoles(t.Context(), admin.System("deploy").Accepting(), admin.SetRolesParams{UserID: ada.User.ID, Roles: []string{"admin"}})
		o.must(err)
		if o.waits(ada.User.ID) {
			t.Fatal("waits")
		}
		ada = o.LoginAs(t, "old@example.com")
		by := auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}
		to := "new@example.com"
		_, err = o.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: by, Email: &to})
		o.must(err)
		_, err = o.VerifyEmail(t.Context(), auth.VerifyEmailParams{Token: o.token(to, auth.KindChangeEmail), Within: by})
		o.must(err)
		o.must(o.SecureAccount(t.Context(), auth.SecureAccountParams{Token: o.token("old@example.com", auth.KindEmailChanged)}))
		if !o.waits(ada.User.ID) {
			t.Fatal("does not wait after the recovery")
		}
		s, err := o.accept(link)
		if err == nil {
			t.Errorf("the old link gave %v", o.powers(s))
		}
	})
}
