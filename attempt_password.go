package auth

import (
	"cmp"
	"context"

	"github.com/authmount/auth/store"
)

// passwordAttempt is an attempt to use an account's password.
type passwordAttempt struct {
	credentials store.Credentials
	name        string // the name that the user entered, in normal form; "": the account's first name
	password    string

	mayNeedCaptcha bool // a captcha may be due before the check: errCaptchaRequired

	// confirm, if set, is called after the check, with its result. If it returns an error, a
	// right password counts and answers as a wrong one. Its context is not canceled by the
	// request.
	confirm func(ctx context.Context, right bool) error
}

// checkPassword checks a password. It does the same work and counting for an unknown
// account.
//
// Failures count by the entered name. Responses therefore do not reveal that an email
// address and a phone number belong to one account, or when a name becomes an
// account's. They count separately on devices on which the user has signed in before,
// and also by the client's IP address. A right password resets the counts of all the
// account's names, and refunds the attempt by IP address. Errors:
// CodeInvalidCredentials, CodeRateLimited, CodeOverloaded.
func (a *Auth) checkPassword(ctx context.Context, g passwordAttempt) (rehash bool, err error) {
	owner := hashOwner{account: cmp.Or(g.credentials.User.ID, g.name), device: deviceOf(ctx, g.credentials)}
	t := a.attemptAtPassword(g, owner)
	if g.mayNeedCaptcha {
		t.due = func(draws []attemptLimit, d store.Decision) error { return a.captchaDue(ctx, draws, d) }
	}
	err = a.countAttempt(ctx, t, func(own context.Context, draw func() error) error {
		ok, outdated, err := a.passwords.verify(ctx, owner, g.credentials.PasswordHash, g.password, func(context.Context) error { return draw() })
		if err != nil {
			return hashFailed(err)
		}
		if g.confirm != nil {
			if err := g.confirm(own, ok); err != nil {
				return err
			}
		}
		if !ok {
			return fail(CodeInvalidCredentials, nil)
		}
		rehash = outdated
		return nil
	})
	return rehash, err
}

func (a *Auth) attemptAtPassword(g passwordAttempt, of hashOwner) attempt {
	u := g.credentials.User
	perAccount := a.attemptLimit(a.cfg.limits.SignInsPerAccount, "sign-ins", of.key())
	perAccount.noRefund = true
	return attempt{
		limits: append(a.passwordLimit(cmp.Or(g.name, nameOf(u)), u.ID != "", of.device), perAccount),
		method: methodPassword, userID: u.ID, owner: knownOwner(u), refills: a.passwordLimits(u, of.device), knownDevice: of.device != "",
	}
}

// passwordLimit returns the draws that count failures with one name. known reports
// whether an account has the name.
func (a *Auth) passwordLimit(name string, known bool, device string) []attemptLimit {
	limit, value := deviceBucket("login", name, device)
	now := a.withCaptchaAfter(a.attemptLimit(a.cfg.limits.LoginPerAccount, limit, value).refilled(), 1)
	return append([]attemptLimit{now}, a.consecutiveFailuresOf("login", name, known, device)...)
}

// passwordLimits returns the draws of all names of a user.
func (a *Auth) passwordLimits(u User, device string) (list []attemptLimit) {
	for _, name := range namesOf(u) {
		list = append(list, a.passwordLimit(name, true, device)...)
	}
	return list
}

// namesOf returns the names with which a user can log in, in normal form.
func namesOf(u User) (list []string) {
	if u.Email != "" {
		list = append(list, store.EmailKey(u.Email))
	}
	if u.Phone != "" {
		list = append(list, u.Phone)
	}
	return list
}

// nameOf returns one of the user's names, or the id if there is none.
func nameOf(u User) string { return append(namesOf(u), u.ID)[0] }

// passwordLocks returns the counts of failed passwords that are reset after the owner
// has signed in by other means, so that other people's failures do not lock them out.
func (a *Auth) passwordLocks(ctx context.Context, u User) []attemptLimit {
	list := a.passwordLimits(u, "")
	if device := clientFrom(ctx).Device; device != "" {
		list = append(list, a.passwordLimits(u, device)...)
	}
	return list
}

// unlockPassword resets the counts of failed passwords. With atOnce it does so before
// it returns, so that other instances see it. If that fails it only logs, because the
// owner merely waits a little longer.
func (a *Auth) unlockPassword(ctx context.Context, u User, atOnce bool) {
	draws := refundsOf(a.passwordLocks(ctx, u), true)
	if !atOnce {
		a.refunds.add(draws...)
		return
	}
	a.fillBuckets(ctx, u, draws)
}

// fillBuckets applies refunds of an account's buckets at once.
func (a *Auth) fillBuckets(ctx context.Context, u User, refunds []store.Draw) {
	if err := a.take(context.WithoutCancel(ctx), refunds...); err != nil {
		a.cfg.log.WarnContext(ctx, "auth: an account's limits not reset", "user_id", u.ID, "error", err)
	}
}
