package auth

import (
	"cmp"
	"context"

	"github.com/authmount/auth/store"
)

// passwordGuess is a password that somebody gives for an account's.
type passwordGuess struct {
	of       store.Credentials
	name     string // what the account was called, in its one form; empty: its first name
	password string

	asks bool // a captcha may be due before it is judged: errCaptchaAsked

	// hidden, if set, makes a right password count and answer as a wrong one. It
	// is called with a context that no request ends.
	hidden func(ctx context.Context)
}

// judgePassword judges a password, and does the same work and counting where
// there is none. Failures count by what the account was called, so that an address
// and a number do not tell that they are one account's, and a name does not tell
// when it becomes one's; by device where the user has signed in on it before; and
// by the address of the client. A right password empties the former, for all names
// of the account, and gives back its try by address. Errors: CodeInvalidCredentials,
// CodeRateLimited, CodeOverloaded.
func (a *Auth) judgePassword(ctx context.Context, g passwordGuess) (rehash bool, err error) {
	account, device := cmp.Or(g.of.User.ID, g.name), deviceOf(ctx, g.of)
	if device != "" {
		account += " " + device // strangers do not use up what the owner's device has
	}
	t := a.passwordAttempt(g, account, device)
	if g.asks {
		t.due = func(draws []guessDraw, d store.Decision) error { return a.captchaDue(ctx, draws, d) }
	}
	err = a.guess(ctx, t, func(own context.Context, draw func() error) error {
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

func (a *Auth) passwordAttempt(g passwordGuess, account, device string) attempt {
	u := g.of.User
	judged := a.guessDraw(a.cfg.limits.SignInsPerAccount, "sign-ins", account)
	judged.kept = true
	return attempt{
		draws:  append(a.passwordDraw(cmp.Or(g.name, nameOf(u)), u.ID != "", device), judged),
		method: methodPassword, userID: u.ID, owner: itself(u), refills: a.passwordDraws(u, device),
	}
}

// passwordDraw are those of a failure with one name, known to be an account's or
// not.
func (a *Auth) passwordDraw(name string, known bool, device string) []guessDraw {
	limit, value := countedApart("login", name, device)
	now := a.withCaptchaAfter(a.guessDraw(a.cfg.limits.LoginPerAccount, limit, value).refilled(), 1)
	return append([]guessDraw{now}, a.inARowBy("login", name, known, device)...)
}

// passwordDraws are those of all names of a user.
func (a *Auth) passwordDraws(u User, device string) (list []guessDraw) {
	for _, name := range namesOf(u) {
		list = append(list, a.passwordDraw(name, true, device)...)
	}
	return list
}

// namesOf are what a user may be called at a login, each in its one form.
func namesOf(u User) (list []string) {
	if u.Email != "" {
		list = append(list, store.EmailKey(u.Email))
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
	list := a.passwordDraws(u, "")
	if device := clientFrom(ctx).Device; device != "" {
		list = append(list, a.passwordDraws(u, device)...)
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
