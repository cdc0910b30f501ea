package signin_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/store"
)

// A factor of another kind is no authenticator app, even with a secret. Neither is an app
// before its first code.
func TestFactorsOfOtherKinds(t *testing.T) {
	w := harness.NewWorld(t)
	factors, ok := store.Capability[store.FactorStore](w.Store)
	if !ok {
		t.Fatal("no second factors")
	}
	ada := w.LoginAs(t, "ada@example.com")
	put := func() auth.Factor {
		t.Helper()
		all, err := factors.Factors(t.Context(), ada.User.ID)
		if err != nil || len(all.List) != 1 {
			t.Fatalf("%d factors, %v", len(all.List), err)
		}
		other := all.List[0]
		other.ID, other.Kind = uuid.NewString(), "other"
		if err := factors.PutFactor(t.Context(), store.PutFactor{Change: w.ChangeByTest(), Factor: other}); err != nil {
			t.Fatal(err)
		}
		return other
	}
	secret := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(ada.AccessToken)).Want(200)).Secret
	other := put()
	if _, err := factors.EnableFactor(t.Context(), store.EnableFactor{
		Change: w.ChangeByTest(), UserID: ada.User.ID, FactorID: other.ID,
		Completion: store.Completion{Raise: &store.RaisedLevel{SessionID: ada.SessionID, Method: auth.AMR{Method: "passkey", Timestamp: w.Clock.Now().Unix()}}},
	}); err != nil {
		t.Fatal(err)
	}
	w.PostVerifyMFA(w.MFAToken(), w.Code(secret, 0)).Want(422, auth.CodeInvalidTOTPCode)
	// The pending app is enabled beside it and works from then on.
	w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(secret, 0)}, harness.Bearer(ada.AccessToken)).Want(200)
	w.Clock.Advance(time.Minute)
	w.PostVerifyMFA(w.MFAToken(), w.Code(secret, 0)).Session()
}

// A code does not enable a pending factor of another kind.
func TestEnrolmentOfAnotherKind(t *testing.T) {
	w := harness.NewWorld(t)
	factors, ok := store.Capability[store.FactorStore](w.Store)
	if !ok {
		t.Fatal("no second factors")
	}
	ada := w.Member("ada@example.com")
	f := auth.Factor{ID: uuid.NewString(), UserID: ada.User.ID, Kind: "other", Secret: []byte("s"), CreatedAt: w.Clock.Now()}
	if err := factors.PutFactor(t.Context(), store.PutFactor{Change: w.ChangeByTest(), Factor: f}); err != nil {
		t.Fatal(err)
	}
	w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": "123456"}, harness.Bearer(ada.AccessToken)).Want(409, auth.CodeMFANotPending)
}

// The app shows the account of a code, even for an account without an email address.
func TestSetupNamesTheAccount(t *testing.T) {
	w := harness.NewWorld(t)
	byPhone := w.PostOTP("+4930111111", w.PhoneCode("+4930111111")).Session()
	for name, access := range map[string]string{"ada@example.com": w.LoginAs(t, "ada@example.com").AccessToken, "+4930111111": byPhone.AccessToken} {
		uri := harness.DecodeAs[struct{ URI string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(access)).Want(200)).URI
		if u, err := url.Parse(uri); err != nil || !strings.HasSuffix(u.Path, ":"+name) {
			t.Errorf("%s for %s (%v)", uri, name, err)
		}
	}
}

// A new secret in front of the old one leaves second factors as they are. Without
// the old one they are lost, recovery codes too, and the cause is logged.
func TestFactorAcrossRotation(t *testing.T) {
	one, two := testsecret.Of("1"), testsecret.Of("2")
	store, ctx, began := harness.NewStore(t), t.Context(), time.Now()
	var passed atomic.Int64
	now := func() time.Time { return began.Add(time.Duration(passed.Load())) }
	var log harness.SyncBuffer
	start := func(current []byte, previous ...[]byte) *auth.Auth {
		return harness.NewPlainOn(t, store, auth.WithSecret(current, previous...), auth.WithClock(now),
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
		_, err := a.Login(ctx, auth.LoginParams{Email: u.Email, Password: harness.GoodPassword})
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
	dropped = start(testsecret.Of("3"))
	if err := by(dropped, code(), ""); !errors.Is(err, auth.CodeInternal) {
		t.Errorf("code without its secret: %v", err)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/auth/v1/login", strings.NewReader(`{"email":"`+u.Email+`","password":"`+harness.GoodPassword+`","totp_code":"`+code()+`"}`))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	dropped.Handler().ServeHTTP(rec, r)
	if rec.Code != http.StatusInternalServerError || !strings.Contains(log.String(), "WithSecret") || !strings.Contains(log.String(), u.ID) {
		t.Errorf("code without its secret: %d, logged %q", rec.Code, log.String())
	}
}
