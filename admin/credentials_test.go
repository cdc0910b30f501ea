package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// A password set by an operator is valid at once, even if the account's limits have
// counted failures. Factors that are not enabled do not count. Removing a second factor
// deletes the recovery codes.
func TestCredentialsByOperators(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, _ := newScene(t, st)
		owner := o.operator("owner@example.com", "*")
		ada := o.LoginAs(t, "ada@example.com")
		at := "/users/" + ada.User.ID
		login := func(password string) error {
			_, err := o.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: password})
			return err
		}
		for range 10 {
			wantCode(t, login("wrong"), auth.CodeInvalidCredentials)
		}
		wantCode(t, login(authtest.Password), auth.CodeRateLimited)
		o.do(owner, "POST "+at+"/password", `{"password":"a phrase of four words"}`).want(200)
		o.Mail(t, "ada@example.com", auth.KindPasswordChanged)
		if err := login("a phrase of four words"); err != nil {
			t.Error(err)
		}
		if _, _, err := o.Store.Session(t.Context(), ada.SessionID, o.Clock.Now()); !errors.Is(err, store.ErrSessionEnded) {
			t.Errorf("the session: %v", err)
		}
		ada = o.LoginAs(t, "bob@example.com")
		at = "/users/" + ada.User.ID
		if _, err := o.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}}); err != nil {
			t.Fatal(err)
		}
		if a := o.do(owner, "GET "+at, "").want(200); fmt.Sprint(a.body["factors"]) != "[]" {
			t.Errorf("a factor that is not enabled is shown: %v", a.body["factors"])
		}
		for _, which := range []string{"", "/" + ada.User.ID} {
			o.arm(ada)
			o.do(owner, "DELETE "+at+"/factors/4d6f9f0e-7d0c-4a55-9f1a-2b3c4d5e6f70", "").want(404, auth.CodeNotFound)
			o.do(owner, "DELETE "+at+"/factors"+which, "").want(200)
			o.Mail(t, "bob@example.com", auth.KindMFADisabled)
			if a := o.do(owner, "GET "+at, "").want(200); a.body["mfa_enabled"] != false || a.body["recovery_codes_left"] != 0.0 {
				t.Errorf("%v", a.body)
			}
		}
	})
}

// A role granted by email address goes to the account that has verified it, and only while
// it has that address.
func TestGrantByAddressThatIsProved(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		tap := storetap.New(st)
		o := newOffice(t, tap)
		grant := func(email string) error {
			_, err := o.adm.GrantByAddress(t.Context(), admin.System("setup").Accepting(), email, auth.RoleOwner)
			return err
		}
		if _, err := o.ImportUser(t.Context(), auth.ImportUserParams{Email: "eve@example.com"}); err != nil {
			t.Fatal(err)
		}
		unverified := grant("eve@example.com")
		wantCode(t, unverified, auth.CodeEmailNotVerified)
		if e := new(auth.Error); !errors.As(unverified, &e) || !strings.Contains(e.Message, "eve@example.com") {
			t.Errorf("the error does not name the address: %v", unverified)
		}

		ada, moved := o.LoginAs(t, "ada@example.com"), errors.New("not asked")
		tap.Reset(storetap.Hooks{After: func(ctx context.Context, method string, _ int, _ error) {
			if method == "User" && moved != nil {
				email, now := "other@example.com", o.Clock.Now()
				_, moved = st.UpdateUser(ctx, store.UpdateUser{Change: store.Change{Now: now, By: auth.Authority{System: "test"}}, UserID: ada.User.ID, Patch: store.UserPatch{Email: &email, EmailVerifiedAt: &now}})
			}
		}})
		err := grant("ada@example.com")
		tap.Reset(storetap.Hooks{})
		if moved != nil {
			t.Fatal(moved)
		}
		wantCode(t, err, auth.CodeEmailNotVerified)
		if err := grant("OTHER@example.com"); err != nil {
			t.Error(err)
		}
	})
}

// The holders of a role, page by page, without data that needs another permission.
func TestRoleUsers(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		o.permit("editor")
		var want, got []string
		for i := range 5 {
			u := o.imported(fmt.Sprintf("editor%d@example.com", i), "editor")
			want = append(want, u.User.ID)
		}
		clerk := o.operator("clerk@example.com", admin.PermRolesRead)
		next := ""
		for pages := 0; pages == 0 || next != ""; pages++ {
			a := o.do(clerk, "GET /roles/editor/users?limit=2"+next, "").want(200)
			for _, u := range a.body["users"].([]any) {
				got = append(got, u.(map[string]any)["id"].(string))
				if len(u.(map[string]any)) != 3 {
					t.Errorf("shown %v", u)
				}
			}
			if next = ""; a.body["next_cursor"] != nil {
				next = "&cursor=" + a.body["next_cursor"].(string)
				o.do(clerk, "GET /roles/owner/users?limit=2"+next, "").want(422, auth.CodeValidationFailed)
			}
			if pages > 5 {
				t.Fatal("no end of pages")
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("listed %v, want %v", got, want)
		}
		o.do(clerk, "GET /roles/nobody/users", "").want(404, auth.CodeRoleNotFound)
		o.do(clerk, "GET /roles/owner", "").want(200)
		o.do(clerk, "GET /roles/nobody", "").want(404, auth.CodeRoleNotFound)
		o.do(clerk, "GET /roles/editor/users?count=estimate", "").want(422, auth.CodeValidationFailed)
	})
}
