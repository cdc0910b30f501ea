package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
)

// If the permissions behind a key change between an operation's read and its change, the
// change does not happen, except for changes that leave the key the same. The test covers
// every operation that keys may do.
func TestKeyChangedMeanwhile(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		o := newOffice(t, tap)
		code := admin.System("test").Accepting()
		o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner))
		o.permit(role)
		type made struct {
			admin.NewKey
			by   auth.User
			rest string // its other scopes
		}
		cases := map[string]struct {
			happens func(ctx context.Context, k made) error
			want    auth.Code // "": the change happens
		}{
			"the key is revoked": {func(ctx context.Context, k made) error { return o.revoke(ctx, k.ID) }, auth.CodeInvalidAPIKey},
			"the key is rotated": {func(ctx context.Context, k made) error {
				_, err := o.adm.RotateKey(ctx, code, admin.RotateKeyParams{ID: k.ID})
				return err
			}, auth.CodeInvalidAPIKey},
			"the key loses its scopes": {func(ctx context.Context, k made) error {
				_, err := o.adm.UpdateKey(ctx, code, admin.UpdateKeyParams{ID: k.ID, Scopes: &[]string{k.rest}})
				return err
			}, auth.CodeMissingPermission},
			"the key is renamed": {func(ctx context.Context, k made) error {
				name := "other"
				_, err := o.adm.UpdateKey(ctx, code, admin.UpdateKeyParams{ID: k.ID, Name: &name})
				return err
			}, ""},
			"its maker is demoted": {func(ctx context.Context, k made) error {
				_, err := o.adm.SetRoles(ctx, code, admin.SetRolesParams{UserID: k.by.ID})
				return err
			}, auth.CodeNotAdmin},
			"its maker's role shrinks": {func(ctx context.Context, k made) error {
				return o.permitIn(ctx, k.by.Roles[0], k.rest)
			}, auth.CodeMissingPermission},
			"its maker is banned": {func(ctx context.Context, k made) error {
				_, err := o.adm.BanUser(ctx, code, admin.BanUserParams{UserID: k.by.ID, Reason: "x"})
				return err
			}, auth.CodeInvalidAPIKey},
			"its maker is deleted": {func(ctx context.Context, k made) error {
				return o.adm.DeleteUser(ctx, code, admin.DeleteUserParams{UserID: k.by.ID, Reason: "x"})
			}, auth.CodeInvalidAPIKey},
		}
		n := 0
		for name, c := range cases {
			for _, row := range admin.Table() {
				if !row.Targets || slices.Contains(notForKeys, row.Permission) {
					continue
				}
				n++
				own := fmt.Sprintf("own%d", n)
				o.permit(own, row.Permission, besides(row))
				maker := o.imported(fmt.Sprintf("maker%d@example.com", n), own)
				k := made{o.keyOf(maker.User, row.Permission, besides(row), "role/"+role), maker.User, besides(row)}
				target := o.imported(fmt.Sprintf("target%d@example.com", n))
				if strings.Contains(row.Pattern, "/sessions/{id}") {
					target = o.LoginAs(t, fmt.Sprintf("session%d@example.com", n))
				}
				o.changeable(row, target)
				var once sync.Once
				reached := false
				tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
					if !mutates(method) {
						return
					}
					once.Do(func() {
						reached = true
						if err := c.happens(ctx, k); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					})
				}})
				got := o.try(program(k.NewKey), row, target)
				tap.Reset(storetap.Hooks{})
				code, _ := got.body["code"].(string)
				if got.status < 400 {
					code = "" // the code of a link, for example
				}
				if !reached || code != string(c.want) || c.want == "" && got.status != examples[row.Pattern].status {
					t.Errorf("%s, %s: %d %v, want %q", row.Pattern, name, got.status, got.body, c.want)
				}
			}
		}
		if n == 0 {
			t.Error("no key did anything")
		}
	})
}

// Once a key's revocation is answered, nothing happens in its name.
func TestRevokedKeyAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		for round := range 5 {
			k := o.key(admin.System("test").Accepting(), admin.PermUsersBan)
			var targets []*authtest.SignedIn
			for i := range 4 {
				targets = append(targets, o.LoginAs(t, fmt.Sprintf("ada%d-%d@example.com", round, i)))
			}
			var wg sync.WaitGroup
			revoked := make(chan struct{})
			wg.Go(func() {
				if err := o.revoke(t.Context(), k.ID); err != nil {
					t.Error(err)
				}
				close(revoked)
			})
			for _, target := range targets {
				wg.Go(func() {
					late := false
					select {
					case <-revoked:
						late = true
					default:
					}
					_, err := o.adm.BanUser(t.Context(), admin.Key(k.Secret.Reveal()), admin.BanUserParams{UserID: target.User.ID, Reason: "race"})
					if err != nil && !errors.Is(err, auth.CodeInvalidAPIKey) || late && err == nil {
						t.Errorf("late %v: %v", late, err)
					}
				})
			}
			wg.Wait()
		}
	})
}

// Of two concurrent rotations of a key one succeeds, and the other one is refused. The
// previous text is not rotated away in between.
func TestRotationsAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		o := newOffice(t, tap)
		k := o.key(admin.System("test").Accepting(), admin.PermUsersRead)
		p := admin.RotateKeyParams{ID: k.ID, Overlap: time.Hour}
		var once sync.Once
		var first admin.NewKey
		tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
			if method != "PutKey" {
				return
			}
			once.Do(func() {
				var err error
				if first, err = o.adm.RotateKey(ctx, admin.System("first"), p); err != nil {
					t.Error(err)
				}
			})
		}})
		_, err := o.adm.RotateKey(t.Context(), admin.System("second"), p)
		wantCode(t, err, auth.CodePreconditionFailed)
		tap.Reset(storetap.Hooks{})
		for name, text := range map[string]admin.Secret{"the first text": k.Secret, "the next": first.Secret} {
			if _, err := o.adm.ListUsers(t.Context(), admin.Key(text.Reveal()), admin.ListUsersParams{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}

		var wg sync.WaitGroup
		var mu sync.Mutex
		var texts []admin.NewKey
		for range 8 {
			wg.Go(func() {
				next, err := o.adm.RotateKey(t.Context(), admin.System("many"), admin.RotateKeyParams{ID: k.ID})
				if err != nil && !errors.Is(err, auth.CodePreconditionFailed) {
					t.Error(err)
				}
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					texts = append(texts, next)
				}
			})
		}
		wg.Wait()
		good := 0
		for _, next := range texts {
			if _, err := o.adm.ListUsers(t.Context(), admin.Key(next.Secret.Reveal()), admin.ListUsersParams{}); err == nil {
				good++
			}
		}
		if good != 1 {
			t.Errorf("%d of %d texts are good", good, len(texts))
		}
	})
}
