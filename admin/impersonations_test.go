package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"golang.org/x/oauth2"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/passkey"
	"github.com/authmount/auth/store"
)

// acted returns the id of a live impersonation of a user, which the audit log does not
// have.
func (o *office) acted(target *authtest.SignedIn) string {
	o.t.Helper()
	by := o.LoginAs(o.t, "acting@example.com")
	st, _ := store.Capability[store.AdminStore](o.Store)
	id, now := uuid.NewString(), o.Clock.Now()
	err := st.BeginImpersonation(o.t.Context(), store.BeginImpersonation{
		Change:        store.Change{Now: now, By: auth.Authority{System: "test"}},
		Impersonation: store.Impersonation{ID: id, UserID: target.User.ID, ActorID: by.User.ID, ActorSessionID: by.SessionID, CreatedAt: now, ExpiresAt: now.Add(time.Minute)},
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return id
}

// stage is an office with the application's own routes, an operator, a target, and the
// token of an impersonation.
type stage struct {
	*office
	operator, ada *authtest.SignedIn
	acts          admin.ImpersonateResult
}

func newStage(t *testing.T, store auth.Store, opts ...auth.Option) *stage {
	t.Helper()
	s := &stage{office: newOffice(t, store, append(opts, auth.WithRedirectURLs("https://app.example.com/*"))...)}
	s.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner))
	s.permit("editor", notes)
	s.operator = s.newOperator()
	s.ada = s.LoginAs(t, "ada@example.com", authtest.Roles("editor"), authtest.AAL2())
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	s.mux.Handle("/auth/v1/", s.Handler())
	s.mux.Handle("GET /own", s.Require(ok, auth.HasPermission(notes)))
	s.mux.Handle("GET /own/live", s.Require(ok, auth.CheckSession()))
	s.mux.Handle("GET /own/closed", s.Require(ok, auth.NotImpersonated()))
	s.mux.Handle("GET /own/factor", s.Require(ok, auth.AAL2()))
	s.mux.Handle("GET /own/fresh", s.Require(ok, auth.FreshAuth(time.Hour)))
	s.begin()
	return s
}

func (s *stage) newOperator() *authtest.SignedIn {
	return s.LoginAs(s.t, "op@example.com", authtest.Permissions(notes, admin.PermImpersonate, admin.PermSessionsRevoke), authtest.AAL2())
}

func (s *stage) begin() {
	s.t.Helper()
	var err error
	s.acts, err = s.adm.Impersonate(s.t.Context(), actor(s.operator), admin.ImpersonateParams{UserID: s.ada.User.ID, Reason: "ticket 7"})
	if err != nil {
		s.t.Fatal(err)
	}
}

// send sends a request with a token, and returns its status, and the code of an error.
func (s *stage) send(token, method, path, body string) (int, auth.Code, map[string]any) {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	var got map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &got)
	code, _ := got["code"].(string)
	return w.Code, auth.Code(code), got
}

func (s *stage) want(method, path string, status int, code auth.Code) {
	s.t.Helper()
	if got, c, _ := s.send(s.acts.AccessToken, method, path, ""); got != status || status >= 400 && c != code {
		s.t.Errorf("%s %s: %d %s, want %d %s", method, path, got, c, status, code)
	}
}

