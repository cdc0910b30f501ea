package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// userOf finds or creates the user of an identity. Only the provider and the subject
// identify it. An unknown identity is linked to an account by its email address only if
// both sides have verified the address. If the account has not verified it, the new
// owner takes the account over. code is StartOAuthParams.ConfirmationCode.
func (a *Auth) userOf(ctx context.Context, p *oauthClient, profile provider.Profile, code string) (User, error) {
	var in accountPermit
	u, err := change(func() (User, error) {
		u, err := a.tryUserOf(ctx, &in, p, profile, code)
		var refused *Error // by a rule or a hook, even if it wraps an error of the store
		switch {
		case err == nil, errors.As(err, &refused):
			return u, err
		case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
			return u, store.ErrStale // changed, or signed up, meanwhile
		}
		return u, storeFailed(err)
	})
	if err != nil {
		return u, err
	}
	if u.Email != "" && a.unconfirmed(ctx, u) {
		a.resendVerification(ctx, u)
		return u, a.notConfirmed(u)
	}
	return u, nil
}

// notConfirmed returns CodeEmailNotVerified for a user who has just shown to own an
// identity of the account.
func (a *Auth) notConfirmed(u User) *Error {
	e := fail(CodeEmailNotVerified, nil)
	e.signUp = a.signUpRequest(u)
	return e
}

func (a *Auth) tryUserOf(ctx context.Context, in *accountPermit, p *oauthClient, profile provider.Profile, code string) (User, error) {
	u, err := a.store.User(ctx, store.ByIdentity(p.Name, profile.Subject))
	if err == nil && code != "" && a.unconfirmed(ctx, u) {
		u, err = a.confirmAtSignIn(ctx, u, credentialRef{Provider: p.Name, Subject: profile.Subject}, code)
		if err != nil {
			return u, err
		}
	}
	if err == nil {
		return a.renewIdentity(ctx, p, profile, u)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return u, storeFailed(err)
	}
	if profile.Email == "" {
		return a.createByIdentity(ctx, in, p, profile)
	}
	u, err = a.store.User(ctx, store.ByEmail(profile.Email))
	if errors.Is(err, store.ErrNotFound) {
		return a.createByIdentity(ctx, in, p, profile)
	}
	if err != nil {
		return u, storeFailed(err)
	}
	return a.joinByEmail(ctx, p, profile, u)
}

// newIdentity returns the stored form of a profile.
func (a *Auth) newIdentity(p *oauthClient, profile provider.Profile) Identity {
	now := a.now()
	return Identity{ID: a.newID(), Provider: p.Name, Subject: profile.Subject, Email: profile.Email, CreatedAt: now, LastSignInAt: now}
}

// renewIdentity signs a known identity in. It does not change the account's own email
// address, even if the provider has another one now.
func (a *Auth) renewIdentity(ctx context.Context, p *oauthClient, profile provider.Profile, u User) (User, error) {
	if u.Banned(a.now()) {
		return u, fail(CodeUserBanned, nil)
	}
	id := a.newIdentity(p, profile)
	i := slices.IndexFunc(u.Identities, func(i Identity) bool { return i.Provider == p.Name && i.Subject == profile.Subject })
	if i >= 0 {
		id.ID, id.CreatedAt = u.Identities[i].ID, u.Identities[i].CreatedAt
	}
	c := a.newChange(ctx, byAuthentication())
	c.IfUsers = []UserAt{ifCredentialsUnchanged(u)}
	return a.store.UpdateUser(ctx, store.UpdateUser{Change: c, UserID: u.ID, Patch: store.UserPatch{Link: &id}})
}

