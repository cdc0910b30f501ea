package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"github.com/authmount/auth/provider"
)

// userOf finds or makes the user that an identity signs in. Who it is, is told by
// provider and subject alone. An identity that was never seen joins an account by
// its address only if both sides proved it; an account whose address was never
// proved gives way to whoever proved it now.
func (a *Auth) userOf(ctx context.Context, p *oauthClient, who provider.Profile) (User, error) {
	for range attempts {
		u, err := a.tryUserOf(ctx, p, who)
		var refused *Error // by a rule or a hook, whatever that wraps
		if errors.As(err, &refused) {
			return u, err
		}
		if errors.Is(err, ErrStale) || errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound) {
			continue // changed, or signed up, meanwhile
		}
		if err != nil {
			return u, storeFailed(err)
		}
		if a.cfg.settings.RequireConfirmation && u.Email != "" && !u.EmailVerified && !u.PhoneVerified {
			if err := a.resendVerification(ctx, u); err != nil {
				return u, err
			}
			return u, fail(CodeEmailNotVerified, nil)
		}
		return u, nil
	}
	return User{}, retryAfter(CodeUnavailable, time.Second, ErrStale)
}

func (a *Auth) tryUserOf(ctx context.Context, p *oauthClient, who provider.Profile) (User, error) {
	u, err := a.store.User(ctx, ByIdentity(p.Name, who.Subject))
	if err == nil {
		return a.renewIdentity(ctx, p, who, u)
	}
	if !errors.Is(err, ErrNotFound) {
		return u, storeFailed(err)
	}
	if who.Email == "" {
		return a.createByIdentity(ctx, p, who)
	}
	u, err = a.store.User(ctx, ByEmail(who.Email))
	if errors.Is(err, ErrNotFound) {
		return a.createByIdentity(ctx, p, who)
	}
	if err != nil {
		return u, storeFailed(err)
	}
	return a.joinByEmail(ctx, p, who, u)
}

// newIdentity is what is kept of a profile.
func (a *Auth) newIdentity(p *oauthClient, who provider.Profile) Identity {
	now := a.now()
	return Identity{ID: a.newID(), Provider: p.Name, Subject: who.Subject, Email: who.Email, CreatedAt: now, LastSignInAt: now}
}

// renewIdentity signs a known identity in. The account's own address stays as it
// is, whatever the provider says by now.
func (a *Auth) renewIdentity(ctx context.Context, p *oauthClient, who provider.Profile, u User) (User, error) {
	if u.Banned(a.now()) {
		return u, fail(CodeUserBanned, nil)
	}
	id := a.newIdentity(p, who)
	i := slices.IndexFunc(u.Identities, func(i Identity) bool { return i.Provider == p.Name && i.Subject == who.Subject })
	if i >= 0 {
		id.ID, id.CreatedAt = u.Identities[i].ID, u.Identities[i].CreatedAt
	}
	return a.store.UpdateUser(ctx, u.ID, UserPatch{IfRevision: &u.Revision, Link: &id}, a.now())
}

func (a *Auth) createByIdentity(ctx context.Context, p *oauthClient, who provider.Profile) (User, error) {
	if a.cfg.settings.SignupDisabled {
		return User{}, fail(CodeSignupDisabled, nil)
	}
	err := a.beforeSignUp(ctx, SignUpAttempt{Email: who.Email, EmailVerified: who.EmailVerified, FullName: who.FullName, Method: methodOAuth, Provider: p.Name})
	if err != nil {
		return User{}, err
	}
	now := a.now()
	nu := NewUser{Creating: a.creating(), User: User{
		ID: a.newID(), Email: who.Email, EmailVerified: who.EmailVerified, FullName: who.FullName, UserMetadata: map[string]any{},
		Identities: []Identity{a.newIdentity(p, who)}, CreatedAt: now, UpdatedAt: now,
	}}
	var message outgoing
	unproved := who.Email != "" && !who.EmailVerified
	if unproved {
		var link Token
		link, message = a.firstProof(nu.User, "")
		nu.Tokens = []Token{link}
	}
	u, err := a.store.CreateUser(ctx, nu)
	if err != nil {
		return u, err
	}
	if unproved {
		a.sendMail(ctx, message, u)
	}
	a.emit(ctx, Event{Type: EventSignedUp, UserID: u.ID, Method: methodOAuth, Provider: p.Name})
	if unproved && a.cfg.settings.RequireConfirmation {
		return u, fail(CodeEmailNotVerified, nil)
	}
	return u, nil
}

