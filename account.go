package auth

import "context"

// admission is the leave to make one account. Every account that somebody makes
// for themselves comes about by one, whatever the door: newUser asks for it, and
// only takeAccount and admit, which draw the limits, give it.
type admission struct {
	drawn  bool
	permit permit // for the message that proves the account's address
}

// takeAccount draws for an account, and for the message that proves its address or
// number if one goes out with it. It comes before any look-up, so that it tells
// nobody what is taken; for a text, spendSMS comes after it.
func (a *Auth) takeAccount(ctx context.Context, k Kind, to string) (admission, error) {
	draws := []Draw{a.perIP(ctx, a.cfg.limits.SignupPerIP, "signup")}
	if to != "" {
		draws = append(draws, a.firstSendDraws(ctx, k, to)...)
	}
	if k == KindPhoneCode {
		draws = append(draws, a.smsBudget(0))
	}
	err := a.take(ctx, draws...)
	if k == KindPhoneCode {
		return admission{drawn: true}, a.tellBudget(ctx, err)
	}
	return admission{true, permitFor(k, to)}, err
}

// admit is takeAccount where nothing has to be proved any more, once however
// often the account is tried to be made, and asks the application's hooks.
func (a *Auth) admit(ctx context.Context, in *admission, s SignUpAttempt) error {
	if !in.drawn {
		taken, err := a.takeAccount(ctx, "", "")
		if err != nil {
			return err
		}
		*in = taken
	}
	return a.beforeSignUp(ctx, s)
}

// newUser is the account of somebody who was admitted.
func (a *Auth) newUser(in admission, u User) NewUser {
	if !in.drawn {
		panic("auth: an account that drew no limits")
	}
	return NewUser{User: u, Creating: a.creating()}
}
