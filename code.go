package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/address"
	"github.com/authmount/auth/store"
)

// The use of right codes from text messages and emails. attempt_code.go checks
// codes.

// useCode uses up a sign-in code. It returns the account of the verified phone number
// or email address, or creates one. As with magic links, the first verification
// removes all other credentials of the account, except within a live session of it.
func (a *Auth) useCode(ctx context.Context, p store.Purpose, g codeAttempt, within Caller) (User, error) {
	// The usual case takes one step: the phone number or email address is already
	// verified for an account. Otherwise nothing has happened yet.
	yes, no := true, false
	still := UserAt{Phone: &g.to, PhoneVerified: &yes, Banned: &no}
	if g.mailed {
		still = UserAt{Email: &g.to, EmailVerified: &yes, Banned: &no}
	}
	c := a.newChange(ctx, byAuthentication())
	c.IfUsers = []UserAt{still}
	first := store.CodeAttempt{Change: c, Purpose: p, Subject: cmp.Or(g.subject, g.to)}
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
		}
		root := rootPhone
		if g.mailed {
			root = rootEmail
		}
		r, _, err := a.ownVerification(ctx, u, root, within)
		return r, err
	}
	u, err := a.redeemCode(ctx, g, first, decide)
	if within.SessionID != "" && errors.Is(err, CodeSessionEnded) { // an ended session counts as none
		within = Caller{}
		u, err = a.redeemCode(ctx, g, first, decide)
	}
	return u, err
}

// redeemCode uses up a code together with its effect. decide computes the effect, but
// only after first has returned ErrStale: the code is right, and needs more than
// first. Wrong codes therefore cause no work. The effect is applied only if the code is
// still right and the effect's conditions still hold.
func (a *Auth) redeemCode(ctx context.Context, g codeAttempt, first store.CodeAttempt, decide func() (store.Redemption, error)) (User, error) {
	u, err := a.tryCode(ctx, g, first)
	if !errors.Is(err, store.ErrStale) {
		return u, err
	}
	return change(func() (User, error) {
		r, err := decide()
		if err != nil {
			return User{}, err
		}
		u, err := a.tryCode(ctx, g, store.CodeAttempt{Change: r.Change, Effect: r.Effect, Purpose: first.Purpose, Subject: first.Subject})
		switch {
		case errors.Is(err, store.ErrConflict) && r.Create != nil:
			err = store.ErrStale // signed up meanwhile
		case errors.Is(err, store.ErrConflict):
			err = fail(CodeUserAlreadyExists, err)
		}
		return u, err
	})
}

// onlyIfRight returns a first step for redeemCode that shows whether a code is right
// and does not use it up.
func (a *Auth) onlyIfRight(ctx context.Context, p store.Purpose, subject string) store.CodeAttempt {
	c := a.newChange(ctx, byAuthentication())
	c.IfUsers = []UserAt{neverHolds()}
	return store.CodeAttempt{Change: c, Purpose: p, Subject: subject}
}

// neverHolds returns a condition that never holds.
func neverHolds() UserAt { return UserAt{ID: uuid.Nil.String()} }

// An email with a link also carries a code, for users who read it on another device.
// Both are one token, so that using either uses up both.

const (
	mailCodeLife   = 10 * time.Minute // at most 10 minutes (NIST SP 800-63B-4), even if the link lives longer
	mailCodeDigits = 1_000_000
)

// mailCode derives the code from the link's random secret. The page of a magic link can
// therefore show the code, and nobody without the link can compute it.
func mailCode(secret string) string {
	sum := sha256.Sum256([]byte("authmount mail code\x00" + secret))
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(sum[:8])%mailCodeDigits)
}

