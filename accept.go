package auth

import (
	"context"
	"errors"
	"slices"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// The acceptance of permissions of an operator. It ends everything that was set up for the
// account before, because somebody else may have done so, except the email address and the
// methods that the holder uses at that moment.

// cleanStart is an acceptance by an existing account. startsClean completes it.
type cleanStart struct {
	invitation  linkData
	terms       host.Terms
	user        User
	roles       []string // afterwards
	showsFactor bool     // the holder shows the account's second factor, which stays
	known       *knownRoles
}

// startsClean reports whether this invitation lets an account accept that would wait
// otherwise. The invitation has to be bound to the account, or to give all of the account's
// operator permissions, so that an operator who may give fewer cannot have a stronger
// account accept.
func (a *Auth) startsClean(ctx context.Context, s *cleanStart) (bool, error) {
	var err error
	if s.known, err = a.currentRoles(ctx); err != nil {
		return false, err
	}
	s.roles = rolesWith(s.user.Roles, s.invitation.Invitation.Roles)
	var p store.UserPatch
	a.setRoles(&p, s.known, s.user, s.roles)
	after := s.user
	after.Roles = s.roles
	if p.AcceptedUntil != nil {
		after.AcceptedUntil = *p.AcceptedUntil
	}
	if !a.standingIn(s.known, after).waits {
		return false, nil
	}
	given := a.holdsOperator(s.known, s.invitation.Invitation.Roles)
	beyond := func(held string) bool {
		return !slices.ContainsFunc(given, func(g string) bool { return grants(g, held) })
	}
	return s.invitation.Invitation.UserID != "" || !slices.ContainsFunc(a.holdsOperator(s.known, s.roles), beyond), nil
}

// startClean returns the acceptance with a new password and the account's second factor, if
// the holder has to show it or does. A
// factor that was used by an earlier attempt counts while the credentials are the same.
func (a *Auth) startClean(ctx context.Context, s cleanStart, p AcceptInvitationParams, out *acceptedInvitation) (store.Redemption, error) {
	u := s.user
	if err := a.maySetInvitedPassword(ctx, p, true); err != nil {
		return store.Redemption{}, err
	}
	code := factorCode{totp: p.TOTPCode, passkey: p.passkey()}
	s.showsFactor = s.asksFactor() || u.MFAEnabled && p.TOTPCode != "" || code.passkey != nil
	r, err := a.acceptance(ctx, s)
	if err != nil {
		return r, err
	}
	showFactor := func() error { return nil }
	if s.showsFactor {
		showFactor = func() error { return a.showFactor(ctx, u, code, out) }
	}
	chosen, err := a.chooseInvitedPassword(ctx, u, p, showFactor)
	if err != nil {
		return r, err
	}
	setPassword(r.Patch, chosen)
	r.Patch.KeepFactors = out.keeps()
	out.takenOver = !s.verified() && !s.invitation.Invitation.Shown // a shown link verifies nothing
	return r, nil
}

// asksFactor reports whether the holder has to show a second factor. A factor at an
// unverified address may be a stranger's: a holder who does not show it loses it.
func (s cleanStart) asksFactor() bool {
	return s.user.MFAEnabled && s.verified()
}

// verified reports whether the address that the acceptance is bound to is verified.
func (s cleanStart) verified() bool {
	if s.user.Email == "" {
		return s.user.PhoneVerified()
	}
	return s.user.EmailVerified()
}

// showFactor checks the account's second factor. A new check returns ErrStale, so that the
// acceptance is decided by the account as it is afterwards.
func (a *Auth) showFactor(ctx context.Context, u User, code factorCode, out *acceptedInvitation, limits ...attemptLimit) error {
	if out.used != nil && out.used.User.CredentialRevision == u.CredentialRevision {
		return nil
	}
	used, err := a.checkFactor(ctx, factorUse{by: byAuthentication(), user: u, code: code, limits: limits})
	if err != nil {
		return err
	}
	if used.alone { // it is one factor, and two are needed
		return fail(CodeInvalidPasskey, errors.New("the passkey does not count as a second factor yet"))
	}
	out.used = &used
	return store.ErrStale
}

// totpFactors returns the ids of the account's enabled authenticator apps.
func (a *Auth) totpFactors(ctx context.Context, u User) (ids []string, err error) {
	factors, err := a.factors.Factors(ctx, u.ID)
	if err != nil {
		return nil, storeFailed(err)
	}
	for _, f := range factors.List {
		if f.Enabled && f.Kind == store.FactorTOTP {
			ids = append(ids, f.ID)
		}
	}
	return ids, nil
}

// startCleanWith returns the acceptance with an identity whose provider has verified the
// address.
func (a *Auth) startCleanWith(ctx context.Context, s cleanStart, i Identity) (store.Redemption, error) {
	r, err := a.acceptance(ctx, s)
	if err == nil {
		r.Patch.Link = &i
	}
	return r, err
}

// acceptWithFactor completes an acceptance by a sign-in at a provider, with the account's
// second factor. t is the token that the sign-in waits with. Errors: those of VerifyMFA.
func (a *Auth) acceptWithFactor(ctx context.Context, t store.Token, d linkData, p VerifyMFAParams) (*Tokens, error) {
	out := acceptedInvitation{}
	var err error
	out.linkData, out.user, err = a.redeemHash(ctx, store.PurposeInvitation, d.Accepts, func(_ store.Token, invitation linkData) (store.Redemption, error) {
		terms, err := a.requireInviter(ctx, invitation)
		if err != nil {
			return store.Redemption{}, err
		}
		u, err := a.invitedAccount(ctx, invitation)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.Redemption{}, err
		}
		identity := slices.IndexFunc(u.Identities, func(i Identity) bool { return i.Provider == d.By.Provider && i.Subject == d.By.Subject })
		if u.ID != t.UserID || identity < 0 {
			return store.Redemption{}, fail(CodeInvalidToken, errors.New("the account has another address now, or lost the identity"))
		}
		s := cleanStart{invitation: invitation, terms: terms, user: u}
		switch waits, err := a.startsClean(ctx, &s); {
		case err != nil:
			return store.Redemption{}, err
		case !waits || !s.user.MFAEnabled:
			return store.Redemption{}, fail(CodeInvalidToken, errors.New("the acceptance needs no second factor now"))
		}
		s.showsFactor = true
		r, err := a.startCleanWith(ctx, s, u.Identities[identity])
		if err == nil {
			code := factorCode{totp: p.TOTPCode, passkey: factorAssertion(p.Passkey, boundTo(Caller{}, &store.TokenRef{Hash: t.Hash}))}
			err = a.showFactor(ctx, u, code, &out, a.mfaTokenLimit(t.Hash))
			r.Patch.KeepFactors = out.keeps()
		}
		return r, err
	})
	if err != nil {
		return nil, err
	}
	a.replaceEndedCodes(ctx, &out)
	by := byIdentity(out.user, d.By.Provider, d.By.Subject)
	tokens, err := a.completeSignIn(ctx, signIn{user: out.user, by: by, amr: d.AMR, gone: CodeInvalidToken, used: out.used, trust: p.TrustDevice, remember: d.Remember})
	if err == nil {
		tokens.RecoveryCodes = out.codes
	}
	return tokens, err
}

