package auth

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// Account ownership. An account without a verified email address, phone number or
// identity belongs to the first person who verifies one. A stranger may have set up
// credentials before (account pre-hijacking). Verification therefore deletes everything
// that was set up without it, unless a live session of the account, the request id of the
// sign-up or one of the credentials shows that both are the same person.

// root is a kind of identifier that a user can verify: an email address or a phone
// number.
type root int

const (
	rootEmail root = iota
	rootPhone
)

// takeOver makes a patch that verifies an email address or phone number also take over
// the account: the patch deletes every credential that it does not name, with the
// sessions, factors and tokens (see UserPatch.DropCredentials).
//
// The change is conditional on the identifier being still unverified, which the store
// checks with the user locked, and not on a revision. A stranger who keeps changing the
// account therefore cannot lock its owner out.
//
// The account gets a new user handle, so that a stranger's passkeys do not name it.
func takeOver(p *store.UserPatch) {
	handle := newHandle()
	p.DropCredentials, p.Handle = true, &handle
}

// verificationPatch returns the patch and the condition of a verification of the
// account's email address or phone number. inside means within a live session of the
// account. takenOver reports whether the account changes its owner.
func verificationPatch(u User, by root, inside bool, now time.Time) (p store.UserPatch, still UserAt, takenOver bool) {
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
		p.FullName, p.UserMetadata = new(string), map[string]any{} // a stranger may have written these
	}
	return p, still, takenOver
}

// verificationEvents returns the events of a verification.
func verificationEvents(u User, p store.UserPatch, takenOver bool) []store.OutcomeEvent {
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

// requireVerified refuses another credential on an unverified account, because it would
// stay on the account of the rightful owner.
func requireVerified(u User) error {
	if u.Unverified() {
		return fail(CodeEmailNotVerified, nil)
	}
	return nil
}

// A token is revoked together with the credential that it depends on. A link in a
// message to the account's own address depends on that address alone. Changing the
// password must not revoke it: a thief with the password could otherwise keep revoking
// the owner's links.

// purposesOfPassword returns the purposes of tokens that carry a sign-in or a change
// that a browser has started. A change of the password, or of another credential,
// revokes them.
func purposesOfPassword() []store.Purpose {
	return []store.Purpose{store.PurposeExchange, store.PurposeMFA, store.PurposeEnroll, store.PurposePhoneChange, store.PurposeOAuth}
}

// purposesOfEmail returns those of purposesOfPassword and of the tokens in messages to
// the email address. They are revoked by a change of the address and by a password
// reset by link.
func purposesOfEmail() []store.Purpose {
	return append(purposesOfPassword(), store.PurposeReset, store.PurposeMagicLink, store.PurposeVerifyEmail)
}

// ownVerification is verificationRedemption, except that outside of a session nobody takes
// over an account whose other identifier is verified: that one's holder has the account, and
// somebody else may have written the address that a mailbox's reader verifies. The account
// loses it, and ownVerification returns ErrStale, so that the caller decides anew. Errors:
// CodeUserBanned.
func (a *Auth) ownVerification(ctx context.Context, u User, by root, within Caller, more ...store.OutcomeEvent) (store.Redemption, bool, error) {
	r, takenOver := a.verificationRedemption(ctx, u, by, within, more...)
	switch {
	case takenOver && hasHolder(u): // also if the account is banned: the ban is the holder's
		return store.Redemption{}, false, a.detach(ctx, u, by)
	case u.Banned(a.now()):
		return store.Redemption{}, false, fail(CodeUserBanned, nil)
	}
	return r, takenOver, nil
}

// hasHolder reports whether the email address or the phone number of an account is verified.
func hasHolder(u User) bool { return u.EmailVerified() || u.PhoneVerified() }

// detach removes an unverified email address or phone number from an account, for the person
// who verified it. An account with nothing verified loses all its credentials. It returns
// ErrStale.
func (a *Auth) detach(ctx context.Context, u User, by root) error {
	no, none := false, ""
	still, patch := UserAt{ID: u.ID}, store.UserPatch{}
	if by == rootEmail {
		still.Email, still.EmailVerified = &u.Email, &no
		patch.Email, patch.DropTokens = &none, purposesOfEmail()
	} else {
		still.Phone, still.PhoneVerified = &u.Phone, &no
		patch.Phone = &none
	}
	if u.Unverified() {
		still.EmailVerified, still.PhoneVerified = &no, &no
		takeOver(&patch)
	}
	c := a.newChange(ctx, byFlow("identifier proved by another"), done(Event{Type: EventUserUpdated, UserID: u.ID}))
	c.IfUsers = []UserAt{still}
	if _, err := a.update(ctx, c, u.ID, patch); err != nil {
		return err
	}
	return store.ErrStale
}

// verificationRedemption returns the redemption of a link or code that verifies a
// user's email address or phone number, within a session of the same user or outside of
// any. more are events of the same change.
func (a *Auth) verificationRedemption(ctx context.Context, u User, by root, within Caller, more ...store.OutcomeEvent) (store.Redemption, bool) {
	inside := within.SessionID != "" && within.UserID == u.ID
	patch, still, takenOver := verificationPatch(u, by, inside, a.now())
	authority := byAuthentication()
	if inside {
		authority = within.authority()
	}
	of := account{User: u}
	if by == rootPhone {
		of.to = maskAddress(u.Phone)
		if takenOver {
			of.Email = "" // deleted with the old credentials; it was never verified
		}
	}
	c := a.newChangeOf(ctx, authority, of, append(verificationEvents(u, patch, takenOver), more...)...)
	c.IfUsers = []UserAt{still}
	return store.Redemption{Change: c, Effect: store.Effect{UserID: u.ID, Patch: &patch}}, takenOver
}
