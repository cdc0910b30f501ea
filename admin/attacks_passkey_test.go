package admin_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// An account whose passkey was removed moves away and back: the passkey can be removed again.
func TestPasskeyThatCameBackCanBeRemoved(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, owner := withPasskeys(t, st)
		record, handle := harness.PasskeyRecord(t, harness.NewKey())
		row, err := json.Marshal(map[string]any{"email": "ada@example.com", "email_verified": true, "user_handle": handle, "passkeys": []any{record}})
		o.must(err)
		for _, round := range []string{"first", "second"} {
			wantResults(t, o.imports(owner, "", string(row)), "done")
			id := o.byEmail("ada@example.com").ID
			list, err := o.adm.Factors(t.Context(), actor(owner), id)
			o.must(err)
			if _, err := o.adm.RemoveFactor(t.Context(), actor(owner), admin.RemoveFactorParams{UserID: id, FactorID: list[0].ID, Reason: "x"}); err != nil {
				t.Errorf("%s: %v", round, err)
			}
			o.must(o.behind().DeleteUser(t.Context(), store.DeleteUser{Change: o.change(), UserID: id}))
		}
	})
}

// The link of the first owner accepts in a session by a passkey, and keeps that passkey.
func TestFirstOwnerByPasskey(t *testing.T) {
	for name, second := range map[string]bool{"first factor": false, "second factor": true} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, memstore.New(), harness.WithPasskeys())
			key := o.addsPasskey(o.LoginAs(t, "ada@example.com"), second)
			s, err := o.byPasskey(key)
			o.must(err)
			o.beOwner(&authtest.SignedIn{Tokens: *s}, o.firstOwnerLink()).want(204)
			if _, err := o.byPasskey(key); err != nil {
				t.Errorf("the passkey afterwards: %v", err)
			}
			_, err = o.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
			wantCode(t, err, auth.CodeInvalidCredentials) // somebody else may have set it
		})
	}
}

// An invitation that checks no passkey does not take one for the password that it requires.
func TestInvitationTakesNoUncheckedPasskey(t *testing.T) {
	o, _ := withPasskeys(t, memstore.New())
	if _, err := o.SignUp(t.Context(), auth.SignUpParams{Email: "squat@example.com", Password: password}); err != nil {
		t.Fatal(err)
	}
	for _, email := range []string{"new@example.com", "squat@example.com"} {
		_, token := o.invite(admin.System("test"), email)
		_, err := o.AcceptInvitation(t.Context(), auth.AcceptInvitationParams{Token: token, Passkey: json.RawMessage(`{"junk":1}`)})
		wantCode(t, err, auth.CodeValidationFailed)
		_, err = o.AcceptInvitation(t.Context(), auth.AcceptInvitationParams{Token: token, Password: password})
		o.must(err) // the link is still valid
	}
}

// An invitation names an account's passkeys only if the account has to show one, and while the
// inviter may invite.
func TestInvitationNamesNoPasskeys(t *testing.T) {
	o, owner := withPasskeys(t, memstore.New())
	o.permit("editor", notes)
	ada := o.LoginAs(t, "ada@example.com")
	o.addsPasskey(ada, false)
	boss := o.operator("boss@example.com", notes, admin.PermUsersWrite, admin.PermRolesAssign, admin.PermUsersRead)
	_, token := o.invite(actor(boss), "ada@example.com", "editor")
	_, err := o.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{InvitationToken: token})
	wantCode(t, err, auth.CodeMFANotEnabled)
	o.do(owner, "POST /users/"+boss.User.ID+"/ban", `{"reason":"x"}`).want(200)
	_, err = o.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{InvitationToken: token})
	wantCode(t, err, auth.CodeInvalidToken)
}

// Passkeys cannot be turned off while they are the only second factor of the last owner who
// could sign in. With a recovery code the owner can.
func TestPasskeysOffKeepAnOwner(t *testing.T) {
	o := newOffice(t, memstore.New(), harness.WithPasskeys())
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner))
	o.addsPasskey(owner, true)
	factors, _ := store.Capability[store.FactorStore](o.Store)
	codes := func(hashes ...[]byte) {
		t.Helper()
		o.must(factors.PutRecoveryCodes(t.Context(), store.PutRecoveryCodes{Change: o.change(), UserID: owner.User.ID, Hashes: hashes}))
	}
	codes()
	o.do(owner, "PATCH /settings", `{"passkey_enabled":false}`).want(409, auth.CodeLastOwner)
	codes([]byte("the hash of a recovery code....."))
	o.do(owner, "PATCH /settings", `{"passkey_enabled":false}`).want(200)
	_, err := o.Login(t.Context(), auth.LoginParams{Email: "owner@example.com", Password: authtest.Password})
	var e *auth.Error
	if !errors.As(err, &e) || e.Code != auth.CodeMFARequired {
		t.Errorf("%v", err)
	}
}
