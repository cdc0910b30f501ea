package auth

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/authmount/auth/internal/address"
	"github.com/authmount/auth/internal/clientip"
	"github.com/authmount/auth/store"
)

const (
	// maxCodeAttempts is the number of wrong attempts after which a code is invalid.
	maxCodeAttempts = 5
	// maxSharedCodeAttempts is the limit in the store, for all clients together. It is
	// higher because every request id has attempts of its own.
	maxSharedCodeAttempts = 50
	// codeAttemptsLife is how long the attempts at a code stay used up, unless another
	// code is sent. It is longer than the lifetime of any code.
	codeAttemptsLife = 24 * time.Hour
)

// codeAttempt is an attempt to use a code from a text message or email.
type codeAttempt struct {
	to     string // the phone number or EmailKey to which the code was sent
	mailed bool
	email  string // mailed codes: the email address as entered
	code   string
	method string // of the sign-in; "": the code signs nobody in

	request string // the id that the code's request returned, if known
	about   string // the subject that the id must name
	userID  string // the signed-in user who enters the code, if any
	sent    string // mailed codes without either: the key that counts their attempts

	subject string // sign-ins by mail: the subject of the code

	signUp bool   // the id is that of a sign-up with the recipient
	own    bool   // signUp: the sign-up created the recipient's account
	other  string // the subject of the code to check if that of the attempt has no live one; "": none

	decoy bool   // no code is right; see tryDecoy
	bound string // mailed codes: the code challenge or session that the code is bound to; see addCode
}

func phoneAttempt(phone, code, request string) codeAttempt {
	return codeAttempt{to: phone, code: address.Code(code), method: methodPhoneCode, request: request, about: phone}
}

// owner returns the key of the account with the phone number or email address.
func (g codeAttempt) owner() store.UserKey {
	if g.mailed {
		return store.ByEmail(g.to)
	}
	return store.ByPhone(g.to)
}

func (a *Auth) codeHash(g codeAttempt, p store.Purpose, subject string) []byte {
	if g.mailed {
		return a.keys.MailCode(string(p), subject, g.to, g.bound, g.code)[0]
	}
	return a.phoneCodeHash(p, subject, g.code)
}

// tryCode checks a code under the limits on wrong ones. In the same step it applies
// the effect of a right one. Errors: CodeInvalidCode, CodeRateLimited, ErrStale
// unchanged, and those of storeFailed, which may wrap a *ConflictError.
func (a *Auth) tryCode(ctx context.Context, g codeAttempt, t store.CodeAttempt) (User, error) {
	if taken := ofTaken(g.to); !g.mailed && a.keys.ValidRequestID(taken, g.request, a.now()) {
		g.about, t.Subject = taken, taken
	}
	t.Hash = a.codeHash(g, t.Purpose, t.Subject)
	device, err := a.deviceAtRecipient(ctx, g)
	if err != nil {
		return User{}, err
	}
	var u User
	err = a.countAttempt(ctx, a.attemptAtCode(ctx, g, t, device), func(own context.Context, draw func() error) error {
		if err := draw(); err != nil {
			return err
		}
		var err error
		u, err = a.checkCode(own, g, t)
		switch {
		case err == nil:
			a.committed(own, t.Change, store.OutcomeDone, about(u.ID))
			return nil
		case errors.Is(err, store.ErrWrongCode):
			return fail(CodeInvalidCode, err)
		case errors.Is(err, store.ErrStale):
			return err
		case errors.Is(err, store.ErrTooManyAttempts):
			return retryAfter(CodeRateLimited, a.cfg.limits.SendGap.Per, err)
		}
		return goneOr(CodeInvalidCode, err)
	})
	return u, err
}

// checkCode checks a code that was counted. Attempts with the id of a sign-up with an email
// address count at the recipient here and not in attemptAtCode, because its limit refuses
// none of them: strangers would keep out the person who signed up, or learn that the address
// was free. Once it is used up, only the id that created the account is compared with its code.
func (a *Auth) checkCode(ctx context.Context, g codeAttempt, t store.CodeAttempt) (User, error) {
	var drawn []attemptLimit
	if g.signUp {
		all := a.recipientLimit(g.to, "")
		switch err := a.take(ctx, all.Draw); {
		case err == nil:
			drawn = append(drawn, all)
		case !errors.Is(err, CodeRateLimited):
			return User{}, err
		case !g.own:
			t.Subject, g.other = ofTaken(g.to), ""
			t.Hash = a.codeHash(g, t.Purpose, t.Subject)
		}
	}
	_, u, err := a.store.RedeemCode(ctx, t)
	if g.other != "" && errors.Is(err, store.ErrNotFound) {
		t.Subject = g.other
		t.Hash = a.codeHash(g, t.Purpose, t.Subject)
		_, u, err = a.store.RedeemCode(ctx, t)
	}
	if err == nil || errors.Is(err, store.ErrStale) {
		a.refunds.add(refundsOf(drawn, true)...)
	}
	return u, err
}

