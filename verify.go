package auth

import (
	"context"
	"errors"
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

// newVerification creates a link and a code that verify an email address for the user,
// and the message that contains them.
func (a *Auth) newVerification(k Kind, u User, d linkData) (store.Token, outbox.Outgoing) {
	secret, t := a.newLink(store.PurposeVerifyEmail, verifyLife, d)
	t.UserID, t.Subject = u.ID, u.ID
	code := a.addCode(&t, secret, d.Email, d.SessionID)
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
	Within Caller // the live session of the caller, if any; the link or code must be of its user

	// Instead of Token: the code in the mail and the email address of its recipient.
	// Attempts count by address, or within a session by its user. A code to a new
	// address is valid only within the session that requested it. Outside of a session,
	// the latest code to an address is valid.
	Email string
	Code  string

	// SignUpResult.RequestID of the account's sign-up. It shows that the same person
	// signed up and read the code. Outside of a session, the first verification of an
	// address by a code without it takes the account over.
	RequestID string
}

// VerifiedEmail is the result of VerifyEmail.
type VerifiedEmail struct {
	User      User
	TakenOver bool // another person had signed up with the address; their credentials were deleted
	ResetSent bool // TakenOver: a link to choose a password was sent
}

// VerifyEmail verifies the email address that a link was sent to: the user's present
// one or a new one. It does not sign in. Links sent to the old address are revoked, and
// the old address gets a notice. A link to a new address is valid while the session
// that requested it is live.
//
// A link deletes nothing. A reader who does not know the account can answer no on the
// page, or request a magic link or a reset, and take the account over. A code has no
// such page: outside of a session and without the RequestID of the sign-up, the
// mailbox's owner takes the account over. The password is deleted, and a link to choose
// a new one is sent.
//
// Errors: CodeInvalidToken, CodeUserAlreadyExists if the new address was taken
// meanwhile, CodeSessionEnded, CodeUserBanned; of codes CodeInvalidCode in place of
// CodeInvalidToken, CodeRateLimited, CodeValidationFailed.
func (a *Auth) VerifyEmail(ctx context.Context, p VerifyEmailParams) (VerifiedEmail, error) {
	if p.Code != "" || p.Email != "" && p.Token == "" {
		return a.verifyByCode(ctx, p)
	}
	_, u, err := a.verifyEmail(ctx, p)
	return VerifiedEmail{User: u}, err
}

func (a *Auth) verifyEmail(ctx context.Context, p VerifyEmailParams) (linkData, User, error) {
	decide, asked := a.verificationEffect(ctx, p)
	d, u, err := a.redeem(ctx, store.PurposeVerifyEmail, p.Token, decide)
	if *asked && errors.Is(err, CodeSessionEnded) {
		err = fail(CodeInvalidToken, err)
	}
	return d, u, err
}

func (a *Auth) verifyByCode(ctx context.Context, p VerifyEmailParams) (VerifiedEmail, error) {
	g, t, d, err := a.verificationAttempt(ctx, p)
	if err != nil {
		return VerifiedEmail{}, err
	}
	decide, asked := a.verificationEffect(ctx, p)
	var v VerifiedEmail
	v.User, err = a.redeemCode(ctx, g, a.onlyIfRight(ctx, store.PurposeVerifyEmail, t.UserID), func() (store.Redemption, error) {
		r, err := decide(t, d)
		v.TakenOver = err == nil && r.Patch.DropCredentials
		return r, err
	})
	if errors.Is(err, CodeInvalidToken) || (*asked && p.Within.SessionID == "" && errors.Is(err, CodeSessionEnded)) {
		err = fail(CodeInvalidCode, err)
	}
	if err != nil {
		return VerifiedEmail{}, err
	}
	if v.TakenOver && a.Settings(ctx).Password.On() {
		v.ResetSent, err = a.sendFollowUp(ctx, v.User.Email)
	}
	return v, err
}

// verificationEffect returns the function that decides the effect of a verification
// link or code. asked reports whether a session requested it; that session must still
// be live.
func (a *Auth) verificationEffect(ctx context.Context, p VerifyEmailParams) (decide func(store.Token, linkData) (store.Redemption, error), asked *bool) {
	var recoveryLink string
	linkCreated := false // the link exists
	asked = new(bool)
	return func(t store.Token, d linkData) (store.Redemption, error) {
		authority := byAuthentication()
		if p.Within.SessionID != "" {
			if t.UserID != p.Within.UserID {
				return store.Redemption{}, fail(CodeInvalidToken, errors.New("link of another user"))
			}
			authority = p.Within.authority()
		}
		if *asked = d.SessionID != ""; *asked {
			authority = Caller{UserID: t.UserID, SessionID: d.SessionID}.authority()
		}
		before, err := a.store.User(ctx, store.ByID(t.UserID))
		switch {
		case err != nil:
			return store.Redemption{}, linkFailed(err)
		case before.Banned(a.now()):
			return store.Redemption{}, fail(CodeUserBanned, nil)
		case p.Code != "" && isFirstVerification(before, d) && p.Within.SessionID == "" && !a.signedUp(before, p.RequestID):
			r, _ := a.verificationRedemption(ctx, before, rootEmail, Caller{})
			return r, nil
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

// confirmed returns the effect of a verification link on a user.
func (a *Auth) confirmed(u User, address string) (p store.UserPatch, events []store.OutcomeEvent) {
	now := a.now()
	switch {
	case store.EmailKey(u.Email) != store.EmailKey(address):
		p = store.UserPatch{Email: &address, EmailVerifiedAt: &now, DropTokens: purposesOfEmail()}
		events = []store.OutcomeEvent{done(Event{Type: EventEmailChanged, UserID: u.ID})}
	case !u.EmailVerified():
		p.EmailVerifiedAt = &now
		events = []store.OutcomeEvent{done(Event{Type: EventEmailVerified, UserID: u.ID})}
	}
	return p, events
}

// disownAccount is "This wasn't me" on the page: the address's owner takes over the
// account that another person created with the address, and gets a link to choose a
// password. If the address is not yet the account's, only the link is consumed.
func (a *Auth) disownAccount(ctx context.Context, token string) (takenOver, reset bool, err error) {
	_, u, err := a.redeem(ctx, store.PurposeVerifyEmail, token, func(t store.Token, d linkData) (store.Redemption, error) {
		u, err := a.store.User(ctx, store.ByID(t.UserID))
		if err != nil {
			return store.Redemption{}, linkFailed(err)
		}
		if takenOver = isFirstVerification(u, d); !takenOver {
			c := a.newChange(ctx, byAuthentication())
			c.IfUsers = []UserAt{ifCredentialsUnchanged(u)}
			return store.Redemption{Change: c, Effect: store.Effect{UserID: u.ID}}, nil
		}
		r, _ := a.verificationRedemption(ctx, u, rootEmail, Caller{})
		return r, nil
	})
	if err != nil || !takenOver {
		return false, false, err
	}
	reset, err = a.sendFollowUp(ctx, u.Email)
	return true, reset, err
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
}

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
			_, err := a.verifyByCode(ctx, VerifyEmailParams{Within: me.caller(), Email: p.Email})
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
	v, err := a.VerifyEmail(ctx, VerifyEmailParams{Token: p.Token, Within: within, Email: p.Email, Code: p.Code, RequestID: p.RequestID})
	if err != nil {
		return err
	}
	if v.TakenOver {
		return writeJSON(w, http.StatusOK, map[string]any{"taken_over": true, "reset_sent": v.ResetSent})
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// handleVerifyEmail is GET /verify-email.
func (a *Auth) handleVerifyEmail(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	switch {
	case r.Method == http.MethodHead || a.wantsPage(r):
		return a.showVerifyPage(w, r, token)
	case !fromProgram(r): // DirectLinks
		return a.finishVerifyEmail(w, r, token)
	}
	v, err := a.VerifyEmail(r.Context(), VerifyEmailParams{Token: token})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"email_verified": true, "user": ViewOf(v.User)})
}

// showVerifyPage shows the page of a verification link. If another person may have
// created the account, the page says when and on which device, and offers to disown it.
func (a *Auth) showVerifyPage(w http.ResponseWriter, r *http.Request, secret string) error {
	t, d, err := a.peekMailed(r.Context(), store.PurposeVerifyEmail, secret)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	u, err := a.store.User(r.Context(), store.ByID(t.UserID))
	if err != nil {
		return a.showProblem(w, r, linkFailed(err))
	}
	pg := page{Name: "confirm_email", Token: secret, Address: maskEmail(d.Email)}
	if maybeUnknownAccount(u, d) && !a.signedInAs(r, u) {
		pg.Disownable, pg.MadeAt, pg.MadeFrom = true, u.CreatedAt.UTC().Format("2006-01-02 15:04 UTC"), deviceLabel(d.Device)
	}
	a.showPage(w, r, http.StatusOK, pg, d.RedirectTo)
	return nil
}

// signedInAs reports whether a request has a live session of u. It returns false if an
// error prevents the check.
func (a *Auth) signedInAs(r *http.Request, u User) bool {
	within, err := a.within(r)
	if err != nil || within.UserID != u.ID {
		return false
	}
	_, _, err = a.liveSession(r.Context(), within, CodeSessionEnded)
	return err == nil
}

// handleVerifyEmailPost handles the page's buttons.
func (a *Auth) handleVerifyEmailPost(w http.ResponseWriter, r *http.Request) error {
	form, err := a.readForm(r)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	if form.Get("disown") == "" {
		return a.finishVerifyEmail(w, r, form.Get("token"))
	}
	takenOver, reset, err := a.disownAccount(r.Context(), form.Get("token"))
	if err != nil {
		return a.showProblem(w, r, err)
	}
	done := "left_alone"
	if takenOver {
		done = "disowned"
	}
	return a.showDone(w, r, page{Done: done, ResetSent: reset}, "")
}

func (a *Auth) finishVerifyEmail(w http.ResponseWriter, r *http.Request, token string) error {
	d, _, err := a.verifyEmail(r.Context(), VerifyEmailParams{Token: token})
	if err != nil {
		return a.showProblem(w, r, err)
	}
	return a.showDone(w, r, page{Done: "email_verified"}, d.RedirectTo)
}
