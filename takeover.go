package auth

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// Whose account is it? One that has never proved an address, number or identity
// belongs to whoever first does. What was set up before without a proof would be
// a way in for a stranger (pre-hijacking), so it goes; unless the proof is given
// inside a live session of the account, which shows that both are the same.

// root is what a proof shows to be somebody's: an address or a number.
type root int

const (
	rootEmail root = iota
	rootPhone
)

// takeOver turns a patch that proves an account's address or number into one
// that makes the account the prover's: every way in that the patch does not name
// goes, with the sessions, factors and tokens (see UserPatch.DropCredentials).
//
// It is made on the condition of stillUnproved, which the store judges with the
// user locked, and on no revision, so that whoever keeps changing the account
// cannot keep its owner out.
func takeOver(p *store.UserPatch) { p.DropCredentials = true }

// prove is what it does to an account that its address or number was proved,
// inside a live session of the account or outside of any. takenOver tells whether
// the account changed hands.
func prove(u User, by root, inside bool, now time.Time) (p store.UserPatch, still UserAt, takenOver bool) {
	yes, no := true, false
	still = UserAt{ID: u.ID}
	var verified bool
	if by == rootEmail {
		still.Email, verified = &u.Email, u.EmailVerified()
		still.EmailVerified = &yes
		if !verified {
			still.EmailVerified, p.EmailVerifiedAt = &no, &now
		}
	} else {
		still.Phone, verified = &u.Phone, u.PhoneVerified()
		still.PhoneVerified = &yes
		if !verified {
			still.PhoneVerified, p.PhoneVerifiedAt = &no, &now
		}
	}
	takenOver = !verified && !inside
	if takenOver {
		takeOver(&p)
		p.FullName, p.UserMetadata = new(string), map[string]any{} // a stranger's words about themselves
	}
	return p, still, takenOver
}

// proved are the events of a proof.
func proved(u User, p store.UserPatch, takenOver bool) []store.OutcomeEvent {
	var list []store.OutcomeEvent
	if takenOver {
		list = append(list, done(Event{Type: EventTakenOver, UserID: u.ID}))
	}
	switch {
	case p.EmailVerifiedAt != nil:
		list = append(list, done(Event{Type: EventEmailVerified, UserID: u.ID}))
	case p.PhoneVerifiedAt != nil:
		list = append(list, done(Event{Type: EventPhoneVerified, UserID: u.ID}))
	}
	return list
}

// mayGrow refuses another way in to an account that nobody has proved to be
// theirs yet: it would be one to whatever its rightful owner comes to.
func mayGrow(u User) error {
	if u.Unproved() {
		return fail(CodeEmailNotVerified, nil)
	}
	return nil
}

// Tokens die with what they rest on. What is mailed to an account's own address
// rests on that address alone: whoever knows the password must not be able to use
// the owner's links up by changing it again and again.

// dyingWithPassword are the tokens that stand for a proof already given in a
// browser, or for a change that was begun there. A change of the password, or of
// another way in, ends them.
func dyingWithPassword() []store.Purpose {
	return []store.Purpose{store.PurposeExchange, store.PurposeMFA, store.PurposeEnroll, store.PurposePhoneChange, store.PurposeOAuth}
}

// dyingWithAddress are those, and what was mailed to the address: to a former
// one, or before whoever holds it chose a new password by a link.
func dyingWithAddress() []store.Purpose {
	return append(dyingWithPassword(), store.PurposeReset, store.PurposeMagicLink, store.PurposeVerifyEmail, store.PurposeEmailCode)
}

// provingRedemption is the use of a link or code that proves a user's address or
// number, within a session of the same user or outside of any. more are events of
// the same change.
func (a *Auth) provingRedemption(ctx context.Context, u User, by root, within Caller, more ...store.OutcomeEvent) (store.Redemption, bool) {
	inside := within.SessionID != "" && within.UserID == u.ID
	patch, still, takenOver := prove(u, by, inside, a.now())
	authority := byProof()
	if inside {
		authority = within.authority()
	}
	of := account{User: u}
	if by == rootPhone {
		of.to = maskAddress(u.Phone)
		if takenOver {
			of.Email = "" // goes with the account's former self, and was nobody's who could show it
		}
	}
	c := a.newChangeOf(ctx, authority, of, append(proved(u, patch, takenOver), more...)...)
	c.IfUsers = []UserAt{still}
	return store.Redemption{Change: c, Effect: store.Effect{UserID: u.ID, Patch: &patch}}, takenOver
}