// attemptAtCode returns the attempt at a phone number's or email address's code. The
// limits do not depend on whether a code or an account exists, so that responses do not
// reveal it. All but the first count the codes of all purposes together.
//
// A caller with the id of a valid request has separate limits: the usual number for
// the request, and the usual number for the pair of recipient and client IP address.
// So does a signed-in user who confirms an email address of their own. Strangers'
// attempts therefore cannot lock the owner out.
//
// A stranger can request codes without end, and create one account after another with the
// same address, so the recipient also has a limit over all requests and sessions. device is
// that of deviceAtRecipient, which has a limit of its own. A right code refunds only its own
// attempt there. Attempts that the other counters of the recipient do not see cause a notice
// to its owner here.
//
// A right code shows that the caller owns the recipient. It ends the run of
// failures there, also of strangers' failures.
func (a *Auth) attemptAtCode(ctx context.Context, g codeAttempt, t store.CodeAttempt, device string) attempt {
	owner := func(ctx context.Context) (User, error) { return a.store.User(ctx, g.owner()) }
	limits, code := a.cfg.limits, a.always(Rate{Burst: maxCodeAttempts, Per: codeAttemptsLife})
	now, from := a.codeLimit(t.Purpose, cmp.Or(g.sent, t.Subject)), g.to
	switch {
	case a.keys.ValidRequestID(g.about, g.request, a.now()):
		now, from = a.attemptLimit(code, "code-request", g.request).refilled(), g.to+" "+clientip.LimitKey(clientFrom(ctx).IP)
	case g.userID != "":
		now, from = a.codeLimit(t.Purpose, ofUser(g.userID)), ofUser(g.userID)
	}
	draws := []attemptLimit{now, a.attemptLimit(limits.CodesPerAddress, "code", from), a.attemptLimit(limits.CodesPerAddressDaily, "code-day", from)}
	if !g.signUp { // checkCode
		all := a.recipientLimit(g.to, device)
		all.consecutive = from != g.to
		if g.decoy {
			all.Cost = 0 // a wrong password uses up nothing, and is refused as a right one is
		}
		draws = append(draws, all)
	}
	return attempt{
		limits: append(draws, a.consecutiveFailuresOf("code", from, true, "")...),
		method: g.method, userID: t.UserID, owner: owner, knownDevice: device != "",
		unknownAccount: func(ctx context.Context) bool {
			_, err := owner(ctx)
			return errors.Is(err, store.ErrNotFound)
		},
		refills: a.consecutiveFailuresOf("code", g.to, true, ""),
	}
}

// recipientLimit returns an attempt at a code for a phone number or EmailKey, no matter who
// requested the code.
func (a *Auth) recipientLimit(to, device string) attemptLimit {
	limit, value := deviceBucket("code-recipient", to, device)
	return a.attemptLimit(a.cfg.limits.CodesPerRecipientDaily, limit, value)
}

// deviceAtRecipient returns the request's device if it is known to the account that verified
// the phone number or email address of an attempt, and "" otherwise. The device of an
// unverified account may be that of a stranger who signed up with the recipient.
func (a *Auth) deviceAtRecipient(ctx context.Context, g codeAttempt) (string, error) {
	if sentDevice(ctx) == "" {
		return "", nil
	}
	c, err := a.store.Credentials(ctx, onThisDevice(ctx, g.owner()))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", nil
	case err != nil:
		return "", storeFailed(err)
	case g.mailed && !c.User.EmailVerified(), !g.mailed && !c.User.PhoneVerified():
		return "", nil
	}
	return deviceOf(ctx, c), nil
}

// ofTaken is the subject of the id that a sign-up with a taken phone number or email address
// returns, and of a code that no attempt matches. The attempts with such an id count, answer
// and take as long as those of any sign-up. Those at a phone number are compared with no other
// code; those at an email address with that of an unverified account, which belongs to the
// mailbox's owner.
func ofTaken(to string) string { return "taken " + to }

// ofUser is the key that counts the attempts of a signed-in user.
func ofUser(id string) string { return "user " + id }

// codeLimit returns an attempt at the last code sent for a purpose and subject. Each
// purpose counts separately, so that requesting one code does not revive another.
func (a *Auth) codeLimit(p store.Purpose, subject string) attemptLimit {
	return a.attemptLimit(a.always(Rate{Burst: maxCodeAttempts, Per: codeAttemptsLife}), "code-sent", string(p)+" "+subject).refilled()
}

// refillCode resets the attempts at a code, after the new code replaced the old one
// in the store. Resetting them earlier would revive the old one. counted are the keys
// that count the attempts.
func (a *Auth) refillCode(ctx context.Context, p store.Purpose, counted ...string) {
	var draws []attemptLimit
	for _, by := range counted {
		draws = append(draws, a.codeLimit(p, by))
	}
	if err := a.take(context.WithoutCancel(ctx), refundsOf(draws, true)...); err != nil {
		a.cfg.log.WarnContext(ctx, "auth: a new code has no attempts of its own", "error", err)
	}
}

// always returns a limit that only Limits.Off changes.
func (a *Auth) always(r Rate) Rate {
	if a.cfg.limits.Off {
		return Rate{}
	}
	return r
}
