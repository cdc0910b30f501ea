package auth

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// The admin API creates invitations, and this file accepts them. An invitation is a
// token that was mailed to the invited email address. The store uses it up in the same
// step in which it creates the account or adds the roles.

const methodInvitation = "invitation"

// applyTerms adds terms to the conditions of a change.
func applyTerms(c *store.Change, t host.Terms) {
	c.IfRoles, c.IfKey = t.IfRoles, t.IfKey
	c.IfUsers = append(c.IfUsers, t.IfUsers...)
}

// invitationID returns the id of the invitation to an email address or phone number.
func invitationID(address string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("invitation "+store.EmailKey(address))).String()
}

// invitedAccount returns the account of an invitation's address. Errors: store.ErrNotFound,
// CodeInvalidToken (the invitation is bound to an account that has another address now).
func (a *Auth) invitedAccount(ctx context.Context, d linkData) (User, error) {
	key := store.ByEmail(d.Email)
	if d.Invitation.Phone != "" {
		key = store.ByPhone(d.Invitation.Phone)
	}
	u, err := a.store.User(ctx, key)
	switch bound := d.Invitation.UserID; {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return u, storeFailed(err)
	case bound != "" && (err != nil || u.ID != bound || d.Email == "" && u.Email != "" || addressSequence(u) != d.Invitation.AddressSequence):
		return u, fail(CodeInvalidToken, errors.New("the account has another address now"))
	}
	return u, err
}

// AcceptInvitationParams are the parameters of AcceptInvitation.
type AcceptInvitationParams struct {
	Token    string
	Password string          // for a new or taken-over account; empty within a session, or if passwords are off
	FullName string          // of such an account; may be empty
	Passkey  json.RawMessage // an AuthenticationResponseJSON, see BeginPasskeyFactor; instead of TOTPCode and Password, of an existing account that becomes an operator's
	TOTPCode string          // of an existing account with a second factor that becomes an operator's; without it an unverified account loses the factor
	Within   Caller          // the live session of the account with the invited address, if there is one
}

// LogValue keeps the secrets out of the log.
func (p AcceptInvitationParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("token", redacted), slog.String("password", redacted))
}

// AcceptInvitation creates the account of an invited person, with the roles of the
// invitation, and signs in to it. An existing account with the address unverified is
// taken over. An account with the address verified gets the roles only within a live
// session of its own (Within) and without a password; otherwise the error is
// CodeAccountExists.
//
// An existing account that has, or gets, permissions of an operator that its holder has not
// accepted starts clean instead, if the invitation gives all of these permissions or is bound
// to the account: AcceptInvitation needs a new password and, if the account
// has a second factor, its TOTPCode; a sign-in at a provider (StartOAuthParams.Invitation)
// replaces the password. It revokes all sessions, links and trusted devices, the
// API keys that the account created, and all sign-in methods except the address of the
// link (the phone number of an account without an email address) and the second factor
// whose TOTPCode it was. An account with an unverified address may leave TOTPCode out. If it fails, the invitation stays valid.
//
// An invitation is valid once, and only while the inviter could
// still create it: it ends if they are demoted, banned or deleted. It also works while
// sign-up is switched off. Errors: CodeInvalidToken, CodeAccountExists,
// CodeWeakPassword, CodeValidationFailed, CodeMethodDisabled, CodeOverloaded,
// CodeRateLimited, CodeUserBanned, CodeInvalidTOTPCode, CodeMFARequired, CodeMFAEnrollmentRequired, those of
// Hooks.BeforeSignUp and BeforePasswordChange.
//
// Within a session that lacks the second factor which the roles require, the tokens lack
// these roles, as at Refresh; StepUp or EnableTOTP adds them. The page continues with the
// factor.
func (a *Auth) AcceptInvitation(ctx context.Context, p AcceptInvitationParams) (*Tokens, error) {
	done, err := a.acceptInvitation(ctx, p)
	if err != nil {
		return nil, err
	}
	tokens, err := a.signInInvited(ctx, done)
	if err == nil {
		tokens.RecoveryCodes = done.codes
	}
	return tokens, err
}

