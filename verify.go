package auth

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// StartEmailVerificationParams are the parameters of StartEmailVerification.
type StartEmailVerificationParams struct{ Caller }

// StartEmailVerification mails the link that verifies a user's email address. It sends
// nothing if the address is verified already or absent. Errors: CodeRateLimited,
// CodeSessionEnded, CodeUserBanned.
func (a *Auth) StartEmailVerification(ctx context.Context, p StartEmailVerificationParams) error {
	if err := p.notActing(); err != nil {
		return err
	}
	u, err := a.store.User(ctx, store.ByID(p.UserID))
	if err != nil {
		return goneOr(CodeSessionEnded, err)
	}
	return a.startEmailVerification(ctx, p.Caller, u)
}

func (a *Auth) startEmailVerification(ctx context.Context, by Caller, u User) error {
	if u.Email == "" || u.EmailVerified() {
		return nil
	}
	allowed, err := a.takeSend(ctx, atOwners, KindVerifyEmail, u.Email)
	if err != nil {
		return err
	}
	link, message := a.verification(ctx, KindVerifyEmail, by, u, u.Email)
	message.Permit = allowed
	if err := a.mailToken(ctx, by.authority(), link, message, u); err != nil {
		return err
	}
	a.refillCode(ctx, link.Purpose, ofUser(u.ID), store.EmailKey(u.Email))
	return nil
}

// resendVerification mails the verification link after a sign-in that failed because
// the email address is unverified. It works in the background, because a longer
// response time would reveal that the password was right. For the same reason it has a
// limit of its own, which no response shows, and omits further messages silently. An
// account without an email address gets no message: its owner requests a code to sign
// in with.
func (a *Auth) resendVerification(ctx context.Context, u User) {
	if u.Email == "" {
		return
	}
	asked := ctx           // for the client and the authority, not for the store: the request has ended by then
	var allowed sendPermit // counted once: a retry would find nothing left
	a.outbox.Prepare(ctx, KindVerifyEmail, func(background context.Context) (*store.SealedMessage, error) {
		if allowed == (sendPermit{}) {
			permit, err := a.takeUnrequested(background, atLogin, KindVerifyEmail, u.Email)
			if errors.Is(err, CodeRateLimited) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			allowed = permit
		}
		link, message := a.newVerification(KindVerifyEmail, u, linkData{Email: u.Email})
		message.Permit = allowed
		c := a.newChange(asked, byFlow("confirmation"))
		a.enclose(asked, &c, message, u, &link)
		err := a.putChange(background, c, link, []UserAt{ifCredentialsUnchanged(u)})
		if errors.Is(err, store.ErrStale) || errors.Is(err, CodeInvalidToken) {
			return nil, nil // confirmed, changed or deleted a moment ago
		}
		if err != nil {
			return nil, err
		}
		return &c.Messages[0], nil
	})
}

// verification is newVerification for a signed-in user.
func (a *Auth) verification(ctx context.Context, k Kind, by Caller, u User, address string) (store.Token, outbox.Outgoing) {
	d := linkData{Email: address, Device: a.callerUserAgent(ctx, by)}
	if k == KindChangeEmail {
		d.SessionID = by.SessionID
	}
	return a.newVerification(k, u, d)
}

// newVerification creates a link that verifies an email address for the user, and the
// message that contains it. The message about the account's own address has a code, too.
func (a *Auth) newVerification(k Kind, u User, d linkData) (store.Token, outbox.Outgoing) {
	secret, t := a.newLink(store.PurposeVerifyEmail, verifyLife, d)
	t.UserID, t.Subject = u.ID, u.ID
	if k == KindChangeEmail { // the link's page shows a code for the session that requested the change
		a.addCode(&t, secret, "", "") // until then no code is right
		return t, outbox.Outgoing{Kind: k, To: d.Email, Link: a.linkURL(k, secret), ExpiresIn: verifyLife, NewAddress: d.Email}
	}
	code := a.addCode(&t, secret, d.Email, "")
	return t, outbox.Outgoing{Kind: k, To: d.Email, Link: a.linkURL(k, secret), Code: code, ExpiresIn: verifyLife, NewAddress: d.Email}
}

// callerUserAgent returns the caller's user agent, if the caller has a session. The
// page of the link shows it to the reader.
func (a *Auth) callerUserAgent(ctx context.Context, by Caller) string {
	if by.SessionID == "" {
		return ""
	}
	return clientFrom(ctx).UserAgent
}

