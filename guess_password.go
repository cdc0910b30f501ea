package auth

import (
	"cmp"
	"context"
)

// passwordGuess is a password that somebody gives for an account's.
type passwordGuess struct {
	of       Credentials
	name     string // what was asked for: failures count by it where there is no account
	password string

	// hidden, if set, makes a right password count and answer as a wrong one. It
	// is called with a context that no request ends.
	hidden func(ctx context.Context)
}

// judgePassword judges a password, and does the same work and counting where
// there is none. Failures count by account, whatever it was called, or by device
// where the user has signed in on it before, and by the address of the client. A
// right password empties the first. Errors: CodeInvalidCredentials, CodeRateLimited, CodeOverloaded.
func (a *Auth) judgePassword(ctx context.Context, g passwordGuess) (rehash bool, err error) {
	err = a.guess(ctx, a.passwordTries(ctx, g), func(own context.Context, draw func() error) error {
		ok, again, err := a.passwords.verify(ctx, g.account(), g.of.PasswordHash, g.password, func(context.Context) error { return draw() })
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

func (a *Auth) passwordTries(ctx context.Context, g passwordGuess) tries {
	account, device := g.account(), deviceOf(ctx, g.of)
	judged := a.stake(a.cfg.limits.SignInsPerAccount, "sign-ins", account)
	judged.kept = true
	return tries{
		stakes: []stake{
			a.passwordStake(account, device),
			{Draw: a.perIP(ctx, a.cfg.limits.LoginPerIP, "login-ip", 1)},
			a.inARow("login", account, device),
			judged,
		},
		method: methodPassword, userID: g.of.User.ID, owner: itself(g.of.User),
	}
}

// account is what failures count by: the account, or where there is none its name.
func (g passwordGuess) account() string { return cmp.Or(g.of.User.ID, g.name) }

func (a *Auth) passwordStake(account, device string) stake {
	limit := "login"
	if device != "" {
		limit, account = "login-device", account+" "+device
	}
	return a.stake(a.cfg.limits.LoginPerAccount, limit, account).wholly()
}

// reopened are the counts of failed passwords that somebody empties who has shown
// to be the owner by other means, so that they do not stay locked out by somebody
// else's guesses.
func (a *Auth) reopened(ctx context.Context, userID string) []stake {
	list := []stake{a.passwordStake(userID, ""), a.inARow("login", userID, "")}
	if device := clientFrom(ctx).Device; device != "" {
		list = append(list, a.passwordStake(userID, device), a.inARow("login", userID, device))
	}
	return list
}

// reopenPassword empties the counts of failed passwords. At once means before it
// returns, also where other instances ask next; if that cannot be done, the owner
// waits a little, which is no reason to fail what they did.
func (a *Auth) reopenPassword(ctx context.Context, userID string, atOnce bool) {
	draws := settled(a.reopened(ctx, userID), true)
	if !atOnce {
		a.returns.add(draws...)
		return
	}
	if _, err := a.take(context.WithoutCancel(ctx), draws...); err != nil {
		a.cfg.log.WarnContext(ctx, "auth: failed logins not forgiven", "user_id", userID, "error", err)
	}
}
