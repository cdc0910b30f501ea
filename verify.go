package auth

import (
	"context"
	"errors"
	"net/http"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// StartEmailVerificationParams ask for the link that confirms a user's address.
type StartEmailVerificationParams struct{ Caller }

// StartEmailVerification mails the link that confirms a user's address. An
// address that is confirmed already, or absent, sends nothing. Errors:
// CodeRateLimited, CodeSessionEnded, CodeUserBanned.
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

// resendVerification is for somebody who proved the password but not yet the
// address. It is worked out behind the request's back, because taking longer would
// tell that the password was right; for the same reason it draws from a limit of its
// own, which no answer shows, and too many such messages are left out silently. An
// account with a number gets none: its owner asks for a code to sign in with.
func (a *Auth) resendVerification(ctx context.Context, u User) {
	if u.Email == "" {
		return
	}
	asked := ctx           // for who asked and how, not for the store: the request is over by then
	var allowed sendPermit // drawn once: an attempt after one that failed would find nothing left
	a.outbox.Prepare(ctx, KindVerifyEmail, func(background context.Context) (*store.SealedMessage, error) {
		if allowed == (sendPermit{}) {
			drawn, err := a.takeUnasked(background, atLogin, KindVerifyEmail, u.Email)
			if errors.Is(err, CodeRateLimited) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			allowed = drawn
		}
		link, message := a.newVerification(KindVerifyEmail, u, linkData{Email: u.Email})
		message.Permit = allowed
		c := a.newChange(asked, byStranger("confirmation"))
		a.enclose(asked, &c, message, u, &link)
		err := a.putChange(background, c, link, []UserAt{credentialsStill(u)})
		if errors.Is(err, store.ErrStale) || errors.Is(err, CodeInvalidToken) {
			return nil, nil // confirmed, changed or deleted a moment ago
		}
		if err != nil {
			return nil, err
		}
		return &c.Messages[0], nil
	})
}

// verification is newVerification for somebody who is signed in.
func (a *Auth) verification(ctx context.Context, k Kind, by Caller, u User, address string) (store.Token, outbox.Outgoing) {
	d := linkData{Email: address, Device: a.madeFrom(ctx, by)}
	if k == KindChangeEmail {
		d.SessionID = by.SessionID
	}
	return a.newVerification(k, u, d)
}

// newVerification makes a link and a code that make an address the user's confirmed
// one, and the message that tells of them.
func (a *Auth) newVerification(k Kind, u User, d linkData) (store.Token, outbox.Outgoing) {
	secret, t := a.newLink(store.PurposeVerifyEmail, verifyLife, d)
	t.UserID, t.Subject = u.ID, u.ID
	code := a.addCode(&t, secret, d.Email, d.SessionID)
	return t, outbox.Outgoing{Kind: k, To: d.Email, Link: a.linkURL(k, secret), Code: code, ExpiresIn: verifyLife, NewAddress: d.Email}
}

// madeFrom is the user agent that asks, if it is signed in to the account: what
// the reader of a link is told of whoever uses their address.
func (a *Auth) madeFrom(ctx context.Context, by Caller) string {
	if by.SessionID == "" {
		return ""
	}
	return clientFrom(ctx).UserAgent
}

// VerifyEmailParams confirm an address.
type VerifyEmailParams struct {
	Token  string
	Within Caller // the live session it happens in, if any; the link or code has to be of its user

	// In place of a token: the code in the mail, and the address that it was sent
	// to. Tries count by address, or within a session by its user. A code to a new
	// address is good within the session that asked for it, and outside of any for
	// whoever asked for the address last.
	Email string
	Code  string

	// What the sign-up returned that made the account (SignUpResult): it shows that
	// whoever reads the code also signed up. Outside of a session, the first proof of
	// an address by a code without it takes the account over.
	RequestID string
}

// VerifiedEmail is a confirmed address.
type VerifiedEmail struct {
	User      User
	TakenOver bool // somebody else had signed up with the address: what they set up is gone
	ResetSent bool // TakenOver: a link to choose a password was sent
}

// VerifyEmail confirms the address that a link was sent to, the user's present
// one or the new one they asked for. It signs nobody in. A link drops nothing: who
// does not know the account answers the page's question with no, or asks for a
// magic link or reset, and it is theirs. A code cannot ask: outside of a session
// and without the RequestID of the sign-up, the account is taken over by whoever
// reads the mailbox, its password goes, and a link to choose one is sent. Links
// sent to the old address die with it, and the old address gets a notice. A link
// to a new address is good for as long as the session that asked for it lives.
// Errors: CodeInvalidToken,
// CodeUserAlreadyExists if the new address was taken meanwhile, CodeSessionEnded,
// CodeUserBanned; of codes CodeInvalidCode in place of CodeInvalidToken,
// CodeRateLimited, CodeValidationFailed.
func (a *Auth) VerifyEmail(ctx context.Context, p VerifyEmailParams) (VerifiedEmail, error) {
	if p.Code != "" || p.Email != "" && p.Token == "" {
		return a.verifyByCode(ctx, p)
	}
	_, u, err := a.verifyEmail(ctx, p)
	return VerifiedEmail{User: u}, err
}

func (a *Auth) verifyEmail(ctx context.Context, p VerifyEmailParams) (linkData, User, error) {
	decide, asked := a.verifying(ctx, p)
	d, u, err := a.redeem(ctx, store.PurposeVerifyEmail, p.Token, decide)
	if *asked && errors.Is(err, CodeSessionEnded) {
		err = fail(CodeInvalidToken, err)
	}
	return d, u, err
}

func (a *Auth) verifyByCode(ctx context.Context, p VerifyEmailParams) (VerifiedEmail, error) {
	g, t, d, err := a.verifyingGuess(ctx, p)
	if err != nil {
		return VerifiedEmail{}, err
	}
	decide, asked := a.verifying(ctx, p)
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
		v.ResetSent, err = a.sendAnswer(ctx, v.User.Email)
	}
	return v, err
}

