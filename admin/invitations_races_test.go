package admin_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/storetap"
)

// Changes of an invitation between the read and the change count: a revoked or accepted
// one is not sent again, and one that gives more than the actor may give is not replaced.
func TestInvitationMeanwhile(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		tap := storetap.New(store)
		o, _ := withRole(t, tap)
		system := admin.System("test").Accepting()
		strong := func(ctx context.Context, email string, _ admin.Invitation, _ string) error {
			_, err := o.adm.Invite(ctx, system, admin.InviteParams{Email: email, Roles: []string{auth.RoleOwner}})
			return err
		}
		for _, c := range []struct {
			email     string // for the one case
			first     bool   // there is an earlier invitation
			meanwhile func(ctx context.Context, email string, i admin.Invitation, token string) error
			want      auth.Code
			left      []string // the roles of the pending invitation in the end; nil: none is pending
		}{
			{"withdrawn@example.com", true, func(ctx context.Context, _ string, i admin.Invitation, _ string) error {
				return o.adm.WithdrawInvitation(ctx, system, i.ID)
			}, auth.CodeNotFound, nil},
			{"accepted@example.com", true, func(_ context.Context, _ string, _ admin.Invitation, token string) error {
				_, err := o.accept(token)
				return err
			}, auth.CodeNotFound, nil},
			{"replaced@example.com", true, strong, auth.CodeTargetStronger, []string{auth.RoleOwner}},
			{"new@example.com", false, strong, auth.CodeTargetStronger, []string{auth.RoleOwner}},
		} {
			boss := o.operator("boss-"+c.email, notes, admin.PermUsersWrite, admin.PermRolesAssign)
			var i admin.Invitation
			var token string
			if c.first {
				o.Clock.Advance(2 * time.Minute)
				i, token = o.invite(actor(boss), c.email, "editor")
			}
			var once sync.Once
			tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
				if method == "PutToken" {
					once.Do(func() {
						o.Clock.Advance(2 * time.Minute) // mails need an interval
						if err := c.meanwhile(ctx, c.email, i, token); err != nil {
							t.Errorf("%s: %v", c.email, err)
						}
					})
				}
			}})
			o.Clock.Advance(2 * time.Minute)
			var err error
			if c.first {
				_, err = o.adm.InviteAgain(t.Context(), actor(boss), i.ID)
			} else {
				_, err = o.adm.Invite(t.Context(), actor(boss), admin.InviteParams{Email: c.email})
			}
			tap.Reset(storetap.Hooks{})
			if err == nil {
				t.Errorf("%s: it was done", c.email)
			} else {
				wantCode(t, err, c.want)
			}
			list, err := o.adm.Invitations(t.Context(), system, admin.InvitationsParams{Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, w := range list.Invitations {
				if w.Email == c.email {
					left = w.Roles
				}
			}
			if !slices.Equal(left, c.left) {
				t.Errorf("%s: an invitation waits that gives %v, want %v", c.email, left, c.left)
			}
		}
	})
}
