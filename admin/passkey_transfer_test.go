package admin_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/pgstores"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// withPasskeys is an office with passkeys, and its owner.
func withPasskeys(t *testing.T, st auth.Store) (*office, *authtest.SignedIn) {
	t.Helper()
	o := newOffice(t, st, harness.WithPasskeys())
	return o, o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
}

// addsPasskey registers a passkey of an account.
func (o *office) addsPasskey(who *authtest.SignedIn, second bool) *authenticator.Authenticator {
	o.t.Helper()
	claims, err := o.Verify(who.AccessToken)
	o.must(err)
	begun, err := o.BeginPasskey(o.t.Context(), auth.BeginPasskeyParams{Caller: claims.Caller()})
	o.must(err)
	key := harness.NewKey()
	credential, err := key.Create(begun.PublicKey)
	o.must(err)
	added, err := o.AddPasskey(o.t.Context(), auth.AddPasskeyParams{Caller: claims.Caller(), Credential: credential, SecondFactor: second})
	o.must(err)
	who.Tokens = *added.Tokens
	return key
}

// byPasskey signs in with a passkey.
func (o *office) byPasskey(key *authenticator.Authenticator) (*auth.Tokens, error) {
	o.t.Helper()
	begun, err := o.BeginPasskeySignIn(o.t.Context())
	o.must(err)
	credential, err := key.Get(begun.PublicKey)
	o.must(err)
	return o.FinishPasskeySignIn(o.t.Context(), auth.FinishPasskeySignInParams{RequestID: begun.RequestID, Credential: credential})
}

// transferred are the fields of an export that an import takes.
const transferred = "?fields=id,email,email_verified_at,full_name,created_at,last_sign_in_at,password_hash,user_handle,passkeys"

// row is the line of an account in an export, without the field that imports do not take.
func (o *office) exportedLine(who *authtest.SignedIn, email string) string {
	o.t.Helper()
	for _, line := range strings.Split(o.do(who, "GET /users/export"+transferred, "").want(200).text, "\n") {
		if strings.Contains(line, `"`+email+`"`) {
			return strings.Replace(line, `,"secrets_withheld":false`, "", 1)
		}
	}
	o.t.Fatalf("%s is not exported", email)
	return ""
}

// An account moves to another service, between stores of each kind: its passkeys sign in
// there and are its second factor.
func TestAccountsMoveWithPasskeys(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(t *testing.T) auth.Store{
		"memory":   func(*testing.T) auth.Store { return memstore.New() },
		"postgres": func(t *testing.T) auth.Store { t.Helper(); return pgstores.New(t) },
	}
	for here, from := range kinds {
		for there, to := range kinds {
			t.Run(here+" to "+there, func(t *testing.T) {
				t.Parallel()
				o, owner := withPasskeys(t, from(t))
				ada := o.LoginAs(t, "ada@example.com")
				first, second := o.addsPasskey(ada, false), o.addsPasskey(ada, true)
				line := o.exportedLine(owner, "ada@example.com")

				n, head := withPasskeys(t, to(t))
				wantResults(t, n.imports(head, "", line), "done")
				if got := n.exportedLine(head, "ada@example.com"); got != line {
					t.Errorf("exported there\n%s\nnot\n%s", got, line)
				}
				s, err := n.byPasskey(first)
				n.must(err)
				if c, err := n.Verify(s.AccessToken); err != nil || c.UserID != ada.User.ID || c.AAL != store.LevelAAL2 {
					t.Errorf("%+v, %v", c, err)
				}
				_, err = n.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
				var e *auth.Error
				if !errors.As(err, &e) || e.Code != auth.CodeMFARequired {
					t.Fatalf("the password alone: %v", err)
				}
				begun, err := n.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{MFAToken: e.MFAToken})
				n.must(err)
				credential, err := second.Get(begun.PublicKey)
				n.must(err)
				_, err = n.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: e.MFAToken, Passkey: credential})
				n.must(err)
				// The first passkey of the service came by the import: the RP ID is recorded.
				wantResults(t, n.imports(head, "", line), "failed user_already_exists id")
			})
		}
	}
}

