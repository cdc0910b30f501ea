package auth

import "context"

// accountPermit is the leave to make one account. Every account that somebody
// makes for themselves comes about by one, whatever the door: newUser asks for it,
// and only permitAccount and allowAccount, which draw the limits, give it.
type accountPermit struct {
	drawn  bool
	permit sendPermit // for the message that proves the account's address
}

// permitAccount draws for an account, and for the message of kind k, if any, that
// goes out with it, by who asks. It comes before any look-up, so that it tells
// nobody what is taken, and so does permitMessage, which draws by whom the message
// goes to; for a text, spendSMS comes after them.
func (a *Auth) permitAccount(ctx context.Context, k Kind) (accountPermit, error) {
	draws := []Draw{a.perIP(ctx, a.cfg.limits.SignupPerIP, "signup")}
	if k != "" {
		draws = append(draws, a.perIP(ctx, a.cfg.limits.SendPerIP, "send-ip"))
	}
	if k != KindPhoneCode {
		return accountPermit{drawn: true}, a.take(ctx, draws...)
	}
	return accountPermit{drawn: true}, a.tellBudget(ctx, a.take(ctx, append(draws, a.smsBudget(0))...))
}

// permitMessage draws for the message that proves an account's address or number.
// Nothing refuses the account for its own particulars any more by then: what comes
// to nothing must not use up what the name's owner has.
func (a *Auth) permitMessage(ctx context.Context, p *accountPermit, k Kind, to string) error {
	allowed, err := a.takeFirstSend(ctx, k, to)
	if k != KindPhoneCode { // whose permit spendSMS gives
		p.permit = allowed
	}
	return err
}

// allowAccount asks the application's hooks, and is permitAccount for doors where
// the address is proved by then: once, however often the account is tried to be made.
func (a *Auth) allowAccount(ctx context.Context, p *accountPermit, s SignUpAttempt) error {
	if !p.drawn {
		taken, err := a.permitAccount(ctx, "")
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
