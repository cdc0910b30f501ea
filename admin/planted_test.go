package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"golang.org/x/crypto/bcrypt"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// plantedIDP is a provider at which the person who plants methods has an account.
const plantedIDP = "planted"

const (
	plantedPassword = "a planted password"
	plantedNumber   = "+4930123456"
	plantedDevice   = "planted-device-0123456789"
)

// nursery is an office with the account ada@example.com, for which somebody else sets up a
// sign-in method.
type nursery struct {
	*office
	idp    *authtest.Provider
	helper *authtest.SignedIn // has auth.users.write, auth.users.import, auth.credentials and auth.impersonate
	id     string
}

// use signs in with a planted method, or uses it, and returns the operator permissions that
// it has.
type use func() (held []string, err error)

func (n *nursery) create(body string) {
	n.id = n.do(n.helper, "POST /users", `{"email":"ada@example.com",`+body+`}`).want(201).body["id"].(string)
}

func (n *nursery) row(body string) {
	wantResults(n.t, n.imports(n.helper, "", `{"email":"ada@example.com","email_verified":true,`+body+`}`), "done")
	u, err := n.Store.User(n.t.Context(), store.ByEmail("ada@example.com"))
	n.must(err)
	n.id = u.ID
}

// hash returns a hash of the planted password.
func (n *nursery) hash() string {
	hash, err := bcrypt.GenerateFromPassword([]byte(plantedPassword), bcrypt.MinCost)
	n.must(err)
	return string(hash)
}

// held returns the operator permissions of tokens.
func (n *nursery) held(s *auth.Tokens, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	return n.powers(s), nil
}

func (n *nursery) login(ctx context.Context, code string) (*auth.Tokens, error) {
	s, err := n.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: plantedPassword, TOTPCode: code, TrustDevice: code != ""})
	return s, err
}

func (n *nursery) byPassword() ([]string, error) { return n.held(n.login(n.t.Context(), "")) }

func (n *nursery) totp() string {
	n.Clock.Advance(time.Minute) // each code is valid once
	c, err := totp.GenerateCode(aSecret, n.Clock.Now())
	n.must(err)
	return c
}

// passkey imports a passkey.
func (n *nursery) passkey(second bool) use {
	key := harness.NewKey()
	r, handle := harness.PasskeyRecord(n.t, key)
	r.SecondFactor = second
	text, err := json.Marshal(r)
	n.must(err)
	n.row(`"user_handle":"` + handle + `","passkeys":[` + string(text) + `]`)
	return func() ([]string, error) {
		begun, err := n.BeginPasskeySignIn(n.t.Context())
		n.must(err)
		credential, err := key.Get(begun.PublicKey)
		n.must(err)
		return n.held(n.FinishPasskeySignIn(n.t.Context(), auth.FinishPasskeySignInParams{RequestID: begun.RequestID, Credential: credential}))
	}
}

// shown returns the token of a link that an operator is shown.
func (n *nursery) shown(kind string) string {
	made := n.do(n.helper, "POST /links", `{"type":"`+kind+`","user_id":"`+n.id+`"}`).want(201).body["url"].(string)
	_, token, _ := strings.Cut(made, "token=")
	return token
}

func (n *nursery) byIdentity() ([]string, error) {
	const browser = "a-browser"
	to, err := n.StartOAuth(n.t.Context(), auth.StartOAuthParams{Provider: plantedIDP, Browser: browser})
	n.must(err)
	n.idp.SignsIn(authtest.Person{Subject: "planted", Email: "planter@example.com", EmailVerified: true})
	back := n.idp.Authorize(n.t, to)
	res, err := n.FinishOAuth(n.t.Context(), auth.OAuthCallback{Provider: plantedIDP, State: back.Get("state"), Code: back.Get("code"), Issuer: back.Get("iss"), Browser: browser})
	if err != nil {
		return nil, err
	}
	if res.Tokens.User.ID != n.id { // the identity is free again, and makes an account of its own
		n.must(n.adm.DeleteUser(n.t.Context(), admin.System("test"), admin.DeleteUserParams{UserID: res.Tokens.User.ID, Reason: "x"}))
		return n.powers(res.Tokens), errors.New("another account")
	}
	return n.powers(res.Tokens), nil
}

