package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// A key that the reported session or a later one created, rotated or had adopted ends with
// the recovery of the account. Keys of an older session, of other people and of the
// application stay.
func TestRecoveryRevokesKeys(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := func() *authtest.SignedIn {
			return o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		}
		older, other := owner(), o.LoginAs(t, "other@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		create := func(s *authtest.SignedIn) admin.NewKey { return o.key(actor(s), admin.PermUsersRead) }
		keep := map[string]admin.NewKey{"of an older session": create(older), "of another owner": create(other), "of the application": o.key(admin.System("test"), admin.PermUsersRead)}
		rotate := create(older)
		reported := owner()
		later := owner()
		end := map[string]admin.NewKey{"of the reported session": create(reported), "of a later session": create(later), "adopted": create(reported)}
		adopted := true
		if _, err := o.adm.UpdateKey(t.Context(), actor(reported), admin.UpdateKeyParams{ID: end["adopted"].ID, Adopted: &adopted}); err != nil {
			t.Fatal(err)
		}
		name := "renamed"
		if _, err := o.adm.UpdateKey(t.Context(), actor(reported), admin.UpdateKeyParams{ID: keep["of an older session"].ID, Name: &name}); err != nil {
			t.Fatal(err)
		}
		rotated, err := o.adm.RotateKey(t.Context(), actor(reported), admin.RotateKeyParams{ID: rotate.ID})
		if err != nil {
			t.Fatal(err)
		}
		end["rotated"] = rotated
		for _, k := range end {
			o.do(program(k), "GET /me", "").want(200)
		}

		address := "thief@example.com"
		if _, err := o.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: auth.Caller{UserID: reported.User.ID, SessionID: reported.SessionID}, Email: &address}); err != nil {
			t.Fatal(err)
		}
		_, token, _ := strings.Cut(o.Mail(t, "owner@example.com", auth.KindEmailChangeRequested).Link, "token=")
		if err := o.SecureAccount(t.Context(), auth.SecureAccountParams{Token: token}); err != nil {
			t.Fatal(err)
		}
		for what, k := range end {
			if a := o.do(program(k), "GET /me", ""); a.status != 401 {
				t.Errorf("a key %s: status %d", what, a.status)
			}
		}
		for what, k := range keep {
			if a := o.do(program(k), "GET /me", ""); a.status != 200 {
				t.Errorf("a key %s: status %d", what, a.status)
			}
		}
	})
}

// An invitation or a link for another account ends with the recovery of its creator's
// account, if the reported session or a later one created it. Those of an older session, of
// other people and of a session after the recovery stay.
func TestRecoveryEndsInvitationsAndLinks(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		owner := func() *authtest.SignedIn {
			return o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		}
		older, other := owner(), o.LoginAs(t, "other@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		uses := map[string]func() error{}
		makes := func(who *authtest.SignedIn, name string) {
			_, token := o.invite(actor(who), name+".invited@example.com", auth.RoleOwner)
			uses[name+" invitation"] = func() error { _, err := o.accept(token); return err }
			user := o.LoginAs(t, name+".user@example.com").User
			link, err := o.adm.MakeLink(t.Context(), actor(who), admin.MakeLinkParams{Type: admin.LinkMagicLink, UserID: user.ID})
			o.must(err)
			_, secret, _ := strings.Cut(link.URL, "token=")
			uses[name+" link"] = func() error {
				_, err := o.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: secret})
				return err
			}
			clerk := o.LoginAs(t, name+".clerk@example.com").User
			o.do(who, "PUT /users/"+clerk.ID+"/roles", `{"roles":["support"],"address":"`+clerk.Email+`"}`).want(200)
			accepting := o.invitedToken(clerk.Email)
			uses[name+" acceptance"] = func() error { _, err := o.accept(accepting); return err }
		}
		makes(older, "older")
		makes(other, "other")
		reported := owner()
		makes(reported, "reported")
		makes(owner(), "later")

		address := "thief@example.com"
		_, err := o.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: auth.Caller{UserID: reported.User.ID, SessionID: reported.SessionID}, Email: &address})
		o.must(err)
		_, token, _ := strings.Cut(o.Mail(t, "owner@example.com", auth.KindEmailChangeRequested).Link, "token=")
		o.must(o.SecureAccount(t.Context(), auth.SecureAccountParams{Token: token}))
		reset := o.token("owner@example.com", auth.KindResetPassword)
		o.must(o.ResetPassword(t.Context(), auth.ResetPasswordParams{Token: reset, NewPassword: authtest.Password}))
		makes(owner(), "afterwards")
		for _, name := range names(uses) {
			err := uses[name]()
			if strings.HasPrefix(name, "reported") || strings.HasPrefix(name, "later") {
				if !errors.Is(err, auth.CodeInvalidToken) {
					t.Errorf("%s: %v", name, err)
				}
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// meanwhile does something once, after a recovery has read the account and before it is
// stored.
type meanwhile struct {
	auth.Store
	do func()
}

func (m *meanwhile) Unwrap() auth.Store { return m.Store }

func (m *meanwhile) RedeemToken(ctx context.Context, r store.Redemption) (store.Token, auth.User, error) {
	if do := m.do; do != nil && r.Purpose == store.PurposeStop {
		m.do = nil
		do()
	}
	return m.Store.RedeemToken(ctx, r)
}

// The recovery also ends the invitations of a session that signs in while it is under way.
// A thief signs in again and again.
func TestRecoveryEndsInvitationsOfTheSameMoment(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		between := &meanwhile{Store: st}
		o := newOffice(t, between)
		owner := func() *authtest.SignedIn {
			return o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		}
		owner() // sets up the second factor, which stays
		reported, address := owner(), "thief@example.com"
		_, err := o.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: auth.Caller{UserID: reported.User.ID, SessionID: reported.SessionID}, Email: &address})
		o.must(err)
		_, token, _ := strings.Cut(o.Mail(t, "owner@example.com", auth.KindEmailChangeRequested).Link, "token=")
		var planted string
		between.do = func() { _, planted = o.invite(actor(owner()), "planted@example.com", auth.RoleOwner) }
		o.must(o.SecureAccount(t.Context(), auth.SecureAccountParams{Token: token}))
		o.must(o.ResetPassword(t.Context(), auth.ResetPasswordParams{Token: o.token("owner@example.com", auth.KindResetPassword), NewPassword: authtest.Password}))
		_, own := o.invite(actor(owner()), "colleague@example.com", auth.RoleOwner)
		if _, err := o.accept(planted); !errors.Is(err, auth.CodeInvalidToken) {
			t.Errorf("the invitation of that moment: %v", err)
		}
		if _, err := o.accept(own); err != nil {
			t.Errorf("an invitation afterwards: %v", err)
		}
	})
}
