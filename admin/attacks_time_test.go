package admin_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// The id of an account that is being deleted is not given to another account.
func TestIDsAreNotTakenWhileTheirAccountGoes(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		tap := storetap.New(st)
		o := newOffice(t, tap)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		goes := func(method string) string {
			id := o.LoginAs(t, method+"@example.com").User.ID
			tap.Reset(storetap.Hooks{Background: true, Before: func(ctx context.Context, called string, _ int) {
				if called == method {
					_ = st.DeleteUser(ctx, store.DeleteUser{Change: store.Change{Now: o.Clock.Now(), By: auth.Authority{System: "test"}, Events: []store.OutcomeEvent{
						{On: store.OutcomeDone, Event: auth.Event{ID: uuid.NewString(), At: o.Clock.Now(), Type: auth.EventUserDeleted, UserID: id}}}}, UserID: id})
				}
			}})
			return id
		}
		o.do(owner, "POST /users", fmt.Sprintf(`{"id":%q,"email":"thief@example.com"}`, goes("CreateUser"))).want(409, auth.CodeUserAlreadyExists)
		wantResults(t, o.imports(owner, "", fmt.Sprintf(`{"id":%q,"email":"thief@example.com"}`, goes("CreateUsers"))), "failed user_already_exists id")
		tap.Reset(storetap.Hooks{})
	})
}

// A link that an operator created is valid only while they could create it. It does not
// work if they have become weaker than its account, are banned, or have lost the
// permission to create links.
func TestLinksEndWithTheStrengthOfTheirMaker(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.do(owner, "POST /roles", `{"name":"strong","permissions":["auth.credentials","auth.users.ban"]}`).want(201)
		o.do(owner, "POST /roles", `{"name":"weak","permissions":[]}`).want(201)
		redeem := map[string]func(token string) error{
			"magic_link": func(token string) error {
				_, err := o.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: token})
				return err
			},
			"reset": func(token string) error {
				return o.ResetPassword(t.Context(), auth.ResetPasswordParams{Token: token, NewPassword: password})
			},
		}
		n := 0
		for name, c := range map[string]struct {
			change func(maker, target *authtest.SignedIn)
			holds  bool
		}{
			"nothing changes": {func(_, _ *authtest.SignedIn) {}, true},
			"the target is promoted": {func(_, target *authtest.SignedIn) {
				o.do(owner, "POST /users/"+target.User.ID+"/roles/strong", `{"address":"`+target.User.Email+`"}`).want(200)
			}, false},
			"the target's role grows": {func(_, _ *authtest.SignedIn) { o.do(owner, "PATCH /roles/weak", `{"permissions":["*"]}`).want(200) }, false},
			"the maker is banned": {func(maker, _ *authtest.SignedIn) {
				o.do(owner, "POST /users/"+maker.User.ID+"/ban", `{"reason":"x"}`).want(200)
			}, false},
			"the maker is demoted": {func(maker, _ *authtest.SignedIn) {
				o.do(owner, "PUT /users/"+maker.User.ID+"/roles", `{"roles":[]}`).want(200)
			}, false},
			"the maker is gone": {func(maker, _ *authtest.SignedIn) {
				o.do(owner, "POST /users/"+maker.User.ID+"/delete", `{"reason":"x"}`).want(204)
			}, false},
			"the target loses a role": {func(_, target *authtest.SignedIn) {
				o.do(owner, "PUT /users/"+target.User.ID+"/roles", `{"roles":[]}`).want(200)
			}, true},
		} {
			for kind, redeem := range redeem {
				n++
				o.do(owner, "PATCH /roles/weak", `{"permissions":[]}`).want(200)
				maker := o.operator(fmt.Sprintf("maker%d@example.com", n), admin.PermCredentials)
				target := o.LoginAs(t, fmt.Sprintf("target%d@example.com", n), authtest.Roles("weak"))
				made := o.do(maker, "POST /links", fmt.Sprintf(`{"type":%q,"user_id":%q}`, kind, target.User.ID)).want(201).body["url"].(string)
				c.change(maker, target)
				if err := redeem(tokenIn(t, made)); (err == nil) != c.holds || err != nil && !strings.Contains(err.Error(), string(auth.CodeInvalidToken)) {
					t.Errorf("%s, %s: %v", name, kind, err)
				}
			}
		}
	})
}

// The later permissions of a key of the options, or of application code, are unknown when
// its link is used. The link does not open an account that has become an operator's since.
func TestLinksOfOptionsEndWithAPromotion(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.do(owner, "POST /roles", `{"name":"strong","permissions":["auth.users.ban"]}`).want(201)
		for i, promoted := range []bool{false, true} {
			target := o.LoginAs(t, fmt.Sprintf("target%d@example.com", i))
			made, err := o.adm.MakeLink(t.Context(), admin.System("support-key"), admin.MakeLinkParams{Type: admin.LinkMagicLink, UserID: target.User.ID})
			if err != nil {
				t.Fatal(err)
			}
			o.do(owner, "POST /users/"+target.User.ID+"/password", `{"password":"another one, of the operator's"}`).want(200)
			if promoted {
				o.do(owner, "POST /users/"+target.User.ID+"/roles/strong", `{"address":"`+target.User.Email+`"}`).want(200)
			}
			if _, err := o.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: tokenIn(t, made.URL)}); (err == nil) == promoted {
				t.Errorf("promoted %t: %v", promoted, err)
			}
		}
	})
}