// acceptedInvitation is the result of accepting an invitation.
type acceptedInvitation struct {
	linkData
	user      User
	within    Caller // the session in which it was accepted
	takenOver bool
	used      *usedFactor // that was shown to accept the permissions of an operator
	codes     []string    // new recovery codes in place of those that the acceptance ended

	needsFactor bool // operators need a second factor
}

// passkey returns the assertion for the acceptance, or nil.
func (p AcceptInvitationParams) passkey() *assertedPasskey {
	if !hasValue(p.Passkey) {
		return nil
	}
	return &assertedPasskey{response: p.Passkey, purpose: challengeAccept, bound: acceptanceBound(p.Token), any: true}
}

// acceptanceBound names what the challenges of an acceptance link are bound to.
func acceptanceBound(token string) string {
	return base64.RawURLEncoding.EncodeToString(hashLinkToken(token))
}

// keeps returns the ids of the factors that the holder has shown.
func (in *acceptedInvitation) keeps() []string {
	if in.used == nil || in.used.id == "" {
		return nil
	}
	return []string{in.used.id}
}

// signInInvited returns tokens of the session in which the invitation was accepted, or
// of a new one.
func (a *Auth) signInInvited(ctx context.Context, in acceptedInvitation) (*Tokens, error) {
	if in.within.SessionID == "" {
		return a.completeSignIn(ctx, signIn{user: in.user, by: credentialRef{Email: in.Email, Phone: in.Invitation.Phone}, amr: a.newAMR(methodInvitation), gone: CodeInvalidToken, used: in.used})
	}
	s, u, err := a.liveSession(ctx, in.within, CodeSessionEnded)
	if err != nil {
		return nil, err
	}
	return a.mint(ctx, u, s)
}

func (a *Auth) acceptInvitation(ctx context.Context, p AcceptInvitationParams) (acceptedInvitation, error) {
	name, err := cleanName(p.FullName)
	if err != nil {
		return acceptedInvitation{}, invalid("full_name", err.Error())
	}
	p.FullName = name
	out := acceptedInvitation{}
	var permit accountPermit
	var hash string // of the new account's password, computed once
	out.linkData, out.user, err = a.redeemWithin(ctx, store.PurposeInvitation, hashLinkToken(p.Token), &p.Within, func(_ store.Token, d linkData) (store.Redemption, error) {
		out.takenOver, out.within = false, Caller{}
		terms, err := a.requireInviter(ctx, d)
		if err != nil {
			return store.Redemption{}, err
		}
		out.needsFactor = terms.NeedsFactor
		u, err := a.invitedAccount(ctx, d)
		clean, waits := cleanStart{invitation: d, terms: terms, user: u}, false
		if err == nil {
			if waits, err = a.startsClean(ctx, &clean); err != nil {
				return store.Redemption{}, err
			}
		}
		switch {
		case waits:
			return a.startClean(ctx, clean, p, &out)
		case d.Invitation.UserID != "" && err == nil:
			return store.Redemption{}, fail(CodeInvalidToken, errors.New("there is nothing to accept"))
		case errors.Is(err, store.ErrNotFound):
			if hash == "" {
				if hash, err = a.invitedPassword(ctx, &permit, d, p); err != nil {
					return store.Redemption{}, err
				}
			}
			invited, err := a.invitedUser(ctx, d, p.FullName)
			if err != nil {
				return store.Redemption{}, err
			}
			nu := a.newUser(ctx, permit, invited)
			nu.PasswordHash = hash
			return store.Redemption{Change: a.creatingInvited(ctx, d, terms, nu.User, ""), Effect: store.Effect{Create: &nu}}, nil
		case err != nil:
			return store.Redemption{}, err
		case p.Within.SessionID != "" && p.Within.UserID == u.ID:
			if p.Password != "" {
				return store.Redemption{}, invalid("password", "is not changed by an invitation")
			}
			if err := a.mayContinue(ctx, u, p.Within, CodeSessionEnded); err != nil {
				return store.Redemption{}, err
			}
			out.within = p.Within
			return a.givingRoles(ctx, d, terms, u, p.Within)
		case u.EmailVerified():
			return store.Redemption{}, fail(CodeAccountExists, errors.New("the account's owner has to sign in"))
		}
		out.takenOver = true
		return a.takeOverInvited(ctx, d, terms, u, p)
	})
	if err == nil && out.takenOver {
		a.unlockPassword(ctx, out.user, true)
	}
	if err == nil {
		a.replaceEndedCodes(ctx, &out)
	}
	return out, err
}

