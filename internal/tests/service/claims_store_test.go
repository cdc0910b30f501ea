package service_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// A missing session grants nothing: every operation with a Caller refuses one without a
// session, except ByApplication.
func TestCallerWithoutSession(t *testing.T) {
	name, number := "Eve", "+436641234567"
	params := map[string]any{
		"UpdateMe":               auth.UpdateMeParams{FullName: &name},
		"ChangePassword":         auth.ChangePasswordParams{Current: harness.GoodPassword, New: "another horse battery"},
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
		"Confirm":                auth.ConfirmParams{Password: harness.GoodPassword},
		"Export":                 auth.ExportParams{},
		"BeginPasskey":           auth.BeginPasskeyParams{},
		"BeginPasskeyFactor":     auth.BeginPasskeyFactorParams{},
		"AddPasskey":             auth.AddPasskeyParams{Credential: []byte(`{}`)},
		"ChangePasskey":          auth.ChangePasskeyParams{},
		"RemovePasskey":          auth.RemovePasskeyParams{},
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
			w := harness.NewWorld(t)
			s := w.PostSignUp("ada@example.com")
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
			case !w.Alive(s.AccessToken):
				t.Error("the account's session ended")
			}
			u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
			if err != nil || u.FullName == name {
				t.Errorf("%v, the user is now %+v", err, u)
			}
			w.PostLogin("ada@example.com", harness.GoodPassword).Want(200)
		})
	}
}

// claimsStore is a store with claims of its own, which it knows once a row is written.
type claimsStore struct{ auth.Store }

func (s *claimsStore) Unwrap() auth.Store { return s.Store }

func (s *claimsStore) with(u auth.User) auth.User {
	u.Claims = map[string]any{"plan": "pro", "seat": 1}
	return u
}

func (s *claimsStore) CreateUser(ctx context.Context, c store.CreateUser) (auth.User, error) {
	u, err := s.Store.CreateUser(ctx, c)
	return s.with(u), err
}

func (s *claimsStore) Session(ctx context.Context, id string, now time.Time) (auth.Session, auth.User, error) {
	sess, u, err := s.Store.Session(ctx, id, now)
	return sess, s.with(u), err
}

func (s *claimsStore) AdvanceSession(ctx context.Context, c store.Advance) (auth.Session, auth.User, error) {
	sess, u, err := s.Store.AdvanceSession(ctx, c)
	return sess, s.with(u), err
}

// The store's claims are in the first token of an account and in later ones. The
// application's own claims override them.
func TestClaimsOfTheStore(t *testing.T) {
	seat := auth.WithClaims(func(context.Context, auth.User) (map[string]any, error) { return map[string]any{"seat": 2}, nil })
	for name, c := range map[string]struct {
		opts []auth.Option
		seat float64
	}{"alone": {nil, 1}, "under the application's": {[]auth.Option{seat}, 2}} {
		t.Run(name, func(t *testing.T) {
			w := &harness.World{T: t, Env: authtest.NewOn(t, &claimsStore{harness.NewStore(t)}, c.opts...)}
			s := w.PostSignUp(harness.AdaMail)
			for _, s := range []harness.Session{s, w.PostRefresh(s.RefreshToken).Session()} {
				if got := w.ClaimsOf(s).Custom; got["plan"] != "pro" || got["seat"] != c.seat {
					t.Errorf("claims %v", got)
				}
			}
			w.DeleteSession(s)
			w.PostRefresh(s.RefreshToken).Want(400, auth.CodeSessionEnded)
		})
	}
}

// Tokens are for one audience, and those for another are none.
func TestAudience(t *testing.T) {
	w := harness.NewWorld(t, auth.WithTokens(auth.TokenOptions{Audience: "notes"}))
	ada := w.LoginAs(t, harness.AdaMail)
	if got := harness.TokenPart(t, ada.AccessToken, 1)["aud"]; got != "notes" {
		t.Errorf("aud %v", got)
	}
	for audience, want := range map[string]int{"notes": 200, "authenticated": 401} {
		if got := w.StatusOf(w.MintToken(t, map[string]any{"aud": audience})); got != want {
			t.Errorf("for %s: %d, want %d", audience, got, want)
		}
	}
}

// Methods without a registered name (RFC 8176) go by their own.
func TestAMRStringsOfOtherMethods(t *testing.T) {
	w := harness.NewWorld(t, auth.WithTokens(auth.TokenOptions{AMRStrings: true}))
	for method, s := range map[string]harness.Session{
		"sms":        w.PostOTP(harness.PhoneNumber, w.PhoneCode(harness.PhoneNumber)).Session(),
		"magic_link": w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(harness.AdaMail, nil)}).Session(),
	} {
		if got := harness.ToJSON(t, harness.TokenPart(t, s.AccessToken, 1)["amr"]); got != `["`+method+`"]` {
			t.Errorf("amr %s, want %s", got, method)
		}
	}
}
