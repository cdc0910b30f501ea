package auth_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// grownOld refreshes a session once its sign-in is too old for what asks for a
// recent one, and returns it.
func (w *world) grownOld(s session) session {
	w.t.Helper()
	w.Clock.Advance(16 * time.Minute)
	return w.refresh(s.RefreshToken).session()
}

// A password that is given again opens what asks for a recent sign-in, for as long
// as a sign-in does, in that session alone.
func TestConfirmByPassword(t *testing.T) {
	w := newWorld(t)
	member := w.member("ada@example.com")
	other := w.login("ada@example.com", goodPassword).session()
	w.Clock.Advance(16 * time.Minute)
	s, other := w.refresh(member.RefreshToken).session(), w.refresh(other.RefreshToken).session()
	move := func(token string) *answer {
		return w.do("PATCH", "/me", map[string]any{"email": "new@example.com"}, bearer(token))
	}
	move(s.AccessToken).want(403, auth.CodeReauthNeeded)
	w.prove(s, map[string]any{"password": wrongPassword}).want(401, auth.CodeInvalidCredentials)
	move(s.AccessToken).want(403, auth.CodeReauthNeeded)
	w.fired()
	if got := string(w.prove(s, map[string]any{"password": goodPassword}).want(200).body); got != "{}\n" && got != "{}" {
		t.Errorf("body %q", got)
	}
	w.wantEvents(auth.EventSessionConfirmed)
	move(other.AccessToken).want(403, auth.CodeReauthNeeded)
	move(s.AccessToken).want(200)
	c := w.claimsOf(w.refresh(s.RefreshToken).session())
	if len(c.AMR) != 1 || c.AMR[0].Method != "password" || c.AMR[0].Timestamp != w.Clock.Now().Unix() || c.AAL != store.LevelAAL1 {
		t.Errorf("amr %+v, %s", c.AMR, c.AAL)
	}
	move(w.grownOld(w.refresh(s.RefreshToken).session()).AccessToken).want(403, auth.CodeReauthNeeded)
}

// prove posts a proof in a session.
func (w *world) prove(s session, body map[string]any) *answer {
	w.t.Helper()
	return w.do("POST", "/me/confirm", body, bearer(s.AccessToken))
}

// A code raises the session, a password does not; and a password is no second
// factor where that is asked for.
func TestConfirmByCode(t *testing.T) {
	w := newWorld(t)
	e := w.enrol(w.LoginAs(t, "ada@example.com").AccessToken)
	s := w.grownOld(session{RefreshToken: e.RefreshToken})
	w.prove(s, map[string]any{"password": authtest.Password}).want(200)
	w.do("POST", "/2fa/recovery-codes", nil, bearer(s.AccessToken)).want(403, auth.CodeReauthNeeded)
	w.prove(s, map[string]any{"totp_code": "000000"}).want(422, auth.CodeInvalidTOTPCode)
	code := w.code(e.secret, 0)
	w.fired()
	w.prove(s, map[string]any{"totp_code": code}).want(200)
	w.wantEvents(auth.EventSessionConfirmed)
	w.prove(s, map[string]any{"totp_code": code}).want(422, auth.CodeInvalidTOTPCode) // good once
	w.do("POST", "/2fa/recovery-codes", nil, bearer(s.AccessToken)).want(200)
	methods := []string{}
	for _, m := range w.claimsOf(w.refresh(s.RefreshToken).session()).AMR {
		methods = append(methods, m.Method)
	}
	if !slices.Equal(methods, []string{"password", "totp"}) {
		t.Errorf("amr %v", methods)
	}
}

// What else it may be given.
func TestConfirmRefusals(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
	w.prove(s, map[string]any{}).want(422, auth.CodeValidationFailed)
	w.prove(s, map[string]any{"password": goodPassword, "totp_code": "000000"}).want(422, auth.CodeValidationFailed)
	w.prove(s, map[string]any{"totp_code": "000000"}).want(409, auth.CodeMFANotEnabled)
	bare := w.do("GET", "/magic-link/verify?token="+w.magicLink("ben@example.com", nil), nil).session()
	w.prove(bare, map[string]any{"password": "anything"}).want(401, auth.CodeInvalidCredentials)
	for range 10 {
		w.prove(s, map[string]any{"password": wrongPassword})
	}
	w.prove(s, map[string]any{"password": goodPassword}).want(429, auth.CodeRateLimited)
	w.do("POST", "/logout", nil, bearer(s.AccessToken)).want(204)
	w.prove(s, map[string]any{"password": goodPassword}).want(401, auth.CodeSessionEnded)

	off := newWorld(t, auth.WithSettings(auth.Settings{Password: auth.Off}))
	in := off.do("GET", "/magic-link/verify?token="+off.magicLink("ada@example.com", nil), nil).session()
	off.prove(in, map[string]any{"password": goodPassword}).want(403, auth.CodeMethodDisabled)
}

// A store that cannot add proofs confirms by no password.
func TestStoreWithoutProofs(t *testing.T) {
	w := &world{t: t, Env: authtest.NewOn(t, plainStore{memstore.New()})}
	s := w.LoginAs(t, "ada@example.com")
	w.do("POST", "/me/confirm", map[string]any{"password": authtest.Password}, bearer(s.AccessToken)).want(403, auth.CodeMethodDisabled)
}

// The caller's own session is confirmed, and no other's.
func TestConfirmOfAnother(t *testing.T) {
	w := newWorld(t)
	ada, eve := w.signUp("ada@example.com"), w.signUp("eve@example.com")
	mixed := auth.Caller{UserID: eve.User.ID, SessionID: w.claimsOf(ada).SessionID}
	if err := w.Confirm(t.Context(), auth.ConfirmParams{Caller: mixed, Password: goodPassword}); !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("another's session: %v", err)
	}
}