// wasOperator signs in an account that was an operator, until the moment, and did something
// as one.
func (n *nursery) wasOperator(did func(s *authtest.SignedIn)) {
	n.create(`"email_verified":true,"password":"` + plantedPassword + `"`)
	_, err := n.adm.SetRoles(n.t.Context(), admin.System("test").Accepting(), admin.SetRolesParams{UserID: n.id, Roles: []string{auth.RoleOwner}})
	n.must(err)
	s, err := n.login(n.t.Context(), "")
	n.must(err)
	did(&authtest.SignedIn{Tokens: *s})
	_, err = n.adm.SetRoles(n.t.Context(), admin.System("test"), admin.SetRolesParams{UserID: n.id, Roles: []string{}})
	n.must(err)
	now := n.Clock.Now()
	n.patch(n.id, store.UserPatch{AcceptedUntil: &now}) // as 30 days later
}

// plants are the ways in which an operator who may write and import accounts and
// credentials, a stranger, or somebody with a session of the account can set up a method.
var plants = map[string]func(n *nursery) use{
	"a password": func(n *nursery) use {
		n.create(`"email_verified":true,"password":"` + plantedPassword + `"`)
		return n.byPassword
	},
	"a password of a stranger": func(n *nursery) use {
		n.create(`"password":"` + plantedPassword + `"`)
		return n.byPassword
	},
	"a password on an older account": func(n *nursery) use {
		n.create(`"email_verified":true`)
		n.do(n.helper, "POST /users/"+n.id+"/password", `{"password":"`+plantedPassword+`"}`).want(200)
		return n.byPassword
	},
	"an imported password": func(n *nursery) use {
		n.row(`"password_hash":"` + n.hash() + `"`)
		return n.byPassword
	},
	"an imported identity": func(n *nursery) use {
		n.row(`"identities":[{"provider":"` + plantedIDP + `","subject":"planted"}]`)
		return n.byIdentity
	},
	"an imported second factor": func(n *nursery) use {
		n.row(`"password_hash":"` + n.hash() + `","totp_secret":"` + aSecret + `"`)
		return func() ([]string, error) { return n.held(n.login(n.t.Context(), n.totp())) }
	},
	"an imported passkey":            func(n *nursery) use { return n.passkey(false) },
	"an imported passkey and factor": func(n *nursery) use { return n.passkey(true) },
	"a trusted device": func(n *nursery) use {
		n.row(`"password_hash":"` + n.hash() + `","totp_secret":"` + aSecret + `"`)
		ctx := auth.ContextWithClient(n.t.Context(), auth.Client{Device: plantedDevice})
		_, err := n.login(ctx, n.totp())
		n.must(err)
		return func() ([]string, error) { return n.held(n.login(ctx, "")) }
	},
	"a session": func(n *nursery) use {
		n.create(`"email_verified":true,"password":"` + plantedPassword + `"`)
		s, err := n.login(n.t.Context(), "")
		n.must(err)
		return func() ([]string, error) {
			return n.held(n.Refresh(n.t.Context(), auth.RefreshParams{RefreshToken: s.RefreshToken}))
		}
	},
	"a phone number": func(n *nursery) use {
		n.create(`"email_verified":true,"phone":"` + plantedNumber + `","phone_verified":true`)
		return func() ([]string, error) {
			n.Clock.Advance(2 * time.Minute) // between two messages
			if _, err := n.SendPhoneCode(n.t.Context(), auth.SendPhoneCodeParams{Phone: plantedNumber}); err != nil {
				return nil, err
			}
			s, err := n.VerifyPhoneCode(n.t.Context(), auth.VerifyPhoneCodeParams{Phone: plantedNumber, Code: n.Mail(n.t, plantedNumber, auth.KindPhoneCode).Code})
			if err == nil && s.User.ID != n.id { // the number is free again
				n.must(n.adm.DeleteUser(n.t.Context(), admin.System("test"), admin.DeleteUserParams{UserID: s.User.ID, Reason: "x"}))
				return n.powers(s), errors.New("another account")
			}
			return n.held(s, err)
		}
	},
	"a reset link that was shown": func(n *nursery) use {
		n.create(`"email_verified":true`)
		token := n.shown("reset")
		return func() ([]string, error) {
			if err := n.ResetPassword(n.t.Context(), auth.ResetPasswordParams{Token: token, NewPassword: plantedPassword}); err != nil {
				return nil, err
			}
			return n.byPassword()
		}
	},
	"a sign-in link that was shown": func(n *nursery) use {
		n.create(`"email_verified":true`)
		token := n.shown("magic_link")
		return func() ([]string, error) {
			return n.held(n.VerifyMagicLink(n.t.Context(), auth.VerifyMagicLinkParams{Token: token}))
		}
	},
	"an address that is being changed": func(n *nursery) use {
		n.create(`"email_verified":true,"password":"` + plantedPassword + `"`)
		s, err := n.login(n.t.Context(), "")
		n.must(err)
		me, to := auth.Caller{UserID: n.id, SessionID: s.SessionID}, "planter@example.com"
		_, err = n.UpdateMe(n.t.Context(), auth.UpdateMeParams{Caller: me, Email: &to})
		n.must(err)
		token := n.token(to, auth.KindChangeEmail)
		before := true
		return func() ([]string, error) {
			if before { // completed now, the link to accept would go to the new address, which the list of waiting accounts shows
				before = false
				return nil, nil
			}
			if _, err := n.VerifyEmail(n.t.Context(), auth.VerifyEmailParams{Token: token, Within: me}); err != nil {
				return nil, err
			}
			n.must(n.SendPasswordReset(n.t.Context(), auth.SendPasswordResetParams{Email: to}))
			n.must(n.ResetPassword(n.t.Context(), auth.ResetPasswordParams{Token: n.token(to, auth.KindResetPassword), NewPassword: plantedPassword}))
			return n.held(n.Login(n.t.Context(), auth.LoginParams{Email: to, Password: plantedPassword}))
		}
	},
	"an impersonation": func(n *nursery) use {
		n.create(`"email_verified":true`)
		r, err := n.adm.Impersonate(n.t.Context(), actor(n.helper), admin.ImpersonateParams{UserID: n.id, Reason: "x"})
		n.must(err)
		return func() ([]string, error) {
			c, err := n.Verify(r.AccessToken)
			if err != nil {
				return nil, err
			}
			_, u, err := n.Current(n.t.Context(), c)
			return n.held(&auth.Tokens{AccessToken: r.AccessToken, User: u}, err)
		}
	},
	"a key of the account": func(n *nursery) use {
		var key admin.NewKey
		n.wasOperator(func(s *authtest.SignedIn) { key = n.key(actor(s), admin.PermUsersRead, admin.PermUsersWrite) })
		return func() (held []string, err error) {
			me := n.do(program(key), "GET /me", "")
			if me.status != 200 {
				return nil, errors.New(me.text)
			}
			for _, p := range me.body["permissions"].([]any) {
				held = append(held, p.(string))
			}
			return held, nil
		}
	},
	"an invitation by the account": func(n *nursery) use {
		var token string
		n.wasOperator(func(s *authtest.SignedIn) { _, token = n.invite(actor(s), "planter@example.com", "support") })
		return func() ([]string, error) {
			return n.held(n.accept(token))
		}
	},
}