// A link is invalid if its maker is banned while it is used.
func TestLinkMakerBannedMeanwhile(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		tap := storetap.New(st)
		o := newOffice(t, tap)
		maker, target := o.operator("maker@example.com", admin.PermCredentials), o.LoginAs(t, "target@example.com")
		made, err := o.adm.MakeLink(t.Context(), actor(maker), admin.MakeLinkParams{Type: admin.LinkMagicLink, UserID: target.User.ID})
		if err != nil {
			t.Fatal(err)
		}
		var banned error
		tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
			if method == "RedeemToken" && banned == nil {
				until := o.Clock.Now().Add(time.Hour)
				_, banned = st.UpdateUser(ctx, store.UpdateUser{Change: store.Change{Now: o.Clock.Now(), By: auth.Authority{System: "test"}}, UserID: maker.User.ID, Patch: store.UserPatch{BannedUntil: &until}})
			}
		}})
		_, err = o.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: tokenIn(t, made.URL)})
		tap.Reset(storetap.Hooks{})
		if banned != nil {
			t.Fatal(banned)
		}
		wantCode(t, err, auth.CodeInvalidToken)
	})
}

// A link is invalid if its account gains a role while it is used.
func TestLinkTargetsRoleGrowsMeanwhile(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		tap := storetap.New(st)
		o := newOffice(t, tap)
		roles, _ := store.Capability[store.ProjectStore](st)
		put := func(ctx context.Context, permissions ...string) error {
			_, err := roles.PutRole(ctx, store.PutRole{Change: store.Change{Now: o.Clock.Now(), By: auth.Authority{System: "test"}}, Role: store.RolePermissions{Name: "grows", Permissions: permissions, CreatedAt: o.Clock.Now(), UpdatedAt: o.Clock.Now()}})
			return err
		}
		if err := put(t.Context()); err != nil {
			t.Fatal(err)
		}
		maker, target := o.operator("maker@example.com", admin.PermCredentials), o.LoginAs(t, "target@example.com", authtest.Roles("grows"))
		made, err := o.adm.MakeLink(t.Context(), actor(maker), admin.MakeLinkParams{Type: admin.LinkMagicLink, UserID: target.User.ID})
		if err != nil {
			t.Fatal(err)
		}
		var grown error
		once := false
		tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
			if method == "RedeemToken" && !once {
				once, grown = true, put(ctx, admin.PermUsersBan)
			}
		}})
		_, err = o.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: tokenIn(t, made.URL)})
		tap.Reset(storetap.Hooks{})
		if grown != nil || !once {
			t.Fatal(grown, once)
		}
		wantCode(t, err, auth.CodeInvalidToken)
	})
}

// Only actors who may revoke all sessions can do so, in every form of the request.
func TestEverybodysSessionsByATime(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		op, owner := o.operator("op@example.com", admin.PermSessionsRevoke), o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		past, future := o.Clock.Now().Add(-time.Minute).Format(time.RFC3339), o.Clock.Now().Add(time.Hour*24).Format(time.RFC3339)
		o.do(op, "POST /sessions/revoke", `{"before":"`+future+`"}`).want(403, auth.CodeMissingPermission)
		o.do(op, "POST /sessions/revoke", `{"before":"`+past+`"}`).want(200)
		key := "Idempotency-Key: k"
		o.do(owner, "POST /sessions/revoke", `{"before":"`+future+`"}`, key).want(200)
		o.Clock.Advance(time.Second)
		late := o.LoginAs(t, "late@example.com")
		o.do(owner, "POST /sessions/revoke", `{"before":"`+future+`"}`, key).want(200)
		if _, _, err := o.Store.Session(t.Context(), late.SessionID, o.Clock.Now()); err != nil {
			t.Errorf("a repetition ended what began since: %v", err)
		}
		op = o.operator("op2@example.com", admin.PermSessionsRevoke)
		o.do(o.later(op), "POST /sessions/revoke", `{"before":"`+past+`"}`).want(403, auth.CodeReauthNeeded)
	})
}

// Where every admin needs a second factor, an admin without one is refused, even if their
// session showed one. Elsewhere, an admin who has a factor must show it.
func TestFactorsOfAdmins(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		op := o.operator("op@example.com", admin.PermUsersRead)
		o.do(op, "GET /users", "").want(200)
		for _, f := range o.do(owner, "GET /users/"+op.User.ID+"/factors", "").want(200).body["factors"].([]any) {
			o.do(owner, "DELETE /users/"+op.User.ID+"/factors/"+f.(map[string]any)["id"].(string), `{"reason":"x"}`).want(200)
		}
		o.do(op, "GET /users", "").want(403, auth.CodeInsufficientAAL)
	})
	o := newOfficeWith(t, onTrustedDevices{memstore.New()}, admin.Options{RequireMFA: auth.Off})
	op := o.LoginAs(t, "op@example.com", authtest.Permissions(admin.PermUsersRead))
	o.do(op, "GET /users", "").want(200)
	o.arm(op)
	o.do(op, "GET /users", "").want(403, auth.CodeInsufficientAAL)
}

// onTrustedDevices is a store of sessions on trusted devices, without a second factor.
type onTrustedDevices struct{ auth.Store }

func (s onTrustedDevices) Unwrap() auth.Store { return s.Store }

func (s onTrustedDevices) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	session, u, err := s.Store.Session(ctx, id, now)
	session.AAL = store.LevelAAL1
	return session, u, err
}