// VerifyEmailParams are the parameters of VerifyEmail.
type VerifyEmailParams struct {
	Token  string
	Within Caller // the caller's live session, if any; ignored by a first verification of another account

	// Instead of Token: a code and the email address that it is about. Attempts count by
	// address, or within a session by its user. The code for an account's own address is
	// in the mail. The code for a new address is on the page of the link, if that is
	// opened outside of the account; it is valid only within the session that requested
	// the address.
	Email string
	Code  string

	// SignUpResult.RequestID of the account's sign-up, or several, separated by commas. It
	// shows that the same person signed up and read the link or code. Outside of a session,
	// the first verification of an address by a code without it takes the account over.
	// Another account's session in Within does not matter then.
	RequestID string

	// With Token: the account's password. It shows that the same person signed up, if the
	// link is opened elsewhere.
	Password string
}

// VerifiedEmail is the result of VerifyEmail.
type VerifiedEmail struct {
	User      User
	TakenOver bool // another person had signed up with the address; their credentials were deleted
	ResetSent bool // TakenOver: a link to choose a password was sent
}

// VerifyEmail verifies the email address that a link was sent to: the user's present
// one or a new one. It does not sign in. Links sent to the old address are revoked, and
// the old address gets a notice.
//
// A link to a new address completes only within a live session of the account, and while
// the session that requested the address is live. Otherwise a mailbox's owner could
// be tricked into adding their address to another's account. If the application
// requested it (ByApplication), any live session of the account completes it, but only by
// the link, because a code belongs to the session that requested the address.
//
// A link that verifies an account's address for the first time deletes nothing. If the
// account has a password, an identity, a phone number or a second factor, the caller must
// also show to be the person who signed up: by a live session of the account, the RequestID or the Password.
// Otherwise a mailbox's owner could be tricked into confirming a stranger's credentials.
// A reader who does not know the account can answer no on the page, or request a magic link
// or a reset, and take the account over. A code has no such page: outside of a session and
// without the RequestID of the sign-up, the mailbox's owner takes the account over. The
// password is deleted, and a link to choose a new one is sent.
//
// Errors: CodeInvalidToken, CodeMissingToken (the link was opened elsewhere),
// CodeUserAlreadyExists if the new address was taken meanwhile, CodeSessionEnded,
// CodeUserBanned, CodeTargetStronger (the account waits for an acceptance),
// CodeInsufficientAAL as of UpdateMe; with Password
// CodeInvalidCredentials, CodeRateLimited, CodeOverloaded, CodeMethodDisabled; of codes
// CodeInvalidCode in place of CodeInvalidToken, CodeRateLimited, CodeValidationFailed.
func (a *Auth) VerifyEmail(ctx context.Context, p VerifyEmailParams) (VerifiedEmail, error) {
	if p.Code != "" || p.Email != "" && p.Token == "" {
		return a.verifyByCode(ctx, verification{VerifyEmailParams: p})
	}
	_, u, err := a.verifyEmail(ctx, p)
	return VerifiedEmail{User: u}, err
}

// verification is an attempt to verify an email address.
type verification struct {
	VerifyEmailParams
	by    *credentialRef // a credential of the account that the caller has used just now; nil: none
	decoy bool           // no code is right
}

// bySameUser reports whether a first verification comes from the person who set up the
// account's credentials.
func (a *Auth) bySameUser(c store.Credentials, v verification) bool {
	return v.Within.SessionID != "" || v.by != nil || a.signedUp(c.User, v.RequestID)
}

// carriesCredentials reports whether an account has a credential that a stranger may have
// set up before the account's address is verified.
func carriesCredentials(c store.Credentials) bool {
	return c.PasswordHash != "" || len(c.User.Identities) > 0 || c.User.Phone != "" || c.User.MFAEnabled
}

func (a *Auth) verifyEmail(ctx context.Context, p VerifyEmailParams) (linkData, User, error) {
	v := verification{VerifyEmailParams: p}
	if p.Password != "" {
		var err error
		if v.by, err = a.passwordOfLink(ctx, p); err != nil {
			return linkData{}, User{}, err
		}
	}
	decide, asked := a.verificationEffect(ctx, v)
	d, u, err := a.redeem(ctx, store.PurposeVerifyEmail, p.Token, decide)
	if *asked && errors.Is(err, CodeSessionEnded) {
		err = fail(CodeInvalidToken, err)
	}
	return d, u, err
}

// passwordOfLink checks the password of an account whose address a link verifies for the
// first time. It returns nil for any other link, which needs no password.
func (a *Auth) passwordOfLink(ctx context.Context, p VerifyEmailParams) (*credentialRef, error) {
	if !a.Settings(ctx).Password.On() {
		return nil, fail(CodeMethodDisabled, nil)
	}
	t, d, err := a.peekMailed(ctx, store.PurposeVerifyEmail, p.Token)
	if err != nil {
		return nil, err
	}
	c, err := a.store.Credentials(ctx, onThisDevice(ctx, store.ByID(t.UserID)))
	if err != nil {
		return nil, linkFailed(err)
	}
	if !isFirstVerification(c.User, d) {
		return nil, nil
	}
	if _, err := a.checkPassword(ctx, passwordAttempt{credentials: c, name: store.EmailKey(d.Email), password: p.Password}); err != nil {
		return nil, err
	}
	by := byPassword(c.PasswordHash)
	return &by, nil
}

