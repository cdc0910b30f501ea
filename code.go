package auth

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// Codes by text and by mail: what is done with them once they are right. They are
// judged in attempt_code.go.

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

// A mail that carries a link carries a code, too, for whoever reads it on another
// device than the one that asks. Both are one token, so that using either uses up
// both.

const (
	mailCodeLife   = 10 * time.Minute // at most 10 (NIST SP 800-63B-4), however long the link lives
	mailCodeDigits = 1_000_000
)

// mailCode is the code beside a link. Whoever has the link can work it out, so that
// its page shows it, and nobody else, since the link is random.
func mailCode(secret string) string {
	sum := sha256.Sum256([]byte("authmount mail code\x00" + secret))
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(sum[:8])%mailCodeDigits)
}

// addCode makes a link's token a code's, too. Only a MAC is kept. It is bound to the
// address, and to what has to be shown besides: the code challenge of a sign-in, or
// the session that asked for a new address. Without an address it is a decoy's.
func (a *Auth) addCode(t *store.Token, secret, address, bound string) (code string) {
	code = mailCode(secret)
	t.CodeExpiresAt, t.MaxTries = t.CreatedAt.Add(mailCodeLife), codeBackstop
	if address == "" {
		_, t.Code = newLinkToken() // no guess is right
		return code
	}
	t.Code = a.keys.MailCode(string(t.Purpose), t.Subject, store.EmailKey(address), bound, code)[0]
	return code
}

// cleanCode is a code as people type it.
func cleanCode(s string) string { return strings.NewReplacer(" ", "", "-", "").Replace(s) }

// mailRequest is whom the id of a request for a sign-in by mail is about.
func mailRequest(address, challenge string) string { return store.EmailKey(address) + " " + challenge }

// A new address is nobody's yet, so that a code that was sent to it does not tell
// whose it is: another token does, of whoever asked for the address last. It
// proves nothing.

// tellWhoseCode records who is sent a code to a new address.
func (a *Auth) tellWhoseCode(ctx context.Context, by Caller, u User, address string) error {
	_, t := a.newLink(store.PurposeEmailCode, mailCodeLife, linkData{Email: address, SessionID: by.SessionID})
	t.Hash, t.UserID, t.Subject = whoseCodeHash(address), u.ID, store.EmailKey(address)
	return a.putToken(ctx, by.authority(), t)
}

func whoseCodeHash(address string) []byte {
	sum := sha256.Sum256([]byte("whose code\x00" + store.EmailKey(address)))
	return sum[:]
}

// verifyingGuess is a code that confirms an address: whose address it is to become,
// and what the link beside the code carries. Without a session, the code says
// whose it is only by the address: the account's that has it, or asked for it.
func (a *Auth) verifyingGuess(ctx context.Context, p VerifyEmailParams) (codeGuess, store.Token, linkData, error) {
	var t store.Token
	var d linkData
	email, err := requiredEmail(p.Email)
	if err != nil {
		return codeGuess{}, t, d, invalid("email", err.Error())
	}
	if p.Code == "" {
		return codeGuess{}, t, d, invalid("code", "is required")
	}
	key := store.ByEmail(email)
	if p.Within.SessionID != "" {
		key = store.ByID(p.Within.UserID)
	}
	u, err := a.store.User(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return codeGuess{}, t, d, storeFailed(err)
	}
	asked, whose, err := a.peekHash(ctx, store.PurposeEmailCode, whoseCodeHash(email)) // in any case, so that it takes as long
	if err != nil && !errors.Is(err, CodeInvalidToken) {
		return codeGuess{}, t, d, err
	}
	d.Email, t.UserID = email, u.ID
	switch {
	case store.EmailKey(u.Email) == store.EmailKey(email):
	case p.Within.SessionID != "":
		d.SessionID = p.Within.SessionID
	default:
		t.UserID, d.SessionID = asked.UserID, whose.SessionID // none: no guess is right
	}
	g := codeGuess{to: store.EmailKey(email), mailed: true, email: email, code: cleanCode(p.Code), userID: p.Within.UserID, sent: store.EmailKey(email), bound: d.SessionID}
	return g, t, d, nil
}
