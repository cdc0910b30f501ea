package auth

import "context"

// accountPermit is the leave to make one account. Every account that somebody
// makes for themselves comes about by one, whatever the door: newUser asks for it,
// and only permitAccount and allowAccount, which draw the limits, give it.
type accountPermit struct {
	drawn  bool
	permit sendPermit // for the message that proves the account's address
}

// permitAccount draws for an account, and for the message that proves its address or
// number if one goes out with it. It comes before any look-up, so that it tells
// nobody what is taken; for a text, spendSMS comes after it.
func (a *Auth) permitAccount(ctx context.Context, k Kind, to string) (accountPermit, error) {
	draws := []Draw{a.perIP(ctx, a.cfg.limits.SignupPerIP, "signup")}
	if to != "" {
		draws = append(draws, a.firstSendDraws(ctx, k, to)...)
	}
	if k == KindPhoneCode {
		draws = append(draws, a.smsBudget(0))
	}
	err := a.take(ctx, draws...)
	if k == KindPhoneCode {
		return accountPermit{drawn: true}, a.tellBudget(ctx, err)
	}
	return accountPermit{true, permitFor(k, to)}, err
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
func (a *Auth) newUser(p accountPermit, u User) NewUser {
	if !p.drawn {
		panic("auth: an account that drew no limits")
	}
	return NewUser{User: u, Creating: a.creating()}
}