func (a *Auth) verifyByCode(ctx context.Context, v verification) (VerifiedEmail, error) {
	if err := a.leaveOtherSession(ctx, &v); err != nil {
		return VerifiedEmail{}, err
	}
	g, t, d, err := a.verificationAttempt(ctx, v)
	if err != nil {
		return VerifiedEmail{}, err
	}
	decide, asked := a.verificationEffect(ctx, v)
	var done VerifiedEmail
	done.User, err = a.redeemCode(ctx, g, a.onlyIfRight(ctx, store.PurposeVerifyEmail, t.Subject), func() (store.Redemption, error) {
		r, err := decide(t, d)
		done.TakenOver = err == nil && r.Patch.DropCredentials
		return r, err
	})
	if errors.Is(err, CodeInvalidToken) || (*asked && v.Within.SessionID == "" && errors.Is(err, CodeSessionEnded)) {
		err = fail(CodeInvalidCode, err)
	}
	if err != nil {
		return VerifiedEmail{}, err
	}
	if done.TakenOver && a.Settings(ctx).Password.On() {
		done.ResetSent, err = a.sendFollowUp(ctx, done.User.Email)
	}
	return done, err
}

// leaveOtherSession clears v.Within if the code is for the sign-up of another account. Only
// the person who signed up has the id that shows this.
func (a *Auth) leaveOtherSession(ctx context.Context, v *verification) error {
	email, err := NormalizeEmail(v.Email)
	if err != nil || v.Within.SessionID == "" || v.RequestID == "" {
		return nil //nolint:nilerr // the attempt returns the error
	}
	u, err := a.store.User(ctx, store.ByEmail(email))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return storeFailed(err)
	case u.ID != v.Within.UserID && a.signedUp(u, v.RequestID):
		v.Within = Caller{}
	}
	return nil
}

// confirmAtSignIn verifies the address of an account by a code, together with a credential
// that the sign-in has checked. The person who uses both signed up and reads the mailbox.
// Errors: CodeInvalidCode, CodeRateLimited, CodeUserBanned.
func (a *Auth) confirmAtSignIn(ctx context.Context, u User, by credentialRef, code string) (User, error) {
	done, err := a.verifyByCode(ctx, verification{VerifyEmailParams: VerifyEmailParams{Email: u.Email, Code: code}, by: &by})
	return done.User, err
}

// decoySubject is the subject of a code that nobody knows; see tryDecoy.
const decoySubject = "decoy"

// tryDecoy does the work of confirmAtSignIn with a wrong code, for a sign-in with a wrong
// password, so that the duration does not reveal whether the password is right. It always
// returns an error. The stored decoy lets the store count an attempt as for any code.
func (a *Auth) tryDecoy(ctx context.Context, email, code string) error {
	_, err := a.verifyByCode(ctx, verification{VerifyEmailParams: VerifyEmailParams{Email: email, Code: code}, decoy: true})
	if errors.Is(err, store.ErrNotFound) {
		_, t := a.newLink(store.PurposeVerifyEmail, verifyLife, linkData{})
		t.Subject, t.MaxAttempts = decoySubject, math.MaxInt32
		if err := a.putToken(ctx, byFlow("confirmation"), t); err != nil {
			return err
		}
	}
	return err
}

