package auth_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
)

// A new secret in front of the old one leaves second factors as they are. Without
// the old one they are lost, recovery codes too, and the cause is logged.
func TestFactorAcrossRotation(t *testing.T) {
	one, two := []byte(strings.Repeat("1", 32)), []byte(strings.Repeat("2", 32))
	store, ctx, began := newStore(t), t.Context(), time.Now()
	var passed atomic.Int64
	now := func() time.Time { return began.Add(time.Duration(passed.Load())) }
	var log syncBuffer
	start := func(current []byte, previous ...[]byte) *auth.Auth {
		return newPlainOn(t, store, auth.WithSecret(current, previous...), auth.WithClock(now),
			auth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	}
	a := start(one)
	tokens := login(t, a)
	u := tokens.User
	me := auth.Caller{UserID: u.ID, SessionID: tokens.SessionID}
	setup, err := a.SetupTOTP(ctx, auth.SetupTOTPParams{Caller: me})
	if err != nil {
		t.Fatal(err)
	}
	code := func() string {
		passed.Add(int64(time.Minute))
		c, err := totp.GenerateCode(setup.Secret, now())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	enabled, err := a.EnableTOTP(ctx, auth.EnableTOTPParams{Caller: me, TOTPCode: code()})
	if err != nil {
		t.Fatal(err)
	}
	recovery := enabled.RecoveryCodes
	by := func(a *auth.Auth, totp, recovery string) error {
		t.Helper()
		_, err := a.Login(ctx, auth.LoginParams{Email: u.Email, Password: goodPassword})
		var asked *auth.Error
		if !errors.As(err, &asked) || asked.MFAToken == "" {
			t.Fatalf("login: %v", err)
		}
		_, err = a.VerifyMFA(ctx, auth.VerifyMFAParams{MFAToken: asked.MFAToken, TOTPCode: totp, RecoveryCode: recovery})
		return err
	}
	rotated, dropped := start(two, one), start(two)
	if err := by(rotated, code(), ""); err != nil {
		t.Errorf("code after rotation: %v", err)
	}
	if err := by(rotated, "", recovery[0]); err != nil {
		t.Errorf("recovery code after rotation: %v", err)
	}
	if err := by(rotated, "", recovery[0]); !errors.Is(err, auth.CodeInvalidTOTPCode) {
		t.Errorf("recovery code once more: %v", err)
	}
	if err := by(dropped, "", recovery[1]); !errors.Is(err, auth.CodeInvalidTOTPCode) {
		t.Errorf("recovery code without its secret: %v", err)
	}
	if err := by(dropped, code(), ""); err != nil {
		t.Errorf("the secret was not sealed anew at its use: %v", err)
	}
	dropped = start([]byte(strings.Repeat("3", 32)))
	if err := by(dropped, code(), ""); !errors.Is(err, auth.CodeInternal) {
		t.Errorf("code without its secret: %v", err)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/auth/v1/login", strings.NewReader(`{"email":"`+u.Email+`","password":"`+goodPassword+`","totp_code":"`+code()+`"}`))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	dropped.Handler().ServeHTTP(rec, r)
	if rec.Code != http.StatusInternalServerError || !strings.Contains(log.String(), "WithSecret") || !strings.Contains(log.String(), u.ID) {
		t.Errorf("code without its secret: %d, logged %q", rec.Code, log.String())
	}
}
