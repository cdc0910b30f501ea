package admin_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/storetap"
)

// The change itself checks the key that created a link or an invitation, for every kind
// and every user of it. A key that is revoked between the read and the change is invalid;
// a key that is rotated meanwhile is valid.
func TestKeyIsRevokedWhileWhatItMadeIsUsed(t *testing.T) {
	scopes := []string{admin.PermUsersWrite, admin.PermUsersRead, admin.PermCredentials}
	keys := map[string]func(o *office, n string) admin.NewKey{
		"the service's": func(o *office, n string) admin.NewKey { return o.key(admin.System("test").Accepting(), scopes...) },
		"a user's": func(o *office, n string) admin.NewKey {
			return o.keyOf(o.operator("maker"+n, scopes...).User, scopes...)
		},
	}
	uses := map[string]func(o *office, by admin.Actor, n string) (use func() error){
		"an invitation of somebody new": func(o *office, by admin.Actor, n string) func() error {
			_, token := o.invite(by, "new"+n)
			return func() error { _, err := o.accept(token); return err }
		},
		"an invitation of an account nobody has proved": func(o *office, by admin.Actor, n string) func() error {
			if _, err := o.SignUp(o.t.Context(), auth.SignUpParams{Email: "squatted" + n, Password: password}); err != nil {
				o.t.Fatal(err)
			}
			_, token := o.invite(by, "squatted"+n)
			return func() error { _, err := o.accept(token); return err }
		},
		"an invitation within a session": func(o *office, by admin.Actor, n string) func() error {
			ada := o.LoginAs(o.t, "ada"+n)
			_, token := o.invite(by, "ada"+n)
			return func() error {
				_, err := o.AcceptInvitation(o.t.Context(), auth.AcceptInvitationParams{Token: token, Within: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}})
				return err
			}
		},
		"a link": func(o *office, by admin.Actor, n string) func() error {
			made, err := o.adm.MakeLink(o.t.Context(), by, admin.MakeLinkParams{Type: admin.LinkMagicLink, UserID: o.LoginAs(o.t, "ada"+n).User.ID})
			if err != nil {
				o.t.Fatal(err)
			}
			token := tokenIn(o.t, made.URL)
			return func() error {
				_, err := o.VerifyMagicLink(o.t.Context(), auth.VerifyMagicLinkParams{Token: token})
				return err
			}
		},
	}
	meanwhile := map[string]struct {
		does func(ctx context.Context, o *office, id string) error
		want auth.Code
	}{
		"revoked": {func(ctx context.Context, o *office, id string) error { return o.revoke(ctx, id) }, auth.CodeInvalidToken},
		"rotated": {func(ctx context.Context, o *office, id string) error {
			_, err := o.adm.RotateKey(ctx, admin.System("test").Accepting(), admin.RotateKeyParams{ID: id})
			return err
		}, ""},
	}
	onStores(t, func(t *testing.T, store auth.Store) {
		at := 0
		for use, prepare := range uses {
			for whose, key := range keys {
				for what, m := range meanwhile {
					t.Run(use+" by "+whose+" key that is "+what, func(t *testing.T) {
						at++
						n := fmt.Sprintf("%d@example.com", at)
						tap := storetap.New(store)
						o := newOffice(t, tap)
						k := key(o, n)
						used := prepare(o, admin.Key(k.Secret.Reveal()), n)
						var once sync.Once
						tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
							if method == "RedeemToken" {
								once.Do(func() {
									if err := m.does(ctx, o, k.ID); err != nil {
										t.Error(err)
									}
								})
							}
						}})
						err := used()
						tap.Reset(storetap.Hooks{})
						once.Do(func() { t.Error("nothing was redeemed") })
						if m.want != "" {
							wantCode(t, err, m.want)
						} else if err != nil {
							t.Error(err)
						}
					})
				}
			}
		}
	})
}

// Links and invitations of a key of the options are valid while the options have the key,
// with scopes that permit them.
func TestWhatKeysOfTheOptionsMadeEndsWithThem(t *testing.T) {
	const text = "sk_test_of_the_options_0123"
	for what, c := range map[string]struct {
		options []auth.Option
		want    auth.Code
	}{
		"the key is there": {[]auth.Option{auth.WithSecretKeys(auth.SecretKey{Key: text, Scopes: []string{admin.PermUsersWrite, admin.PermCredentials}})}, ""},
		"it is not":        {nil, auth.CodeInvalidToken},
		"another one is":   {[]auth.Option{auth.WithSecretKeys(auth.SecretKey{Key: text + "4", Scopes: []string{"*"}})}, auth.CodeInvalidToken},
		"it may less":      {[]auth.Option{auth.WithSecretKeys(auth.SecretKey{Key: text, Scopes: []string{admin.PermUsersRead}})}, auth.CodeInvalidToken},
	} {
		t.Run(what, func(t *testing.T) {
			onStores(t, func(t *testing.T, store auth.Store) {
				before := newOffice(t, store, auth.WithSecretKeys(auth.SecretKey{Key: text, Scopes: []string{"*"}}))
				ada := before.LoginAs(t, "ada@example.com")
				_, invited := before.invite(admin.Key(text), "new@example.com")
				made, err := before.adm.MakeLink(t.Context(), admin.Key(text), admin.MakeLinkParams{Type: admin.LinkMagicLink, UserID: ada.User.ID})
				if err != nil {
					t.Fatal(err)
				}
				o := newOffice(t, store, c.options...)
				_, accepted := o.accept(invited)
				_, linked := o.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: tokenIn(t, made.URL)})
				for name, err := range map[string]error{"the invitation": accepted, "the link": linked} {
					switch {
					case c.want == "" && err != nil:
						t.Errorf("%s: %v", name, err)
					case c.want != "":
						wantCode(t, err, c.want)
					}
				}
			})
		})
	}
}

// A link of a key of the options ends when its account becomes stronger than the key, even
// if the key has other scopes.
func TestLinksOfTheOptionsKeysEndWithTheStrengthOfTheKey(t *testing.T) {
	const text = "sk_test_of_the_options_0123"
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithSecretKeys(auth.SecretKey{Key: text, Scopes: []string{admin.PermCredentials}}))
		o.permit("reader", admin.PermUsersRead)
		for i, role := range []string{"", "reader", auth.RoleOwner} {
			u := o.LoginAs(t, fmt.Sprintf("ada%d@example.com", i)).User
			made, err := o.adm.MakeLink(t.Context(), admin.Key(text), admin.MakeLinkParams{Type: admin.LinkMagicLink, UserID: u.ID})
			if err != nil {
				t.Fatal(err)
			}
			if role != "" {
				if _, err := o.adm.SetRoles(t.Context(), admin.System("test").Accepting(), admin.SetRolesParams{UserID: u.ID, Roles: []string{role}}); err != nil {
					t.Fatal(err)
				}
			}
			_, err = o.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: tokenIn(t, made.URL)})
			switch {
			case role == "" && err != nil:
				t.Error(err)
			case role != "":
				wantCode(t, err, auth.CodeInvalidToken)
			}
		}
	})
}