// Every endpoint of the route table, including those of the packages built on Auth, is
// closed to an impersonator, except three.
func TestImpersonationOpensNothingElse(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		s := newStage(t, store)
		_, _, doc := s.send("", "GET", "/auth/v1/openapi.json", "")
		open := []string{"GET /me", "GET /sessions", "POST /logout"}
		tried := 0
		for path, ways := range doc["paths"].(map[string]any) {
			for method := range ways.(map[string]any) {
				method = strings.ToUpper(method)
				if !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method) || slices.Contains(open, method+" "+path) {
					continue
				}
				tried++
				filled := strings.NewReplacer("{id}", s.ada.User.ID, "{role}", "editor", "{provider}", "google").Replace(path)
				for _, body := range []string{"", "{}"} {
					if status, code, _ := s.send(s.acts.AccessToken, method, "/auth/v1"+filled, body); status != 403 || code != auth.CodeImpersonationForbidden {
						t.Errorf("%s %s: %d %s", method, path, status, code)
					}
				}
			}
		}
		if tried < len(admin.Table())+30 {
			t.Errorf("only %d endpoints", tried)
		}
		s.want("GET", "/own", 200, "")
		s.want("GET", "/own/live", 200, "")
		s.want("GET", "/own/closed", 403, auth.CodeImpersonationForbidden)
		s.want("GET", "/own/factor", 403, auth.CodeImpersonationForbidden) // the operator has no factor or password of the user
		s.want("GET", "/own/fresh", 403, auth.CodeImpersonationForbidden)
		s.want("GET", "/auth/v1/me", 200, "")
		s.want("GET", "/auth/v1/sessions", 200, "")
		s.want("POST", "/auth/v1/logout?scope=global", 403, auth.CodeImpersonationForbidden)
		s.want("POST", "/auth/v1/logout", 204, "")
		if status, _, _ := s.send(s.ada.AccessToken, "GET", "/own/live", ""); status != 200 {
			t.Errorf("the user's own session: %d", status)
		}
	})
}

