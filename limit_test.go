package auth_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// A client that tries one password on many accounts is stopped by its address,
// whoever has an account or not; others are not stopped with it.
func TestSprayingIsLimited(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{LoginPerIP: auth.Rate{Burst: 4, Per: 5 * time.Minute}}))
	w.LoginAs(t, "user0@example.com")
	w.LoginAs(t, "user2@example.com")
	try := func(n int, from string) *answer {
		body := map[string]any{"email": fmt.Sprintf("user%d@example.com", n), "password": "wrong horse battery"}
		return w.do("POST", "/login", body, header{"RemoteAddr", from})
	}
	for n := range 4 {
		try(n, fmt.Sprintf("[2001:db8::%x]:1", n)).want(401, auth.CodeInvalidCredentials) // one /64
	}
	try(4, "[2001:db8::4]:1").want(429, auth.CodeRateLimited)
	try(0, "[2001:db8::5]:1").want(429, auth.CodeRateLimited)
	try(5, "192.0.2.1:1").want(401, auth.CodeInvalidCredentials)
}

// Guesses of a first code at an enrolment are counted with all others, and a right
// code gives back what it drew, and no more.
func TestFactorGuessesAreCounted(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{FactorPerUser: auth.Rate{Burst: 3, Per: 5 * time.Minute}}))
	access := w.member("ada@example.com").AccessToken
	setup := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(access)).want(200))
	enable := func(code string) *answer {
		return w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": code}, bearer(access))
	}
	for range 3 {
		enable(w.wrongCode(setup.Secret)).want(422, auth.CodeInvalidTOTPCode)
	}
	enable(w.code(setup.Secret, 0)).want(429, auth.CodeRateLimited)
	w.Clock.Advance(10 * time.Minute) // three tries again
	access = w.login("ada@example.com", goodPassword).session().AccessToken
	enable(w.wrongCode(setup.Secret)).want(422, auth.CodeInvalidTOTPCode)
	access = decodeAs[session](enable(w.code(setup.Secret, 0)).want(200)).AccessToken
	step := func(code string) *answer {
		return w.do("POST", "/2fa/verify", map[string]any{"totp_code": code}, bearer(access))
	}
	step(w.wrongCode(setup.Secret)).want(422, auth.CodeInvalidTOTPCode) // the second of three
	step(w.code(setup.Secret, 30*time.Second)).want(200)
	step(w.wrongCode(setup.Secret)).want(422, auth.CodeInvalidTOTPCode) // the third
	step(w.wrongCode(setup.Secret)).want(429, auth.CodeRateLimited)
}

// A sign-in that waits for its second factor gives five tries, however many more
// the user has.
func TestTriesOfOneMFAToken(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{FactorPerUser: auth.Rate{Burst: 100, Per: 5 * time.Minute}}))
	ada := w.enrol(w.member("ada@example.com").AccessToken)
	waiting := func() string {
		return decodeAs[map[string]any](w.login("ada@example.com", goodPassword).want(403, auth.CodeMFARequired))["mfa_token"].(string)
	}
	verify := func(token, code string) *answer {
		return w.do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": code})
	}
	token := waiting()
	for range 5 {
		verify(token, w.wrongCode(ada.secret)).want(422, auth.CodeInvalidTOTPCode)
	}
	verify(token, w.code(ada.secret, 0)).want(429, auth.CodeRateLimited)
	verify(waiting(), w.code(ada.secret, 0)).want(200)
}

// A wrong phone code costs the number one of its tries, and a right one none.
func TestRightPhoneCodeGivesBack(t *testing.T) {
	w := newWorld(t, auth.WithRateLimits(auth.RateLimits{
		CodesPerAddress: auth.Rate{Burst: 2, Per: 24 * time.Hour}, SendGap: auth.Rate{Burst: 10, Per: time.Minute}, SendPerAddress: auth.Rate{Burst: 10, Per: time.Minute},
	}))
	code := w.phoneCode(number)
	w.otp(number, other(code)).want(400, auth.CodeInvalidCode)
	w.otp(number, code).want(200)
	code = w.newCode(code)
	w.otp(number, code).want(200)
	code = w.newCode(code)
	w.otp(number, other(code)).want(400, auth.CodeInvalidCode)
	w.otp(number, code).want(429, auth.CodeRateLimited)
}

// wrongCode is none of those that an authenticator app shows about now.
func (w *world) wrongCode(secret string) string {
	w.t.Helper()
	for n := range 4 {
		guess := fmt.Sprintf("%06d", n)
		if guess != w.code(secret, 0) && guess != w.code(secret, 30*time.Second) && guess != w.code(secret, -30*time.Second) {
			return guess
		}
	}
	w.t.Fatal("no wrong code")
	return ""
}