// requireInviter checks that the inviter may still create the invitation, and returns
// the conditions. A process without the admin API cannot check it, and refuses.
func (a *Auth) requireInviter(ctx context.Context, d linkData) (host.Terms, error) {
	check := a.inviters.Load()
	switch {
	case d.Invitation == nil:
		return host.Terms{}, fail(CodeInternal, errors.New("the invitation has no sealed content"))
	case check == nil:
		return host.Terms{}, fail(CodeUnavailable, errors.New("invitations work only in a process that called admin.New"))
	}
	return (*check)(ctx, *d.Invitation)
}

// invitedPassword checks and hashes the password of a new account.
func (a *Auth) invitedPassword(ctx context.Context, permit *accountPermit, d linkData, p AcceptInvitationParams) (string, error) {
	if err := a.maySetInvitedPassword(ctx, p, false); err != nil {
		return "", err
	}
	if p.Password != "" {
		if err := a.checkNewPassword(ctx, p.Password, d.Email, p.FullName); err != nil {
			return "", err
		}
	}
	if err := a.allowAccount(ctx, permit, SignUpAttempt{Email: d.Email, EmailVerified: true, FullName: p.FullName, Method: methodInvitation}); err != nil {
		return "", err
	}
	if p.Password == "" {
		return "", nil
	}
	hash, err := a.passwords.hash(ctx, hashOwner{account: store.EmailKey(d.Email)}, p.Password)
	if err != nil {
		return "", hashFailed(err)
	}
	return hash, nil
}

// maySetInvitedPassword checks that a password is given exactly if passwords are on. If
// they are off, the holder signs in with the other methods.
func (a *Auth) maySetInvitedPassword(ctx context.Context, p AcceptInvitationParams, clean bool) error {
	on := a.Settings(ctx).Password.On()
	switch {
	case !on && p.Password != "":
		return fail(CodeMethodDisabled, nil)
	case on && p.Password == "" && (!clean || !hasValue(p.Passkey)): // only startClean checks the passkey
		return invalid("password", "is required")
	}
	return nil
}

// chooseInvitedPassword returns the password of an existing account, or none if passwords
// are off. last runs before the hash is computed; it may be nil.
func (a *Auth) chooseInvitedPassword(ctx context.Context, u User, p AcceptInvitationParams, last func() error) (chosenPassword, error) {
	if p.Password != "" {
		return a.choosePassword(ctx, PasswordChange{u, passwordByInvitation}, newPassword{text: p.Password}, last)
	}
	if last != nil {
		return chosenPassword{}, last()
	}
	return chosenPassword{}, nil
}

// invitedUser returns the account that an invitation creates.
func (a *Auth) invitedUser(ctx context.Context, d linkData, name string) (User, error) {
	now := a.now()
	accepted, err := a.acceptedWith(ctx, d.Invitation.Roles) // the holder chooses everything
	return User{
		AcceptedSequence: accepted,
		ID:               a.newID(), Email: d.Email, EmailVerifiedAt: now, FullName: name, UserMetadata: withLocale(nil, d.Invitation.Locale),
		AppMetadata: orEmptyMap(d.Invitation.Metadata), Roles: slices.Clone(d.Invitation.Roles), CreatedAt: now, UpdatedAt: now,
	}, err
}

