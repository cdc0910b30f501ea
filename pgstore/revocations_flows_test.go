package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// refuses checks that an instance refuses an access token with a code.
func refuses(t *testing.T, e *authtest.Env, s *authtest.SignedIn, code auth.Code) {
	t.Helper()
	if _, err := e.Verify(s.AccessToken); !errors.Is(err, code) {
		t.Errorf("verify: %v, want %s", err, code)
	}
}

// A revocation in one instance is effective in the others, without a read.
func TestRevocationsReachEveryInstance(t *testing.T) {
	store := open(t)
	secret := auth.WithSecret([]byte("a secret of more than thirty-two bytes"))
	one := authtest.NewOn(t, store, secret, auth.WithClock(time.Now))
	two := authtest.NewOn(t, store, secret, auth.WithClock(time.Now), one.SameKeys())
	f := follow(t, store, two.Revoke)
	ctx := t.Context()
	ada, elsewhere, bob, eve := one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "bob@example.com"), one.LoginAs(t, "eve@example.com")
	for _, s := range []*authtest.SignedIn{ada, elsewhere, bob, eve} {
		if _, err := two.Verify(s.AccessToken); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.Logout(ctx, auth.LogoutParams{Caller: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}}); err != nil {
		t.Fatal(err)
	}
	f.await(t, ada.SessionID)
	refuses(t, two, ada, auth.CodeSessionEnded)
	if _, err := two.Verify(elsewhere.AccessToken); err != nil {
		t.Errorf("the other session: %v", err)
	}
	ban(t, store, bob.User.ID)
	f.await(t, bob.User.ID)
	refuses(t, two, bob, auth.CodeTokenStale)
	if err := one.DeleteUser(ctx, auth.DeleteUserParams{Caller: auth.ByApplication(eve.User.ID)}); err != nil {
		t.Fatal(err)
	}
	f.await(t, eve.User.ID)
	refuses(t, two, eve, auth.CodeSessionEnded)
}

// The clocks of the application and the database differ by a few seconds.
func TestBanUnderClockSkew(t *testing.T) {
	for _, skew := range []time.Duration{3 * time.Second, -3 * time.Second} {
		store := open(t)
		secret := auth.WithSecret([]byte("a secret of more than thirty-two bytes"))
		env := authtest.NewOn(t, store, secret, auth.WithClock(func() time.Time { return time.Now().Add(skew) }))
		f := follow(t, store, env.Revoke)
		bob := env.LoginAs(t, "bob@example.com")
		ban(t, store, bob.User.ID)
		f.await(t, bob.User.ID)
		refuses(t, env, bob, auth.CodeTokenStale)
	}
}

// Whoever signs in after the end of a ban has access at once, whatever the clocks say. A ban
// by hand that raises no revision ends the tokens by time.
func TestEndOfABan(t *testing.T) {
	st, schema := openSchema(t)
	secret := auth.WithSecret([]byte("a secret of more than thirty-two bytes"))
	env := authtest.NewOn(t, st, secret, auth.WithClock(time.Now))
	f := follow(t, st, env.Revoke)
	bob := env.LoginAs(t, "bob@example.com")
	ban(t, st, bob.User.ID)
	f.await(t, bob.User.ID)
	refuses(t, env, bob, auth.CodeTokenStale)
	never := time.Time{}
	if _, err := st.UpdateUser(t.Context(), store.UpdateUser{Change: byTest(), UserID: bob.User.ID, Patch: store.UserPatch{BannedUntil: &never}}); err != nil {
		t.Fatal(err)
	}
	again := env.LoginAs(t, "bob@example.com")
	if _, err := env.Verify(again.AccessToken); err != nil {
		t.Errorf("after the ban: %v", err)
	}
	refuses(t, env, bob, auth.CodeTokenStale)
	exec(t, st.Pool(), `update `+schema+`.users set banned_until = now() + interval '1 hour' where id = $1`, bob.User.ID)
	for f.await(t, bob.User.ID).Stale != 0 { // the first ban, reported again
	}
	refuses(t, env, again, auth.CodeSessionEnded)
}