const toAda = `{"address":"ada@example.com"}`

// promotions are the ways in which an account comes to permissions of an operator.
var promotions = map[string]func(n *nursery, owner *authtest.SignedIn){
	"the roles are set": func(n *nursery, owner *authtest.SignedIn) {
		n.do(owner, "PUT /users/"+n.id+"/roles", `{"roles":["support"],"address":"ada@example.com"}`).want(200)
	},
	"a role is given": func(n *nursery, owner *authtest.SignedIn) {
		n.do(owner, "POST /users/"+n.id+"/roles/support", toAda).want(200)
	},
	"a key gives a role": func(n *nursery, owner *authtest.SignedIn) {
		k := n.key(actor(owner), admin.PermRolesAssign, "role/support", admin.PermUsersRead, admin.PermSessionsRead, admin.PermSessionsRevoke, admin.PermUsersBan, admin.PermMessagesSend, admin.PermAuditRead)
		n.do(program(k), "POST /users/"+n.id+"/roles/support", toAda).want(200)
	},
	"an owner is made": func(n *nursery, owner *authtest.SignedIn) {
		n.do(owner, "POST /users/"+n.id+"/roles/owner", toAda).want(200)
	},
	"by code": func(n *nursery, _ *authtest.SignedIn) {
		n.given("support")
	},
	"many are given": func(n *nursery, owner *authtest.SignedIn) {
		n.do(owner, "POST /users/bulk", `{"action":"add_role","role":"support","ids":["`+n.id+`"]}`).want(200)
	},
	"by an invitation": func(n *nursery, owner *authtest.SignedIn) {
		n.do(owner, "POST /invitations", `{"email":"ada@example.com","roles":["support"]}`).want(201)
	},
	"by an import": func(n *nursery, owner *authtest.SignedIn) {
		n.imports(owner, "?on_conflict=update", `{"id":"`+n.id+`","email":"ada@example.com","roles":["support"]}`)
	},
	"by a change of a role": func(n *nursery, owner *authtest.SignedIn) {
		n.bears("clerk", notes)
		n.do(owner, "PATCH /roles/clerk", `{"permissions":["auth.users.read"]}`).want(200)
	},
	"by a pattern": func(n *nursery, owner *authtest.SignedIn) {
		n.bears("clerk", notes)
		n.do(owner, "PATCH /roles/clerk", `{"permissions":["money.*"]}`).want(200)
	},
	"by a privileged permission": func(n *nursery, owner *authtest.SignedIn) {
		n.bears("clerk", notes)
		n.do(owner, "PATCH /roles/clerk", `{"permissions":["money.send"]}`).want(200)
	},
	"by a permission that becomes privileged": func(n *nursery, _ *authtest.SignedIn) {
		host.Of(n).DeclarePrivileged(nil) // as of a process of the version before
		n.bears("clerk", "money.send")
		host.Of(n).DeclarePrivileged([]string{"money.send"})
	},
	"by the name of a role": func(n *nursery, owner *authtest.SignedIn) {
		n.do(owner, "POST /roles", `{"name":"superuser","permissions":[],"privileged":true}`).want(201)
		n.do(owner, "POST /users/"+n.id+"/roles/superuser", toAda).want(200)
	},
	"by a name that becomes privileged": func(n *nursery, owner *authtest.SignedIn) {
		n.bears("clerk")
		n.do(owner, "PATCH /roles/clerk", `{"privileged":true}`).want(200)
	},
}