// The methods in Go are closed, too: none takes an impersonation for a session.
func TestImpersonationActsInNoMethod(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		s := newStage(t, st, auth.WithPasskeys(passkey.New(passkey.Options{})), auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
		c, err := s.Verify(s.acts.AccessToken)
		if err != nil {
			t.Fatal(err)
		}
		by, ctx := c.Caller(), t.Context()
		before, err := s.Store.Credentials(ctx, store.ByID(s.ada.User.ID))
		if err != nil {
			t.Fatal(err)
		}
		name := "Eve"
		methods := map[string]func() error{
			"ChangePassword": func() error {
				return s.ChangePassword(ctx, auth.ChangePasswordParams{Caller: by, Current: "a wrong password", New: "another long password"})
			},
			"Confirm": func() error {
				_, err := s.Confirm(ctx, auth.ConfirmParams{Caller: by, Password: "a wrong password"})
				return err
			},
			"ConfirmPhone": func() error {
				_, err := s.ConfirmPhone(ctx, auth.ConfirmPhoneParams{Caller: by, Phone: "+14155550100", Code: "123456"})
				return err
			},
			"DeleteUser":  func() error { return s.DeleteUser(ctx, auth.DeleteUserParams{Caller: by}) },
			"DisableTOTP": func() error { return s.DisableTOTP(ctx, auth.DisableTOTPParams{Caller: by, TOTPCode: "123456"}) },
			"EnableTOTP": func() error {
				_, err := s.EnableTOTP(ctx, auth.EnableTOTPParams{Caller: by, TOTPCode: "123456"})
				return err
			},
			"BeginPasskey": func() error {
				_, err := s.BeginPasskey(ctx, auth.BeginPasskeyParams{Caller: by})
				return err
			},
			"BeginPasskeyFactor": func() error {
				_, err := s.BeginPasskeyFactor(ctx, auth.BeginPasskeyFactorParams{Caller: by})
				return err
			},
			"AddPasskey": func() error {
				_, err := s.AddPasskey(ctx, auth.AddPasskeyParams{Caller: by, Credential: []byte(`{}`)})
				return err
			},
			"ChangePasskey": func() error {
				_, err := s.ChangePasskey(ctx, auth.ChangePasskeyParams{Caller: by})
				return err
			},
			"RemovePasskey": func() error { return s.RemovePasskey(ctx, auth.RemovePasskeyParams{Caller: by}) },
			"EndSession": func() error {
				return s.EndSession(ctx, auth.EndSessionParams{Caller: by, TargetSessionID: s.ada.SessionID})
			},
			"Export": func() error {
				_, err := s.Export(ctx, auth.ExportParams{Caller: by})
				return err
			},
			"LinkIdentity": func() error {
				_, err := s.LinkIdentity(ctx, auth.LinkIdentityParams{Caller: by})
				return err
			},
			"Logout": func() error {
				return errors.Join(s.Logout(ctx, auth.LogoutParams{Caller: by, Scope: auth.LogoutGlobal}), s.Logout(ctx, auth.LogoutParams{Caller: by, Scope: auth.LogoutOthers}))
			},
			"NewRecoveryCodes": func() error {
				_, err := s.NewRecoveryCodes(ctx, auth.NewRecoveryCodesParams{Caller: by})
				return err
			},
			"SetupTOTP": func() error {
				_, err := s.SetupTOTP(ctx, auth.SetupTOTPParams{Caller: by})
				return err
			},
			"StartEmailVerification": func() error {
				return s.StartEmailVerification(ctx, auth.StartEmailVerificationParams{Caller: by})
			},
			"StepUp": func() error {
				_, err := s.StepUp(ctx, auth.StepUpParams{Caller: by, TOTPCode: "123456"})
				return err
			},
			"UnlinkIdentity": func() error {
				return s.UnlinkIdentity(ctx, auth.UnlinkIdentityParams{Caller: by, Provider: "google"})
			},
			"UpdateMe": func() error {
				_, err := s.UpdateMe(ctx, auth.UpdateMeParams{Caller: by, FullName: &name})
				return err
			},
		}
		for of, i := reflect.TypeFor[*auth.Auth](), 0; i < of.NumMethod(); i++ {
			m := of.Method(i)
			if n := m.Type.NumIn(); n < 3 || m.Type.In(n-1).Kind() != reflect.Struct {
				continue
			}
			embedded, ok := m.Type.In(m.Type.NumIn() - 1).FieldByName("Caller")
			if !ok || embedded.Type != reflect.TypeFor[auth.Caller]() {
				continue
			}
			if methods[m.Name] == nil {
				t.Errorf("%s is not called", m.Name)
			}
		}
		for name, call := range methods {
			for range 30 { // more than any limit of wrong attempts
				if err := call(); !errors.Is(err, auth.CodeImpersonationForbidden) {
					t.Errorf("%s: %v", name, err)
					break
				}
			}
		}
		after, err := s.Store.Credentials(ctx, store.ByID(s.ada.User.ID))
		if err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("was %+v\nis %+v, %v", before, after, err)
		}
		own := auth.Caller{UserID: s.ada.User.ID, SessionID: s.ada.SessionID}
		if _, err := s.Confirm(ctx, auth.ConfirmParams{Caller: own, Password: authtest.Password}); err != nil {
			t.Errorf("the user, after the operator's attempts: %v", err)
		}
		_, err = s.adm.User(ctx, admin.User(by), s.operator.User.ID)
		wantCode(t, err, auth.CodeSessionEnded)
		_, err = s.adm.Impersonate(ctx, admin.User(by), admin.ImpersonateParams{UserID: s.operator.User.ID, Reason: "nested"})
		wantCode(t, err, auth.CodeSessionEnded)
		if _, _, err := s.Current(ctx, c); err != nil {
			t.Errorf("Current: %v", err)
		}
	})
}