// awaitStale waits until the feed has reported the present roles of a user, or a role.
func (f *feed) awaitStale(t *testing.T, s *pgstore.Store, userID, role string) {
	t.Helper()
	table, err := s.Roles(t.Context())
	at := table.Revision
	if err == nil && userID != "" {
		var u store.User
		u, err = s.User(t.Context(), store.ByID(userID))
		at = u.CredentialRevision
	}
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(20 * time.Second)
	for {
		select {
		case r := <-f.told:
			if r.Stale == at && r.UserID == userID && r.Role == role {
				return
			}
		case <-deadline:
			t.Fatalf("nobody told of %s%s", userID, role)
		}
	}
}

// A change of a user's roles, or of a role's permissions, makes older tokens stale in
// every instance, within a second: always a token that was issued before it, and never the
// one from the refresh after it, however close they are.
func TestStaleTokensReachEveryInstance(t *testing.T) {
	st := open(t)
	secret := auth.WithSecret([]byte("a secret of more than thirty-two bytes"))
	still := time.Now().Truncate(time.Second) // all tokens have one iat
	clock := auth.WithClock(func() time.Time { return still })
	one := authtest.NewOn(t, st, secret, clock)
	two := authtest.NewOn(t, st, secret, clock, one.SameKeys())
	f := follow(t, st, two.Revoke)
	adm, err := admin.New(t.Context(), one.Auth, admin.Options{Permissions: []admin.Permission{{Name: "notes.write"}, {Name: "notes.read"}}})
	if err != nil {
		t.Fatal(err)
	}
	code := admin.System("test").Accepting()
	ada, bob := one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "bob@example.com")
	if _, err := adm.CreateRole(t.Context(), code, admin.CreateRoleParams{Name: "editor"}); err != nil {
		t.Fatal(err)
	}
	put := func(permissions ...string) {
		t.Helper()
		if _, err := adm.UpdateRole(t.Context(), code, admin.UpdateRoleParams{Name: "editor", Permissions: &permissions}); err != nil {
			t.Fatal(err)
		}
	}
	stale := func(what string) {
		t.Helper()
		for i, e := range []*authtest.Env{one, two} {
			if _, err := e.Verify(ada.AccessToken); !errors.Is(err, auth.CodeTokenStale) {
				t.Errorf("%s, instance %d: %v", what, i+1, err)
			}
			if _, err := e.Verify(bob.AccessToken); err != nil {
				t.Errorf("%s, somebody else, instance %d: %v", what, i+1, err)
			}
		}
	}
	renew := func(e *authtest.Env, want ...string) {
		t.Helper()
		tokens, err := e.Refresh(t.Context(), auth.RefreshParams{RefreshToken: ada.RefreshToken})
		if err != nil {
			t.Fatal(err)
		}
		ada = &authtest.SignedIn{Tokens: *tokens}
		for _, e := range []*authtest.Env{one, two} {
			c, err := e.Verify(ada.AccessToken)
			if err != nil {
				t.Errorf("the token of the refresh that follows: %v", err)
				continue
			}
			for _, p := range []string{"notes.write", "notes.read"} {
				if got, should := c.HasPermission(p), len(want) > 0 && (want[0] == p || want[len(want)-1] == p); got != should {
					t.Errorf("%s: %t", p, got)
				}
			}
		}
	}
	put("notes.write")
	f.awaitStale(t, st, "", "editor")
	if _, err := adm.Grant(t.Context(), code, admin.GrantParams{UserID: ada.User.ID, Role: "editor"}); err != nil {
		t.Fatal(err)
	}
	f.awaitStale(t, st, ada.User.ID, "")
	stale("a role was given")
	renew(two, "notes.write")
	put("notes.write", "notes.read")
	f.awaitStale(t, st, "", "editor")
	stale("a role permits more")
	renew(two, "notes.write", "notes.read")
	put()
	f.awaitStale(t, st, "", "editor")
	stale("a role permits less")
	renew(one)
	if _, err := adm.Withdraw(t.Context(), code, ada.User.ID, "editor"); err != nil {
		t.Fatal(err)
	}
	f.awaitStale(t, st, ada.User.ID, "")
	stale("a role was taken")
	renew(one)
	// A change that leaves the permissions the same makes no token stale.
	described := "Edits."
	if _, err := adm.UpdateRole(t.Context(), code, admin.UpdateRoleParams{Name: "editor", Description: &described}); err != nil {
		t.Fatal(err)
	}
	hash := "x"
	if _, err := st.UpdateUser(t.Context(), store.UpdateUser{Change: byTest(), UserID: ada.User.ID, Patch: store.UserPatch{PasswordHash: &hash}}); err != nil {
		t.Fatal(err)
	}
	end(t, st, bob.User.ID)
	f.await(t, bob.SessionID)
	if _, err := two.Verify(ada.AccessToken); err != nil {
		t.Errorf("nothing changed: %v", err)
	}
}

