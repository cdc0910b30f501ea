package signin_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// grownOld refreshes a session once its sign-in is too old for operations that need a recent
// one, and returns it.
func grownOld(w *harness.World, s harness.Session) harness.Session {
	w.T.Helper()
	w.Clock.Advance(16 * time.Minute)
	return w.PostRefresh(s.RefreshToken).Session()
}

// A repeated password permits operations that need a recent sign-in, for as long as a
// sign-in does, in that session alone.
func TestConfirmByPassword(t *testing.T) {
	w := harness.NewWorld(t)
	member := w.Member("ada@example.com")
	other := w.PostLogin("ada@example.com", harness.GoodPassword).Session()
	w.Clock.Advance(16 * time.Minute)
	s, other := w.PostRefresh(member.RefreshToken).Session(), w.PostRefresh(other.RefreshToken).Session()
	move := func(token string) *harness.Answer {
		return w.Do("PATCH", "/me", map[string]any{"email": "new@example.com"}, harness.Bearer(token))
	}
	move(s.AccessToken).Want(403, auth.CodeReauthNeeded)
	w.Reauthenticate(s, map[string]any{"password": harness.WrongPassword}).Want(401, auth.CodeInvalidCredentials)
	move(s.AccessToken).Want(403, auth.CodeReauthNeeded)
	w.Fired()
	fresh := w.Require(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), auth.FreshAuth(time.Minute))
	pay := func(token string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/pay", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		rec := httptest.NewRecorder()
		fresh.ServeHTTP(rec, r)
		return rec.Code
	}
	confirmed := w.Reauthenticate(s, map[string]any{"password": harness.GoodPassword}).Session()
	w.WantEvents(auth.EventSessionConfirmed)
	if before, after := pay(s.AccessToken), pay(confirmed.AccessToken); before != 403 || after != 200 || confirmed.RefreshToken != s.RefreshToken {
		t.Errorf("a route with FreshAuth: %d, then %d; the refresh token stays: %t", before, after, confirmed.RefreshToken == s.RefreshToken)
	}
	move(other.AccessToken).Want(403, auth.CodeReauthNeeded)
	move(s.AccessToken).Want(200)
	c := w.ClaimsOf(w.PostRefresh(s.RefreshToken).Session())
	if len(c.AMR) != 1 || c.AMR[0].Method != "password" || c.AMR[0].Timestamp != w.Clock.Now().Unix() || c.AAL != store.LevelAAL1 {
		t.Errorf("amr %+v, %s", c.AMR, c.AAL)
	}
	move(grownOld(w, w.PostRefresh(s.RefreshToken).Session()).AccessToken).Want(403, auth.CodeReauthNeeded)
}

// A code raises the session, a password does not. A password does not replace a required
// second factor.
func TestConfirmByCode(t *testing.T) {
	w := harness.NewWorld(t)
	e := w.Enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	s := grownOld(w, harness.Session{RefreshToken: e.RefreshToken})
	w.Reauthenticate(s, map[string]any{"password": authtest.Password}).Want(200)
	w.Do("POST", "/2fa/recovery-codes", nil, harness.Bearer(s.AccessToken)).Want(403, auth.CodeReauthNeeded)
	w.Reauthenticate(s, map[string]any{"totp_code": "000000"}).Want(422, auth.CodeInvalidTOTPCode)
	code := w.Code(e.Secret, 0)
	w.Fired()
	w.Reauthenticate(s, map[string]any{"totp_code": code}).Want(200)
	w.WantEvents(auth.EventSessionConfirmed)
	w.Reauthenticate(s, map[string]any{"totp_code": code}).Want(422, auth.CodeInvalidTOTPCode) // valid once
	w.Do("POST", "/2fa/recovery-codes", nil, harness.Bearer(s.AccessToken)).Want(200)
	methods := []string{}
	for _, m := range w.ClaimsOf(w.PostRefresh(s.RefreshToken).Session()).AMR {
		methods = append(methods, m.Method)
	}
	if !slices.Equal(methods, []string{"password", "totp"}) {
		t.Errorf("amr %v", methods)
	}
}

// Other input.
func TestConfirmRefusals(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	w.Reauthenticate(s, map[string]any{}).Want(422, auth.CodeValidationFailed)
	w.Reauthenticate(s, map[string]any{"password": harness.GoodPassword, "totp_code": "000000"}).Want(422, auth.CodeValidationFailed)
	w.Reauthenticate(s, map[string]any{"totp_code": "000000"}).Want(409, auth.CodeMFANotEnabled)
	bare := w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("ben@example.com", nil)}).Session()
	w.Reauthenticate(bare, map[string]any{"password": "anything"}).Want(401, auth.CodeInvalidCredentials)
	for range 10 {
		w.Reauthenticate(s, map[string]any{"password": harness.WrongPassword})
	}
	w.Reauthenticate(s, map[string]any{"password": harness.GoodPassword}).Want(429, auth.CodeRateLimited)
	w.Do("POST", "/logout", nil, harness.Bearer(s.AccessToken)).Want(204)
	w.Reauthenticate(s, map[string]any{"password": harness.GoodPassword}).Want(401, auth.CodeSessionEnded)

	off := harness.NewWorld(t, auth.WithSettings(auth.Settings{Password: auth.Off}))
	in := off.Do("POST", "/magic-link/verify", map[string]any{"token": off.MagicLink("ada@example.com", nil)}).Session()
	off.Reauthenticate(in, map[string]any{"password": harness.GoodPassword}).Want(403, auth.CodeMethodDisabled)
}

// The caller's own session is confirmed, and no other's.
func TestConfirmOfAnother(t *testing.T) {
	w := harness.NewWorld(t)
	ada, eve := w.PostSignUp("ada@example.com"), w.PostSignUp("eve@example.com")
	mixed := auth.Caller{UserID: eve.User.ID, SessionID: w.ClaimsOf(ada).SessionID}
	if _, err := w.Confirm(t.Context(), auth.ConfirmParams{Caller: mixed, Password: harness.GoodPassword}); !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("another's session: %v", err)
	}
}
