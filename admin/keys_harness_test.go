package admin_test

import (
	"context"
	"errors"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// newDeploy creates the key of the examples.
func (o *office) newDeploy() {
	o.t.Helper()
	k, err := o.adm.CreateKey(o.t.Context(), admin.System("test").Accepting(), admin.CreateKeyParams{Name: "deploy", Scopes: []string{admin.PermUsersRead}})
	if err != nil {
		o.t.Fatal(err)
	}
	o.deploy = k.ID
}

// key creates a secret key for an actor.
func (o *office) key(who admin.Actor, scopes ...string) admin.NewKey {
	o.t.Helper()
	k, err := o.adm.CreateKey(o.t.Context(), who, admin.CreateKeyParams{Name: "a key", Scopes: scopes})
	if err != nil {
		o.t.Fatal(err)
	}
	return k
}

// keyOf creates a secret key of a user, who need not sign in for it.
func (o *office) keyOf(u auth.User, scopes ...string) admin.NewKey {
	o.t.Helper()
	k := o.key(admin.System("test").Accepting(), scopes...)
	k.CreatedBy = u.ID
	keys, _ := store.Capability[store.ProjectStore](o.Store)
	var err error
	if k.APIKey, err = keys.PutKey(o.t.Context(), store.PutKey{Change: store.Change{Now: o.Clock.Now(), By: auth.Authority{System: "test"}}, Key: k.APIKey}); err != nil {
		o.t.Fatal(err)
	}
	return k
}

// imported is a user with roles, who never signed in.
func (o *office) imported(email string, roles ...string) *authtest.SignedIn {
	o.t.Helper()
	u, err := o.ImportUser(o.t.Context(), auth.ImportUserParams{Email: email, EmailVerified: true, Accepted: true, Roles: roles})
	if err != nil {
		o.t.Fatal(err)
	}
	if len(roles) > 0 && roles[0] != "editor" && u.AcceptedSequence == 0 { // the role gets its permissions later
		o.patch(u.ID, store.UserPatch{Accept: true})
	}
	return &authtest.SignedIn{Tokens: auth.Tokens{User: u}}
}

// permit creates or changes a role.
func (o *office) permit(role string, permissions ...string) {
	o.t.Helper()
	if err := o.permitIn(o.t.Context(), role, permissions...); err != nil {
		o.t.Fatal(err)
	}
}

// permitIn is permit within another operation.
func (o *office) permitIn(ctx context.Context, role string, permissions ...string) error {
	code := admin.System("test").Accepting()
	_, err := o.adm.UpdateRole(ctx, code, admin.UpdateRoleParams{Name: role, Permissions: &permissions})
	if errors.Is(err, auth.CodeRoleNotFound) {
		_, err = o.adm.CreateRole(ctx, code, admin.CreateRoleParams{Name: role, Permissions: permissions})
	}
	return err
}

// besides returns a permission that makes an admin and is not the operation's.
func besides(row admin.Row) string {
	if row.Permission == admin.PermStatsRead {
		return admin.PermMessagesRead
	}
	return admin.PermStatsRead
}

// program sends requests with a key.
func program(k admin.NewKey) *authtest.SignedIn { return bearing(k.Secret.Reveal()) }

func bearing(text string) *authtest.SignedIn {
	return &authtest.SignedIn{Tokens: auth.Tokens{AccessToken: text}}
}

// maker signs a user in who may create keys and has the named permissions.
func (o *office) maker(email string, permissions ...string) *authtest.SignedIn {
	o.t.Helper()
	return o.operator(email, append(permissions, admin.PermKeysWrite)...)
}

func (o *office) revoke(ctx context.Context, id string) error {
	return o.adm.RevokeKey(ctx, admin.System("test").Accepting(), admin.RevokeKeyParams{ID: id})
}
