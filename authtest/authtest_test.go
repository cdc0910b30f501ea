package authtest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
)

// The test of an application: a handler behind Require, a signed-in editor, a moving
// clock, a message.
func TestApplication(t *testing.T) {
	env := authtest.New(t)
	notes := env.Require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, auth.ClaimsFrom(r.Context()).Email)
	}), auth.HasRole("editor"))
	call := func(sign func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/notes", nil)
		sign(r)
		rec := httptest.NewRecorder()
		notes.ServeHTTP(rec, r)
		return rec
	}
	ada := env.LoginAs(t, "ada@example.com", authtest.Roles("editor"), authtest.AppMetadata(map[string]any{"team": "a"}))
	if rec := call(ada.Sign); rec.Code != http.StatusOK || rec.Body.String() != "ada@example.com" {
		t.Errorf("editor: %d %s", rec.Code, rec.Body)
	}
	if again := env.LoginAs(t, "ada@example.com"); again.User.ID != ada.User.ID || !again.User.EmailVerified() {
		t.Errorf("user %+v", again.User)
	}
	eve := env.LoginAs(t, "eve@example.com", authtest.Unverified())
	if rec := call(eve.Sign); rec.Code != http.StatusForbidden || eve.User.EmailVerified() {
		t.Errorf("no editor: %d, %+v", rec.Code, eve.User)
	}
	minted := env.MintToken(t, map[string]any{"roles": []string{"editor"}, "email": "minted@example.com"})
	if rec := call(func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+minted) }); rec.Body.String() != "minted@example.com" {
		t.Errorf("minted: %d %s", rec.Code, rec.Body)
	}
	env.Clock.Advance(time.Hour)
	if rec := call(ada.Sign); rec.Code != http.StatusUnauthorized {
		t.Errorf("an hour later: %d", rec.Code)
	}
	if _, err := env.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "ada@example.com"}); err != nil {
		t.Fatal(err)
	}
	if m := env.Mail(t, "ada@example.com", auth.KindMagicLink); m.Link == "" {
		t.Errorf("message %+v", m)
	}
}