// joinByEmail decides about an identity that was never seen and an account with
// the same address.
func (a *Auth) joinByEmail(ctx context.Context, p *oauthClient, who provider.Profile, u User) (User, error) {
	is := func(i Identity) bool { return i.Provider == p.Name }
	switch {
	case slices.ContainsFunc(u.Identities, func(i Identity) bool { return is(i) && i.Subject == who.Subject }):
		return u, ErrStale // another tab was faster: the identity is known by now
	case !who.EmailVerified || a.cfg.noAutoLinking:
		return u, fail(CodeAccountExists, nil)
	case slices.ContainsFunc(u.Identities, is) && u.EmailVerified:
		// The provider gave the address to somebody else since.
		return u, fail(CodeAccountExists, errors.New("another identity of the provider is linked"))
	case u.Banned(a.now()):
		return u, fail(CodeUserBanned, nil)
	}
	id := a.newIdentity(p, who)
	patch := UserPatch{IfRevision: &u.Revision, Link: &id}
	takenOver := !u.EmailVerified
	if takenOver {
		takeOver(&patch, u)
	}
	before := u
	u, err := a.store.UpdateUser(ctx, u.ID, patch, a.now())
	if err != nil {
		return u, err
	}
	if takenOver {
		a.emit(ctx, Event{Type: EventPasswordRemoved, UserID: u.ID})
		a.emit(ctx, Event{Type: EventEmailVerified, UserID: u.ID})
	}
	a.linked(ctx, before, id)
	return u, nil
}

// takeOver makes an account its address's owner's: whatever was set up without
// proving the address goes, since it would be a way in for whoever did so (no
// pre-hijack). Only an enabled second factor stays.
func takeOver(patch *UserPatch, u User) {
	yes, none := true, ""
	patch.EmailVerified, patch.PasswordHash = &yes, &none
	patch.Revoke = &SessionFilter{}
	patch.RemoveFactor = !u.MFAEnabled
	dropSideDoors(patch)
}

// linked tells the user and the application about a new identity of an account
// that was there before.
func (a *Auth) linked(ctx context.Context, u User, id Identity) {
	a.sendMail(ctx, outgoing{Kind: KindIdentityLinked, To: u.Email, Name: u.FullName, Provider: id.Provider}, u)
	a.emit(ctx, Event{Type: EventIdentityLinked, UserID: u.ID, Provider: id.Provider})
}

// handOver gives the provider's tokens to the application, which is the only
// one to keep them.
func (a *Auth) handOver(ctx context.Context, u User, p *oauthClient, who provider.Profile, t *oauth2.Token) {
	if a.cfg.hooks.OnProviderToken == nil || t == nil {
		return
	}
	out := ProviderToken{
		UserID: u.ID, Provider: p.Name, Subject: who.Subject,
		AccessToken: t.AccessToken, RefreshToken: t.RefreshToken, TokenType: t.Type(),
	}
	if t.ExpiresIn > 0 {
		out.ExpiresAt = a.now().Add(time.Duration(t.ExpiresIn) * time.Second)
	}
	a.cfg.hooks.OnProviderToken(ctx, out)
}

// LinkIdentity begins to link an identity to the user of a session and answers
// the provider's URL. The callback has to come from the same browser, or the link
// is made by /exchange with the code verifier. The caller sees to it that the
// sign-in is recent; the endpoint asks for 15 minutes. Errors: those of
// StartOAuth.
func (a *Auth) LinkIdentity(ctx context.Context, s Session, in OAuthParams) (string, error) {
	return a.startOAuth(ctx, in, &s)
}