// verifying works out what the use of a link or code does that confirms an address.
// asked tells whether a session asked for it, which has to be live still.
func (a *Auth) verifying(ctx context.Context, p VerifyEmailParams) (decide func(store.Token, linkData) (store.Redemption, error), asked *bool) {
	var stop string
	stopping := false // the link is made
	asked = new(bool)
	return func(t store.Token, d linkData) (store.Redemption, error) {
		authority := byProof()
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
		case p.Code != "" && provesAddress(before, d) && p.Within.SessionID == "" && !a.signedUp(before, p.RequestID):
			r, _ := a.provingRedemption(ctx, before, rootEmail, Caller{})
			return r, nil
		}
		patch, event := a.confirmed(before, d.Email)
		if patch.Email != nil && !stopping {
			o, err := a.notice(ctx, authority, KindEmailChanged, before, d.SessionID, d.Email, credentialsStill(before))
			if err != nil {
				return store.Redemption{}, err
			}
			stop, stopping = o.Link, true
		}
		c := a.newChangeOf(ctx, authority, account{before, d.Email, stop}, event...)
		c.IfUsers = []UserAt{credentialsStill(before)}
		return store.Redemption{Change: c, Effect: store.Effect{UserID: t.UserID, Patch: &patch}}, nil
	}, asked
}

// confirmed is what the use of a verification link does to a user.
func (a *Auth) confirmed(u User, address string) (p store.UserPatch, events []store.OutcomeEvent) {
	now := a.now()
	switch {
	case store.EmailKey(u.Email) != store.EmailKey(address):
		p = store.UserPatch{Email: &address, EmailVerifiedAt: &now, DropTokens: dyingWithAddress()}
		events = []store.OutcomeEvent{done(Event{Type: EventEmailChanged, UserID: u.ID})}
	case !u.EmailVerified():
		p.EmailVerifiedAt = &now
		events = []store.OutcomeEvent{done(Event{Type: EventEmailVerified, UserID: u.ID})}
	}
	return p, events
}

