package hostile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

// A client that tries one password on many accounts is limited by its IP address, whether or
// not the accounts exist. Other clients are not.
func TestSprayingIsLimited(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{LoginPerIP: auth.Rate{Burst: 4, Per: 5 * time.Minute}}))
	w.LoginAs(t, "user0@example.com")
	w.LoginAs(t, "user2@example.com")
	try := func(n int, from string) *harness.Answer {
		body := map[string]any{"email": fmt.Sprintf("user%d@example.com", n), "password": "wrong horse battery"}
		return w.Do("POST", "/login", body, harness.Header{Name: "RemoteAddr", Value: from})
	}
	for n := range 4 {
		try(n, fmt.Sprintf("[2001:db8::%x]:1", n)).Want(401, auth.CodeInvalidCredentials) // one /64
	}
	try(4, "[2001:db8::4]:1").Want(429, auth.CodeRateLimited)
	try(0, "[2001:db8::5]:1").Want(429, auth.CodeRateLimited)
	try(5, "192.0.2.1:1").Want(401, auth.CodeInvalidCredentials)
}

// Attempts of a first code at an enrolment count with all others. A right code refunds its
// own attempt and no more.
func TestFactorGuessesAreCounted(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{FactorPerUser: auth.Rate{Burst: 3, Per: 5 * time.Minute}}))
	access := w.Member("ada@example.com").AccessToken
	setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(access)).Want(200))
	enable := func(code string) *harness.Answer {
		return w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": code}, harness.Bearer(access))
	}
	for range 3 {
		enable(wrongCode(w, setup.Secret)).Want(422, auth.CodeInvalidTOTPCode)
	}
	enable(w.Code(setup.Secret, 0)).Want(429, auth.CodeRateLimited)
	w.Clock.Advance(10 * time.Minute) // three attempts again
	access = w.PostLogin("ada@example.com", harness.GoodPassword).Session().AccessToken
	enable(wrongCode(w, setup.Secret)).Want(422, auth.CodeInvalidTOTPCode)
	access = harness.DecodeAs[harness.Session](enable(w.Code(setup.Secret, 0)).Want(200)).AccessToken
	step := func(code string) *harness.Answer {
		return w.Do("POST", "/2fa/verify", map[string]any{"totp_code": code}, harness.Bearer(access))
	}
	step(wrongCode(w, setup.Secret)).Want(422, auth.CodeInvalidTOTPCode) // the second of three
	step(w.Code(setup.Secret, 30*time.Second)).Want(200)
	step(wrongCode(w, setup.Secret)).Want(422, auth.CodeInvalidTOTPCode) // the third
	step(wrongCode(w, setup.Secret)).Want(429, auth.CodeRateLimited)
}

// A sign-in that waits for its second factor allows five attempts, however many more the user has.
func TestTriesOfOneMFAToken(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{FactorPerUser: auth.Rate{Burst: 100, Per: 5 * time.Minute}}))
	ada := w.Enrol(w.Member("ada@example.com").AccessToken)
	waiting := func() string {
		return harness.DecodeAs[map[string]any](w.PostLogin("ada@example.com", harness.GoodPassword).Want(403, auth.CodeMFARequired))["mfa_token"].(string)
	}
	verify := func(token, code string) *harness.Answer {
		return w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": code})
	}
	token := waiting()
	for range 5 {
		verify(token, wrongCode(w, ada.Secret)).Want(422, auth.CodeInvalidTOTPCode)
	}
	verify(token, w.Code(ada.Secret, 0)).Want(429, auth.CodeRateLimited)
	verify(waiting(), w.Code(ada.Secret, 0)).Want(200)
}

// A wrong phone code costs the phone number one of its attempts. A right one costs none.
func TestRightPhoneCodeGivesBack(t *testing.T) {
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{
		CodesPerAddress: auth.Rate{Burst: 2, Per: 24 * time.Hour}, SendGap: auth.Rate{Burst: 10, Per: time.Minute}, SendPerAddress: auth.Rate{Burst: 10, Per: time.Minute},
	}))
	code := w.PhoneCode(harness.PhoneNumber)
	w.PostOTP(harness.PhoneNumber, harness.OtherNumber(code)).Want(400, auth.CodeInvalidCode)
	w.PostOTP(harness.PhoneNumber, code).Want(200)
	code = w.NewCode(code)
	w.PostOTP(harness.PhoneNumber, code).Want(200)
	code = w.NewCode(code)
	w.PostOTP(harness.PhoneNumber, harness.OtherNumber(code)).Want(400, auth.CodeInvalidCode)
	w.PostOTP(harness.PhoneNumber, code).Want(429, auth.CodeRateLimited)
}

// wrongCode returns a code that the authenticator app does not show at this time.
func wrongCode(w *harness.World, secret string) string {
	w.T.Helper()
	for n := range 4 {
		guess := fmt.Sprintf("%06d", n)
		if guess != w.Code(secret, 0) && guess != w.Code(secret, 30*time.Second) && guess != w.Code(secret, -30*time.Second) {
			return guess
		}
	}
	w.T.Fatal("no wrong code")
	return ""
}
