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

// RateLimits are the limits of all flows. The comments on the fields name the
// defaults, which also stand for a Burst of 0; a field with a negative Burst is off.
// Which endpoints a limit may refuse is in the OpenAPI document.
type RateLimits struct {
	LoginPerAccount      Rate // wrong passwords, by name of the account: 10 in 5 min
	LoginPerIP           Rate // wrong passwords: 100 in 5 min
	SignInsPerAccount    Rate // passwords judged, right ones too, apart for devices that the user signed in on before: 60 in 1 min
	SignupPerIP          Rate // accounts made, whatever the door (sign-up, first use of a link or code, provider): 20 in 1 h
	SendGap              Rate // messages of a kind to one address or number, but for a sign-up's own: 1 in 60 s; changes of number and the confirmations that logins send count apart
	SendPerAddress       Rate // messages of a kind to one address or number: 5 in 1 h; what sign-ups send counts apart, too
	SendPerIP            Rate // messages asked for, also by sign-ups: 30 in 1 h
	NoticesPerAddress    Rate // notices of a kind to an address that was proved: 20 in 1 h; beyond it they are left out, with EventMessageFailed
	NoticesUnproved      Rate // notices of all kinds to an address that nobody has proved, likewise: 5 in 1 h
	RefreshPerSession    Rate // 120 in 1 min
	CodesPerAddress      Rate // wrong codes by text or mail, of whoever shows the id of the request by number or address and address of the client: 10 in 1 h
	CodesPerAddressDaily Rate // the same: 30 in 24 h
	CodesPerIP           Rate // wrong phone, TOTP and recovery codes: 100 in 5 min
	FactorPerUser        Rate // wrong TOTP and recovery codes: 5 in 5 min
	ConsecutiveFailures  Rate // wrong guesses in a row at a password, second factor or number, from devices that the user never signed in on, or on one: 100, of which one comes back after 36 days; for a name that is nobody's all within 24 h
	SecretKeysPerIP      Rate // wrong secret API keys: 100 in 5 min
	OAuthPerIP           Rate // sign-ins begun at providers, and ID tokens: 300 in 5 min
	SMSBudget            Rate // text messages that go out, in all: 1000 in 1 h

	PasswordChangesPerUser Rate // changes from within a session, which whoever knows the password can make: 10 in 24 h

	Off bool // no limits at all: for load tests only
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
	set(&l.NoticesUnproved, 5, time.Hour)
	set(&l.RefreshPerSession, 120, time.Minute)
	set(&l.PasswordChangesPerUser, 10, 24*time.Hour)
	set(&l.CodesPerAddress, 10, time.Hour)
	set(&l.CodesPerAddressDaily, 30, 24*time.Hour)
	set(&l.CodesPerIP, 100, 5*time.Minute)
	set(&l.ConsecutiveFailures, 100, 10*365*24*time.Hour)
	set(&l.FactorPerUser, 5, 5*time.Minute)
	set(&l.SecretKeysPerIP, 100, 5*time.Minute)
	set(&l.OAuthPerIP, 300, 5*time.Minute)
	set(&l.SMSBudget, 1000, time.Hour)
	return l
}

// draw names the bucket of a limit and what it counts by. Values are hidden
// behind a MAC, so that the store's table of limits holds no addresses.
func (a *Auth) draw(r Rate, limit, value string, cost int) store.Draw {
	return store.Draw{Key: a.keys.RateLimit(limit, value), Rate: r, Cost: cost}
}

// perIP is a draw that counts by the client's address; it does not count when
// the address is not known.
func (a *Auth) perIP(ctx context.Context, r Rate, limit string) store.Draw {
	ip := clientFrom(ctx).IP
	if !ip.IsValid() {
		return store.Draw{}
	}
	return a.draw(r, limit, clientip.LimitKey(ip), 1)
}

// check refuses rates that never refuse although they look as if they did.
func (l RateLimits) check() error {
	var errs []error
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		if r, _ := v.Field(i).Interface().(Rate); r.Burst > 0 && r.Per <= 0 { // what is none, has no Burst
			errs = append(errs, fmt.Errorf("%s: a Burst of %d needs a Per, the time in which it comes back", v.Type().Field(i).Name, r.Burst))
		}
	}
	return errors.Join(errs...)
}

// take draws, and returns CodeRateLimited if a bucket refuses. Draws without a
// limit are left out.
func (a *Auth) take(ctx context.Context, draws ...store.Draw) error {
	active := limited(draws)
	if len(active) == 0 {
		return nil
	}
	return a.decided(a.store.Take(ctx, active, a.now()))
}

// takeAlong is take, with what waits to be given back of the same buckets in front.
func (a *Auth) takeAlong(ctx context.Context, draws ...store.Draw) error {
	active := limited(draws)
	if len(active) == 0 {
		return nil
	}
	return a.decided(a.takeWithRefunds(ctx, active, 0))
}

// limited leaves out draws without a limit.
func limited(draws []store.Draw) []store.Draw {
	return slices.DeleteFunc(slices.Clone(draws), func(d store.Draw) bool { return d.Rate.Burst <= 0 })
}

// decided is the error of a decision.
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
