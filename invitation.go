package auth

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// Invitations are made on the admin side, and accepted here. One is a token that was
// mailed to the invited address: using it up, with the account that it makes or the
// roles that it gives, is one step of the store.

const methodInvitation = "invitation"

// holdTerms adds terms to what a change rests on.
func holdTerms(c *store.Change, t host.Terms) {
	c.IfRoles, c.IfKey = t.IfRoles, t.IfKey
	c.IfUsers = append(c.IfUsers, t.IfUsers...)
}

// invitationID is the id of the invitation to an address.
func invitationID(email string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("invitation "+store.EmailKey(email))).String()
}

// AcceptInvitationParams accept an invitation.
type AcceptInvitationParams struct {
	Token    string
	Password string // for the account that it makes; empty within a session
	FullName string // likewise; may be empty
	Within   Caller // the live session of the account that has the invited address, if there is one
}

// LogValue keeps the secrets out of the log.
func (p AcceptInvitationParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("token", redacted), slog.String("password", redacted))
}

// AcceptInvitation makes the account of whoever was invited, with the roles of the
// invitation, and signs in to it. An account of the address that nobody has proved to
// be theirs is taken over; one that was proved gets the roles only within a live
// session of its own (Within), without a password: CodeAccountExists otherwise. The
// invitation is good once, and only while whoever it is from could still make it: an
// operator who was demoted, banned or deleted meanwhile takes it along. Sign-up may be
// switched off. Errors: CodeInvalidToken, CodeAccountExists, CodeWeakPassword,
// CodeValidationFailed, CodeMethodDisabled, CodeOverloaded, CodeRateLimited,
// CodeUserBanned, CodeMFARequired, CodeMFAEnrollmentRequired, those of
// Hooks.BeforeSignUp and BeforePasswordChange.
func (a *Auth) AcceptInvitation(ctx context.Context, p AcceptInvitationParams) (*Tokens, error) {
	done, err := a.acceptInvitation(ctx, p)
	if err != nil {
		return nil, err
	}
	return a.signInInvited(ctx, done)
}

// acceptedInvitation is an invitation after it was accepted.
type acceptedInvitation struct {
	linkData
	user      User
	within    Caller // the session that it was accepted in
	takenOver bool
}

