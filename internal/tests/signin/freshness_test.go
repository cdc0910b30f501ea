package signin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// lowered is a store that returns sessions with one factor only, regardless of their amr.
type lowered struct {
	auth.Store
	on bool
}

func (l *lowered) Unwrap() auth.Store { return l.Store }

func (l *lowered) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	s, u, err := l.Store.Session(ctx, id, now)
	if l.on {
		s.AAL = store.LevelAAL1
	}
	return s, u, err
}

// Replacing recovery codes and removing a second factor need a session that has used that
// factor. A factor of the account is not enough.
func TestFactorsNeedAAL2(t *testing.T) {
	store := &lowered{Store: harness.NewStore(t)}
	w := &harness.World{T: t, Env: authtest.NewOn(t, store)}
	in := w.Enrol(w.Member(harness.AdaMail).AccessToken)
	store.on = true
	w.Do("POST", "/2fa/recovery-codes", nil, harness.Bearer(in.AccessToken)).Want(403, auth.CodeInsufficientAAL)
	w.Do("POST", "/2fa/disable", nil, harness.Bearer(in.AccessToken)).Want(403, auth.CodeReauthNeeded)
	store.on = false
	w.Do("POST", "/2fa/recovery-codes", nil, harness.Bearer(in.AccessToken)).Want(200)
}

// The application sets a second factor up for a user without any session; a caller
// without one does not.
func TestApplicationBeginsAnEnrolment(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Member(harness.AdaMail)
	if _, err := w.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: auth.Caller{UserID: s.User.ID}}); !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("a caller without a session: %v", err)
	}
	w.Clock.Advance(time.Hour) // however old the sign-in is
	setup, err := w.SetupTOTP(t.Context(), auth.SetupTOTPParams{Caller: auth.ByApplication(s.User.ID)})
	if err != nil || setup.Secret == "" {
		t.Errorf("%+v, %v", setup, err)
	}
}