// replaceEndedCodes replaces the recovery codes that an acceptance with a second factor
// ended. If it fails, the holder can request new ones.
func (a *Auth) replaceEndedCodes(ctx context.Context, in *acceptedInvitation) {
	if in.used == nil || !in.user.MFAEnabled {
		return
	}
	var err error
	if in.codes, err = a.putRecoveryCodes(ctx, byFlow("invitation accepted"), in.user); err != nil {
		a.cfg.log.WarnContext(ctx, "auth: no recovery codes after an acceptance", "user_id", in.user.ID, "error", err)
	}
}

// acceptance returns the change without the sign-in methods that it keeps.
func (a *Auth) acceptance(ctx context.Context, s cleanStart) (store.Redemption, error) {
	u, inv := s.user, s.invitation.Invitation
	switch {
	case u.Banned(a.now()):
		return store.Redemption{}, fail(CodeUserBanned, nil)
	case inv.By.Kind == store.ActorUser && inv.By.ID == u.ID:
		return store.Redemption{}, fail(CodeInvalidToken, errors.New("by the inviter"))
	}
	by := rootEmail
	if u.Email == "" {
		by = rootPhone
	}
	r, _ := a.verificationRedemption(ctx, u, by, Caller{}, done(Event{Type: EventPasswordReset, UserID: u.ID}), accepted(s.invitation, u, u.Roles))
	applyTerms(&r.Change, s.terms)
	if a.project != nil {
		r.IfRoles = &s.known.revision
	}
	r.IfUsers = append(r.IfUsers, ifCredentialsUnchanged(u))
	p := r.Patch
	if inv.Shown { // the link was not sent to the address
		p.EmailVerifiedAt, p.PhoneVerifiedAt = nil, nil
		r.Events = slices.DeleteFunc(r.Events, func(e store.OutcomeEvent) bool {
			return e.Event.Type == EventEmailVerified || e.Event.Type == EventPhoneVerified
		})
	}
	if by == rootEmail {
		p.Email = &u.Email
	} else {
		p.Phone = &u.Phone
	}
	p.DropCredentials, p.Accept = true, true
	a.setRoles(p, s.known, u, s.roles)
	return r, nil
}
