package takeover_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/testsecret"
)

// instances are two instances of a service on one store; the clock of the second one is
// five minutes ahead.
type instances [2]*harness.World

func newInstances(t *testing.T, opts ...auth.Option) instances {
	st, secret := harness.NewStore(t), auth.WithSecret(testsecret.Of("instances"))
	longer := auth.WithPhone(auth.PhoneOptions{Life: 10 * time.Minute}) // five minutes are all that a code has by default
	opts = append([]auth.Option{secret, harness.SendsAtOnce, longer}, opts...)
	one := harness.NewWorldOn(t, st, opts...)
	ahead := auth.WithClock(func() time.Time { return one.Clock.Now().Add(5 * time.Minute) })
	return instances{one, harness.NewWorldOn(t, st, append(opts, ahead, one.SameKeys())...)}
}

// A load balancer sends the requests of one user to instances with different clocks. Each
// step works on either of them, whichever took the step before.
func TestRequestsAlternateBetweenClocks(t *testing.T) {
	for first := range 2 {
		t.Run(fmt.Sprint("first ", first), func(t *testing.T) {
			both := newInstances(t)
			here, there := both[first], both[1-first]
			swap := func() { here, there = there, here }
			const mail, number = "ada@example.com", "+4930123456"

			here.PostSignUp(mail)
			confirm := here.LinkToken(mail, auth.KindVerifyEmail)
			there.Do("POST", "/verify-email", map[string]any{"token": confirm, "password": harness.GoodPassword}).Want(200)
			s := here.PostLogin(mail, harness.GoodPassword).Session()
			for range 12 {
				swap()
				s = here.PostRefresh(s.RefreshToken).Want(200).Session()
				both[0].Clock.Advance(10 * time.Second)
			}
			for range 4 {
				here.PostLogin(mail, "a wrong password").Want(401, auth.CodeInvalidCredentials)
				there.PostLogin(mail, harness.GoodPassword).Want(200)
				swap()
			}

			both[0].Clock.Advance(2 * time.Minute)
			for range 2 {
				here.Do("POST", "/magic-link/send", map[string]any{"email": mail}).Want(200)
				there.Do("POST", "/magic-link/verify", map[string]any{"token": here.LinkToken(mail, auth.KindMagicLink)}).Want(200)
				both[0].Clock.Advance(2 * time.Minute)
				here.Do("POST", "/otp/send", map[string]any{"phone": number}).Want(200)
				there.PostOTP(number, here.Mail(t, number, auth.KindPhoneCode).Code).Want(200)
				both[0].Clock.Advance(2 * time.Minute)
				here.Do("POST", "/forgot-password", map[string]any{"email": mail}).Want(200)
				reset := here.LinkToken(mail, auth.KindResetPassword)
				there.Do("POST", "/reset-password", map[string]any{"token": reset, "new_password": harness.GoodPassword + fmt.Sprint(first)}).Want(200)
				here.PostLogin(mail, harness.GoodPassword+fmt.Sprint(first)).Want(200)
				first += 2
				swap()
				both[0].Clock.Advance(2 * time.Minute)
			}

			s = here.PostLogin(mail, harness.GoodPassword+fmt.Sprint(first-2)).Session()
			here.Do("PATCH", "/me", map[string]any{"email": "new@example.com"}, harness.Bearer(s.AccessToken)).Want(200)
			stop := here.StopToken(mail, auth.KindEmailChangeRequested)
			there.Do("POST", "/secure-account", map[string]any{"token": stop}).Want(200)
			if here.Alive(s.AccessToken) || there.Alive(s.AccessToken) {
				t.Error("the session lives on after the account recovery link")
			}
		})
	}
}

// A limit counts the requests to both instances together: no instance refuses what the
// limit allows, and no more passes than with one clock, except for the refill of the time by
// which the clocks differ.
func TestLimitsWithClocksThatDiffer(t *testing.T) {
	both := newInstances(t, auth.WithRateLimits(auth.RateLimits{LoginPerAccount: auth.Rate{Burst: 6, Per: 24 * time.Hour}}))
	both[0].PostSignUp("ada@example.com")
	wrong := func(i int) *harness.Answer { return both[i%2].PostLogin("ada@example.com", fmt.Sprint("wrong ", i)) }
	for i := range 6 {
		wrong(i).Want(401, auth.CodeInvalidCredentials)
	}
	for i := range 4 {
		wrong(i).Want(429, auth.CodeRateLimited)
	}
}
