package signin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

func TestMe(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	if u := harness.DecodeAs[harness.User](w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)).Want(200)); u.ID != s.User.ID {
		t.Errorf("user %+v", u)
	}
	a := w.Do("GET", "/me", nil).Want(401, auth.CodeMissingToken)
	if a.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("challenge %q", a.Header.Get("WWW-Authenticate"))
	}
	a = w.Do("GET", "/me", nil, harness.Bearer("x.y.z")).Want(401, auth.CodeBadToken)
	if a.Header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` {
		t.Errorf("challenge %q", a.Header.Get("WWW-Authenticate"))
	}
	w.Do("GET", "/me?access_token="+s.AccessToken, nil).Want(401, auth.CodeMissingToken)
	if err := w.DeleteUser(t.Context(), auth.DeleteUserParams{Caller: auth.ByApplication(s.User.ID)}); err != nil {
		t.Fatal(err)
	}
	w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)).Want(401, auth.CodeSessionEnded)
	w.PostRefresh(s.RefreshToken).Want(400, auth.CodeSessionEnded)
}

func TestUpdateMe(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Do("POST", "/signup", map[string]any{
		"email": "ada@example.com", "password": harness.GoodPassword, "full_name": "Ada",
		"user_metadata": map[string]any{"a": map[string]any{"b": 1, "c": 2}, "d": "e"},
	}).Session()
	patch := func(body string) *harness.Answer { return w.Do("PATCH", "/me", body, harness.Bearer(s.AccessToken)) }
	u := harness.DecodeAs[harness.User](patch(`{"user_metadata":{"a":{"b":null,"x":[1]},"f":true},"favourite":["red"],"id":"y"}`).Want(200))
	if got := fmt.Sprint(u.UserMetadata); got != "map[a:map[c:2 x:[1]] d:e f:true]" {
		t.Errorf("metadata %s", got)
	}
	if u.FullName != "Ada" || len(u.Roles) > 0 || len(u.AppMetadata) > 0 || u.ID != s.User.ID {
		t.Errorf("user %+v", u)
	}
	if u := harness.DecodeAs[harness.User](patch(`{"full_name":null}`).Want(200)); u.FullName != "" {
		t.Errorf("name %q", u.FullName)
	}
	patch(`{"user_metadata":{"big":"`+strings.Repeat("x", 17<<10)+`"}}`).Want(422, auth.CodeValidationFailed)
	patch(`{"user_metadata":null}`).Want(422, auth.CodeValidationFailed)
	patch(`{"user_metadata":"x"}`).Want(400, auth.CodeBadJSON)
	patch(`{"full_name":"`+strings.Repeat("x", 201)+`"}`).Want(422, auth.CodeValidationFailed)
	patch(`{"email":"nonsense"}`).Want(422, auth.CodeValidationFailed)
}

// A change of the own profile to the same values writes nothing, so that a user cannot fill
// the audit log.
func TestUpdateMeWithoutAChange(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	patch := func(body string) (revision int64) {
		w.Do("PATCH", "/me", body, harness.Bearer(s.AccessToken)).Want(200)
		u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
		if err != nil {
			t.Fatal(err)
		}
		return u.Revision
	}
	before := patch(`{"full_name":"Ada","user_metadata":{"a":{"n":1.5e3},"b":[null,"x"]}}`)
	w.Fired()
	for _, body := range []string{
		`{"full_name":"Ada"}`, `{"full_name":" Ada "}`, `{"user_metadata":{}}`, `{"user_metadata":{"gone":null}}`,
		`{"full_name":"Ada","user_metadata":{"b":[null,"x"],"a":{"n":1500}}}`, string(w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)).Want(200).Body),
	} {
		if after := patch(body); after != before {
			t.Errorf("%s: revision %d, want %d", body, after, before)
		}
		w.WantEvents()
	}
	for _, body := range []string{`{"full_name":"Eve"}`, `{"user_metadata":{"b":[null,"y"]}}`, `{"full_name":null}`} {
		patch(body)
		w.WantEvents(auth.EventUserUpdated)
	}
}

// Parallel merges are all stored: no acknowledged change is lost.
func TestParallelMerges(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	var wg sync.WaitGroup
	var mu sync.Mutex
	kept := map[string]bool{}
	for i := range 20 {
		wg.Go(func() {
			key := fmt.Sprint("k", i)
			_, err := w.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: auth.ByApplication(s.User.ID), UserMetadata: map[string]any{key: true}})
			if err != nil && !errors.Is(err, auth.CodeUnavailable) {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			kept[key] = err == nil
		})
	}
	wg.Wait()
	u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
	if err != nil {
		t.Fatal(err)
	}
	for key, ok := range kept {
		if ok != (u.UserMetadata[key] == true) {
			t.Errorf("%s: acknowledged %v, stored %v", key, ok, u.UserMetadata[key])
		}
	}
}

func TestChangeEmail(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("old@example.com")
	w.PostSignUp("taken@example.com")
	w.Fired()
	u := harness.DecodeAs[harness.User](w.Do("PATCH", "/me", map[string]any{"email": "new@example.com"}, harness.Bearer(s.AccessToken)).Want(200))
	if u.Email != "old@example.com" {
		t.Errorf("the address changed before it was confirmed: %q", u.Email)
	}
	// A reset link to the old address becomes invalid with it.
	w.Do("POST", "/forgot-password", map[string]any{"email": "old@example.com"}).Want(200)
	reset := w.LinkToken("old@example.com", auth.KindResetPassword)
	token := w.LinkToken("new@example.com", auth.KindChangeEmail)
	w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(s.AccessToken)).Want(200)
	w.WantEvents(auth.EventEmailChanged)
	u = harness.DecodeAs[harness.User](w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)).Want(200))
	if u.Email != "new@example.com" || !u.EmailVerified {
		t.Errorf("user %+v", u)
	}
	if m := w.Mail(t, "old@example.com", auth.KindEmailChanged); !strings.Contains(m.Text, "new@example.com") {
		t.Errorf("notice %q", m.Text)
	}
	w.Do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "another horse battery"}).Want(400, auth.CodeInvalidToken)
	// A taken address gets the same answer, and its owner is notified.
	w.Do("PATCH", "/me", map[string]any{"email": "TAKEN@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
	w.Mail(t, "taken@example.com", auth.KindAccountExists)
}

func TestChangeEmailToOneTakenMeanwhile(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("old@example.com")
	w.Do("PATCH", "/me", map[string]any{"email": "new@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
	token := w.LinkToken("new@example.com", auth.KindChangeEmail)
	w.PostSignUp("new@example.com")
	w.Do("POST", "/verify-email", map[string]any{"token": token}, harness.Bearer(s.AccessToken)).Want(409, auth.CodeUserAlreadyExists)
}

// Re-authentication (ASVS 7.5.1): an old session cannot move the account away.
func TestChangesNeedFreshSignIn(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}), auth.WithTokens(auth.TokenOptions{Life: time.Hour}))
	s := w.Member("ada@example.com")
	w.Clock.Advance(16 * time.Minute)
	s = w.PostRefresh(s.RefreshToken).Session() // a refresh is no recent authentication
	w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(403, auth.CodeReauthNeeded)
	w.Do("PATCH", "/me", map[string]any{"email": "new@example.com"}, harness.Bearer(s.AccessToken)).Want(403, auth.CodeReauthNeeded)
	w.Do("DELETE", "/me", nil, harness.Bearer(s.AccessToken)).Want(403, auth.CodeReauthNeeded)
	w.Do("POST", "/me/password", map[string]any{"new_password": "another horse battery"}, harness.Bearer(s.AccessToken)).Want(403, auth.CodeReauthNeeded)
	again := w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Session()
	w.Do("DELETE", "/me", nil, harness.Bearer(again.AccessToken)).Want(204)
	w.Do("GET", "/me", nil, harness.Bearer(again.AccessToken)).Want(401, auth.CodeSessionEnded)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(401)
}

func TestDeletionIsOffByDefault(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	w.Do("DELETE", "/me", nil, harness.Bearer(s.AccessToken)).Want(404, auth.CodeNotFound)
}

func TestChangePassword(t *testing.T) {
	w := harness.NewWorld(t)
	one, two := w.LoginAs(t, "ada@example.com"), w.LoginAs(t, "ada@example.com")
	change := func(current, next string) *harness.Answer {
		return w.Do("POST", "/me/password", map[string]any{"current_password": current, "new_password": next}, harness.Bearer(one.AccessToken))
	}
	change("wrong horse battery", "another horse battery").Want(401, auth.CodeInvalidCredentials)
	change(authtest.Password, authtest.Password).Want(422, auth.CodeSamePassword)
	change(authtest.Password, "short").Want(422, auth.CodeWeakPassword)
	change("", "another horse battery").Want(422, auth.CodeValidationFailed)
	w.Fired()
	change(authtest.Password, "another horse battery").Want(200)
	w.WantEvents(auth.EventPasswordChanged)
	if w.Alive(two.AccessToken) || !w.Alive(one.AccessToken) {
		t.Error("the wrong sessions ended")
	}
	w.PostRefresh(two.RefreshToken).Want(400, auth.CodeSessionEnded)
	w.Mail(t, "ada@example.com", auth.KindPasswordChanged)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "another horse battery"}).Want(200)
	// Failed attempts at the current password count as failed logins.
	for range 10 {
		change("wrong horse battery", "a third horse battery")
	}
	change("another horse battery", "a third horse battery").Want(429, auth.CodeRateLimited)
}

func TestFirstPassword(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("ada@example.com", nil)}).Session()
	w.Do("POST", "/me/password", map[string]any{"new_password": harness.GoodPassword}, harness.Bearer(s.AccessToken)).Want(200)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(200)
}

// A session that is not recent cannot set the first password, whatever current password it sends.
func TestFirstPasswordNeedsFreshSignIn(t *testing.T) {
	w := harness.NewWorld(t)
	old := w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("ada@example.com", nil)}).Session()
	w.Clock.Advance(16 * time.Minute)
	s := w.PostRefresh(old.RefreshToken).Session()
	for _, current := range []any{nil, "", " ", "anything", harness.GoodPassword, "thieves' horse battery"} {
		body := map[string]any{"current_password": current, "new_password": "thieves' horse battery"}
		w.Do("POST", "/me/password", body, harness.Bearer(s.AccessToken)).Want(403, auth.CodeReauthNeeded)
	}
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "thieves' horse battery"}).Want(401, auth.CodeInvalidCredentials)
}

func TestHooks(t *testing.T) {
	refuse := errors.New("the database said no")
	var signUp, signIn error
	events := 0
	w := harness.NewWorld(t, auth.WithHooks(auth.Hooks{
		BeforeSignUp: func(_ context.Context, s auth.SignUpAttempt) error {
			if s.Email == "panic@example.com" {
				panic("hook")
			}
			return signUp
		},
		BeforeSignIn: func(context.Context, auth.SignInAttempt) error { return signIn },
		OnEvent:      func(context.Context, auth.Event) { events++ },
	}))
	body := map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}
	signUp = auth.Reject(auth.CodeSignupDisabled, "Staff only.")
	if a := w.Do("POST", "/signup", body).Want(403, auth.CodeSignupDisabled); !strings.Contains(string(a.Body), "Staff only.") {
		t.Errorf("%s", a.Body)
	}
	signUp = refuse
	if a := w.Do("POST", "/signup", body).Want(500, auth.CodeInternal); strings.Contains(string(a.Body), "database") {
		t.Errorf("the cause leaked: %s", a.Body)
	}
	w.Do("POST", "/signup", map[string]any{"email": "panic@example.com", "password": harness.GoodPassword}).Want(500, auth.CodeInternal)
	if events != 0 {
		t.Errorf("%d events of what did not happen", events)
	}
	signUp = nil
	w.Do("POST", "/signup", body).Want(200)
	signIn = auth.Reject(auth.CodeUserBanned, "")
	w.Do("POST", "/login", body).Want(403, auth.CodeUserBanned)
	signIn = nil
	w.Do("POST", "/login", body).Want(200)
}

// If users may not delete their accounts, no endpoint does it for them. The application may.
func TestDeletionIsOff(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	if err := w.DeleteUser(t.Context(), auth.DeleteUserParams{Caller: w.ClaimsOf(s).Caller()}); !errors.Is(err, auth.CodeNotFound) {
		t.Errorf("from Go: %v", err)
	}
	w.Do("DELETE", "/me", nil, harness.Bearer(s.AccessToken)).Want(404, auth.CodeNotFound)
	if !w.Alive(s.AccessToken) {
		t.Error("the account is gone")
	}
	if err := w.DeleteUser(t.Context(), auth.DeleteUserParams{Caller: auth.ByApplication(s.User.ID)}); err != nil {
		t.Error(err)
	}
}

// A change of the name alone works even if the budget for text messages is spent.
func TestNamesCostNoTexts(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{SMSBudget: auth.Rate{Burst: 1, Per: time.Hour}}))
	s := w.Member("ada@example.com")
	w.Do("POST", "/otp/send", map[string]any{"phone": harness.PhoneNumber}).Want(200)
	w.Do("PATCH", "/me", map[string]any{"full_name": "Ada"}, harness.Bearer(s.AccessToken)).Want(200)
	w.Do("PATCH", "/me", map[string]any{"phone": "+4930999999"}, harness.Bearer(s.AccessToken)).Want(429, auth.CodeRateLimited)
}

// The limit on password changes is for a caller who knows the password, not for the
// application, which is responsible for its own changes.
func TestApplicationsChangePasswordsAtWill(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{PasswordChangesPerUser: auth.Rate{Burst: 1, Per: time.Hour}}))
	id, was := w.PostSignUp("ada@example.com").User.ID, harness.GoodPassword
	for i := range 3 {
		next := fmt.Sprintf("another horse battery %d", i)
		if err := w.ChangePassword(t.Context(), auth.ChangePasswordParams{Caller: auth.ByApplication(id), Current: was, New: next}); err != nil {
			t.Fatal(i, err)
		}
		was = next
	}
	s := w.PostLogin("ada@example.com", was).Session()
	w.Do("POST", "/me/password", map[string]any{"current_password": was, "new_password": harness.GoodPassword}, harness.Bearer(s.AccessToken)).Want(200)
	w.Do("POST", "/me/password", map[string]any{"current_password": harness.GoodPassword, "new_password": was}, harness.Bearer(s.AccessToken)).Want(429, auth.CodeRateLimited)
}

// Changes of the own profile have a limit for each user, because each has a row in the
// audit log. It does not bind the application, and requests without a change are free.
func TestProfileChangesHaveALimit(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{ProfileChangesPerUser: auth.Rate{Burst: 2, Per: time.Hour}}))
	s, other := w.Member("ada@example.com"), w.Member("eve@example.com")
	patch := func(s harness.Session, name string) *harness.Answer {
		return w.Do("PATCH", "/me", map[string]any{"full_name": name}, harness.Bearer(s.AccessToken))
	}
	patch(s, "Ada").Want(200)
	for range 5 {
		patch(s, "Ada").Want(200)
	}
	patch(s, "Ada L.").Want(200)
	patch(s, "Ada").Want(429, auth.CodeRateLimited)
	patch(s, "Ada L.").Want(200)
	w.Do("PATCH", "/me", map[string]any{"user_metadata": map[string]any{"a": 1}}, harness.Bearer(s.AccessToken)).Want(429, auth.CodeRateLimited)
	patch(other, "Eve").Want(200)
	name := "Ada"
	for range 3 {
		if _, err := w.UpdateMe(t.Context(), auth.UpdateMeParams{Caller: auth.ByApplication(s.User.ID), FullName: &name}); err != nil {
			t.Fatal(err)
		}
		name += " L."
	}
	w.Clock.Advance(30 * time.Minute)
	patch(w.PostLogin("ada@example.com", harness.GoodPassword).Session(), "Ada").Want(200)
}

// By default a user who saves the profile every minute is not limited.
func TestProfileChangesOfAnEagerUser(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.Member("ada@example.com")
	for i := range 100 {
		w.Do("PATCH", "/me", map[string]any{"user_metadata": map[string]any{"draft": i}}, harness.Bearer(s.AccessToken)).Want(200)
	}
}