// bears gives the account a role without operator permissions.
func (n *nursery) bears(role string, permissions ...string) {
	n.permit(role, permissions...)
	n.given(role)
}

// given gives the account a role by code of the application.
func (n *nursery) given(role string) {
	_, err := n.adm.SetRoles(n.t.Context(), admin.System("code"), admin.SetRolesParams{UserID: n.id, Roles: []string{role}})
	n.must(err)
}

// powers returns the permissions and roles in an access token that only operators have.
func (o *office) powers(s *auth.Tokens) (held []string) {
	o.t.Helper()
	c, err := o.Verify(s.AccessToken)
	o.must(err)
	for _, p := range c.Permissions {
		if p == "*" || strings.HasPrefix(p, "auth.") || strings.HasPrefix(p, "money.") {
			held = append(held, p)
		}
	}
	for _, r := range slices.Concat(c.Roles, s.User.Roles) {
		if r == "owner" || r == "admin" || r == "superuser" || r == "clerk" && slices.Contains(o.privilegedRoles(), r) {
			held = append(held, "role "+r)
		}
	}
	return held
}

// privilegedRoles returns the names that the table of roles marks.
func (o *office) privilegedRoles() []string {
	o.t.Helper()
	roles, _ := store.Capability[store.ProjectStore](o.behind())
	table, err := roles.Roles(o.t.Context())
	o.must(err)
	return table.Privileged
}

