package auth_test

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
	"github.com/authmount/auth/store"
)

func TestMe(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
	if u := decodeAs[user](w.do("GET", "/me", nil, bearer(s.AccessToken)).want(200)); u.ID != s.User.ID {
		t.Errorf("user %+v", u)
	}
	a := w.do("GET", "/me", nil).want(401, auth.CodeMissingToken)
	if a.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("challenge %q", a.header.Get("WWW-Authenticate"))
	}
	a = w.do("GET", "/me", nil, bearer("x.y.z")).want(401, auth.CodeBadToken)
	if a.header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` {
		t.Errorf("challenge %q", a.header.Get("WWW-Authenticate"))
	}
	w.do("GET", "/me?access_token="+s.AccessToken, nil).want(401, auth.CodeMissingToken)
	if err := w.DeleteUser(t.Context(), auth.DeleteUserParams{Caller: auth.ByApplication(s.User.ID)}); err != nil {
		t.Fatal(err)
	}
	w.do("GET", "/me", nil, bearer(s.AccessToken)).want(401, auth.CodeSessionEnded)
	w.refresh(s.RefreshToken).want(400, auth.CodeSessionEnded)
}

func TestUpdateMe(t *testing.T) {
	w := newWorld(t)
	s := w.do("POST", "/signup", map[string]any{
		"email": "ada@example.com", "password": goodPassword, "full_name": "Ada",
		"user_metadata": map[string]any{"a": map[string]any{"b": 1, "c": 2}, "d": "e"},
	}).session()
	patch := func(body string) *answer { return w.do("PATCH", "/me", body, bearer(s.AccessToken)) }
	u := decodeAs[user](patch(`{"user_metadata":{"a":{"b":null,"x":[1]},"f":true},"roles":["admin"],"app_metadata":{"x":1},"id":"y"}`).want(200))
	if got := fmt.Sprint(u.UserMetadata); got != "map[a:map[c:2 x:[1]] d:e f:true]" {
		t.Errorf("metadata %s", got)
	}
	if u.FullName != "Ada" || len(u.Roles) > 0 || len(u.AppMetadata) > 0 || u.ID != s.User.ID {
		t.Errorf("user %+v", u)
	}
	if u := decodeAs[user](patch(`{"full_name":null}`).want(200)); u.FullName != "" {
		t.Errorf("name %q", u.FullName)
	}
	patch(`{"user_metadata":{"big":"`+strings.Repeat("x", 17<<10)+`"}}`).want(422, auth.CodeValidationFailed)
	patch(`{"user_metadata":null}`).want(422, auth.CodeValidationFailed)
	patch(`{"user_metadata":"x"}`).want(400, auth.CodeBadJSON)
	patch(`{"full_name":"`+strings.Repeat("x", 201)+`"}`).want(422, auth.CodeValidationFailed)
	patch(`{"email":"nonsense"}`).want(422, auth.CodeValidationFailed)
}

// Parallel merges are all kept: nothing acknowledged is lost.
func TestParallelMerges(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
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
	w := newWorld(t)
	s := w.signUp("old@example.com")
	w.signUp("taken@example.com")
	w.fired()
	u := decodeAs[user](w.do("PATCH", "/me", map[string]any{"email": "new@example.com"}, bearer(s.AccessToken)).want(200))
	if u.Email != "old@example.com" {
		t.Errorf("the address changed before it was confirmed: %q", u.Email)
	}
	// A reset link sent to the old address dies with it.
	w.do("POST", "/forgot-password", map[string]any{"email": "old@example.com"}).want(200)
	reset := w.linkToken("old@example.com", auth.KindResetPassword)
	token := w.linkToken("new@example.com", auth.KindChangeEmail)
	w.do("GET", "/verify-email?token="+token, nil).want(200)
	w.wantEvents(auth.EventEmailChanged)
	u = decodeAs[user](w.do("GET", "/me", nil, bearer(s.AccessToken)).want(200))
	if u.Email != "new@example.com" || !u.EmailVerified {
		t.Errorf("user %+v", u)
	}
	if m := w.Mail(t, "old@example.com", auth.KindEmailChanged); !strings.Contains(m.Text, "new@example.com") {
		t.Errorf("notice %q", m.Text)
	}
	w.do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "another horse battery"}).want(400, auth.CodeInvalidToken)
	// A taken address is answered alike, and its owner is told.
	w.do("PATCH", "/me", map[string]any{"email": "TAKEN@example.com"}, bearer(s.AccessToken)).want(200)
	w.Mail(t, "taken@example.com", auth.KindAccountExists)
}

func TestChangeEmailToOneTakenMeanwhile(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("old@example.com")
	w.do("PATCH", "/me", map[string]any{"email": "new@example.com"}, bearer(s.AccessToken)).want(200)
	token := w.linkToken("new@example.com", auth.KindChangeEmail)
	w.signUp("new@example.com")
	w.do("GET", "/verify-email?token="+token, nil).want(409, auth.CodeUserAlreadyExists)
}

// Re-authentication (ASVS 7.5.1): an old session cannot move the account away.
func TestChangesNeedFreshSignIn(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}), auth.WithTokens(auth.TokenOptions{Life: time.Hour}))
	s := w.member("ada@example.com")
	w.Clock.Advance(16 * time.Minute)
	s = w.refresh(s.RefreshToken).session() // refreshing is no proof
	w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken)).want(403, auth.CodeReauthNeeded)
	w.do("PATCH", "/me", map[string]any{"email": "new@example.com"}, bearer(s.AccessToken)).want(403, auth.CodeReauthNeeded)
	w.do("DELETE", "/me", nil, bearer(s.AccessToken)).want(403, auth.CodeReauthNeeded)
	w.do("POST", "/me/password", map[string]any{"new_password": "another horse battery"}, bearer(s.AccessToken)).want(403, auth.CodeReauthNeeded)
	again := w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": goodPassword}).session()
	w.do("DELETE", "/me", nil, bearer(again.AccessToken)).want(204)
	w.do("GET", "/me", nil, bearer(again.AccessToken)).want(401, auth.CodeSessionEnded)
	w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": goodPassword}).want(401)
}

func TestDeletionIsOffByDefault(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
	w.do("DELETE", "/me", nil, bearer(s.AccessToken)).want(404, auth.CodeNotFound)
}

func TestChangePassword(t *testing.T) {
	w := newWorld(t)
	one, two := w.LoginAs(t, "ada@example.com"), w.LoginAs(t, "ada@example.com")
	change := func(current, next string) *answer {
		return w.do("POST", "/me/password", map[string]any{"current_password": current, "new_password": next}, bearer(one.AccessToken))
	}
	change("wrong horse battery", "another horse battery").want(401, auth.CodeInvalidCredentials)
	change(authtest.Password, authtest.Password).want(422, auth.CodeSamePassword)
	change(authtest.Password, "short").want(422, auth.CodeWeakPassword)
	change("", "another horse battery").want(422, auth.CodeValidationFailed)
	w.fired()
	change(authtest.Password, "another horse battery").want(200)
	w.wantEvents(auth.EventPasswordChanged)
	if w.alive(two.AccessToken) || !w.alive(one.AccessToken) {
		t.Error("the wrong sessions ended")
	}
	w.refresh(two.RefreshToken).want(400, auth.CodeSessionEnded)
	w.Mail(t, "ada@example.com", auth.KindPasswordChanged)
	w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "another horse battery"}).want(200)
	// Guessing the current password counts as failed logins.
	for range 10 {
		change("wrong horse battery", "a third horse battery")
	}
	change("another horse battery", "a third horse battery").want(429, auth.CodeRateLimited)
}

func TestFirstPassword(t *testing.T) {
	w := newWorld(t)
	s := w.do("GET", "/magic-link/verify?token="+w.magicLink("ada@example.com", nil), nil).session()
	w.do("POST", "/me/password", map[string]any{"new_password": goodPassword}, bearer(s.AccessToken)).want(200)
	w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": goodPassword}).want(200)
}

// A session of any age does not choose the first password, whatever it says the
// current one is.
func TestFirstPasswordNeedsFreshSignIn(t *testing.T) {
	w := newWorld(t)
	old := w.do("GET", "/magic-link/verify?token="+w.magicLink("ada@example.com", nil), nil).session()
	w.Clock.Advance(16 * time.Minute)
	s := w.refresh(old.RefreshToken).session()
	for _, current := range []any{nil, "", " ", "anything", goodPassword, "thieves' horse battery"} {
		body := map[string]any{"current_password": current, "new_password": "thieves' horse battery"}
		w.do("POST", "/me/password", body, bearer(s.AccessToken)).want(403, auth.CodeReauthNeeded)
	}
	w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "thieves' horse battery"}).want(401, auth.CodeInvalidCredentials)
}

func TestHooks(t *testing.T) {
	refuse := errors.New("the database said no")
	var signUp, signIn error
	events := 0
	w := newWorld(t, auth.WithHooks(auth.Hooks{
		BeforeSignUp: func(_ context.Context, s auth.SignUpAttempt) error {
			if s.Email == "panic@example.com" {
				panic("hook")
			}
			return signUp
		},
		BeforeSignIn: func(context.Context, auth.SignInAttempt) error { return signIn },
		OnEvent:      func(context.Context, auth.Event) { events++ },
	}))
	body := map[string]any{"email": "ada@example.com", "password": goodPassword}
	signUp = auth.Reject(auth.CodeSignupDisabled, "Staff only.")
	if a := w.do("POST", "/signup", body).want(403, auth.CodeSignupDisabled); !strings.Contains(string(a.body), "Staff only.") {
		t.Errorf("%s", a.body)
	}
	signUp = refuse
	if a := w.do("POST", "/signup", body).want(500, auth.CodeInternal); strings.Contains(string(a.body), "database") {
		t.Errorf("the cause leaked: %s", a.body)
	}
	w.do("POST", "/signup", map[string]any{"email": "panic@example.com", "password": goodPassword}).want(500, auth.CodeInternal)
	if events != 0 {
		t.Errorf("%d events of what did not happen", events)
	}
	signUp = nil
	w.do("POST", "/signup", body).want(200)
	signIn = auth.Reject(auth.CodeUserBanned, "")
	w.do("POST", "/login", body).want(403, auth.CodeUserBanned)
	signIn = nil
	w.do("POST", "/login", body).want(200)
}

// Where people may not delete their accounts, no door does it for them; the
// application may.
func TestDeletionIsOff(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
	if err := w.DeleteUser(t.Context(), auth.DeleteUserParams{Caller: w.claimsOf(s).Caller()}); !errors.Is(err, auth.CodeNotFound) {
		t.Errorf("from Go: %v", err)
	}
	w.do("DELETE", "/me", nil, bearer(s.AccessToken)).want(404, auth.CodeNotFound)
	if !w.alive(s.AccessToken) {
		t.Error("the account is gone")
	}
	if err := w.DeleteUser(t.Context(), auth.DeleteUserParams{Caller: auth.ByApplication(s.User.ID)}); err != nil {
		t.Error(err)
	}
}

// A change of one's name alone asks nothing of what texts may cost: it is possible when
// that is spent.
func TestNamesCostNoTexts(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{SMSBudget: auth.Rate{Burst: 1, Per: time.Hour}}))
	s := w.member("ada@example.com")
	w.do("POST", "/otp/send", map[string]any{"phone": number}).want(200)
	w.do("PATCH", "/me", map[string]any{"full_name": "Ada"}, bearer(s.AccessToken)).want(200)
	w.do("PATCH", "/me", map[string]any{"phone": "+4930999999"}, bearer(s.AccessToken)).want(429, auth.CodeRateLimited)
}

// The limit on changes of a password is for whoever knows it, not for the application,
// which answers for its own.
func TestApplicationsChangePasswordsAtWill(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{PasswordChangesPerUser: auth.Rate{Burst: 1, Per: time.Hour}}))
	id, was := w.signUp("ada@example.com").User.ID, goodPassword
	for i := range 3 {
		next := fmt.Sprintf("another horse battery %d", i)
		if err := w.ChangePassword(t.Context(), auth.ChangePasswordParams{Caller: auth.ByApplication(id), Current: was, New: next}); err != nil {
			t.Fatal(i, err)
		}
		was = next
	}
	s := w.login("ada@example.com", was).session()
	w.do("POST", "/me/password", map[string]any{"current_password": was, "new_password": goodPassword}, bearer(s.AccessToken)).want(200)
	w.do("POST", "/me/password", map[string]any{"current_password": goodPassword, "new_password": was}, bearer(s.AccessToken)).want(429, auth.CodeRateLimited)
}
