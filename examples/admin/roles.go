package main

import (
	"context"
	"errors"
	"log"
	"slices"
	"sync/atomic"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// Permissions of this application, in addition to those for accounts.
const (
	publishArticles = "articles.publish"
	refundOrders    = "orders.refund"
)

// newAdmin declares the permissions and creates missing roles with them. The permissions
// of a role can be changed later at /auth/v1/admin/roles.
func newAdmin(ctx context.Context, a *auth.Auth, o admin.Options) (*admin.Admin, error) {
	o.Permissions = []admin.Permission{
		{Name: publishArticles, Description: "Publish articles."},
		{Name: refundOrders, Description: "Pay orders back.", Privileged: true}, // only operators who may refund can ban a user who may
	}
	adm, err := admin.New(ctx, a, o)
	if err != nil {
		return nil, err
	}
	code := admin.System("back-office")
	table, err := adm.Roles(ctx, code)
	if err != nil {
		return nil, err
	}
	held := func(role string) ([]string, bool) {
		i := slices.IndexFunc(table.Roles, func(r store.RolePermissions) bool { return r.Name == role })
		if i < 0 {
			return nil, false
		}
		return table.Roles[i].Permissions, true
	}
	if err := adm.EnsureRole(ctx, code, admin.CreateRoleParams{Name: "editor", Description: "Writes and publishes.", Permissions: []string{"articles.*"}}); err != nil {
		return nil, err
	}
	// The role support exists from the beginning; here it may also refund.
	if permissions, ok := held(admin.RoleSupport); ok && !slices.Contains(permissions, refundOrders) {
		more, description := append(slices.Clone(permissions), refundOrders), "Helps people with orders and accounts."
		p := admin.UpdateRoleParams{Name: admin.RoleSupport, Description: &description, Permissions: &more}
		if _, err := adm.UpdateRole(ctx, code, p); err != nil {
			return nil, err
		}
	}
	return adm, nil
}

// firstOwner makes the account of an email address owner as soon as the address is
// verified.
type firstOwner struct {
	address string
	adm     atomic.Pointer[admin.Admin]
}

func (f *firstOwner) onEvent(ctx context.Context, e auth.Event) {
	adm := f.adm.Load()
	if adm == nil || f.address == "" || e.Type != auth.EventEmailVerified && e.Type != auth.EventSignedIn {
		return
	}
	_, err := adm.GrantByAddress(context.WithoutCancel(ctx), admin.System("-owner").Accepting(), f.address, auth.RoleOwner)
	switch {
	case err == nil:
		f.adm.Store(nil)
		log.Print("there is an owner: " + f.address)
	case !errors.Is(err, auth.CodeUserNotFound) && !errors.Is(err, auth.CodeEmailNotVerified):
		log.Print("no owner yet: ", err)
	}
}