// creatingInvited returns the change in which an invitation creates an account.
func (a *Auth) creatingInvited(ctx context.Context, d linkData, terms host.Terms, u User, provider string) store.Change {
	c := a.newChange(ctx, byAuthentication(), done(Event{Type: EventSignedUp, UserID: u.ID, Method: methodInvitation, Provider: provider}), accepted(d, u, nil))
	applyTerms(&c, terms)
	return c
}

// givingRoles returns the redemption of an invitation by the account's owner: within a
// session of the account, or right after a provider verified the address.
func (a *Auth) givingRoles(ctx context.Context, d linkData, terms host.Terms, u User, within Caller) (store.Redemption, error) {
	if d.Invitation.By.Kind == store.ActorUser && d.Invitation.By.ID == u.ID {
		return store.Redemption{}, fail(CodeInvalidToken, errors.New("by the inviter"))
	}
	r, _, err := a.ownVerification(ctx, u, rootEmail, within, accepted(d, u, u.Roles))
	if err != nil {
		return r, err
	}
	applyTerms(&r.Change, terms)
	r.IfUsers = append(r.IfUsers, UserAt{ID: u.ID, Revision: &u.Revision})
	return r, a.addInvitedRoles(ctx, r.Patch, d, u)
}

// takeOverInvited returns the redemption that takes over an account with the invited
// address unverified. For an account without roles it has no condition on the revision,
// so that an attacker who keeps changing the account cannot block the invited person.
func (a *Auth) takeOverInvited(ctx context.Context, d linkData, terms host.Terms, u User, p AcceptInvitationParams) (store.Redemption, error) {
	if err := a.maySetInvitedPassword(ctx, p, false); err != nil {
		return store.Redemption{}, err
	}
	chosen, err := a.chooseInvitedPassword(ctx, u, p, nil)
	if err != nil {
		return store.Redemption{}, err
	}
	r, _, err := a.ownVerification(ctx, u, rootEmail, Caller{}, done(Event{Type: EventPasswordReset, UserID: u.ID}), accepted(d, u, u.Roles))
	if err != nil {
		return r, err
	}
	applyTerms(&r.Change, terms)
	if len(u.Roles) > 0 {
		r.IfUsers = append(r.IfUsers, ifCredentialsUnchanged(u))
	}
	if r.Patch.UserMetadata != nil { // a stranger's, which the takeover removes
		r.Patch.UserMetadata = withLocale(r.Patch.UserMetadata, cmp.Or(d.Invitation.Locale, pageLocale(ctx)))
	}
	setPassword(r.Patch, chosen)
	if p.FullName != "" {
		r.Patch.FullName = &p.FullName
	}
	return r, a.addInvitedRoles(ctx, r.Patch, d, u)
}

// addInvitedRoles adds the invitation's roles to a patch.
func (a *Auth) addInvitedRoles(ctx context.Context, p *store.UserPatch, d linkData, u User) error {
	known, err := a.currentRoles(ctx)
	if err != nil {
		return err
	}
	a.setRoles(p, known, u, rolesWith(u.Roles, d.Invitation.Roles)) // metadata is only for new accounts: an existing one's may be beyond the inviter's permissions
	return nil
}

// rolesWith returns roles and more together, sorted and without duplicates.
func rolesWith(roles, more []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat([]string{}, roles, more))))
}

// accepted returns the event of an acceptance, with its entry in the audit log.
func accepted(d linkData, u User, before []string) store.OutcomeEvent {
	address := cmp.Or(d.Email, d.Invitation.Phone)
	return done(Event{Type: EventInvitationAccepted, UserID: u.ID, Record: &store.Record{
		Actor: address, Target: address,
		Changes: map[string]store.FieldChange{"roles": {Before: nonNil(before), After: rolesWith(before, d.Invitation.Roles)}},
	}})
}