// An endpoint that changes credentials sets requirements for the session. The method of the
// operation has the same requirements. Every operation with a Caller is listed here, or the
// test fails.
func TestMethodsAskForAProof(t *testing.T) {
	none, name, address, number := json.RawMessage(`{}`), "Eve", "eve@example.com", "+436641234567"
	idp := authtest.StartProvider(t)
	table := map[string]struct {
		params any
		want   auth.Code // of a session without a recent authentication
		second bool      // the user has a second factor, which the session showed a while ago
	}{
		"UpdateMe":               {auth.UpdateMeParams{Email: &address}, auth.CodeReauthNeeded, false},
		"UpdateMe, number":       {auth.UpdateMeParams{Phone: &number}, auth.CodeReauthNeeded, false},
		"UpdateMe, name":         {auth.UpdateMeParams{FullName: &name}, "", false},
		"ChangePassword":         {auth.ChangePasswordParams{Current: authtest.Password, New: "another horse battery"}, "", false},
		"ChangePassword, first":  {auth.ChangePasswordParams{New: "another horse battery"}, auth.CodeReauthNeeded, false},
		"Confirm":                {auth.ConfirmParams{Password: authtest.Password}, "", false},
		"Confirm, code":          {auth.ConfirmParams{TOTPCode: "12345x"}, auth.CodeInvalidTOTPCode, true},
		"Export":                 {auth.ExportParams{}, auth.CodeReauthNeeded, false},
		"DeleteUser":             {auth.DeleteUserParams{}, auth.CodeReauthNeeded, false},
		"ConfirmPhone":           {auth.ConfirmPhoneParams{Phone: number, Code: "123456"}, auth.CodeInvalidCode, false},
		"LinkIdentity":           {auth.LinkIdentityParams{StartOAuthParams: auth.StartOAuthParams{Provider: "google"}}, auth.CodeReauthNeeded, false},
		"UnlinkIdentity":         {auth.UnlinkIdentityParams{Provider: "google"}, auth.CodeReauthNeeded, false},
		"SetupTOTP":              {auth.SetupTOTPParams{}, auth.CodeReauthNeeded, false},
		"SetupTOTP, again":       {auth.SetupTOTPParams{}, auth.CodeMFAAlreadyEnabled, true},
		"EnableTOTP":             {auth.EnableTOTPParams{TOTPCode: "123456"}, auth.CodeReauthNeeded, false},
		"EnableTOTP, again":      {auth.EnableTOTPParams{TOTPCode: "123456"}, auth.CodeMFAAlreadyEnabled, true},
		"DisableTOTP":            {auth.DisableTOTPParams{}, auth.CodeReauthNeeded, true},
		"DisableTOTP, code":      {auth.DisableTOTPParams{TOTPCode: "12345x"}, auth.CodeInvalidTOTPCode, true},
		"DisableTOTP, none":      {auth.DisableTOTPParams{}, auth.CodeMFANotEnabled, false},
		"NewRecoveryCodes":       {auth.NewRecoveryCodesParams{}, auth.CodeReauthNeeded, true},
		"NewRecoveryCodes, none": {auth.NewRecoveryCodesParams{}, auth.CodeMFANotEnabled, false},
		"BeginPasskey":           {auth.BeginPasskeyParams{}, auth.CodeReauthNeeded, false},
		"BeginPasskey, another":  {auth.BeginPasskeyParams{}, auth.CodeReauthNeeded, true},
		"AddPasskey":             {auth.AddPasskeyParams{Credential: none}, auth.CodeReauthNeeded, false},
		"ChangePasskey":          {auth.ChangePasskeyParams{}, auth.CodeReauthNeeded, false},
		"ChangePasskey, factor":  {auth.ChangePasskeyParams{}, auth.CodeReauthNeeded, true},
		"RemovePasskey":          {auth.RemovePasskeyParams{}, auth.CodeReauthNeeded, false},
		"BeginPasskeyFactor":     {auth.BeginPasskeyFactorParams{}, auth.CodeMFANotEnabled, false},
		"Confirm, passkey":       {auth.ConfirmParams{Passkey: none}, auth.CodeInvalidPasskey, false},
		"StepUp, passkey":        {auth.StepUpParams{Passkey: none}, auth.CodeInvalidPasskey, true},
		"StepUp":                 {auth.StepUpParams{TOTPCode: "123456"}, auth.CodeMFANotEnabled, false},
		"StartEmailVerification": {auth.StartEmailVerificationParams{}, "", false},
		"Logout":                 {auth.LogoutParams{Scope: auth.LogoutGlobal}, "", false},
		"EndSession":             {auth.EndSessionParams{}, auth.CodeSessionNotFound, false},
	}
	for m, c := range table {
		t.Run(m, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorld(t, auth.WithProvider(idp.Google()), auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
			ada := w.LoginAs(t, "ada@example.com")
			by := auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}
			if c.second {
				w.Enrol(ada.AccessToken)
			}
			w.Clock.Advance(16 * time.Minute)
			if err := callAs(w, c.params, by); (c.want == "" && err != nil) || (c.want != "" && !errors.Is(err, c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err := callAs(w, c.params, auth.ByApplication(ada.User.ID)); errors.Is(err, auth.CodeReauthNeeded) || errors.Is(err, auth.CodeInsufficientAAL) {
				t.Errorf("the application: %v", err)
			}
		})
	}
	service, caller := reflect.TypeFor[*auth.Auth](), reflect.TypeFor[auth.Caller]()
	for i := range service.NumMethod() {
		m := service.Method(i)
		if m.Type.NumIn() != 3 || m.Type.In(2).Kind() != reflect.Struct {
			continue
		}
		if f, ok := m.Type.In(2).FieldByName("Caller"); ok && f.Type == caller {
			if _, ok := table[m.Name]; !ok {
				t.Errorf("%s is not here yet", m.Name)
			}
		}
	}
}

// callAs calls the operation that takes these parameters, as a user.
func callAs(w *harness.World, params any, by auth.Caller) error {
	w.T.Helper()
	service := reflect.ValueOf(w.Auth)
	for i := range service.NumMethod() {
		m := service.Method(i)
		if m.Type().NumIn() != 2 || m.Type().In(1) != reflect.TypeOf(params) {
			continue
		}
		p := reflect.New(m.Type().In(1)).Elem()
		p.Set(reflect.ValueOf(params))
		p.FieldByName("Caller").Set(reflect.ValueOf(by))
		out := m.Call([]reflect.Value{reflect.ValueOf(w.T.Context()), p})
		err, _ := out[len(out)-1].Interface().(error)
		return err
	}
	w.T.Fatalf("no method takes %T", params)
	return nil
}

// A session without a second factor creates no recovery codes, however fresh it is. It gets
// an error of its own, because another sign-in would not help.
func TestRecoveryCodesAskForTheFactor(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.LoginAs(t, "ada@example.com")
	w.Enrol(ada.AccessToken)
	_, err := w.NewRecoveryCodes(t.Context(), auth.NewRecoveryCodesParams{Caller: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}})
	if err != nil {
		t.Errorf("right after the enrolment: %v", err)
	}
	w.Patch(ada.User.ID, store.UserPatch{AppMetadata: map[string]any{"mfa_required": true}})
	if err := w.DisableTOTP(t.Context(), auth.DisableTOTPParams{Caller: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}}); !errors.Is(err, auth.CodeMFAEnforced) {
		t.Errorf("one that is required: %v", err)
	}
	if err := w.DisableTOTP(t.Context(), auth.DisableTOTPParams{Caller: auth.ByApplication(ada.User.ID)}); err != nil {
		t.Errorf("by the application: %v", err)
	}
}

// ClientContext knows the client as the endpoints do.
func TestClientContext(t *testing.T) {
	w := harness.NewWorld(t, auth.WithTrustedProxies("192.0.2.0/24"))
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	r.Header.Set("User-Agent", "Firefox")
	r.Header.Set("X-Device-Id", "0123456789abcdef")
	r.Header.Set("Accept-Language", "de")
	w.LoginAs(t, "ada@example.com")
	ctx := w.ClientContext(r)
	tokens, err := w.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := w.Store.Session(t.Context(), tokens.SessionID, w.Clock.Now())
	if err != nil || s.IP != "203.0.113.7" || s.UserAgent != "Firefox" || s.Device == "" || s.Device == "0123456789abcdef" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := w.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: "ada@example.com"}); err != nil {
		t.Fatal(err)
	}
	if m := w.Mail(t, "ada@example.com", auth.KindMagicLink); m.Locale != "de" {
		t.Errorf("written in %q", m.Locale)
	}
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password},
		harness.Header{Name: "X-Forwarded-For", Value: "203.0.113.7"}, harness.Header{Name: "User-Agent", Value: "Firefox"}, harness.Header{Name: "X-Device-Id", Value: "0123456789abcdef"}).Want(200)
	list, err := w.Store.Sessions(t.Context(), tokens.User.ID, w.Clock.Now())
	if err != nil || list[0].IP != s.IP || list[0].Device != s.Device {
		t.Errorf("by the endpoint: %+v, %v", list, err)
	}
}
