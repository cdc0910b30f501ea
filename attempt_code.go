package auth

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/authmount/auth/internal/clientip"
	"github.com/authmount/auth/store"
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

// codeGuess is a code by text or mail that somebody gives.
type codeGuess struct {
	to     string // the number, or the address as EmailKey, that it was sent to
	mailed bool
	email  string // mailed codes: the address as it was given
	code   string
	method string // of the sign-in; empty: it is none

	request string // the id that asking for the code returned, if it is known
	about   string // whom that id is to be about
	userID  string // who is signed in and gives the code, if that is known
	sent    string // mailed codes without either: what their tries count by

	bound string // mailed codes: what has to be shown besides, see mailCode
}

func phoneGuess(phone, code, request string) codeGuess {
	return codeGuess{to: phone, code: code, method: methodPhoneCode, request: request, about: phone}
}

// owner finds the account of the number or address.
func (g codeGuess) owner() store.UserKey {
	if g.mailed {
		return store.ByEmail(g.to)
	}
	return store.ByPhone(g.to)
}

func (a *Auth) codeHash(g codeGuess, p store.Purpose, subject string) []byte {
	if g.mailed {
		return a.keys.MailCode(string(p), subject, g.to, g.bound, g.code)[0]
	}
	return a.phoneCodeHash(p, subject, g.code)
}

// tryCode judges a code under the caps on wrong ones, and applies the effect
// of the right one in the same step. Errors: CodeInvalidCode, CodeRateLimited,
// ErrStale as it is, and those of storeFailed; a *ConflictError is in there.
func (a *Auth) tryCode(ctx context.Context, g codeGuess, t store.TryCode) (User, error) {
	t.Hash = a.codeHash(g, t.Purpose, t.Subject)
	var u User
	err := a.guess(ctx, a.codeAttempt(ctx, g, t), func(own context.Context, draw func() error) error {
		if err := draw(); err != nil {
			return err
		}
		var err error
		_, u, err = a.store.TryCode(own, t)
		switch {
		case err == nil:
			a.committed(own, t.Change, store.OutcomeDone, about(u.ID))
			return nil
		case errors.Is(err, store.ErrWrongCode):
			return fail(CodeInvalidCode, err)
		case errors.Is(err, store.ErrStale):
			return err
		case errors.Is(err, store.ErrTooManyTries):
			return retryAfter(CodeRateLimited, a.cfg.limits.SendGap.Per, err)
		}
		return goneOr(CodeInvalidCode, err)
	})
	return u, err
}

// codeAttempt are those at one number or address, whatever the code is for and whether or not
// there is a code or an account: the same guesses are answered alike everywhere.
// Whoever shows the id of a request has tries of their own, so that nobody's
// guesses lock the owner out: as many as a code has for the request, and what
// numbers have for the number and the address of the client. So does whoever is
// signed in and confirms an address of their own.
//
// A right code shows that the number or address is theirs, and ends the run of
// anybody's failures at it.
func (a *Auth) codeAttempt(ctx context.Context, g codeGuess, t store.TryCode) attempt {
	owner := func(ctx context.Context) (User, error) { return a.store.User(ctx, g.owner()) }
	limits, code := a.cfg.limits, a.always(Rate{Burst: maxCodeTries, Per: codeTriesFor})
	now, from := a.codeDraw(t.Purpose, cmp.Or(g.sent, t.Subject)), g.to
	switch {
	case a.keys.ValidRequestID(g.about, g.request, a.now()):
		now, from = a.guessDraw(code, "code-request", g.request).refilled(), g.to+" "+clientip.LimitKey(clientFrom(ctx).IP)
	case g.userID != "":
		now, from = a.codeDraw(t.Purpose, ofUser(g.userID)), ofUser(g.userID)
	}
	return attempt{
		draws: append([]guessDraw{
			now, a.guessDraw(limits.CodesPerAddress, "code", from), a.guessDraw(limits.CodesPerAddressDaily, "code-day", from),
		}, a.inARowBy("code", from, true, "")...),
		method: g.method, userID: t.UserID, owner: owner,
		nobodys: func(ctx context.Context) bool {
			_, err := owner(ctx)
			return errors.Is(err, store.ErrNotFound)
		},
		refills: a.inARowBy("code", g.to, true, ""),
	}
}

// ofUser is what tries of somebody who is signed in count by.
func ofUser(id string) string { return "user " + id }

// codeDraw is a try at the code that was sent last for a purpose and subject. One
// for another purpose has others, so that asking for it revives no code.
func (a *Auth) codeDraw(p store.Purpose, subject string) guessDraw {
	return a.guessDraw(a.always(Rate{Burst: maxCodeTries, Per: codeTriesFor}), "code-sent", string(p)+" "+subject).refilled()
}

// refillCode gives a code tries of its own that was stored in place of the one
// before. Earlier would revive that one. counted is what they count by.
func (a *Auth) refillCode(ctx context.Context, p store.Purpose, counted ...string) {
	var draws []guessDraw
	for _, by := range counted {
		draws = append(draws, a.codeDraw(p, by))
	}
	if err := a.take(context.WithoutCancel(ctx), refundsOf(draws, true)...); err != nil {
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