// The token names the actor and lives for 15 minutes at most. The user's stored data do
// not change, and the user sees it in their list of sessions.
func TestImpersonationLeavesNoTrace(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		s := newStage(t, st, auth.WithTokens(auth.TokenOptions{Life: time.Hour}))
		id := s.ada.User.ID
		look := func() string {
			u, err := s.Store.Credentials(t.Context(), store.ByID(id))
			if err != nil {
				t.Fatal(err)
			}
			list, err := s.Store.Sessions(t.Context(), id, s.Clock.Now())
			if err != nil {
				t.Fatal(err)
			}
			held, err := s.Store.UserRecords(t.Context(), id, s.Clock.Now())
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%+v %+v %+v", u, list, held)
		}
		before := look()
		s.Clock.Advance(time.Minute) // sends the pending messages
		mails := len(s.Inbox.Messages())
		s.begin()
		res, err := s.adm.Impersonate(t.Context(), actor(s.operator), admin.ImpersonateParams{UserID: id, Reason: "ticket 8", RedirectTo: "https://app.example.com/x", CodeChallenge: oauth2.S256ChallengeFromVerifier(actVerifier)})
		if err != nil {
			t.Fatal(err)
		}
		if after := look(); after != before {
			t.Errorf("was\n%s\nis\n%s", before, after)
		}
		if n := len(s.Inbox.Messages()); n != mails {
			t.Errorf("%d mails", n-mails)
		}
		u, err := url.Parse(res.URL)
		if err != nil || u.Host != "app.example.com" || u.Path != "/x" || res.AccessToken != "" {
			t.Fatalf("%+v", res)
		}
		body := `{"code":"` + u.Query().Get("code") + `","code_verifier":"` + actVerifier + `"}`
		status, _, traded := s.send("", "POST", "/auth/v1/exchange", body)
		if status != 200 || traded["refresh_token"] != nil || traded["access_token"] == nil {
			t.Fatalf("%d %v", status, traded)
		}
		if status, code, _ := s.send("", "POST", "/auth/v1/exchange", body); status != 400 || code != auth.CodeInvalidCode {
			t.Errorf("traded again: %d %s", status, code)
		}
		for _, token := range []string{s.acts.AccessToken, traded["access_token"].(string)} {
			c, err := s.Verify(token)
			if err != nil {
				t.Fatal(err)
			}
			if c.UserID != id || c.Impersonator == nil || *c.Impersonator != (auth.SessionRef{ID: s.operator.SessionID, UserID: s.operator.User.ID}) ||
				c.AAL != store.LevelAAL1 || len(c.AMR) != 1 || c.AMR[0].Method != "impersonation" || !c.HasPermission(notes) || c.HasPermission(admin.PermImpersonate) {
				t.Errorf("%+v", c)
			}
			if left := c.ExpiresAt.Sub(s.Clock.Now()); left > 15*time.Minute || left < 14*time.Minute {
				t.Errorf("lives for %s", left)
			}
		}
		_, _, got := s.send(s.ada.AccessToken, "GET", "/auth/v1/sessions", "")
		shown := 0
		for _, one := range got["sessions"].([]any) {
			if by := one.(map[string]any)["impersonated_by"]; by == s.operator.User.ID {
				shown++
			} else if by != nil {
				t.Errorf("by %v", by)
			}
		}
		if shown != 3 {
			t.Errorf("the user sees %d of 3", shown)
		}
	})
}

