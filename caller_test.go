package auth_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// A session that was left out grants nothing: every operation in somebody's name
// refuses a Caller without one, and only ByApplication does without.
func TestCallerWithoutSession(t *testing.T) {
	name, number := "Eve", "+436641234567"
	params := map[string]any{
		"UpdateMe":               auth.UpdateMeParams{FullName: &name},
		"ChangePassword":         auth.ChangePasswordParams{Current: goodPassword, New: "another horse battery"},
		"DeleteUser":             auth.DeleteUserParams{},
		"ConfirmPhone":           auth.ConfirmPhoneParams{Phone: number, Code: "123456"},
		"LinkIdentity":           auth.LinkIdentityParams{StartOAuthParams: auth.StartOAuthParams{Provider: "google"}},
		"UnlinkIdentity":         auth.UnlinkIdentityParams{Provider: "google"},
		"SetupTOTP":              auth.SetupTOTPParams{},
		"EnableTOTP":             auth.EnableTOTPParams{TOTPCode: "123456"},
		"DisableTOTP":            auth.DisableTOTPParams{},
		"NewRecoveryCodes":       auth.NewRecoveryCodesParams{},
		"StepUp":                 auth.StepUpParams{TOTPCode: "123456"},
		"StartEmailVerification": auth.StartEmailVerificationParams{},
		"Logout":                 auth.LogoutParams{Scope: auth.LogoutGlobal},
		"EndSession":             auth.EndSessionParams{},
		"Confirm":                auth.ConfirmParams{Password: goodPassword},
		"Export":                 auth.ExportParams{},
	}
	caller := reflect.TypeFor[auth.Caller]()
	service := reflect.TypeFor[*auth.Auth]()
	for i := range service.NumMethod() {
		m := service.Method(i)
		if m.Type.NumIn() != 3 || m.Type.In(2).Kind() != reflect.Struct {
			continue
		}
		if f, ok := m.Type.In(2).FieldByName("Caller"); !ok || f.Type != caller {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			w := newWorld(t)
			s := w.signUp("ada@example.com")
			p := reflect.New(m.Type.In(2)).Elem()
			given, ok := params[m.Name]
			if !ok {
				t.Fatal("has no parameters here yet")
			}
			p.Set(reflect.ValueOf(given))
			p.FieldByName("Caller").Set(reflect.ValueOf(auth.Caller{UserID: s.User.ID}))
			out := reflect.ValueOf(w.Auth).MethodByName(m.Name).Call([]reflect.Value{reflect.ValueOf(t.Context()), p})
			err, _ := out[len(out)-1].Interface().(error)
			switch {
			case err == nil, errors.Is(err, auth.CodeInternal), errors.Is(err, auth.CodeUnavailable):
				t.Errorf("%v", err)
			case !w.alive(s.AccessToken):
				t.Error("the account's session ended")
			}
			u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
			if err != nil || u.FullName == name {
				t.Errorf("%v, the user is now %+v", err, u)
			}
			w.login("ada@example.com", goodPassword).want(200)
		})
	}
}