// Strength over time: a sign-in method that somebody else set up never has the permissions
// of an operator, before the acceptance or after it; the holder has them after it, and
// nobody else's method is left.
func TestPlantedMethodsNeverHaveOperatorPermissions(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		idp := authtest.StartProvider(t)
		o := newOfficeWith(t, st, admin.Options{RequireMFA: auth.Off}, harness.WithPasskeys(), auth.WithProvider(idp.OIDC(plantedIDP)), auth.WithMFA(auth.MFAOptions{TrustDevices: 24 * time.Hour}))
		combination := 0
		for _, planted := range names(plants) {
			for _, promoted := range names(promotions) {
				what := planted + ", " + promoted
				o.Clock.Advance(24 * time.Hour) // for the limits on mail
				by := fmt.Sprintf("c%d", combination)
				combination++
				owner := o.LoginAs(t, by+".owner@example.com", authtest.Roles(auth.RoleOwner))
				helper := o.LoginAs(t, by+".helper@example.com", authtest.Permissions(admin.PermUsersWrite, admin.PermUsersImport, admin.PermUsersRead, admin.PermCredentials, admin.PermImpersonate))
				n := &nursery{office: o, idp: idp, helper: helper}
				use := plants[planted](n)
				o.Inbox.Clear()
				promotions[promoted](n, owner)
				sent := o.sent("ada@example.com", auth.KindInvitation) > 0 // with the role
				if held, err := use(); err == nil && len(held) > 0 {
					t.Errorf("%s: before the acceptance it has %v", what, held)
				}
				if o.read(n.id).MFAEnabled { // the holder does not have the factor
					o.do(owner, "DELETE /users/"+n.id+"/factors", `{"reason":"lost"}`).want(200)
				}
				if !sent {
					o.do(owner, "POST /users/"+n.id+"/send", `{"type":"accept"}`).want(202)
				}
				s, err := o.accept(o.invitedToken("ada@example.com"))
				if err != nil {
					t.Errorf("%s: the holder: %v", what, err)
				} else if len(o.powers(s)) == 0 {
					t.Errorf("%s: the holder has no permission of an operator", what)
				}
				if held, err := use(); err == nil {
					t.Errorf("%s: it works after the acceptance, with %v", what, held)
				}
				if _, err := o.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: password}); err != nil {
					t.Errorf("%s: the holder signs in: %v", what, err)
				}
				if u := o.read(n.id); u.MFAEnabled || u.Phone != "" || len(u.Identities) > 0 {
					t.Errorf("%s: it is left: %+v", what, u)
				}
				o.clear(n.id)
			}
		}
	})
}

// clear deletes an account and the roles of promotions, with their marks.
func (o *office) clear(id string) {
	o.t.Helper()
	code := admin.System("test").Accepting()
	o.must(o.adm.DeleteUser(o.t.Context(), code, admin.DeleteUserParams{UserID: id, Reason: "x"}))
	for _, role := range []string{"clerk", "superuser"} {
		no := false
		_, err := o.adm.UpdateRole(o.t.Context(), code, admin.UpdateRoleParams{Name: role, Privileged: &no})
		if errors.Is(err, auth.CodeRoleNotFound) {
			continue
		}
		o.must(err)
		_, err = o.adm.DeleteRole(o.t.Context(), code, admin.DeleteRoleParams{Name: role})
		o.must(err)
	}
}

func names[V any](m map[string]V) (list []string) {
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
