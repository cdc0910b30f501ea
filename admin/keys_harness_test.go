package admin_test

import (
	"context"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// newDeploy makes the key that examples are about.
func (o *office) newDeploy() {
	o.t.Helper()
	k, err := o.adm.CreateKey(o.t.Context(), admin.System("test"), admin.CreateKeyParams{Name: "deploy", Scopes: []string{admin.PermUsersRead}})
	if err != nil {
		o.t.Fatal(err)
	}
	o.deploy = k.ID
}

// key makes a secret key in somebody's name.
func (o *office) key(who admin.Actor, scopes ...string) admin.NewKey {
	o.t.Helper()
	k, err := o.adm.CreateKey(o.t.Context(), who, admin.CreateKeyParams{Name: "a key", Scopes: scopes})
	if err != nil {
		o.t.Fatal(err)
	}
	return k
}

// program sends requests with a key.
func program(k admin.NewKey) *authtest.SignedIn { return bearing(k.Secret.Reveal()) }

func bearing(text string) *authtest.SignedIn {
	return &authtest.SignedIn{Tokens: auth.Tokens{AccessToken: text}}
}

// maker signs somebody in who may make keys, and whatever else is named.
func (o *office) maker(email string, permissions ...string) *authtest.SignedIn {
	o.t.Helper()
	return o.operator(email, append(permissions, admin.PermKeysWrite)...)
}

func (o *office) revoke(ctx context.Context, id string) error {
	return o.adm.RevokeKey(ctx, admin.System("test"), admin.RevokeKeyParams{ID: id})
}
