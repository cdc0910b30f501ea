package admin_test

import (
	"context"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// An invitation by a key is valid only while the key could still create it.
func TestInvitationByAKey(t *testing.T) {
	code := admin.System("test").Accepting()
	for name, c := range map[string]struct {
		ends func(o *office, k admin.NewKey, maker auth.User) error
		want auth.Code // "": the invitation is accepted
	}{
		"nothing happened": {func(*office, admin.NewKey, auth.User) error { return nil }, ""},
		"the key is revoked": {func(o *office, k admin.NewKey, _ auth.User) error {
			return o.adm.RevokeKey(t.Context(), code, admin.RevokeKeyParams{ID: k.ID})
		}, auth.CodeInvalidToken},
		"the key may not invite any more": {func(o *office, k admin.NewKey, _ auth.User) error {
			_, err := o.adm.UpdateKey(t.Context(), code, admin.UpdateKeyParams{ID: k.ID, Scopes: &[]string{admin.PermUsersRead}})
			return err
		}, auth.CodeInvalidToken},
		"its maker is demoted": {func(o *office, _ admin.NewKey, u auth.User) error {
			_, err := o.adm.SetRoles(t.Context(), code, admin.SetRolesParams{UserID: u.ID})
			return err
		}, auth.CodeInvalidToken},
		"its maker is banned": {func(o *office, _ admin.NewKey, u auth.User) error {
			_, err := o.adm.BanUser(t.Context(), code, admin.BanUserParams{UserID: u.ID, Reason: "left"})
			return err
		}, auth.CodeInvalidToken},
		"its maker is deleted": {func(o *office, _ admin.NewKey, u auth.User) error {
			return o.adm.DeleteUser(t.Context(), code, admin.DeleteUserParams{UserID: u.ID, Reason: "left"})
		}, auth.CodeInvalidToken},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, store auth.Store) {
				o := newOffice(t, store)
				o.permit("inviter", admin.PermUsersWrite, admin.PermUsersRead)
				maker := o.imported("maker@example.com", "inviter").User
				k := o.keyOf(maker, admin.PermUsersWrite, admin.PermUsersRead)
				_, token := o.invite(admin.Key(k.Secret.Reveal()), "ada@example.com")
				if err := c.ends(o, k, maker); err != nil {
					t.Fatal(err)
				}
				switch _, err := o.accept(token); {
				case c.want != "":
					wantCode(t, err, c.want)
				case err != nil:
					t.Error(err)
				}
			})
		})
	}
}

// If a key is lost, as after restoring an older backup, its invitations are invalid, which
// is no internal error.
func TestInvitationByAKeyThatIsNotThere(t *testing.T) {
	s := &keyless{Store: memstore.New()}
	o := newOffice(t, s)
	k := o.key(admin.System("test").Accepting(), admin.PermUsersWrite, admin.PermUsersRead)
	_, token := o.invite(admin.Key(k.Secret.Reveal()), "ada@example.com")
	s.lost = true
	_, err := o.accept(token)
	wantCode(t, err, auth.CodeInvalidToken)
}

// keyless is a store that may have lost its keys.
type keyless struct {
	auth.Store
	lost bool
}

func (s *keyless) Unwrap() auth.Store { return &lostKeys{s, s.Store.(store.ProjectStore)} }

type lostKeys struct {
	*keyless
	store.ProjectStore
}

func (s *lostKeys) Unwrap() auth.Store { return s.Store }

func (s *lostKeys) Key(ctx context.Context, id string) (store.APIKey, error) {
	if s.lost {
		return store.APIKey{}, store.ErrNotFound
	}
	return s.ProjectStore.Key(ctx, id)
}

// The change itself checks the maker of the key that invited: a ban between the read and
// the change counts.
func TestInvitationByAKeyWhoseMakerGoesMeanwhile(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		o := newOffice(t, tap)
		o.permit("inviter", admin.PermUsersWrite, admin.PermUsersRead)
		maker := o.imported("maker@example.com", "inviter").User
		k := o.keyOf(maker, admin.PermUsersWrite, admin.PermUsersRead)
		_, token := o.invite(admin.Key(k.Secret.Reveal()), "ada@example.com")
		var once sync.Once
		tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
			if method == "RedeemToken" {
				once.Do(func() {
					if _, err := o.adm.BanUser(ctx, admin.System("test").Accepting(), admin.BanUserParams{UserID: maker.ID, Reason: "left"}); err != nil {
						t.Error(err)
					}
				})
			}
		}})
		_, err := o.accept(token)
		wantCode(t, err, auth.CodeInvalidToken)
	})
}
