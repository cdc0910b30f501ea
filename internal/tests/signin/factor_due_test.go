package signin_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// dueWorld is a world in which a second factor becomes required when due is set, and is
// required of auditors.
func dueWorld(t *testing.T, opts ...auth.Option) (w *harness.World, due *atomic.Bool) {
	due = &atomic.Bool{}
	return harness.NewWorld(t, append(opts, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"auditor"}}), auth.WithMFA(auth.MFAOptions{
		RequiredFor: func(auth.User) bool { return due.Load() }, TrustDevices: 30 * 24 * time.Hour,
	}))...), due
}

// waiting is the body of a response that asks for a second factor.
type waiting struct {
	MFAToken  string   `json:"mfa_token"`
	ExpiresIn int      `json:"expires_in"`
	Factors   []string `json:"factors"`
}

// untilDue refreshes into the requirement of a factor, and checks that nothing was spent.
func untilDue(w *harness.World, id string, s harness.Session, code auth.Code) waiting {
	w.T.Helper()
	for range 3 {
		w.PostRefresh(s.RefreshToken).Want(403, code)
	}
	a := w.PostRefresh(s.RefreshToken).Want(403, code)
	if live, _, err := w.Store.Session(w.T.Context(), id, w.Clock.Now()); err != nil || live.Counter != 0 || live.AAL != store.LevelAAL1 {
		w.T.Errorf("the session is %+v, %v", live, err)
	}
	return harness.DecodeAs[waiting](a)
}

// A session that exists when a second factor becomes required continues with one.
func TestFactorBecomesRequired(t *testing.T) {
	for name, require := range map[string]func(w *harness.World, due *atomic.Bool, userID string){
		"of all": func(_ *harness.World, due *atomic.Bool, _ string) { due.Store(true) },
		"of the account": func(w *harness.World, _ *atomic.Bool, userID string) {
			w.Patch(userID, store.UserPatch{AppMetadata: map[string]any{"mfa_required": true}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, due := dueWorld(t)
			s := w.Member("ada@example.com")
			id := w.ClaimsOf(s).SessionID
			w.Clock.Advance(time.Hour) // no recent authentication
			require(w, due, s.User.ID)
			wait := untilDue(w, id, s, auth.CodeMFAEnrollmentRequired)
			e := w.Enrol(wait.MFAToken)
			if c := w.ClaimsOf(e.Session); c.SessionID != id || c.AAL != store.LevelAAL2 || e.RefreshToken != s.RefreshToken {
				t.Errorf("%+v", c)
			}
			w.PostRefresh(e.RefreshToken).Want(200)
			w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(wait.MFAToken)).Want(401, auth.CodeBadToken)
		})
	}
}

// A device was trusted when the session was created; the trust is over when a factor
// becomes required.
func TestFactorIsAskedOfSessionWithoutIt(t *testing.T) {
	w, due := dueWorld(t)
	e := w.Enrol(w.Member("ada@example.com").AccessToken)
	w.Trust(e)
	s := w.Do("POST", "/login", harness.Credentials("ada@example.com", harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(200).Session()
	id := w.ClaimsOf(s).SessionID
	due.Store(true)
	if got := w.PostRefresh(s.RefreshToken).Want(200).Session(); w.ClaimsOf(got).AAL != store.LevelAAL1 {
		t.Error("the trusted device has no session at aal1")
	} else {
		s = got
	}
	w.Clock.Advance(31 * 24 * time.Hour / 2)
	s = w.PostRefresh(s.RefreshToken).Want(200).Session()
	w.Clock.Advance(31 * 24 * time.Hour / 2)
	wait := harness.DecodeAs[waiting](w.PostRefresh(s.RefreshToken).Want(403, auth.CodeMFARequired))
	if wait.ExpiresIn != 300 || !slices.Contains(wait.Factors, "totp") {
		t.Errorf("%+v", wait)
	}
	w.PostVerifyMFA(wait.MFAToken, harness.OtherNumber(w.Code(e.Secret, 0))).Want(422, auth.CodeInvalidTOTPCode)
	got := w.PostVerifyMFA(wait.MFAToken, w.Code(e.Secret, 0)).Want(200).Session()
	if c := w.ClaimsOf(got); c.SessionID != id || c.AAL != store.LevelAAL2 || got.RefreshToken != s.RefreshToken {
		t.Errorf("%+v", c)
	}
	w.Clock.Advance(time.Minute)
	w.PostVerifyMFA(wait.MFAToken, w.Code(e.Secret, 0)).Want(400, auth.CodeInvalidToken)
	w.PostRefresh(got.RefreshToken).Want(200)
}

// The token of such a refresh ends with the session, and an outdated refresh token gets
// none: it is reuse.
func TestFactorTokenOfRefreshEndsWithSession(t *testing.T) {
	w, due := dueWorld(t)
	s := w.Member("ada@example.com")
	next := w.PostRefresh(s.RefreshToken).Session()
	last := w.PostRefresh(next.RefreshToken).Session()
	due.Store(true)
	wait := harness.DecodeAs[waiting](w.PostRefresh(last.RefreshToken).Want(403, auth.CodeMFAEnrollmentRequired))
	w.PostRefresh(s.RefreshToken).Want(400, auth.CodeRefreshTokenReused)
	w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(wait.MFAToken)).Want(401, auth.CodeBadToken)
	w.PostRefresh(last.RefreshToken).Want(400, auth.CodeSessionEnded)
}

// If only a role requires the factor, the session continues without that role; another
// role, given while signed in, is in the next token.
func TestRoleThatRequiresFactorIsLeftOut(t *testing.T) {
	w, due := dueWorld(t)
	s := w.Member("ada@example.com")
	w.Patch(s.User.ID, store.UserPatch{Roles: &[]string{"auditor", "pro"}})
	s = w.PostRefresh(s.RefreshToken).Want(200).Session()
	if got := w.ClaimsOf(s).Roles; !slices.Equal(got, []string{"pro"}) {
		t.Errorf("roles %v without a factor", got)
	}
	e := w.Enrol(s.AccessToken)
	if got := w.ClaimsOf(e.Session).Roles; !slices.Equal(got, []string{"auditor", "pro"}) {
		t.Errorf("roles %v with a factor", got)
	}
	due.Store(true)
	w.PostRefresh(e.RefreshToken).Want(200)
}

// A browser keeps its cookies, and pages send it to the sign-in page.
func TestFactorBecomesRequiredOfCookies(t *testing.T) {
	due := false
	w, j := cookieWorld(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return due }}))
	due = true
	w.Clock.Advance(time.Hour)
	a := w.Page(w.RequirePage(harness.Greeter), "GET", "/notes", j.sent())
	if to, reason := signInPage(a); to != "/notes" || reason != "mfa_enrollment_required" || len(a.SetCookies()) > 0 {
		t.Errorf("return_to %q, reason %q, cookies %v", to, reason, a.SetCookies())
	}
	a = w.Do("POST", "/refresh", nil, j.byCookie()...).Want(403, auth.CodeMFAEnrollmentRequired)
	if len(a.SetCookies()) > 0 {
		t.Errorf("cookies %v", a.SetCookies())
	}
	token := harness.DecodeAs[waiting](a).MFAToken
	setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(token)).Want(200))
	a = w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, append(j.byCookie(), harness.Bearer(token))...).Want(200)
	raised := jarOf(a)
	says(w.Page(w.RequirePage(harness.Greeter, auth.AAL2()), "GET", "/notes", raised.sent()).Want(200), "hello ada@example.com")
}