// verificationEffect returns the function that decides the effect of a verification
// link or code. asked reports whether a session requested it; that session must still
// be live.
func (a *Auth) verificationEffect(ctx context.Context, p verification) (decide func(store.Token, linkData) (store.Redemption, error), asked *bool) {
	var recoveryLink string
	linkCreated := false // the link exists
	asked = new(bool)
	return func(t store.Token, d linkData) (store.Redemption, error) {
		creds, err := a.store.Credentials(ctx, store.ByID(t.UserID))
		if err != nil {
			return store.Redemption{}, linkFailed(err)
		}
		before, authority := creds.User, byAuthentication()
		switch {
		case p.Within.SessionID == "":
		case t.UserID == p.Within.UserID:
			authority = p.Within.authority()
		case isFirstVerification(before, d):
			p.Within = Caller{}
		default:
			return store.Redemption{}, fail(CodeInvalidToken, errors.New("the link belongs to another user"))
		}
		if *asked = d.SessionID != ""; *asked {
			authority = Caller{UserID: t.UserID, SessionID: d.SessionID}.authority()
		}
		switch {
		case before.Banned(a.now()):
			return store.Redemption{}, fail(CodeUserBanned, nil)
		case p.by != nil && !p.by.isCurrent(creds):
			return store.Redemption{}, fail(CodeInvalidToken, errors.New("the credential was removed meanwhile"))
		case isNewAddress(before, d):
			if err := cmp.Or(a.requireSessionOf(ctx, p.Within, d), a.requireMove(ctx, before, p.Within, false)); err != nil {
				return store.Redemption{}, err
			}
		case !isFirstVerification(before, d) || a.bySameUser(creds, p):
		case p.Code != "":
			r, _, err := a.ownVerification(ctx, before, rootEmail, Caller{})
			return r, err
		case carriesCredentials(creds):
			return store.Redemption{}, fail(CodeMissingToken, errors.New("a first verification, elsewhere than the sign-up"))
		}
		patch, event := a.confirmed(before, d.Email)
		if patch.Email != nil && !linkCreated {
			o, err := a.notice(ctx, authority, KindEmailChanged, before, d.SessionID, d.Email, ifCredentialsUnchanged(before))
			if err != nil {
				return store.Redemption{}, err
			}
			recoveryLink, linkCreated = o.Link, true
		}
		c := a.newChangeOf(ctx, authority, account{before, d.Email, recoveryLink}, event...)
		c.IfUsers = []UserAt{ifCredentialsUnchanged(before)}
		return store.Redemption{Change: c, Effect: store.Effect{UserID: t.UserID, Patch: &patch}}, nil
	}, asked
}

// isNewAddress reports whether a verification link changes the account's email address.
func isNewAddress(u User, d linkData) bool { return store.EmailKey(u.Email) != store.EmailKey(d.Email) }

// requireSessionOf checks that a change of address completes within a live session of the
// account. within is a session of the link's user, or zero. The change itself checks the
// session that requested the address.
func (a *Auth) requireSessionOf(ctx context.Context, within Caller, d linkData) error {
	switch within.SessionID {
	case "":
		return fail(CodeMissingToken, errors.New("a new address, outside of the account's sessions"))
	case d.SessionID:
		return nil
	}
	_, _, err := a.liveSession(ctx, within, CodeSessionEnded)
	return err
}

// confirmed returns the effect of a verification link on a user.
func (a *Auth) confirmed(u User, address string) (p store.UserPatch, events []store.OutcomeEvent) {
	now := a.now()
	switch {
	case isNewAddress(u, linkData{Email: address}):
		p = store.UserPatch{Email: &address, EmailVerifiedAt: &now, DropTokens: purposesOfEmail()}
		events = []store.OutcomeEvent{done(Event{Type: EventEmailChanged, UserID: u.ID})}
	case !u.EmailVerified():
		p.EmailVerifiedAt = &now
		events = []store.OutcomeEvent{done(Event{Type: EventEmailVerified, UserID: u.ID})}
	}
	return p, events
}

// isFirstVerification reports whether a verification link is the first verification of
// the account's address.
func isFirstVerification(u User, d linkData) bool {
	return !u.EmailVerified() && store.EmailKey(u.Email) == store.EmailKey(d.Email)
}

// maybeUnknownAccount reports whether the reader of a link may not know the account:
// because the account is unverified, or because its address is.
func maybeUnknownAccount(u User, d linkData) bool { return u.Unverified() || isFirstVerification(u, d) }

// verifyEmailBody is the body of POST /verify-email.
type verifyEmailBody struct {
	Token     string `json:"token"`
	Email     string `json:"email"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
	Password  string `json:"password"`
}

// LogValue keeps the secrets out of the log.
func (p verifyEmailBody) LogValue() slog.Value { return slog.StringValue(redacted) }

// handlePostVerifyEmail is POST /verify-email. With a token or code it completes the
// verification; otherwise it starts one for the signed-in user.
func (a *Auth) handlePostVerifyEmail(w http.ResponseWriter, r *http.Request) error {
	var p verifyEmailBody
	if err := decodeOptional(r, &p); err != nil {
		return err
	}
	ctx := r.Context()
	if p.Token == "" && p.Code == "" {
		me, err := a.live(r)
		if err != nil {
			return err
		}
		if p.Email != "" { // meant to complete
			_, err := a.verifyByCode(ctx, verification{VerifyEmailParams: VerifyEmailParams{Within: me.caller(), Email: p.Email}})
			return err
		}
		if err := a.startEmailVerification(ctx, me.caller(), me.user); err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, struct{}{})
	}
	within, err := a.within(r)
	if err != nil {
		return err
	}
	v, err := a.VerifyEmail(ctx, VerifyEmailParams{
		Token: p.Token, Within: within, Email: p.Email, Code: p.Code, RequestID: a.signUpsOf(r, p.RequestID), Password: p.Password,
	})
	if err != nil {
		return err
	}
	if v.TakenOver {
		return writeJSON(w, http.StatusOK, map[string]any{"taken_over": true, "reset_sent": v.ResetSent})
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}