// signInInvited is the session of whoever accepted: the one that it happened in, or a
// new one.
func (a *Auth) signInInvited(ctx context.Context, in acceptedInvitation) (*Tokens, error) {
	if in.within.SessionID == "" {
		return a.completeSignIn(ctx, signIn{user: in.user, by: provenBy{Email: in.Email}, amr: a.proof(methodInvitation), gone: CodeInvalidToken})
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
	var hash string // of the password for a new account, worked out once
	out.linkData, out.user, err = a.redeemWithin(ctx, store.PurposeInvitation, hashLinkToken(p.Token), &p.Within, func(_ store.Token, d linkData) (store.Redemption, error) {
		out.takenOver, out.within = false, Caller{}
		terms, err := a.stillInvited(ctx, d)
		if err != nil {
			return store.Redemption{}, err
		}
		u, err := a.store.User(ctx, store.ByEmail(d.Email))
		switch {
		case errors.Is(err, store.ErrNotFound):
			if hash == "" {
				if hash, err = a.invitedPassword(ctx, &permit, d, p); err != nil {
					return store.Redemption{}, err
				}
			}
			nu := a.newUser(permit, a.invitedUser(d, p.FullName))
			nu.PasswordHash = hash
			return store.Redemption{Change: a.creatingInvited(ctx, d, terms, nu.User, ""), Effect: store.Effect{Create: &nu}}, nil
		case err != nil:
			return store.Redemption{}, storeFailed(err)
		case p.Within.SessionID != "" && p.Within.UserID == u.ID:
			if p.Password != "" {
				return store.Redemption{}, invalid("password", "is not changed by an invitation")
			}
			out.within = p.Within
			return a.givingRoles(ctx, d, terms, u, p.Within)
		case u.EmailVerified():
			return store.Redemption{}, fail(CodeAccountExists, errors.New("its owner has to sign in"))
		}
		out.takenOver = true
		return a.takingOverInvited(ctx, d, terms, u, p)
	})
	if err == nil && out.takenOver {
		a.unlockPassword(ctx, out.user, true)
	}
	return out, err
}

// stillInvited tells whether whoever an invitation is from may still make it, and on
// what that rests. A process without the admin side cannot tell, and accepts none.
func (a *Auth) stillInvited(ctx context.Context, d linkData) (host.Terms, error) {
	judge := a.inviters.Load()
	switch {
	case d.Invitation == nil:
		return host.Terms{}, fail(CodeInternal, errors.New("an invitation without particulars"))
	case judge == nil:
		return host.Terms{}, fail(CodeUnavailable, errors.New("invitations are accepted where admin.New was called"))
	}
	return (*judge)(ctx, *d.Invitation)
}

// invitedPassword judges and hashes the password of a new account.
func (a *Auth) invitedPassword(ctx context.Context, permit *accountPermit, d linkData, p AcceptInvitationParams) (string, error) {
	if err := a.maySetInvitedPassword(ctx, p); err != nil {
		return "", err
	}
	if err := a.checkPassword(ctx, p.Password, d.Email, p.FullName); err != nil {
		return "", err
	}
	if err := a.allowAccount(ctx, permit, SignUpAttempt{Email: d.Email, EmailVerified: true, FullName: p.FullName, Method: methodInvitation}); err != nil {
		return "", err
	}
	hash, err := a.passwords.hash(ctx, store.EmailKey(d.Email), p.Password)
	if err != nil {
		return "", hashFailed(err)
	}
	return hash, nil
}

func (a *Auth) maySetInvitedPassword(ctx context.Context, p AcceptInvitationParams) error {
	switch {
	case !a.Settings(ctx).Password.On():
		return fail(CodeMethodDisabled, nil)
	case p.Password == "":
		return invalid("password", "is required")
	}
	return nil
}

// invitedUser is the account that an invitation makes.
func (a *Auth) invitedUser(d linkData, name string) User {
	now := a.now()
	return User{
		ID: a.newID(), Email: d.Email, EmailVerifiedAt: now, FullName: name, UserMetadata: map[string]any{},
		AppMetadata: orEmptyMap(d.Invitation.Metadata), Roles: slices.Clone(d.Invitation.Roles), CreatedAt: now, UpdatedAt: now,
	}
}

// creatingInvited is the change by which an invitation makes an account.
func (a *Auth) creatingInvited(ctx context.Context, d linkData, terms host.Terms, u User, provider string) store.Change {
	c := a.newChange(ctx, byProof(), done(Event{Type: EventSignedUp, UserID: u.ID, Method: methodInvitation, Provider: provider}), accepted(d, u, nil))
	holdTerms(&c, terms)
	return c
}

// givingRoles is the use of an invitation by the owner of the account that has the
// address, within a session of it or having proved the address just now.
func (a *Auth) givingRoles(ctx context.Context, d linkData, terms host.Terms, u User, within Caller) (store.Redemption, error) {
	switch {
	case u.Banned(a.now()):
		return store.Redemption{}, fail(CodeUserBanned, nil)
	case d.Invitation.By.Kind == store.ActorUser && d.Invitation.By.ID == u.ID:
		return store.Redemption{}, fail(CodeInvalidToken, errors.New("by the inviter"))
	}
	r, _ := a.provingRedemption(ctx, u, rootEmail, within, accepted(d, u, u.Roles))
	holdTerms(&r.Change, terms)
	r.IfUsers = append(r.IfUsers, UserAt{ID: u.ID, Revision: &u.Revision})
	giveInvited(r.Patch, d, u)
	return r, nil
}

// takingOverInvited is the use of an invitation to an address whose account nobody has
// proved to be theirs. It rests on no revision of an account without roles, so that
// whoever keeps changing it cannot keep the invited out.
func (a *Auth) takingOverInvited(ctx context.Context, d linkData, terms host.Terms, u User, p AcceptInvitationParams) (store.Redemption, error) {
	if u.Banned(a.now()) {
		return store.Redemption{}, fail(CodeUserBanned, nil)
	}
	if err := a.maySetInvitedPassword(ctx, p); err != nil {
		return store.Redemption{}, err
	}
	chosen, err := a.choosePassword(ctx, PasswordChange{u, passwordByInvitation}, newPassword{text: p.Password}, nil)
	if err != nil {
		return store.Redemption{}, err
	}
	r, _ := a.provingRedemption(ctx, u, rootEmail, Caller{}, done(Event{Type: EventPasswordReset, UserID: u.ID}), accepted(d, u, u.Roles))
	holdTerms(&r.Change, terms)
	if len(u.Roles) > 0 {
		r.IfUsers = append(r.IfUsers, credentialsStill(u))
	}
	setPassword(r.Patch, chosen)
	giveInvited(r.Patch, d, u)
	if p.FullName != "" {
		r.Patch.FullName = &p.FullName
	}
	return r, nil
}

// giveInvited puts what an invitation gives into a patch.
func giveInvited(p *store.UserPatch, d linkData, u User) {
	roles := rolesWith(u.Roles, d.Invitation.Roles)
	p.Roles = &roles // the metadata is a new account's: what one that is there has, may be more than the inviter may write
}

// rolesWith are roles with more, sorted, each once.
func rolesWith(roles, more []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat([]string{}, roles, more))))
}

