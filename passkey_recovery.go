package auth

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// While links are switched off and passkeys on, the same links and codes still go to addresses
// that no account has verified, because a sign-up with a passkey verifies the address first,
// to accounts without a password or another sign-in method, because passkeys can be lost, and
// a sign-up can be left before the passkey is added, and to accounts with a passkey that is
// due (passkeyDue), which may be lost, too.

// requireLinks returns CodeMethodDisabled if no links or codes are sent at all.
func (a *Auth) requireLinks(ctx context.Context) error {
	if !a.Settings(ctx).MagicLink.On() && !a.passkeysOn(ctx) {
		return fail(CodeMethodDisabled, nil)
	}
	return nil
}

// requireLink returns CodeInvalidToken if an account takes no link now.
func (a *Auth) requireLink(ctx context.Context, c store.Credentials) error {
	takes, err := a.takesLink(ctx, c)
	if err == nil && !takes {
		err = fail(CodeInvalidToken, errors.New("sign-in links are switched off, and the account has another way"))
	}
	return err
}

// takesCode reports whether the account that has an email address takes codes.
func (a *Auth) takesCode(ctx context.Context, email string) (bool, error) {
	if a.Settings(ctx).MagicLink.On() {
		return true, nil
	}
	c, err := a.store.Credentials(ctx, store.ByEmail(email))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, storeFailed(err)
	}
	return a.takesLink(ctx, c)
}

// takesLink reports whether an account takes links and codes. An address that nobody verified
// is new, whoever entered it. While links are switched off, it does the same work for all.
func (a *Auth) takesLink(ctx context.Context, c store.Credentials) (bool, error) {
	if a.Settings(ctx).MagicLink.On() {
		return true, nil
	}
	var list store.Factors
	if a.passkeysOn(ctx) {
		var err error
		if list, err = a.factors.Factors(ctx, cmp.Or(c.User.ID, uuid.Nil.String())); err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, storeFailed(err)
		}
	}
	if !c.User.EmailVerified() || !a.canSignInBy(ctx, c, "", 0) {
		return true, nil
	}
	due, err := a.mayBeDue(ctx, c.User, nil)
	return due && a.hasDue(list, credentialRef{}), err // it may be lost, and there are no recovery codes
}

// showsAddress reports whether a session's method shows that the user receives the account's
// mail or text messages now. What a session showed long ago does not count.
func (a *Auth) showsAddress(m AMR) bool {
	return slices.Contains([]string{methodMagicLink, methodPhoneCode, methodInvitation}, m.Method) && a.now().Sub(m.Time()) < freshFor
}

// canShowAddress reports whether a user can sign in by a method of showsAddress.
func (a *Auth) canShowAddress(ctx context.Context, u User) bool {
	return u.EmailVerified() || u.PhoneVerified() && a.phoneOn(ctx)
}

// passkeyDue reports whether a sign-in or session has to show one of the account's passkeys
// before it changes its second factors. An account that needs a second factor and has none has
// to set one up, and otherwise anybody with its password could do that. Users who have lost
// the passkey sign in by a method of showsAddress and set up another factor. Accounts that
// have no such method would be lost with their passkey, so none is due there.
func (a *Auth) passkeyDue(ctx context.Context, u User, amr []AMR, by credentialRef) (bool, error) {
	if due, err := a.mayBeDue(ctx, u, amr); err != nil || !due {
		return false, err
	}
	list, err := a.factors.Factors(ctx, u.ID)
	if err != nil {
		return false, storeFailed(err)
	}
	return a.hasDue(list, by), nil
}

// mayBeDue is passkeyDue without the passkeys.
func (a *Auth) mayBeDue(ctx context.Context, u User, amr []AMR) (bool, error) {
	if u.MFAEnabled || !a.passkeysOn(ctx) || !a.canShowAddress(ctx, u) || slices.ContainsFunc(amr, a.showsAddress) {
		return false, nil
	}
	return a.needsFactor(ctx, u)
}

