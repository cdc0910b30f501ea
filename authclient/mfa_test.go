package authclient

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
)

// A second factor is requested and verified. A user who has to set one up does so without
// a session.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	setup, err := c.EnrollTOTP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	code := func() string {
		s.clock.Advance(30 * time.Second)
		code, err := totp.GenerateCode(setup.Secret, s.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	recovery, err := c.EnableTOTP(t.Context(), code())
	if err != nil || len(recovery) != 10 {
		t.Fatal(recovery, err)
	}
	fresh := newClient(t, s)
	login := PasswordParams{Email: "ada@example.com", Password: password}
	if _, err := fresh.SignInWithPassword(t.Context(), login); !errors.Is(err, auth.CodeMFARequired) || fresh.State().Status != StatusMFA {
		t.Fatal(err, fresh.State())
	}
	if _, err := fresh.VerifyMFA(t.Context(), MFAParams{TOTPCode: "000000"}); !errors.Is(err, auth.CodeInvalidTOTPCode) || fresh.State().Status != StatusMFA {
		t.Fatal(err, fresh.State())
	}
	if _, err := fresh.VerifyMFA(t.Context(), MFAParams{TOTPCode: code()}); err != nil || fresh.State().Status != StatusSignedIn {
		t.Fatal(err, fresh.State())
	}
	late := newClient(t, s)
	_, _ = late.SignInWithPassword(t.Context(), login)
	s.clock.Advance(6 * time.Minute)
	if got := late.State().Status; got != StatusSignedOut {
		t.Error("the question does not end:", got)
	}
	if sess, err := late.SignInWithPassword(t.Context(), PasswordParams{Email: login.Email, Password: password, TOTPCode: code()}); err != nil || !sess.User.MFAEnabled {
		t.Fatal(err)
	}
	if _, err := late.Confirm(t.Context(), ConfirmParams{Password: password}); err != nil {
		t.Error(err)
	}
	if codes, err := late.RecoveryCodes(t.Context()); err != nil || len(codes) != 10 {
		t.Error(codes, err)
	}
	if err := late.DisableTOTP(t.Context(), MFAParams{TOTPCode: code()}); err != nil {
		t.Error(err)
	}

	forced := newService(t, auth.WithSettings(auth.Settings{MFARequired: auth.On}))
	n := newClient(t, forced)
	if _, err := n.SignUp(t.Context(), SignUpParams{Email: "eve@example.com", Password: password}); !errors.Is(err, auth.CodeMFAEnrollmentRequired) || n.State().Status != StatusEnroll {
		t.Fatal(err, n.State())
	}
	if setup, err = n.EnrollTOTP(t.Context()); err != nil {
		t.Fatal(err)
	}
	now, err := totp.GenerateCode(setup.Secret, forced.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.EnableTOTP(t.Context(), now); err != nil || n.State().Status != StatusSignedIn {
		t.Fatal(err, n.State())
	}
}

// Without a session, and without a sign-in that requires it, no factor is enabled.
func TestEnableTOTPSignedOut(t *testing.T) {
	t.Parallel()
	s := newService(t)
	if codes, err := newClient(t, s).EnableTOTP(t.Context(), "123456"); err == nil {
		t.Error("switched on, with", codes)
	}
	if n := s.count("POST /2fa/verify-and-enable"); n != 0 {
		t.Error(n, "requests")
	}
}

// A sign-in that waits replaces a sign-up that waits, for good: when its time ends, nobody
// is signed in, and the listeners are notified.
func TestWaitForAFactorEnds(t *testing.T) {
	t.Parallel()
	s := newService(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	c := newClient(t, s)
	timers := &scenarioTimers{clock: s.clock, timers: map[int]scenarioTimer{}}
	c.wire.after = timers.after
	if _, err := c.SignUp(t.Context(), SignUpParams{Email: "ada@example.com", Password: password}); err != nil || c.State().Pending == nil || c.State().User != nil {
		t.Fatal(err, c.State())
	}
	s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(403)
		_, _ = io.WriteString(w, `{"code":"mfa_required","mfa_token":"t","expires_in":300,"factors":["totp"]}`)
	})
	if _, err := c.SignInWithPassword(t.Context(), PasswordParams{Email: "ada@example.com", Password: password}); !errors.Is(err, auth.CodeMFARequired) {
		t.Fatal(err)
	}
	told := make(chan State, 2)
	defer c.Subscribe(func(st State) { told <- st })()
	if st := <-told; st.Status != StatusMFA || len(st.Pending.Factors) != 1 {
		t.Error(st)
	}
	timers.advance(5 * time.Minute)
	if st := <-told; st.Status != StatusSignedOut || st.Pending != nil {
		t.Error(st)
	}
}

// A session that exists when a factor becomes required waits for it, and continues.
func TestSessionWaitsForFactor(t *testing.T) {
	t.Parallel()
	var required atomic.Bool
	s := newService(t, auth.WithMFA(auth.MFAOptions{RequiredFor: func(auth.User) bool { return required.Load() }}))
	c := signedIn(t, s, "ada@example.com")
	required.Store(true)
	s.clock.Advance(time.Hour)
	for range 2 {
		if _, err := c.Token(t.Context()); !errors.Is(err, auth.CodeMFAEnrollmentRequired) || c.State().Status != StatusEnroll {
			t.Fatal(err, c.State())
		}
	}
	setup, err := c.EnrollTOTP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	code, err := totp.GenerateCode(setup.Secret, s.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.EnableTOTP(t.Context(), code); err != nil || c.State().Status != StatusSignedIn {
		t.Fatal(err, c.State())
	}
	if _, err := c.Token(t.Context()); err != nil {
		t.Error(err)
	}
}
