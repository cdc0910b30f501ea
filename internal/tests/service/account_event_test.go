package service_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// Changes of an account as a whole, and of its phone number, are reported and recorded.
func TestEventsOfAnAccount(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
	st, ok := store.Capability[store.Journal](w.Store)
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
	u, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: "ada@example.com", PasswordHash: harness.BcryptHash, EmailVerified: true})
	if err != nil {
		t.Fatal(err)
	}
	w.WantEvents(auth.EventUserImported)
	recorded(u.ID, auth.EventUserImported)
	s := w.PostLogin("ada@example.com", harness.GoodPassword).Session()
	w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(200)
	w.Fired()
	w.PostOTP(harness.PhoneNumber, w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code, harness.Bearer(s.AccessToken)).Want(200)
	w.WantEvents(auth.EventPhoneVerified)
	recorded(u.ID, auth.EventPhoneVerified)
	w.Do("DELETE", "/me", nil, harness.Bearer(s.AccessToken)).Want(204)
	w.WantEvents(auth.EventUserDeleted)
	if w.Alive(s.AccessToken) {
		t.Error("the session outlives the account")
	}
	// The first verification of the phone number from the sign-up.
	stranger := w.Do("POST", "/signup", map[string]any{"phone": "+4930888888", "password": harness.GoodPassword}).Session()
	w.Fired()
	w.PostOTP("+4930888888", w.Mail(t, "+4930888888", auth.KindPhoneCode).Code, harness.Bearer(stranger.AccessToken)).Want(200)
	w.WantEvents(auth.EventPhoneVerified)
}

// The faults of a request are reported by field.
func TestFieldsOfAnError(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", "/signup", `{"email":"ada","password":"` + harness.GoodPassword + `"}`, "email"},
		{"POST", "/signup", `{"email":"bob@example.com"}`, "password"},
		{"POST", "/login", `{"email":"ada@example.com"}`, "password"},
		{"POST", "/login", `{"phone":"12","password":"x"}`, "phone"},
		{"POST", "/otp/verify", `{"phone":"` + harness.PhoneNumber + `"}`, "otp"},
		{"POST", "/reset-password", `{"token":"x"}`, "new_password"},
		{"POST", "/exchange", `{}`, "code"},
		{"PATCH", "/me", `{"user_metadata":null}`, "user_metadata"},
		{"PATCH", "/me", `{"full_name":"` + strings.Repeat("x", 2000) + `"}`, "full_name"},
		{"POST", "/2fa/verify-and-enable", `{}`, "totp_code"},
	} {
		e := harness.DecodeAs[struct {
			Details struct{ Fields map[string]string }
		}](w.Do(c.method, c.path, c.body, harness.Bearer(s.AccessToken)).Want(422, auth.CodeValidationFailed))
		if len(e.Details.Fields) != 1 || e.Details.Fields[c.field] == "" {
			t.Errorf("%s %s %s: fields %v", c.method, c.path, c.body, e.Details.Fields)
		}
	}
}

// The event of a sign-up at a provider names the method and the provider. The account's
// creation time is the time of the sign-up.
func TestEventOfAnOAuthSignUp(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	s := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if e := w.Events[0]; e.Type != auth.EventSignedUp || e.UserID != s.User.ID || e.Method != "oauth" || e.Provider != "google" {
		t.Errorf("event %+v", e)
	}
	u, err := w.Store.User(t.Context(), store.ByID(s.User.ID))
	if now := w.Clock.Now(); err != nil || !u.CreatedAt.Equal(now) || u.UpdatedAt.Before(now) || !u.Identities[0].CreatedAt.Equal(now) {
		t.Errorf("%+v, %v", u, err)
	}
}

// Where codes are switched off, no account gets a phone number.
func TestNumbersAreOff(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{Phone: auth.Off}))
	s := w.Member("ada@example.com")
	w.Do("PATCH", "/me", map[string]any{"phone": harness.PhoneNumber}, harness.Bearer(s.AccessToken)).Want(403, auth.CodeMethodDisabled)
	w.PostOTP(harness.PhoneNumber, "123456", harness.Bearer(s.AccessToken)).Want(403, auth.CodeMethodDisabled)
}

// An authentication that is exactly as old as the limit is too old.
func TestFreshAuthToTheSecond(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.LoginAs(t, "ada@example.com")
	h := w.Require(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) }), auth.FreshAuth(10*time.Minute))
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{10*time.Minute - time.Second, 204}, {time.Second, 403}} {
		w.Clock.Advance(c.after)
		if a := w.DoOn(h, "GET", "/", nil, harness.Bearer(ada.AccessToken)); a.Status != c.want {
			t.Errorf("after another %s: %d", c.after, a.Status)
		}
	}
}

// A copy of a record shares nothing with it that could be changed.
func TestRecordCloneIsApart(t *testing.T) {
	t.Parallel()
	r := &store.Record{Changes: map[string]store.FieldChange{"roles": {After: "editor"}}}
	r.Clone().Changes["roles"] = store.FieldChange{After: "owner"}
	if r.Changes["roles"].After != "editor" {
		t.Errorf("the copy changed %v", r.Changes)
	}
}