func (a *Auth) createByIdentity(ctx context.Context, in *accountPermit, p *oauthClient, profile provider.Profile) (User, error) {
	if !a.Settings(ctx).SignUp.On() {
		return User{}, fail(CodeSignupDisabled, nil)
	}
	unverified := profile.Email != "" && !profile.EmailVerified
	if unverified && !in.counted {
		var err error
		if *in, err = a.permitAccount(ctx, KindVerifyEmail, profile.Email); err != nil {
			return User{}, err
		}
	}
	err := a.allowAccount(ctx, in, SignUpAttempt{Email: profile.Email, EmailVerified: profile.EmailVerified, FullName: profile.FullName, Method: methodOAuth, Provider: p.Name})
	if err != nil {
		a.refundPermit(*in)
		return User{}, err
	}
	now := a.now()
	nu := a.newUser(ctx, *in, User{
		ID: a.newID(), Email: profile.Email, FullName: profile.FullName, UserMetadata: map[string]any{},
		Identities: []Identity{a.newIdentity(p, profile)}, CreatedAt: now, UpdatedAt: now,
	})
	if profile.EmailVerified {
		nu.User.EmailVerifiedAt = now
	}
	c := a.newChange(ctx, byAuthentication(), done(Event{Type: EventSignedUp, UserID: nu.User.ID, Method: methodOAuth, Provider: p.Name}))
	if unverified {
		link, message := a.firstVerification(ctx, nu.User, "")
		message.Permit = in.permit
		nu.Tokens = []store.Token{link}
		a.enclose(ctx, &c, message, nu.User, &link)
	}
	u, err := a.store.CreateUser(ctx, store.CreateUser{Change: c, NewUser: nu})
	if err != nil {
		return u, err
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	if unverified && a.Settings(ctx).RequireConfirmation.On() {
		return u, a.notConfirmed(u)
	}
	return u, nil
}

// joinByEmail handles an unknown identity and an account with the same email address.
func (a *Auth) joinByEmail(ctx context.Context, p *oauthClient, profile provider.Profile, u User) (User, error) {
	is := func(i Identity) bool { return i.Provider == p.Name }
	switch {
	case slices.ContainsFunc(u.Identities, func(i Identity) bool { return is(i) && i.Subject == profile.Subject }):
		return u, store.ErrStale // another tab was faster, and the identity is known by now
	case !profile.EmailVerified || !a.Settings(ctx).AutoLinking.On():
		return u, fail(CodeAccountExists, nil)
	case slices.ContainsFunc(u.Identities, is) && u.EmailVerified():
		// The provider has given the address to another user since.
		return u, fail(CodeAccountExists, errors.New("another identity of the provider is linked"))
	case u.Banned(a.now()) && (u.EmailVerified() || !hasHolder(u)):
		return u, fail(CodeUserBanned, nil)
	}
	id := a.newIdentity(p, profile)
	patch, still, takenOver := verificationPatch(u, rootEmail, false, a.now())
	if takenOver && hasHolder(u) {
		return u, a.detach(ctx, u, rootEmail)
	}
	patch.Link = &id
	c := a.newChangeOf(ctx, byAuthentication(), account{User: u}, append(verificationEvents(u, patch, takenOver), linkedEvent(u, id))...)
	c.IfUsers = []UserAt{still}
	if !takenOver {
		c.IfUsers = append(c.IfUsers, ifCredentialsUnchanged(u)) // the decision depends on its identities
	}
	u, err := a.store.UpdateUser(ctx, store.UpdateUser{Change: c, UserID: u.ID, Patch: patch})
	if err != nil {
		return u, err
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	return u, nil
}

func linkedEvent(u User, id Identity) store.OutcomeEvent {
	return done(Event{Type: EventIdentityLinked, UserID: u.ID, Provider: id.Provider})
}

// deliverProviderToken passes the provider's tokens to the application. They are not
// stored here.
func (a *Auth) deliverProviderToken(ctx context.Context, u User, p *oauthClient, profile provider.Profile, t *oauth2.Token) {
	if t == nil {
		return
	}
	out := ProviderToken{
		UserID: u.ID, Provider: p.Name, Subject: profile.Subject,
		AccessToken: t.AccessToken, RefreshToken: t.RefreshToken, TokenType: t.Type(),
	}
	if t.ExpiresIn > 0 {
		out.ExpiresAt = a.now().Add(time.Duration(t.ExpiresIn) * time.Second)
	}
	for _, h := range a.cfg.hooks {
		if h.OnProviderToken != nil {
			a.observe(ctx, func() { h.OnProviderToken(ctx, out) })
		}
	}
}

// LinkIdentityParams are the parameters of LinkIdentity.
type LinkIdentityParams struct {
	Caller
	StartOAuthParams
}

// LinkIdentity starts to link an identity to the user of a session and returns the
// provider's URL. The callback has to come from the same browser, or else /exchange
// with the code verifier links the identity. The session needs a sign-in or another
// authentication within the last 15 minutes. Errors: those of StartOAuth,
// CodeReauthNeeded, CodeSessionEnded, CodeUserBanned, CodeEmailNotVerified for an
// unverified account.
func (a *Auth) LinkIdentity(ctx context.Context, p LinkIdentityParams) (string, error) {
	s, u, err := a.liveSession(ctx, p.Caller, CodeSessionEnded)
	if err != nil {
		return "", err
	}
	if !a.recentlyAuthenticated(s) {
		return "", fail(CodeReauthNeeded, nil)
	}
	if err := requireVerified(u); err != nil {
		return "", err
	}
	return a.startOAuth(ctx, p.StartOAuthParams, p.Caller)
}

// finishLinking is the callback of LinkIdentity. The session that started the linking
// must still be live. A browser without the secret of the starting browser gets a code,
// and the identity is linked only by the exchange of the code with the verifier.
// Otherwise an attacker could make a user link their identity to the attacker's
// account.
func (a *Auth) finishLinking(ctx context.Context, p *oauthClient, profile provider.Profile, t *oauth2.Token, st oauthState, by Caller, bound bool) (*OAuthResult, error) {
	id := a.newIdentity(p, profile)
	if !bound {
		_, u, err := a.liveSession(ctx, by, CodeBadOAuthState)
		if err != nil {
			return nil, err
		}
		return a.redirectWith(ctx, u, st, linkData{Identity: &id, SessionID: by.SessionID})
	}
	u, err := a.linkIdentity(ctx, by, CodeBadOAuthState, id)
	if err != nil {
		return nil, err
	}
	a.deliverProviderToken(ctx, u, p, profile, t)
	if !a.endsAtCallback(st) {
		return a.redirectWith(ctx, u, st, linkData{By: credentialRef{Provider: id.Provider, Subject: id.Subject}})
	}
	// The session continues in its present state. The user of liveSession would lack
	// the claims that the store computes.
	s, _, err := a.liveSession(ctx, by, CodeBadOAuthState)
	if err != nil {
		return nil, err
	}
	tokens, err := a.mint(ctx, u, s)
	if err != nil {
		return nil, err
	}
	return &OAuthResult{RedirectURL: st.RedirectTo, Tokens: tokens}, nil
}

// linkIdentity adds an identity to the user of the session that started the linking. If
// the identity belongs to any user already, or is a second one of the same provider, it
// returns CodeIdentityAlreadyExists. If the session has ended, it returns gone.
func (a *Auth) linkIdentity(ctx context.Context, by Caller, gone Code, id Identity) (User, error) {
	return change(func() (User, error) {
		_, u, err := a.liveSession(ctx, by, gone)
		if err != nil {
			return u, err
		}
		if err := requireVerified(u); err != nil {
			return u, err
		}
		if err := a.mayContinue(ctx, u, by, gone); err != nil {
			return u, err
		}
		if slices.ContainsFunc(u.Identities, func(i Identity) bool { return i.Provider == id.Provider }) {
			return u, fail(CodeIdentityAlreadyExists, nil)
		}
		c := a.newChangeOf(ctx, by.authority(), account{User: u}, linkedEvent(u, id))
		c.IfUsers = []UserAt{ifCredentialsUnchanged(u)}
		linked, err := a.update(ctx, c, u.ID, store.UserPatch{Link: &id})
		switch {
		case errors.Is(err, store.ErrConflict):
			return u, fail(CodeIdentityAlreadyExists, err)
		case errors.Is(err, CodeSessionEnded):
			return u, fail(gone, err)
		}
		return linked, err
	})
}

// UnlinkIdentityParams are the parameters of UnlinkIdentity.
type UnlinkIdentityParams struct {
	Caller
	Provider string
}

// UnlinkIdentity removes a user's identity at a provider, unless it is the last sign-in
// method. The session needs a sign-in or another authentication within the last 15
// minutes. Errors: CodeLastSignInMethod, CodeNotFound (the user has no such identity),
// CodeUnknownProvider (neither the identity nor the provider exists), CodeReauthNeeded,
// CodeSessionEnded, CodeUserBanned.
func (a *Auth) UnlinkIdentity(ctx context.Context, p UnlinkIdentityParams) error {
	if !p.application {
		if _, err := a.actingLately(ctx, p.Caller); err != nil {
			return err
		}
	}
	_, err := change(func() (User, error) {
		creds, err := a.store.Credentials(ctx, store.ByID(p.UserID))
		if err != nil {
			return User{}, goneOr(CodeSessionEnded, err)
		}
		u := creds.User
		i := slices.IndexFunc(u.Identities, func(i Identity) bool { return i.Provider == p.Provider })
		switch {
		case i < 0 && a.providers[p.Provider] == nil:
			return u, fail(CodeUnknownProvider, nil)
		case i < 0:
			return u, fail(CodeNotFound, nil)
		}
		can, err := a.canSignInWithout(ctx, creds, p.Provider)
		if err == nil && !can {
			err = fail(CodeLastSignInMethod, nil)
		}
		if err != nil {
			return u, err
		}
		gone := store.ByIdentity(p.Provider, u.Identities[i].Subject)
		c := a.newChangeOf(ctx, p.authority(), account{User: u}, done(Event{Type: EventIdentityUnlinked, UserID: u.ID, Provider: p.Provider}))
		c.IfUsers = []UserAt{ifCredentialsUnchanged(u)}
		_, err = a.update(ctx, c, u.ID, store.UserPatch{Unlink: &gone, DropTokens: purposesOfPassword()})
		return u, err
	})
	return err
}

// canSignInWithout reports whether a user could still sign in without a provider. A
// mailed link does not count: often only that provider verified the email address, and
// the user has never shown that they receive its mail.
func (a *Auth) canSignInWithout(ctx context.Context, c store.Credentials, without string) (bool, error) {
	if a.canSignInBy(ctx, c, without, 0) || !a.passkeysOn(ctx) {
		return a.canSignInBy(ctx, c, without, 0), nil
	}
	list, err := a.factors.Factors(ctx, c.User.ID)
	if err != nil {
		return false, storeFailed(err)
	}
	return a.canSignInBy(ctx, c, without, len(passkeysOf(list.List))), nil
}

// canSignInBy is canSignInWithout for a number of passkeys.
func (a *Auth) canSignInBy(ctx context.Context, c store.Credentials, without string, passkeys int) bool {
	settings := a.Settings(ctx)
	switch {
	case passkeys > 0 && a.passkeysOn(ctx):
		return true
	case c.PasswordHash != "" && settings.Password.On():
		return true
	case c.User.PhoneVerified() && a.phoneOn(ctx):
		return true
	}
	return slices.ContainsFunc(c.User.Identities, func(i Identity) bool {
		return i.Provider != without && a.providers[i.Provider] != nil && settings.OAuth.On()
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
	to, err := a.provider(r.Context(), r.PathValue("provider"))
	if err != nil {
		return err
	}
	cookie := a.bindBrowser(r, to)
	url, err := a.LinkIdentity(r.Context(), LinkIdentityParams{me.caller(), StartOAuthParams{
		Provider: to.Name, RedirectTo: p.RedirectTo, CodeChallenge: p.CodeChallenge, Scopes: p.Scopes, Prompt: p.Prompt,
		Browser: cookie.Value, Remote: p.CodeChallenge != "",
	}})
	if err != nil {
		return err
	}
	http.SetCookie(w, cookie)
	return writeJSON(w, http.StatusOK, map[string]string{"url": url})
}

// handleUnlinkIdentity is DELETE /me/identities/{provider}.
func (a *Auth) handleUnlinkIdentity(w http.ResponseWriter, r *http.Request) error {
	me := currentFrom(r.Context())
	if err := a.UnlinkIdentity(r.Context(), UnlinkIdentityParams{me.caller(), r.PathValue("provider")}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