func (a *Auth) hasDue(list store.Factors, by credentialRef) bool {
	return slices.ContainsFunc(passkeysOf(list.List), func(f Factor) bool { return a.canShow(f, by) })
}

// needsFactor is mfaRequired that also counts operators. The admin API requires a second factor
// of them; their sign-ins do not.
func (a *Auth) needsFactor(ctx context.Context, u User) (bool, error) {
	if a.mfaRequired(ctx, u) || len(u.Roles) == 0 {
		return a.mfaRequired(ctx, u), nil
	}
	known, err := a.rolePermissions(ctx)
	return err == nil && len(a.holdsOperator(known, u.Roles)) > 0, err
}

// canShow reports whether a passkey can be shown after a sign-in by a credential: nobody can
// show one of another RP ID here, and two passkeys that count as one factor are not two.
func (a *Auth) canShow(f Factor, by credentialRef) bool {
	own, _ := a.cfg.passkeys.RPID()
	r, err := a.cfg.passkeys.Record(storedPasskey(f))
	return err != nil || r.RPID == own && f.ID != by.Passkey && (by.Passkey == "" || r.UserVerified)
}

// requireMove checks that a session may change the account's email address or phone number: not
// while the account waits for an acceptance. If a passkey is due, the session needs AAL2, or a
// recent sign-in by a method of showsAddress; a request for a change needs a recent second
// factor. Otherwise a sign-in at the new address would set up a second factor without the
// passkey. Errors: CodeTargetStronger, CodeInsufficientAAL, CodeReauthNeeded.
func (a *Auth) requireMove(ctx context.Context, u User, by Caller, request bool) error {
	if by.application {
		return nil
	}
	if err := a.requireNoWait(ctx, u); err != nil {
		return err
	}
	if due, err := a.passkeyDue(ctx, u, nil, credentialRef{}); err != nil || !due {
		return err
	}
	s, _, err := a.liveSession(ctx, by, CodeSessionEnded)
	switch {
	case err != nil || slices.ContainsFunc(s.AMR, a.showsAddress), !request && s.AAL == store.LevelAAL2:
		return err
	}
	return a.requireRecentFactor(by, s)
}

// requireOwnFactor checks that a caller who changes second factors has used one recently, or
// the passkey that is due. Errors: CodeInsufficientAAL, CodeReauthNeeded.
func (a *Auth) requireOwnFactor(ctx context.Context, by Caller, me current) error {
	due := me.user.MFAEnabled
	if !due && !by.application {
		var err error
		if due, err = a.passkeyDue(ctx, me.user, me.session.AMR, credentialRef{}); err != nil {
			return err
		}
	}
	if due {
		return a.requireRecentFactor(by, me.session)
	}
	return nil
}

// requirePasskeyUsed makes a passkey that was due a second factor, in the session that has
// just shown it, and returns the recovery codes. The session continues in any case: the next
// sign-in asks for the passkey again.
func (a *Auth) requirePasskeyUsed(ctx context.Context, used usedFactor, by Caller) []string {
	if a.requireNoWait(ctx, used.User) != nil {
		return nil
	}
	codes, hashes := a.newRecoveryCodes(by.UserID)
	c := a.newChangeOf(ctx, by.authority(), account{User: used.User}, done(Event{Type: EventMFAEnabled, UserID: by.UserID, SessionID: by.SessionID}))
	c.IfUsers = []UserAt{ifCredentialsUnchanged(used.User)}
	yes := true
	if _, err := a.factors.UpdateFactor(ctx, store.UpdateFactor{Change: c, UserID: by.UserID, FactorID: used.id, Required: &yes, Recovery: hashes, KeepSession: by.SessionID}); err != nil {
		a.cfg.log.WarnContext(ctx, "auth: a passkey is no second factor yet", "user", by.UserID, "error", err)
		return nil
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	return codes
}