// disownAccount is the page's "that was not me": the address's owner takes the
// account over, which somebody else has made with it, and gets a link to choose a
// password. Where the address is not the account's yet, only the link is used up.
func (a *Auth) disownAccount(ctx context.Context, token string) (takenOver, reset bool, err error) {
	_, u, err := a.redeem(ctx, store.PurposeVerifyEmail, token, func(t store.Token, d linkData) (store.Redemption, error) {
		u, err := a.store.User(ctx, store.ByID(t.UserID))
		if err != nil {
			return store.Redemption{}, linkFailed(err)
		}
		if takenOver = provesAddress(u, d); !takenOver {
			c := a.newChange(ctx, byProof())
			c.IfUsers = []UserAt{credentialsStill(u)}
			return store.Redemption{Change: c, Effect: store.Effect{UserID: u.ID}}, nil
		}
		r, _ := a.provingRedemption(ctx, u, rootEmail, Caller{})
		return r, nil
	})
	if err != nil || !takenOver {
		return false, false, err
	}
	reset, err = a.sendAnswer(ctx, u.Email)
	return true, reset, err
}

// provesAddress tells whether a verification link is the first proof of the
// address that the account has.
func provesAddress(u User, d linkData) bool {
	return !u.EmailVerified() && store.EmailKey(u.Email) == store.EmailKey(d.Email)
}

// maybeSomebodyElses tells whether a link's reader may never have heard of the
// account: nobody has proved it, or not its address, which is theirs.
func maybeSomebodyElses(u User, d linkData) bool { return u.Unproved() || provesAddress(u, d) }

// emailProof is the body of POST /verify-email.
type emailProof struct {
	Token     string `json:"token"`
	Email     string `json:"email"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
}

// handlePostVerifyEmail is POST /verify-email: with a token or code it completes,
// otherwise it starts, for whoever is signed in.
func (a *Auth) handlePostVerifyEmail(w http.ResponseWriter, r *http.Request) error {
	var p emailProof
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
	case r.Method == http.MethodHead || a.asksForPage(r):
		return a.askWhoseAccount(w, r, token)
	case !fromProgram(r): // DirectLinks
		return a.finishVerifyEmail(w, r, token)
	}
	v, err := a.VerifyEmail(r.Context(), VerifyEmailParams{Token: token})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"email_verified": true, "user": ViewOf(v.User)})
}

// askWhoseAccount shows the page that a verification link leads to. Where the
// account may be somebody else's doing it says when and from which device the account was
// made, and lets the reader disown it.
func (a *Auth) askWhoseAccount(w http.ResponseWriter, r *http.Request, secret string) error {
	t, d, err := a.peekMailed(r.Context(), store.PurposeVerifyEmail, secret)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	u, err := a.store.User(r.Context(), store.ByID(t.UserID))
	if err != nil {
		return a.showProblem(w, r, linkFailed(err))
	}
	pg := page{Name: "confirm_email", Token: secret, Address: maskEmail(d.Email)}
	if maybeSomebodyElses(u, d) && !a.signedInAs(r, u) {
		pg.Disownable, pg.MadeAt, pg.MadeFrom = true, u.CreatedAt.UTC().Format("2006-01-02 15:04 UTC"), deviceLabel(d.Device)
	}
	a.showPage(w, r, http.StatusOK, pg, d.RedirectTo)
	return nil
}

// signedInAs tells whether a request comes within a live session of that user. Where
// that cannot be found out, it does not.
func (a *Auth) signedInAs(r *http.Request, u User) bool {
	within, err := a.within(r)
	if err != nil || within.UserID != u.ID {
		return false
	}
	_, _, err = a.liveSession(r.Context(), within, CodeSessionEnded)
	return err == nil
}

// handleVerifyEmailPost is the page's buttons.
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
