package harness

import (
	"context"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// ChangeByTest is a change that bypasses the service.
func (w *World) ChangeByTest() store.Change {
	return store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "test"}}
}

const PhoneNumber = "+4930123456"

// PhoneCode requests a code and waits for its message.
func (w *World) PhoneCode(phone string) string {
	w.T.Helper()
	w.Do("POST", "/otp/send", map[string]any{"phone": phone}).Want(200)
	return w.Mail(w.T, phone, auth.KindPhoneCode).Code
}

func (w *World) PostOTP(phone, code string, h ...Header) *Answer {
	w.T.Helper()
	return w.Do("POST", "/otp/verify", map[string]any{"phone": phone, "otp": code}, h...)
}

// OtherNumber returns a code that is wrong.
func OtherNumber(code string) string {
	if code[0] == '9' {
		return "0" + code[1:]
	}
	return string(code[0]+1) + code[1:]
}

// NewCode requests another code and waits for a message without the old one.
func (w *World) NewCode(old string) string {
	w.T.Helper()
	seen := map[string]bool{}
	for _, m := range w.Inbox.Messages() {
		seen[m.ID] = true
	}
	w.Do("POST", "/otp/send", map[string]any{"phone": PhoneNumber}).Want(200)
	ctx, cancel := context.WithTimeout(w.T.Context(), 5*time.Second)
	defer cancel()
	m, err := w.Inbox.Wait(ctx, func(m auth.Message) bool { return m.Kind == auth.KindPhoneCode && m.To == PhoneNumber && !seen[m.ID] })
	if err != nil {
		w.T.Fatalf("no code after %s: %v", old, err)
	}
	return m.Code
}

// Enrolled is a user with a second factor.
type Enrolled struct {
	Session
	Secret   string
	Recovery []string
}

// Code returns the code of an authenticator app, offset from now.
func (w *World) Code(secret string, offset time.Duration) string {
	w.T.Helper()
	c, err := totp.GenerateCode(secret, w.Clock.Now().Add(offset))
	if err != nil {
		w.T.Fatal(err)
	}
	return c
}

// Enrol sets up a second factor and verifies its code.
func (w *World) Enrol(access string) Enrolled {
	w.T.Helper()
	setup := DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, Bearer(access)).Want(200))
	a := w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, Bearer(access)).Want(200)
	codes := DecodeAs[struct {
		RecoveryCodes []string `json:"recovery_codes"`
	}](a).RecoveryCodes
	w.Clock.Advance(time.Minute)
	return Enrolled{DecodeAs[Session](a), setup.Secret, codes}
}

// ClaimsOf returns the claims of a session's access token.
func (w *World) ClaimsOf(s Session) *auth.Claims {
	w.T.Helper()
	c, err := w.Verify(s.AccessToken)
	if err != nil {
		w.T.Fatal(err)
	}
	return c
}

func (w *World) MFAToken() string {
	w.T.Helper()
	a := w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": authtest.Password}).Want(403, auth.CodeMFARequired)
	return DecodeAs[struct {
		MFAToken string `json:"mfa_token"`
	}](a).MFAToken
}

func (w *World) PostVerifyMFA(token, code string) *Answer {
	w.T.Helper()
	return w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": code})
}