// finishLinking is the callback of LinkIdentity. The session that asked has to
// be live still. A browser that does not prove to be the one that asked gets a
// code, and only its exchange, with the verifier, makes the link: else somebody
// could be brought to link their identity to a stranger's account.
func (a *Auth) finishLinking(ctx context.Context, p *oauthClient, who provider.Profile, t *oauth2.Token, st oauthState, userID string, bound bool) (*OAuthResult, error) {
	_, u, err := a.asking(ctx, st.SessionID, userID, CodeBadOAuthState)
	if err != nil {
		return nil, err
	}
	id := a.newIdentity(p, who)
	if !bound {
		return a.redirectWith(ctx, u, st, linkData{Identity: &id, SessionID: st.SessionID})
	}
	if u, err = a.linkIdentity(ctx, u.ID, st.SessionID, CodeBadOAuthState, id); err != nil {
		return nil, err
	}
	a.handOver(ctx, u, p, who, t)
	if !a.endsAtCallback(st) {
		return a.redirectWith(ctx, u, st, linkData{By: provenBy{Provider: id.Provider, Subject: id.Subject}})
	}
	// The session that asked goes on, from where it is by now. Its user as read with
	// it would lack the claims that the store works out.
	s, _, err := a.asking(ctx, st.SessionID, userID, CodeBadOAuthState)
	if err != nil {
		return nil, err
	}
	tokens, err := a.mint(ctx, u, s)
	if err != nil {
		return nil, err
	}
	return &OAuthResult{RedirectURL: st.RedirectTo, Tokens: tokens}, nil
}

// asking reads the session that asked to link, which has to be live still,
// together with its user: what takes the session away raises the user's
// revision, too.
func (a *Auth) asking(ctx context.Context, sessionID, userID string, gone Code) (Session, User, error) {
	s, u, err := a.store.Session(ctx, sessionID, a.now())
	switch {
	case errors.Is(err, ErrSessionEnded), errors.Is(err, ErrNotFound):
		return s, u, fail(gone, err)
	case err != nil:
		return s, u, storeFailed(err)
	case s.UserID != userID:
		return s, u, fail(gone, errors.New("session of another user"))
	}
	return s, u, nil
}

// linkIdentity adds an identity to a user. One that is anybody's already, or a
// second one of the same provider, is CodeIdentityAlreadyExists.
func (a *Auth) linkIdentity(ctx context.Context, userID, sessionID string, gone Code, id Identity) (User, error) {
	for range attempts {
		_, u, err := a.asking(ctx, sessionID, userID, gone)
		if err != nil {
			return u, err
		}
		if slices.ContainsFunc(u.Identities, func(i Identity) bool { return i.Provider == id.Provider }) {
			return u, fail(CodeIdentityAlreadyExists, nil)
		}
		u, err = a.store.UpdateUser(ctx, userID, UserPatch{IfRevision: &u.Revision, Link: &id}, a.now())
		switch {
		case errors.Is(err, ErrStale):
			continue
		case errors.Is(err, ErrConflict):
			return u, fail(CodeIdentityAlreadyExists, err)
		case errors.Is(err, ErrNotFound):
			return u, fail(gone, err)
		case err != nil:
			return u, storeFailed(err)
		}
		a.linked(ctx, u, id)
		return u, nil
	}
	return User{}, retryAfter(CodeUnavailable, time.Second, ErrStale)
}

