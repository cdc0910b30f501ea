package auth_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// What happens to an account as a whole, and to its number, is told of and
// recorded.
func TestEventsOfAnAccount(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
	st, ok := store.Capability[store.EventStore](w.Store)
	if !ok {
		t.Fatal("the store keeps no events")
	}
	recorded := func(userID string, want auth.EventType) {
		t.Helper()
		list, err := st.Events(t.Context(), store.EventQuery{UserID: userID})
		if err != nil || !slices.ContainsFunc(list, func(e auth.Event) bool { return e.Type == want && e.UserID == userID }) {
			t.Errorf("no %s among %+v (%v)", want, list, err)
		}
	}
	u, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: "ada@example.com", PasswordHash: bcryptHash, EmailVerified: true})
	if err != nil {
		t.Fatal(err)
	}
	w.wantEvents(auth.EventUserImported)
	recorded(u.ID, auth.EventUserImported)
	s := w.login("ada@example.com", goodPassword).session()
	w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken)).want(200)
	w.fired()
	w.otp(number, w.Mail(t, number, auth.KindPhoneCode).Code, bearer(s.AccessToken)).want(200)
	w.wantEvents(auth.EventPhoneVerified)
	recorded(u.ID, auth.EventPhoneVerified)
	w.do("DELETE", "/me", nil, bearer(s.AccessToken)).want(204)
	w.wantEvents(auth.EventUserDeleted)
	if w.alive(s.AccessToken) {
		t.Error("the session outlives the account")
	}
	// The first proof of the number that an account was made with.
	stranger := w.do("POST", "/signup", map[string]any{"phone": "+4930888888", "password": goodPassword}).session()
	w.fired()
	w.otp("+4930888888", w.Mail(t, "+4930888888", auth.KindPhoneCode).Code, bearer(stranger.AccessToken)).want(200)
	w.wantEvents(auth.EventPhoneVerified)
}

// What is wrong with a request is told by field.
func TestFieldsOfAnError(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", "/signup", `{"email":"ada","password":"` + goodPassword + `"}`, "email"},
		{"POST", "/signup", `{"email":"bob@example.com"}`, "password"},
		{"POST", "/login", `{"email":"ada@example.com"}`, "password"},
		{"POST", "/login", `{"phone":"12","password":"x"}`, "phone"},
		{"POST", "/otp/verify", `{"phone":"` + number + `"}`, "otp"},
		{"POST", "/reset-password", `{"token":"x"}`, "new_password"},
		{"POST", "/exchange", `{}`, "code"},
		{"PATCH", "/me", `{"user_metadata":null}`, "user_metadata"},
		{"PATCH", "/me", `{"full_name":"` + strings.Repeat("x", 2000) + `"}`, "full_name"},
		{"POST", "/2fa/verify-and-enable", `{}`, "totp_code"},
	} {
		e := decodeAs[struct {
			Details struct{ Fields map[string]string }
		}](w.do(c.method, c.path, c.body, bearer(s.AccessToken)).want(422, auth.CodeValidationFailed))
		if len(e.Details.Fields) != 1 || e.Details.Fields[c.field] == "" {
			t.Errorf("%s %s %s: fields %v", c.method, c.path, c.body, e.Details.Fields)
		}
	}
}

// A sign-up at a provider is told of with where it came from, and its account is
// as old as that.
func TestEventOfAnOAuthSignUp(t *testing.T) {
	w, idp := providerWorld(t)
	s := w.visitor(idp).signIn("google", ada, "").session()
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.events[0]; e.Type != auth.EventSignedUp || e.UserID != s.User.ID || e.Method != "oauth" || e.Provider != "google" {
		t.Errorf("event %+v", e)
	}
	u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
	if now := w.Clock.Now(); err != nil || !u.CreatedAt.Equal(now) || u.UpdatedAt.Before(now) || !u.Identities[0].CreatedAt.Equal(now) {
		t.Errorf("%+v, %v", u, err)
	}
}

// Where codes are switched off, nobody gets a number.
func TestNumbersAreOff(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{Phone: auth.Off}))
	s := w.member("ada@example.com")
	w.do("PATCH", "/me", map[string]any{"phone": number}, bearer(s.AccessToken)).want(403, auth.CodeMethodDisabled)
	w.otp(number, "123456", bearer(s.AccessToken)).want(403, auth.CodeMethodDisabled)
}

// A proof that is exactly as old as it may not be is too old.
func TestFreshAuthToTheSecond(t *testing.T) {
	w := newWorld(t)
	ada := w.LoginAs(t, "ada@example.com")
	h := w.Require(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) }), auth.FreshAuth(10*time.Minute))
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{10*time.Minute - time.Second, 204}, {time.Second, 403}} {
		w.Clock.Advance(c.after)
		if a := w.doOn(h, "GET", "/", nil, bearer(ada.AccessToken)); a.status != c.want {
			t.Errorf("after another %s: %d", c.after, a.status)
		}
	}
}