// An impersonation ends with each thing that it depends on.
func TestImpersonationEnds(t *testing.T) {
	ends := map[string]func(ctx context.Context, s *stage) error{
		"the actor signs out": func(ctx context.Context, s *stage) error {
			return s.Logout(ctx, auth.LogoutParams{Caller: auth.Caller{UserID: s.operator.User.ID, SessionID: s.operator.SessionID}})
		},
		"the actor is banned": func(ctx context.Context, s *stage) error {
			_, err := s.adm.BanUser(ctx, admin.System("test").Accepting(), admin.BanUserParams{UserID: s.operator.User.ID, Reason: "x"})
			return err
		},
		"the actor is demoted": func(ctx context.Context, s *stage) error {
			_, err := s.adm.SetRoles(ctx, admin.System("test").Accepting(), admin.SetRolesParams{UserID: s.operator.User.ID})
			return err
		},
		"the user is promoted": func(ctx context.Context, s *stage) error {
			_, err := s.adm.Grant(ctx, admin.System("test").Accepting(), admin.GrantParams{UserID: s.ada.User.ID, Role: auth.RoleOwner})
			return err
		},
		"a role of the user's grows": func(ctx context.Context, s *stage) error {
			return s.permitIn(ctx, "editor", notes, "money.send")
		},
		"the user is banned": func(ctx context.Context, s *stage) error {
			_, err := s.adm.BanUser(ctx, admin.System("test").Accepting(), admin.BanUserParams{UserID: s.ada.User.ID, Reason: "x"})
			return err
		},
		"the user is deleted": func(ctx context.Context, s *stage) error {
			return s.adm.DeleteUser(ctx, admin.System("test").Accepting(), admin.DeleteUserParams{UserID: s.ada.User.ID, Reason: "x"})
		},
		"the user ends it": func(ctx context.Context, s *stage) error {
			return s.EndSession(ctx, auth.EndSessionParams{Caller: auth.Caller{UserID: s.ada.User.ID, SessionID: s.ada.SessionID}, TargetSessionID: s.acts.SessionID})
		},
		"the user signs out everywhere": func(ctx context.Context, s *stage) error {
			return s.Logout(ctx, auth.LogoutParams{Caller: auth.Caller{UserID: s.ada.User.ID, SessionID: s.ada.SessionID}, Scope: auth.LogoutGlobal})
		},
		"an operator ends it": func(ctx context.Context, s *stage) error {
			return s.adm.EndImpersonation(ctx, admin.System("test").Accepting(), s.acts.SessionID, "enough")
		},
		"an operator signs the user out": func(ctx context.Context, s *stage) error {
			_, err := s.adm.EndSessions(ctx, admin.System("test").Accepting(), s.ada.User.ID, "enough")
			return err
		},
		"it signs out": func(_ context.Context, s *stage) error {
			s.want("POST", "/auth/v1/logout", 204, "")
			s.want("POST", "/auth/v1/logout", 204, "")
			return nil
		},
		"the application signs it out": func(ctx context.Context, s *stage) error {
			c, err := s.Verify(s.acts.AccessToken)
			if err != nil {
				return err
			}
			return errors.Join(s.Logout(ctx, auth.LogoutParams{Caller: c.Caller()}), s.Logout(ctx, auth.LogoutParams{Caller: c.Caller()}))
		},
		"time is up": func(_ context.Context, s *stage) error {
			s.Clock.Advance(auth.ImpersonationLife)
			return nil
		},
	}
	onStores(t, func(t *testing.T, store auth.Store) {
		s := newStage(t, store)
		for name, end := range ends {
			t.Run(name, func(t *testing.T) {
				s.t = t
				s.ada = s.LoginAs(t, strings.ReplaceAll(name, " ", "-")+"@example.com", authtest.Roles("editor"))
				s.operator = s.LoginAs(t, "op-"+strings.ReplaceAll(name, " ", "-")+"@example.com", authtest.Permissions(notes, admin.PermImpersonate), authtest.AAL2())
				s.permit("editor", notes)
				s.begin()
				s.want("GET", "/auth/v1/me", 200, "")
				if err := end(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				s.want("GET", "/auth/v1/me", 401, auth.CodeSessionEnded)
				s.want("GET", "/own/live", 401, auth.CodeSessionEnded)
				list, err := s.adm.Impersonations(t.Context(), admin.System("test").Accepting())
				if err != nil || len(list) != 0 {
					t.Errorf("%+v, %v", list, err)
				}
			})
		}
	})
}

// An impersonation of oneself or an equal, without a reason or without a session of the
// actor is refused.
func TestImpersonateRefuses(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		s := newStage(t, store)
		equal := s.LoginAs(t, "equal@example.com", authtest.Permissions(notes, admin.PermImpersonate, admin.PermSessionsRevoke))
		more := s.LoginAs(t, "more@example.com", authtest.Permissions("money.send"))
		of := func(id string) admin.ImpersonateParams {
			return admin.ImpersonateParams{UserID: id, Reason: "ticket 7"}
		}
		for name, test := range map[string]struct {
			who  admin.Actor
			p    admin.ImpersonateParams
			want auth.Code
		}{
			"the application's code":           {admin.System("job"), of(s.ada.User.ID), auth.CodeImpersonationForbidden},
			"nobody":                           {admin.Actor{}, of(s.ada.User.ID), auth.CodeSessionEnded},
			"oneself":                          {actor(s.operator), of(s.operator.User.ID), auth.CodeTargetStronger},
			"an equal":                         {actor(s.operator), of(equal.User.ID), auth.CodeTargetStronger},
			"somebody with another permission": {actor(s.operator), of(more.User.ID), auth.CodeTargetStronger},
			"nobody there":                     {actor(s.operator), of(s.acts.SessionID), auth.CodeUserNotFound},
			"no reason":                        {actor(s.operator), admin.ImpersonateParams{UserID: s.ada.User.ID}, auth.CodeValidationFailed},
			"a code for any browser":           {actor(s.operator), admin.ImpersonateParams{UserID: s.ada.User.ID, Reason: "x", RedirectTo: "https://app.example.com/x"}, auth.CodeValidationFailed},
			"a challenge of another method":    {actor(s.operator), admin.ImpersonateParams{UserID: s.ada.User.ID, Reason: "x", RedirectTo: "https://app.example.com/x", CodeChallenge: actVerifier}, auth.CodeValidationFailed},
			"a challenge for no page":          {actor(s.operator), admin.ImpersonateParams{UserID: s.ada.User.ID, Reason: "x", CodeChallenge: oauth2.S256ChallengeFromVerifier(actVerifier)}, auth.CodeValidationFailed},
			"another's site":                   {actor(s.operator), admin.ImpersonateParams{UserID: s.ada.User.ID, Reason: "x", RedirectTo: "https://evil.example.com/", CodeChallenge: oauth2.S256ChallengeFromVerifier(actVerifier)}, auth.CodeRedirectNotAllowed},
		} {
			t.Run(name, func(t *testing.T) {
				_, err := s.adm.Impersonate(t.Context(), test.who, test.p)
				wantCode(t, err, test.want)
			})
		}
		if _, err := s.adm.BanUser(t.Context(), admin.System("test").Accepting(), admin.BanUserParams{UserID: s.ada.User.ID, Reason: "x"}); err != nil {
			t.Fatal(err)
		}
		_, err := s.adm.Impersonate(t.Context(), actor(s.operator), of(s.ada.User.ID))
		wantCode(t, err, auth.CodeUserBanned)
	})
}