// userOfSignIn returns the user of a sign-in at a provider, and the hash of the invitation
// that the sign-in accepts later, with the account's second factor; nil: none.
func (a *Auth) userOfSignIn(ctx context.Context, p *oauthClient, profile provider.Profile, st oauthState) (u User, accepts []byte, err error) {
	if st.Invitation == nil {
		u, err = a.userOf(ctx, p, profile, st.Code)
		return u, nil, err
	}
	return a.acceptByIdentity(ctx, p, profile, st.Invitation)
}

// acceptByIdentity accepts an invitation by a sign-in at a provider that has verified
// the invited address. The account is found as in any such sign-in. The results are those
// of userOfSignIn.
func (a *Auth) acceptByIdentity(ctx context.Context, p *oauthClient, profile provider.Profile, hash []byte) (User, []byte, error) {
	var permit accountPermit
	var asked *User // who has to show a second factor
	_, u, err := a.redeemHash(ctx, store.PurposeInvitation, hash, func(_ store.Token, d linkData) (store.Redemption, error) {
		if d.Email == "" || !profile.EmailVerified || store.EmailKey(profile.Email) != store.EmailKey(d.Email) {
			return store.Redemption{}, Reject(CodeInvalidToken, "The invitation is for another address.")
		}
		terms, err := a.requireInviter(ctx, d)
		if err != nil {
			return store.Redemption{}, err
		}
		if isNew, err := a.isNew(ctx, p, profile); err != nil {
			return store.Redemption{}, err
		} else if isNew {
			attempt := SignUpAttempt{Email: profile.Email, EmailVerified: true, FullName: profile.FullName, Method: methodOAuth, Provider: p.Name}
			if err := a.allowAccount(ctx, &permit, attempt); err != nil {
				return store.Redemption{}, err
			}
			invited, err := a.invitedUser(ctx, d, profile.FullName)
			if err != nil {
				return store.Redemption{}, err
			}
			nu := a.newUser(ctx, permit, invited)
			nu.User.Identities = []Identity{a.newIdentity(p, profile)}
			return store.Redemption{Change: a.creatingInvited(ctx, d, terms, nu.User, p.Name), Effect: store.Effect{Create: &nu}}, nil
		}
		u, err := a.userOf(ctx, p, profile, "")
		switch {
		case err != nil:
			return store.Redemption{}, err
		case !u.EmailVerified() || store.EmailKey(u.Email) != store.EmailKey(d.Email):
			return store.Redemption{}, Reject(CodeInvalidToken, "The invitation is for another address.")
		case d.Invitation.UserID != "" && u.ID != d.Invitation.UserID:
			return store.Redemption{}, fail(CodeInvalidToken, errors.New("the account has another address now"))
		}
		clean := cleanStart{invitation: d, terms: terms, user: u}
		switch waits, err := a.startsClean(ctx, &clean); {
		case err != nil:
			return store.Redemption{}, err
		case waits && clean.asksFactor():
			asked = &u
			return store.Redemption{}, fail(CodeMFARequired, nil)
		case waits:
			return a.startCleanWith(ctx, clean, a.newIdentity(p, profile))
		}
		return a.givingRoles(ctx, d, terms, u, Caller{})
	})
	if asked != nil && errors.Is(err, CodeMFARequired) {
		return *asked, hash, nil
	}
	return u, nil, err
}

// isNew reports whether neither the identity nor its email address has an account.
func (a *Auth) isNew(ctx context.Context, p *oauthClient, profile provider.Profile) (bool, error) {
	for _, key := range []store.UserKey{store.ByIdentity(p.Name, profile.Subject), store.ByEmail(profile.Email)} {
		_, err := a.store.User(ctx, key)
		if err == nil {
			return false, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return false, storeFailed(err)
		}
	}
	return true, nil
}
