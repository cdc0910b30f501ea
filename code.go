package auth

import (
	"context"
	"errors"

	"github.com/authmount/auth/store"
	"github.com/google/uuid"
)

// Codes by text and by mail: what is done with them once they are right. They are
// judged in guess_code.go.

// useCode uses a sign-in code up and returns the account of the number or address
// that it proves: the one there is, or a new one. As with magic links, holding it
// outranks whatever was set up before it was proved, unless that is proved within a
// live session of the same account.
func (a *Auth) useCode(ctx context.Context, p store.Purpose, g codeGuess, within Caller) (User, error) {
	// The usual case, in one step: the number or address is proved already, as
	// somebody's whom the code names. Otherwise nothing has happened yet.
	yes, no := true, false
	still := UserAt{Phone: &g.to, PhoneVerified: &yes, Banned: &no}
	if g.mailed {
		still = UserAt{Email: &g.to, EmailVerified: &yes, Banned: &no}
	}
	c := a.newChange(ctx, byProof())
	c.IfUsers = []UserAt{still}
	first := store.TryCode{Change: c, Purpose: p, Subject: g.to}
	var in accountPermit
	decide := func() (store.Redemption, error) {
		u, err := a.store.User(ctx, g.owner())
		switch {
		case errors.Is(err, store.ErrNotFound) && g.mailed:
			return a.createByMail(ctx, &in, g.email, CodeInvalidCode)
		case errors.Is(err, store.ErrNotFound):
			return a.createByPhone(ctx, &in, g.to)
		case err != nil:
			return store.Redemption{}, storeFailed(err)
		case !g.mailed && u.EmailVerified() && !u.PhoneVerified():
			return store.Redemption{}, a.detachPhone(ctx, u)
		case u.Banned(a.now()):
			return store.Redemption{}, fail(CodeUserBanned, nil)
		}
		root := rootPhone
		if g.mailed {
			root = rootEmail
		}
		r, _ := a.provingRedemption(ctx, u, root, within)
		return r, nil
	}
	u, err := a.redeemCode(ctx, g, first, decide)
	if within.SessionID != "" && errors.Is(err, CodeSessionEnded) { // counts as none
		within = Caller{}
		u, err = a.redeemCode(ctx, g, first, decide)
	}
	return u, err
}

// redeemCode uses a code up together with its effect, which decide works out once
// first has shown, by ErrStale, that the code is right and that it takes more than
// first: nobody has anything worked out by guessing. The effect is applied only if
// the code is right still, and what it rests on.
func (a *Auth) redeemCode(ctx context.Context, g codeGuess, first store.TryCode, decide func() (store.Redemption, error)) (User, error) {
	u, err := a.tryCode(ctx, g, first)
	if !errors.Is(err, store.ErrStale) {
		return u, err
	}
	return change(func() (User, error) {
		r, err := decide()
		if err != nil {
			return User{}, err
		}
		u, err := a.tryCode(ctx, g, store.TryCode{Change: r.Change, Effect: r.Effect, Purpose: first.Purpose, Subject: first.Subject})
		switch {
		case errors.Is(err, store.ErrConflict) && r.Create != nil:
			err = store.ErrStale // signed up meanwhile
		case errors.Is(err, store.ErrConflict):
			err = fail(CodeUserAlreadyExists, err)
		}
		return u, err
	})
}

// onlyIfRight is a first try that shows whether a code is right, and spends
// nothing.
func (a *Auth) onlyIfRight(ctx context.Context, p store.Purpose, subject string) store.TryCode {
	c := a.newChange(ctx, byProof())
	c.IfUsers = []UserAt{nobody()}
	return store.TryCode{Change: c, Purpose: p, Subject: subject}
}

// nobody is a condition that never holds.
func nobody() UserAt { return UserAt{ID: uuid.Nil.String()} }