// Passkeys and user handles are exported only on request, as secrets are.
func TestExportOfPasskeysNeedsCredentials(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, owner := withPasskeys(t, st)
		ada := o.LoginAs(t, "ada@example.com")
		o.addsPasskey(ada, false)
		o.addsPasskey(owner, false)
		o.do(o.operator("lacks@example.com", admin.PermUsersExport), "GET /users/export?fields=email,passkeys", "").want(403, auth.CodeMissingPermission)
		o.do(o.operator("lacks2@example.com", admin.PermUsersExport), "GET /users/export?fields=email,user_handle", "").want(403, auth.CodeMissingPermission)
		clerk := o.operator("clerk@example.com", admin.PermUsersExport, admin.PermCredentials)
		rows := o.do(clerk, "GET /users/export?fields=email,user_handle,passkeys", "").want(200).lines()
		if list, _ := rows["ada@example.com"]["passkeys"].([]any); len(list) != 1 || rows["ada@example.com"]["user_handle"] == nil {
			t.Errorf("%v", rows["ada@example.com"])
		}
		if r := rows["owner@example.com"]; r["secrets_withheld"] != true || r["user_handle"] != nil || len(r["passkeys"].([]any)) != 0 {
			t.Errorf("of a stronger account: %v", r)
		}
		if text := o.do(owner, "GET /users/export", "").want(200).text; strings.Contains(text, "passkeys") || strings.Contains(text, "user_handle") {
			t.Error("passkeys that were not requested")
		}
	})
}

// A service without passkeys does not export accounts as if they had none.
func TestExportWithoutPasskeys(t *testing.T) {
	o := newOffice(t, memstore.New())
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	o.do(owner, "GET /users/export?fields=email,passkeys", "").want(422, auth.CodeValidationFailed)
	wantResults(t, o.imports(owner, "", `{"email":"ada@example.com","user_handle":"`+strings.Repeat("A", 43)+`","passkeys":[{"rp_id":"auth.test"}]}`), "failed validation_failed passkeys")
}

// An import gives no account the user handle or the passkey of another one, whatever it does
// with accounts that exist.
func TestImportOfTakenPasskeys(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, owner := withPasskeys(t, st)
		row := func(email, handle string, list ...auth.PasskeyRecord) string {
			text, err := json.Marshal(map[string]any{"email": email, "email_verified": true, "user_handle": handle, "passkeys": list})
			o.must(err)
			return string(text)
		}
		key := harness.NewKey()
		r, handle := harness.PasskeyRecord(t, key)
		other, otherHandle := harness.PasskeyRecord(t, harness.NewKey())
		wantResults(t, o.imports(owner, "", row("ada@example.com", handle, r)), "done")
		ada, err := o.Store.User(t.Context(), store.ByEmail("ada@example.com"))
		o.must(err)
		for _, mode := range []string{"error", "skip", "update"} {
			wantResults(t, o.imports(owner, "?on_conflict="+mode, row("eve@example.com", handle, other), row("eve@example.com", otherHandle, r), row("eve@example.com", handle)),
				"failed user_already_exists user_handle", "failed passkey_already_exists passkeys", "failed user_already_exists user_handle")
		}
		wantResults(t, o.imports(owner, "?on_conflict=update", row("ada@example.com", otherHandle), row("ada@example.com", handle, r, other), row("ada@example.com", handle, r)),
			"failed validation_failed user_handle", "failed validation_failed passkeys", "done")
		wantResults(t, o.imports(owner, "", row("one@example.com", otherHandle, other), row("two@example.com", otherHandle), row("three@example.com", strings.Repeat("B", 42)+"A", other)),
			"done", "failed user_already_exists user_handle", "failed passkey_already_exists passkeys")
		if _, err := o.Store.User(t.Context(), store.ByEmail("eve@example.com")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the account exists: %v", err)
		}
		s, err := o.byPasskey(key)
		if err != nil || s.User.ID != ada.ID {
			t.Errorf("%+v, %v", s, err)
		}
		if now := o.read(ada.ID); now.Handle != handle || now.CredentialRevision != ada.CredentialRevision {
			t.Errorf("%+v", now)
		}
	})
}
