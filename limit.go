package auth

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/authmount/auth/internal/clientip"
	"github.com/authmount/auth/store"
)

// RateLimits configures the limits of all flows. The comments on the fields give the
// defaults, which also replace a Burst of 0. A negative Burst turns a limit off. The
// OpenAPI document lists the limits of each endpoint.
//
// A limit per IP address applies to an IPv4 address or an IPv6 /64. The /56 around it has
// four times, and the /48 sixteen times the Burst, except for failures on a known device.
// Limits per email address leave out the text after a plus sign in the local part where
// another such text would multiply them: SendPerAddress and NoticesUnverified.
type RateLimits struct {
	LoginPerAccount        Rate // wrong passwords, by name of the account: 10 in 5 min
	LoginPerIP             Rate // wrong passwords: 100 in 5 min
	SignInsPerAccount      Rate // checked passwords, including right ones, separately for known devices of the user: 60 in 1 min
	SignupPerIP            Rate // new accounts by any method (sign-up, first use of a link or code, provider): 20 in 1 h
	SendGap                Rate // messages of a kind to one email address or phone number, except a sign-up's own: 1 in 60 s; separate for phone number changes and for confirmations sent by logins
	SendPerAddress         Rate // messages of a kind to one email address or phone number: 5 in 1 h; separate for sign-ups, too; both are separate for all known devices of the account together
	SendPerIP              Rate // requested messages, including those of sign-ups: 30 in 1 h
	NoticesPerAddress      Rate // notices of a kind to a verified address: 20 in 1 h; beyond it they are dropped, with EventMessageFailed
	NoticesUnverified      Rate // notices of all kinds to an unverified address, with the same result: 5 in 1 h
	RefreshPerSession      Rate // 120 in 1 min
	CodesPerAddress        Rate // wrong codes from text messages and emails, by recipient; with the id of the request by recipient and client IP address: 10 in 1 h
	CodesPerAddressDaily   Rate // the same: 30 in 24 h
	CodesPerRecipientDaily Rate // wrong codes at one phone number or email address, with the ids of all requests and without one, from all unknown devices together or one known device of the account: 50 in 24 h
	CodesPerIP             Rate // wrong codes (by text message or mail, TOTP, recovery), and wrong passkeys at sign-in: 100 in 5 min
	FactorPerUser          Rate // wrong TOTP and recovery codes: 5 in 5 min
	ConsecutiveFailures    Rate // failures in a row at a password, second factor or phone number, from all unknown devices together or one known device: 100, one of which returns every 36 days; for an unknown account all return within 24 h
	SecretKeysPerIP        Rate // wrong secret API keys: 100 in 5 min
	OAuthPerIP             Rate // sign-ins started at providers, and ID tokens: 300 in 5 min
	SMSBudget              Rate // all sent text messages: 1000 in 1 h; a quarter of it is for verified phone numbers only

	PasswordChangesPerUser Rate // changes within a session, by anybody who knows the password: 10 in 24 h
	ProfileChangesPerUser  Rate // changes of the own name and metadata, and of whether passkeys are second factors, by anybody but the application: 120 in 1 h each
	PasskeysPerUser        Rate // passkeys added within a session, also if they were removed again: 25 in 24 h

	Off bool // no limits: only for load tests
}

func (l RateLimits) withDefaults() RateLimits {
	if l.Off {
		return RateLimits{Off: true}
	}
	set := func(r *Rate, burst int, per time.Duration) {
		if r.Burst == 0 {
			*r = Rate{Burst: burst, Per: per}
		}
	}
	set(&l.LoginPerAccount, 10, 5*time.Minute)
	set(&l.LoginPerIP, 100, 5*time.Minute)
	set(&l.SignInsPerAccount, 60, time.Minute)
	set(&l.SignupPerIP, 20, time.Hour)
	set(&l.SendGap, 1, time.Minute)
	set(&l.SendPerAddress, 5, time.Hour)
	set(&l.SendPerIP, 30, time.Hour)
	set(&l.NoticesPerAddress, 20, time.Hour)
	set(&l.NoticesUnverified, 5, time.Hour)
	set(&l.RefreshPerSession, 120, time.Minute)
	set(&l.PasswordChangesPerUser, 10, 24*time.Hour)
	set(&l.ProfileChangesPerUser, 120, time.Hour)
	set(&l.PasskeysPerUser, 25, 24*time.Hour)
	set(&l.CodesPerAddress, 10, time.Hour)
	set(&l.CodesPerAddressDaily, 30, 24*time.Hour)
	set(&l.CodesPerRecipientDaily, 50, 24*time.Hour)
	set(&l.CodesPerIP, 100, 5*time.Minute)
	set(&l.ConsecutiveFailures, 100, 10*365*24*time.Hour)
	set(&l.FactorPerUser, 5, 5*time.Minute)
	set(&l.SecretKeysPerIP, 100, 5*time.Minute)
	set(&l.OAuthPerIP, 300, 5*time.Minute)
	set(&l.SMSBudget, 1000, time.Hour)
	return l
}

// draw returns a draw from the bucket of a limit and value. A MAC hides the value, so
// that the store's table of limits contains no addresses.
func (a *Auth) draw(r Rate, limit, value string, cost int) store.Draw {
	return store.Draw{Key: a.keys.RateLimit(limit, value), Rate: r, Cost: cost}
}

// perIP returns draws that count by the client's IP address: first its own bucket, then
// those of the IPv6 networks around it, each with four times the Burst of the one before,
// because a customer can own a /48. It returns none if the IP address is unknown.
func (a *Auth) perIP(ctx context.Context, r Rate, limit string) (draws []store.Draw) {
	ip := clientFrom(ctx).IP
	if !ip.IsValid() {
		return nil
	}
	for _, network := range slices.Backward(clientip.Networks(ip)) {
		draws = append(draws, a.draw(r, limit, network, 1))
		r.Burst *= 4
	}
	return draws
}

// check refuses a Burst without a Per, because such a limit would never refuse.
func (l RateLimits) check() error {
	var errs []error
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		if r, _ := v.Field(i).Interface().(Rate); r.Burst > 0 && r.Per <= 0 { // fields of other types have no Burst
			errs = append(errs, fmt.Errorf("%s: a Burst of %d needs Per, the time in which it refills", v.Type().Field(i).Name, r.Burst))
		}
	}
	return errors.Join(errs...)
}

// take draws, and returns CodeRateLimited if a bucket refuses. It ignores draws without
// a limit.
func (a *Auth) take(ctx context.Context, draws ...store.Draw) error {
	active := limited(draws)
	if len(active) == 0 {
		return nil
	}
	return a.decided(a.store.Take(ctx, active, a.now()))
}

// takeAfterRefunds is take after the waiting refunds of the same buckets.
func (a *Auth) takeAfterRefunds(ctx context.Context, draws ...store.Draw) error {
	active := limited(draws)
	if len(active) == 0 {
		return nil
	}
	return a.decided(a.takeWithRefunds(ctx, active, 0))
}

// limited returns the draws that have a limit.
func limited(draws []store.Draw) []store.Draw {
	return slices.DeleteFunc(slices.Clone(draws), func(d store.Draw) bool { return d.Rate.Burst <= 0 })
}

// decided returns the error of a decision.
func (a *Auth) decided(d store.Decision, err error) error {
	if err != nil {
		return storeFailed(err)
	}
	if !d.Allowed {
		a.counter.Count(store.MetricLimits, "requests")
		return retryAfter(CodeRateLimited, d.RetryAfter, nil)
	}
	return nil
}