// UnlinkIdentity removes a user's identity of a provider, unless it is the last
// way to sign in: CodeLastSignInMethod. CodeNotFound if there is none,
// CodeUnknownProvider if there is no such provider either. The caller sees to it
// that the sign-in is recent; the endpoint asks for 15 minutes.
func (a *Auth) UnlinkIdentity(ctx context.Context, userID, provider string) error {
	for range attempts {
		c, err := a.store.Credentials(ctx, ByID(userID))
		if errors.Is(err, ErrNotFound) {
			return fail(CodeSessionEnded, err)
		}
		if err != nil {
			return storeFailed(err)
		}
		i := slices.IndexFunc(c.User.Identities, func(i Identity) bool { return i.Provider == provider })
		switch {
		case i < 0 && a.providers[provider] == nil:
			return fail(CodeUnknownProvider, nil)
		case i < 0:
			return fail(CodeNotFound, nil)
		case !a.otherWayIn(c, provider):
			return fail(CodeLastSignInMethod, nil)
		}
		gone := ByIdentity(provider, c.User.Identities[i].Subject)
		// The password's removal raises the revision, too.
		_, err = a.store.UpdateUser(ctx, userID, UserPatch{IfRevision: &c.User.Revision, Unlink: &gone, DropTokens: pendingSignIns}, a.now())
		switch {
		case errors.Is(err, ErrStale):
			continue
		case errors.Is(err, ErrNotFound):
			return fail(CodeSessionEnded, err)
		case err != nil:
			return storeFailed(err)
		}
		a.sendMail(ctx, outgoing{Kind: KindIdentityUnlinked, To: c.User.Email, Name: c.User.FullName, Provider: provider}, c.User)
		a.emit(ctx, Event{Type: EventIdentityUnlinked, UserID: userID, Provider: provider})
		return nil
	}
	return retryAfter(CodeUnavailable, time.Second, ErrStale)
}

// otherWayIn tells whether a user could still sign in without a provider. A
// mailed link does not count: often it was that provider which vouched for the
// address, and nobody ever showed that they read what arrives there.
func (a *Auth) otherWayIn(c Credentials, without string) bool {
	switch {
	case c.PasswordHash != "" && !a.cfg.settings.PasswordDisabled:
		return true
	case c.User.PhoneVerified && !a.phoneOff():
		return true
	}
	return slices.ContainsFunc(c.User.Identities, func(i Identity) bool {
		return i.Provider != without && a.providers[i.Provider] != nil && !a.cfg.settings.OAuthDisabled
	})
}

// handleLinkIdentity is POST /me/identities/{provider}.
func (a *Auth) handleLinkIdentity(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		RedirectTo          string   `json:"redirect_to"`
		CodeChallenge       string   `json:"code_challenge"`
		CodeChallengeMethod string   `json:"code_challenge_method"`
		Scopes              []string `json:"scopes"`
		Prompt              string   `json:"prompt"`
	}
	if err := decodeOptional(r, &p); err != nil {
		return err
	}
	if err := checkChallengeMethod(p.CodeChallengeMethod, p.CodeChallenge); err != nil {
		return err
	}
	me := currentFrom(r.Context())
	if !a.fresh(me.session) {
		return fail(CodeReauthNeeded, nil)
	}
	to, err := a.provider(r.PathValue("provider"))
	if err != nil {
		return err
	}
	cookie := a.bindBrowser(r, to)
	url, err := a.LinkIdentity(r.Context(), me.session, OAuthParams{
		Provider: to.Name, RedirectTo: p.RedirectTo, CodeChallenge: p.CodeChallenge, Scopes: p.Scopes, Prompt: p.Prompt,
		Browser: cookie.Value, Remote: p.CodeChallenge != "",
	})
	if err != nil {
		return err
	}
	http.SetCookie(w, cookie)
	return writeJSON(w, http.StatusOK, map[string]string{"url": url})
}

// handleUnlinkIdentity is DELETE /me/identities/{provider}.
func (a *Auth) handleUnlinkIdentity(w http.ResponseWriter, r *http.Request) error {
	me := currentFrom(r.Context())
	if !a.fresh(me.session) {
		return fail(CodeReauthNeeded, nil)
	}
	if err := a.UnlinkIdentity(r.Context(), me.user.ID, r.PathValue("provider")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