// addCode adds a code to a link's token. The token holds only a MAC. The code is
// bound to the email address, and to bound: the code challenge of a sign-in. Without an
// address the code is a decoy.
func (a *Auth) addCode(t *store.Token, secret, address, bound string) (code string) {
	code = mailCode(secret)
	t.CodeExpiresAt, t.MaxAttempts = t.CreatedAt.Add(mailCodeLife), maxSharedCodeAttempts
	if address == "" {
		_, t.Code = newLinkToken() // no code matches
		return code
	}
	t.Code = a.keys.MailCode(string(t.Purpose), t.Subject, store.EmailKey(address), bound, code)[0]
	return code
}

// mailRequest is the subject of the request id of a sign-in by email, by that of its token.
func mailRequest(subject, challenge string) string { return subject + " " + challenge }

// addShownCode gives the token of a verification link another code, which the link's page
// shows. For a new address, only the session that requested it can use the code.
func (a *Auth) addShownCode(t *store.Token, d linkData) (code string) {
	secret, _ := newLinkToken()
	code = mailCode(secret)
	t.Code = a.keys.MailCode(string(t.Purpose), t.Subject, store.EmailKey(d.Email), d.SessionID, code)[0]
	t.CodeExpiresAt, t.MaxAttempts, t.Attempts = a.now().Add(mailCodeLife), maxSharedCodeAttempts, 0
	if t.CodeExpiresAt.After(t.ExpiresAt) {
		t.CodeExpiresAt = t.ExpiresAt
	}
	return code
}

// verificationAttempt returns the attempt to confirm an email address by a code, with
// the user of the link in the same message and its data. t.Subject is that of the code.
// Without a session, the account that has the address is meant. d.SessionID is set for a new
// address.
//
// Outside of a session, the id of a sign-up gives the attempt limits of its own, whether or
// not the address was taken. An attempt at an unverified account is compared with its code,
// and one at any other address with the code that takenRequest stores. Both are alive after a
// sign-up, so that a wrong code takes equally long.
func (a *Auth) verificationAttempt(ctx context.Context, p verification) (codeAttempt, store.Token, linkData, error) {
	var t store.Token
	var d linkData
	email, err := requiredEmail(p.Email)
	if err != nil {
		return codeAttempt{}, t, d, invalid("email", err.Error())
	}
	if p.Code == "" {
		return codeAttempt{}, t, d, invalid("code", "is required")
	}
	key := store.ByEmail(email)
	if p.Within.SessionID != "" {
		key = store.ByID(p.Within.UserID)
	}
	u, err := a.store.User(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return codeAttempt{}, t, d, storeFailed(err)
	}
	d.Email, t.UserID, t.Subject = email, u.ID, u.ID
	if p.Within.SessionID != "" && isNewAddress(u, d) {
		d.SessionID = p.Within.SessionID
	}
	g := codeAttempt{to: store.EmailKey(email), mailed: true, email: email, code: address.Code(p.Code), userID: p.Within.UserID, sent: store.EmailKey(email), bound: d.SessionID}
	switch { // within a sign-in; with a right password or identity, attempts count as in a session
	case p.decoy:
		t.UserID, t.Subject = decoySubject, decoySubject
		g.userID, g.decoy = decoySubject+" "+g.to, true
	case p.by != nil:
		g.userID = u.ID
	case p.Within.SessionID == "":
		a.nameSignUp(&g, u, p.RequestID)
		if g.other = ofTaken(g.to); u.ID == "" || u.EmailVerified() {
			t.Subject, g.other = g.other, cmp.Or(u.ID, g.other) // as many look-ups without an account
		}
	}
	return g, t, d, nil
}

// nameSignUp sets the first of the ids that belongs to a sign-up with the address of an
// attempt. u is the account that has the address. The order of the ids decides, because an
// order by account would reveal which of them created it.
func (a *Auth) nameSignUp(g *codeAttempt, u User, ids string) {
	g.own = a.signedUp(u, ids)
	for _, id := range splitSignUps(ids) {
		for _, about := range []string{ofSignUp(u), ofTaken(g.to)} {
			if a.keys.ValidRequestID(about, id, a.now()) {
				g.request, g.about, g.signUp = id, about, true
				return
			}
		}
	}
}
