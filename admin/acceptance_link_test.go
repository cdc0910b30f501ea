package admin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
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

// Operators need a second factor, so the page of an acceptance goes on to set one up.
func TestAcceptanceOfAnOperatorGoesOnToTheFactor(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, inCookies()...)
		o.LoginAs(t, "old@example.com")
		for _, email := range []string{"old@example.com", "new@example.com"} {
			_, err := o.adm.Invite(t.Context(), admin.System("test"), admin.InviteParams{Email: email, Roles: []string{admin.RoleAdmin}})
			o.must(err)
			b := o.browser()
			b.open(o.Mail(t, email, auth.KindInvitation).Link)
			b.press("password", password)
			key := b.enrols()
			b.press("do", "enable", "code", o.appCode(key))
			b.shows(200, "recovery codes")
			if got := b.signedIn(); got.AAL != store.LevelAAL2 || !slices.Contains(got.Roles, admin.RoleAdmin) {
				t.Errorf("%s: signed in with %s, %v", email, got.AAL, got.Roles)
			}
		}
	})
}

// A session in which an operator accepts another role sets up no second factor: it may be
// old, and somebody else's.
func TestAcceptanceInASessionSetsUpNoFactor(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, inCookies()...)
		o.LoginAs(t, "ada@example.com", authtest.Roles(admin.RoleSupport))
		b := o.browser()
		b.json("/login", `{"email":"ada@example.com","password":"`+authtest.Password+`"}`)
		o.Clock.Advance(time.Hour)
		b.json("/refresh", "")
		_, err := o.adm.Invite(t.Context(), admin.System("test"), admin.InviteParams{Email: "ada@example.com", Roles: []string{admin.RoleAdmin}})
		o.must(err)
		b.open(o.Mail(t, "ada@example.com", auth.KindInvitation).Link)
		b.press()
		b.shows(200, "You are signed in")
	})
}

// The page after an acceptance by a link that was shown does not say that the address was
// confirmed, because it was not.
func TestShownAcceptanceConfirmsNothing(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, inCookies()...)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		id := o.do(owner, "POST /users", `{"email":"ada@example.com","password":"a first password","roles":["support"]}`).want(201).body["id"].(string)
		b := o.browser()
		b.open(o.do(owner, "POST /links", fmt.Sprintf(`{"type":"accept","user_id":%q}`, id)).want(201).body["url"].(string))
		b.press("password", password)
		key := b.enrols()
		b.press("do", "enable", "code", o.appCode(key))
		b.shows(200, "recovery codes")
		if u := o.read(id); u.EmailVerified() || strings.Contains(b.body, "before your address was confirmed") {
			t.Errorf("the page says that the address was confirmed: %s", b.body)
		}
	})
}