// The user is notified by mail where that is configured.
func TestImpersonationIsTold(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		s := newStage(t, store)
		adm, err := admin.New(t.Context(), s.Auth, admin.Options{NotifyImpersonated: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := adm.Impersonate(t.Context(), actor(s.operator), admin.ImpersonateParams{UserID: s.ada.User.ID, Reason: "ticket 7"}); err != nil {
			t.Fatal(err)
		}
		if m := s.Mail(t, "ada@example.com", auth.KindImpersonated); strings.Contains(m.Text, "ticket 7") {
			t.Errorf("tells the reason: %s", m.Text)
		}
	})
}

// If an actor signs out while an impersonation starts, none remains, in either order.
func TestImpersonationWhileTheActorIsSignedOut(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		s := newStage(t, store)
		for round := range 10 {
			s.operator = s.LoginAs(t, fmt.Sprintf("op%d@example.com", round), authtest.Permissions(notes, admin.PermImpersonate), authtest.AAL2())
			var wg sync.WaitGroup
			var got admin.ImpersonateResult
			var err error
			wg.Go(func() {
				got, err = s.adm.Impersonate(t.Context(), actor(s.operator), admin.ImpersonateParams{UserID: s.ada.User.ID, Reason: "race"})
			})
			wg.Go(func() {
				_, _ = s.adm.EndSessions(t.Context(), admin.System("test").Accepting(), s.operator.User.ID, "race")
			})
			wg.Wait()
			if err != nil {
				wantCode(t, err, auth.CodeSessionEnded)
				continue
			}
			s.acts = got
			s.want("GET", "/auth/v1/me", 401, auth.CodeSessionEnded)
		}
	})
}
