package auth

import (
	"context"
	"errors"
	"time"

	"github.com/authmount/auth/internal/clientip"
)

const (
	// maxCodeTries is how many wrong guesses a code survives.
	maxCodeTries = 5
	// codeBackstop is how many it survives in the store, for guesses of all who
	// have ids of requests of their own.
	codeBackstop = 50
	// codeTriesFor is how long the tries at a code stay used up, unless another
	// code is sent. It is longer than any code lives.
	codeTriesFor = 24 * time.Hour
)

// codeGuess is a phone code that somebody gives.
type codeGuess struct {
	phone   string
	code    string
	request string // the id that asking for the code returned, if it is known
}

// tryCode judges a phone code under the caps on wrong ones, and applies the effect
// of the right one in the same step. Errors: CodeInvalidCode, CodeRateLimited,
// ErrStale as it is, and those of storeFailed; a *ConflictError is in there.
func (a *Auth) tryCode(ctx context.Context, g codeGuess, t TryCode) (User, error) {
	t.Hash = a.phoneCodeHash(t.Purpose, t.Subject, g.code)
	var u User
	attempt, err := a.codeAttempt(ctx, g, t)
	if err != nil {
		return u, err
	}
	err = a.guess(ctx, attempt, func(own context.Context, draw func() error) error {
		if err := draw(); err != nil {
			return err
		}
		var err error
		_, u, err = a.store.TryCode(own, t)
		switch {
		case err == nil:
			a.committed(own, t.Change, OutcomeDone, about(u.ID))
			return nil
		case errors.Is(err, ErrWrongCode):
			return fail(CodeInvalidCode, err)
		case errors.Is(err, ErrStale):
			return err
		case errors.Is(err, ErrTooManyTries):
			return retryAfter(CodeRateLimited, a.cfg.limits.SendGap.Per, err)
		}
		return goneOr(CodeInvalidCode, err)
	})
	return u, err
}

// codeAttempt are those at one number, whatever the code is for and whether or not
// there is a code or an account: the same guesses are answered alike everywhere.
// Whoever shows the id of a request has tries of their own, so that nobody's
// guesses lock the owner out: as many as a code has for the request, and what
// numbers have for the number and the address of the client.
//
// A right code shows that the number is theirs, and ends the run of anybody's
// failures at it.
func (a *Auth) codeAttempt(ctx context.Context, g codeGuess, t TryCode) (attempt, error) {
	owner := func(ctx context.Context) (User, error) { return a.store.User(ctx, ByPhone(g.phone)) }
	_, err := owner(ctx)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return attempt{}, storeFailed(err)
	}
	known := err == nil
	limits, code := a.cfg.limits, a.always(Rate{Burst: maxCodeTries, Per: codeTriesFor})
	now, from := a.codeDraw(t.Purpose, t.Subject), g.phone
	if a.keys.ValidRequest(g.phone, g.request, a.now()) {
		now, from = a.guessDraw(code, "code-request", g.request).refilled(), g.phone+" "+clientip.LimitKey(clientFrom(ctx).IP)
	}
	return attempt{
		draws: append([]guessDraw{
			now, a.guessDraw(limits.CodesPerPhone, "code", from), a.guessDraw(limits.CodesPerPhoneDaily, "code-day", from),
		}, a.inARowBy("code", from, known, "")...),
		method: methodPhoneCode, userID: t.UserID, owner: owner,
		refills: a.inARowBy("code", g.phone, true, ""),
	}, nil
}

// codeDraw is a try at the code that was sent last for a purpose and subject. One
// for another purpose has others, so that asking for it revives no code.
func (a *Auth) codeDraw(p Purpose, subject string) guessDraw {
	return a.guessDraw(a.always(Rate{Burst: maxCodeTries, Per: codeTriesFor}), "code-sent", string(p)+" "+subject).refilled()
}

// refillCode gives a code tries of its own that was stored in place of the one
// before. Earlier would revive that one.
func (a *Auth) refillCode(ctx context.Context, t Token) {
	if err := a.take(context.WithoutCancel(ctx), refundsOf([]guessDraw{a.codeDraw(t.Purpose, t.Subject)}, true)...); err != nil {
		a.cfg.log.WarnContext(ctx, "auth: a new code has no tries of its own", "error", err)
	}
}

// always is a limit that no option changes, unless all are off.
func (a *Auth) always(r Rate) Rate {
	if a.cfg.limits.Off {
		return Rate{}
	}
	return r
}
