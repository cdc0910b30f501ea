package auth

import (
	"context"

	"github.com/authmount/auth/store"
)

// accountPermit is the leave to make one account. Every account that somebody
// makes for themselves comes about by one, whatever the door: newUser asks for it,
// and only permitAccount and allowAccount, which draw the limits, give it.
type accountPermit struct {
	drawn  bool
	permit sendPermit   // for the message that proves the account's address
	byName []store.Draw // what that message drew by whom it goes to
}

// permitAccount draws for an account, and for the message of kind k, if any, that
// goes out with it: by who asks, and by whom it goes to. It comes before any
// look-up, so that it tells nobody what is taken; for a text, spendSMS comes after
// it.
func (a *Auth) permitAccount(ctx context.Context, k Kind, to string) (accountPermit, error) {
	p := accountPermit{drawn: true}
	draws := []store.Draw{a.perIP(ctx, a.cfg.limits.SignupPerIP, "signup")}
	if k == "" {
		return p, a.take(ctx, draws...)
	}
	p.byName = []store.Draw{a.firstSendDraw(k, to)}
	draws = append(append(draws, p.byName...), a.perIP(ctx, a.cfg.limits.SendPerIP, "send-ip"))
	if k == KindPhoneCode { // whose permit spendSMS gives
		return p, a.tellBudget(ctx, a.takeAlong(ctx, append(draws, a.smsBudget(0))...))
	}
	p.permit = permitFor(k, to)
	return p, a.takeAlong(ctx, draws...)
}

// refused gives back what an account drew by its name that was refused for its own
// particulars: what comes to nothing must not use up what the name's owner has.
func (a *Auth) refused(p accountPermit) {
	for _, d := range p.byName {
		d.Cost = -d.Cost
		a.refunds.add(d)
	}
}

// allowAccount asks the application's hooks, and is permitAccount for doors where
// the address is proved by then: once, however often the account is tried to be made.
func (a *Auth) allowAccount(ctx context.Context, p *accountPermit, s SignUpAttempt) error {
	if !p.drawn {
		taken, err := a.permitAccount(ctx, "", "")
		if err != nil {
			return err
		}
		*p = taken
	}
	return a.beforeSignUp(ctx, s)
}

// newUser is the account of somebody who has drawn.
func (a *Auth) newUser(p accountPermit, u User) store.NewUser {
	if !p.drawn {
		panic("auth: an account that drew no limits")
	}
	return store.NewUser{User: u, Creating: a.creating()}
}