// accepted is the event of an invitation's acceptance, with its row of the audit log.
func accepted(d linkData, u User, before []string) store.OutcomeEvent {
	return done(Event{Type: EventInvitationAccepted, UserID: u.ID, Record: &store.Record{
		Actor: d.Email, Target: d.Email,
		Changes: map[string]store.FieldChange{"roles": {Before: orEmpty(before), After: rolesWith(before, d.Invitation.Roles)}},
	}})
}

// userComing is the user whom a sign-in at a provider is of.
func (a *Auth) userComing(ctx context.Context, p *oauthClient, who provider.Profile, st oauthState) (User, error) {
	if st.Invitation == nil {
		return a.userOf(ctx, p, who)
	}
	return a.acceptByIdentity(ctx, p, who, st.Invitation)
}

// acceptByIdentity accepts an invitation by a sign-in at a provider that has proved
// the invited address. Whom an account belongs to, is judged as in any such sign-in.
func (a *Auth) acceptByIdentity(ctx context.Context, p *oauthClient, who provider.Profile, hash []byte) (User, error) {
	var permit accountPermit
	_, u, err := a.redeemHash(ctx, store.PurposeInvitation, hash, func(_ store.Token, d linkData) (store.Redemption, error) {
		if !who.EmailVerified || store.EmailKey(who.Email) != store.EmailKey(d.Email) {
			return store.Redemption{}, Reject(CodeInvalidToken, "The invitation is for another address.")
		}
		terms, err := a.stillInvited(ctx, d)
		if err != nil {
			return store.Redemption{}, err
		}
		if isNew, err := a.isNew(ctx, p, who); err != nil {
			return store.Redemption{}, err
		} else if isNew {
			attempt := SignUpAttempt{Email: who.Email, EmailVerified: true, FullName: who.FullName, Method: methodOAuth, Provider: p.Name}
			if err := a.allowAccount(ctx, &permit, attempt); err != nil {
				return store.Redemption{}, err
			}
			nu := a.newUser(permit, a.invitedUser(d, who.FullName))
			nu.User.Identities = []Identity{a.newIdentity(p, who)}
			return store.Redemption{Change: a.creatingInvited(ctx, d, terms, nu.User, p.Name), Effect: store.Effect{Create: &nu}}, nil
		}
		u, err := a.userOf(ctx, p, who)
		switch {
		case err != nil:
			return store.Redemption{}, err
		case !u.EmailVerified() || store.EmailKey(u.Email) != store.EmailKey(d.Email):
			return store.Redemption{}, Reject(CodeInvalidToken, "The invitation is for another address.")
		}
		return a.givingRoles(ctx, d, terms, u, Caller{})
	})
	return u, err
}

// isNew tells whether neither the identity nor its address has an account.
func (a *Auth) isNew(ctx context.Context, p *oauthClient, who provider.Profile) (bool, error) {
	for _, key := range []store.UserKey{store.ByIdentity(p.Name, who.Subject), store.ByEmail(who.Email)} {
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
