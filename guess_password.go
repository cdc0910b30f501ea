package auth

import (
	"cmp"
	"context"
)

// passwordGuess is a password that somebody gives for an account's.
type passwordGuess struct {
	of       Credentials
	name     string // what the account was called, in its one form; empty: its first name
	password string

	// hidden, if set, makes a right password count and answer as a wrong one. It
	// is called with a context that no request ends.
	hidden func(ctx context.Context)
}

// judgePassword judges a password, and does the same work and counting where
// there is none. Failures count by what the account was called, so that an address
// and a number do not tell that they are one account's, or by device where the
// user has signed in on it before; in a row, by account; and by the address of the
// client. A right password empties the first and the third, for all names of the
// account, and gives back its try by address. Errors: CodeInvalidCredentials,
// CodeRateLimited, CodeOverloaded.
func (a *Auth) judgePassword(ctx context.Context, g passwordGuess) (rehash bool, err error) {
	account := cmp.Or(g.of.User.ID, g.name)
	err = a.guess(ctx, a.passwordAttempt(ctx, g, account), func(own context.Context, draw func() error) error {
		ok, again, err := a.passwords.verify(ctx, account, g.of.PasswordHash, g.password, func(context.Context) error { return draw() })
		if err != nil {
			return hashFailed(err)
		}
		if ok && g.hidden != nil {
			g.hidden(own)
			ok = false
		}
		if !ok {
			return fail(CodeInvalidCredentials, nil)
		}
		rehash = again
		return nil
	})
	return rehash, err
}

func (a *Auth) passwordAttempt(ctx context.Context, g passwordGuess, account string) attempt {
	device := deviceOf(ctx, g.of)
	judged := a.guessDraw(a.cfg.limits.SignInsPerAccount, "sign-ins", account)
	judged.kept = true
	return attempt{
		draws: []guessDraw{
			a.passwordDraw(cmp.Or(g.name, nameOf(g.of.User)), device),
			{Draw: a.perIP(ctx, a.cfg.limits.LoginPerIP, "login-ip")},
			a.inARow("login", account, device),
			judged,
		},
		method: methodPassword, userID: g.of.User.ID, owner: itself(g.of.User), refills: a.passwordDraws(g.of.User, device),
	}
}

// passwordDraw is that of a failure with one name of an account.
func (a *Auth) passwordDraw(name, device string) guessDraw {
	limit, name := countedApart("login", name, device)
	return a.guessDraw(a.cfg.limits.LoginPerAccount, limit, name).refilled()
}

// passwordDraws are those of all names of a user.
func (a *Auth) passwordDraws(u User, device string) (list []guessDraw) {
	for _, name := range namesOf(u) {
		list = append(list, a.passwordDraw(name, device))
	}
	return list
}

// namesOf are what a user may be called at a login, each in its one form.
func namesOf(u User) (list []string) {
	if u.Email != "" {
		list = append(list, EmailKey(u.Email))
	}
	if u.Phone != "" {
		list = append(list, u.Phone)
	}
	return list
}

// nameOf is one of a user's names, or the id of who has none.
func nameOf(u User) string { return append(namesOf(u), u.ID)[0] }

// passwordLocks are the counts of failed passwords that somebody empties who has
// shown to be the owner by other means, so that they do not stay locked out by
// somebody else's guesses.
func (a *Auth) passwordLocks(ctx context.Context, u User) []guessDraw {
	list := append(a.passwordDraws(u, ""), a.inARow("login", u.ID, ""))
	if device := clientFrom(ctx).Device; device != "" {
		list = append(append(list, a.passwordDraws(u, device)...), a.inARow("login", u.ID, device))
	}
	return list
}

// unlockPassword empties the counts of failed passwords. At once means before it
// returns, also where other instances ask next; if that cannot be done, the owner
// waits a little, which is no reason to fail what they did.
func (a *Auth) unlockPassword(ctx context.Context, u User, atOnce bool) {
	draws := refundsOf(a.passwordLocks(ctx, u), true)
	if !atOnce {
		a.refunds.add(draws...)
		return
	}
	if err := a.take(context.WithoutCancel(ctx), draws...); err != nil {
		a.cfg.log.WarnContext(ctx, "auth: failed logins not forgiven", "user_id", u.ID, "error", err)
	}
}
