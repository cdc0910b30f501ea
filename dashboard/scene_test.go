package dashboard_test

import (
	"context"
	"net/netip"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// hostile is a text that would run, or leave an attribute, if it were not escaped.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}`

// scene has data of every kind: accounts in each state, sessions, roles, keys,
// invitations, messages and events.
func (o *office) scene() auth.User {
	o.t.Helper()
	ctx, who := o.t.Context(), admin.System("test").Accepting()
	must := func(err error) {
		o.t.Helper()
		if err != nil {
			o.t.Fatal(err)
		}
	}
	_, err := o.adm.CreateRole(ctx, who, admin.CreateRoleParams{Name: "editor", Description: hostile, Permissions: []string{"notes.write"}})
	must(err)
	ada, err := o.adm.CreateUser(ctx, who, admin.CreateUserParams{
		Email: "ada@example.com", EmailVerified: true, Phone: "+4915112345678", FullName: "Ada <b>Lovelace</b>", Password: authtest.Password, Roles: []string{"editor"},
		UserMetadata: map[string]any{"x": hostile}, AppMetadata: map[string]any{"plan": hostile}, Notes: hostile,
	})
	must(err)
	from := auth.ContextWithClient(context.WithoutCancel(ctx), auth.Client{IP: netip.MustParseAddr("192.0.2.7"), UserAgent: hostile})
	for range 3 {
		_, err = o.Login(from, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
		must(err)
		_, err = o.Login(from, auth.LoginParams{Email: "ada@example.com", Password: "wrong password"})
		if err == nil {
			o.t.Fatal("a wrong password is right")
		}
	}
	eve := o.user("eve@example.com")
	_, err = o.adm.BanUser(ctx, who, admin.BanUserParams{UserID: eve.ID, Reason: hostile})
	must(err)
	_, err = o.adm.Invite(ctx, who, admin.InviteParams{Email: "bob@example.com", Roles: []string{"editor"}})
	must(err)
	_, err = o.adm.CreateKey(ctx, who, admin.CreateKeyParams{Name: hostile, Scopes: []string{"auth.users.read"}})
	must(err)
	_, err = o.adm.Send(ctx, who, admin.SendParams{UserID: ada.ID, Type: admin.LinkReset})
	must(err)
	return ada
}