// An impersonation ends in every instance with the actor's session, and when it is
// revoked. Revoking all sessions can exempt one session and later ones.
func TestImpersonationsAndAllSessionsEndInEveryInstance(t *testing.T) {
	st := open(t)
	secret := auth.WithSecret([]byte("a secret of more than thirty-two bytes"))
	one := authtest.NewOn(t, st, secret, auth.WithClock(time.Now))
	two := authtest.NewOn(t, st, secret, auth.WithClock(time.Now), one.SameKeys())
	f := follow(t, st, two.Revoke)
	adm, err := admin.New(t.Context(), one.Auth, admin.Options{RequireMFA: auth.Off})
	if err != nil {
		t.Fatal(err)
	}
	code, ada := admin.System("test").Accepting(), one.LoginAs(t, "ada@example.com")
	first := one.LoginAs(t, "op1@example.com", authtest.Roles(store.RoleOwner))
	second := one.LoginAs(t, "op2@example.com", authtest.Roles(store.RoleOwner))
	acts := func(by *authtest.SignedIn) *authtest.SignedIn {
		t.Helper()
		r, err := adm.Impersonate(t.Context(), admin.User(auth.Caller{UserID: by.User.ID, SessionID: by.SessionID}), admin.ImpersonateParams{UserID: ada.User.ID, Reason: "test"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := two.Verify(r.AccessToken); err != nil {
			t.Fatal(err)
		}
		return &authtest.SignedIn{Tokens: auth.Tokens{AccessToken: r.AccessToken, SessionID: r.SessionID}}
	}
	byFirst, bySecond := acts(first), acts(second)
	end(t, st, first.User.ID)
	f.await(t, first.SessionID)
	refuses(t, two, byFirst, auth.CodeSessionEnded)
	if err := adm.EndImpersonation(t.Context(), code, bySecond.SessionID, ""); err != nil {
		t.Fatal(err)
	}
	f.await(t, bySecond.SessionID)
	refuses(t, two, bySecond, auth.CodeSessionEnded)
	if _, err := two.Verify(ada.AccessToken); err != nil {
		t.Errorf("the user's own session: %v", err)
	}
	if _, err := adm.RevokeSessions(t.Context(), admin.User(auth.Caller{UserID: second.User.ID, SessionID: second.SessionID}), admin.RevokeSessionsParams{All: true}); err != nil {
		t.Fatal(err)
	}
	for r := range f.told {
		if r.All {
			break
		}
	}
	refuses(t, two, ada, auth.CodeSessionEnded)
	for name, s := range map[string]*authtest.SignedIn{"the actor's": second, "a later one": one.LoginAs(t, "bob@example.com")} {
		if _, err := two.Verify(s.AccessToken); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
