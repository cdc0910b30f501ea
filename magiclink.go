package auth

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/authmount/auth/internal/address"
	"github.com/authmount/auth/store"
)

// SendMagicLinkParams are the parameters of SendMagicLink.
type SendMagicLinkParams struct {
	Email         string
	RedirectTo    string
	CodeChallenge string // PKCE S256: the sign-in can only be completed with the verifier
	NoCreate      bool   // do not create an account for an unknown address
	Remember      *bool  // whether the browser keeps the session cookies, see [Remember]; nil: as [Auth.SetCookies] has it
}

// SendMagicLink mails a link to sign in, and a code that does the same in the browser
// that requested it: using either consumes both. The response is the same whether or
// not there is an account. Without one, the link creates it when it is used, unless
// NoCreate is set or sign-up is off. Errors: CodeMethodDisabled, CodeValidationFailed,
// CodeRedirectNotAllowed, CodeRateLimited.
func (a *Auth) SendMagicLink(ctx context.Context, p SendMagicLinkParams) (SentCode, error) {
	if err := a.requireLinks(ctx); err != nil {
		return SentCode{}, err
	}
	email, err := requiredEmail(p.Email)
	if err != nil {
		return SentCode{}, invalid("email", err.Error())
	}
	if p.CodeChallenge != "" && !validChallenge(p.CodeChallenge) {
		return SentCode{}, invalid("code_challenge", "is not an S256 challenge")
	}
	if err := a.allowRedirect(p.RedirectTo); err != nil {
		return SentCode{}, err
	}
	unknownToo := !p.NoCreate && a.Settings(ctx).SignUp.On()
	subject, err := a.sendLink(ctx, KindMagicLink, store.PurposeMagicLink, magicLife, email, linkData{RedirectTo: p.RedirectTo, Challenge: p.CodeChallenge, Remember: p.Remember}, unknownToo)
	if err != nil {
		return SentCode{}, err
	}
	return SentCode{RequestID: a.keys.RequestID(mailRequest(subject, p.CodeChallenge), a.now().Add(mailCodeLife))}, nil
}

func (a *Auth) handleMagicLinkSend(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Email               string `json:"email"`
		RedirectTo          string `json:"redirect_to"`
		CodeChallenge       string `json:"code_challenge"`
		CodeChallengeMethod string `json:"code_challenge_method"`
		CreateUser          *bool  `json:"create_user"`
		Remember            *bool  `json:"remember"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if err := checkChallengeMethod(p.CodeChallengeMethod, p.CodeChallenge); err != nil {
		return err
	}
	sent, err := a.SendMagicLink(r.Context(), SendMagicLinkParams{
		Email: p.Email, RedirectTo: p.RedirectTo, CodeChallenge: p.CodeChallenge,
		NoCreate: p.CreateUser != nil && !*p.CreateUser, Remember: rememberChoice(r.Context(), p.Remember),
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, sent)
}

// VerifyMagicLinkParams are the parameters of VerifyMagicLink: the token of a magic
// link, or the code in its mail.
type VerifyMagicLinkParams struct {
	Token        string
	CodeVerifier string // of the challenge in SendMagicLinkParams
	Within       Caller // a live session of the same account, if any: then its first verification deletes no credentials

	// Instead of Token: the code in the mail, the email address of its recipient, and
	// SentCode.RequestID.
	Email     string
	Code      string
	RequestID string
}

// VerifyMagicLink signs a user in with the token of a magic link, or with its code. If
// the link was requested with a code challenge, the verifier is required; without it,
// the link is not consumed. Errors: CodeInvalidToken, CodeBadCodeVerifier,
// CodeUserBanned, CodeMFARequired, CodeMFAEnrollmentRequired, CodeMethodDisabled; of
// codes CodeInvalidCode (wrong, used, expired, without its verifier or request, no
// account: all the same), CodeRateLimited after five wrong ones, and
// CodeValidationFailed.
func (a *Auth) VerifyMagicLink(ctx context.Context, p VerifyMagicLinkParams) (*Tokens, error) {
	if p.Code != "" || p.Email != "" && p.Token == "" {
		return a.signInByMailCode(ctx, p)
	}
	tokens, _, err := a.signInByLink(ctx, p)
	return tokens, err
}

// signInByLink also reports whether the account was taken over.
func (a *Auth) signInByLink(ctx context.Context, p VerifyMagicLinkParams) (tokens *Tokens, takenOver bool, err error) {
	m, err := a.useMagicLink(ctx, hashLinkToken(p.Token), p.CodeVerifier, p.Within)
	if err != nil {
		return nil, false, err
	}
	tokens, err = a.completeSignIn(ctx, signIn{user: m.user, by: credentialRef{Email: m.Email}, amr: a.newAMR(methodMagicLink), gone: CodeInvalidToken, remember: m.Remember})
	return tokens, m.takenOver, err
}

func (a *Auth) signInByMailCode(ctx context.Context, p VerifyMagicLinkParams) (*Tokens, error) {
	if err := a.requireLinks(ctx); err != nil {
		return nil, err
	}
	email, err := requiredEmail(p.Email)
	if err != nil {
		return nil, invalid("email", err.Error())
	}
	if p.Code == "" {
		return nil, invalid("code", "is required")
	}
	if p.RequestID == "" {
		return nil, invalid("request_id", "is required")
	}
	g := codeAttempt{
		to: store.EmailKey(email), mailed: true, email: email, code: address.Code(p.Code), method: methodMagicLink,
		request: p.RequestID, bound: challengeOf(p.CodeVerifier),
	}
	g.subject = g.to
	if known := ofKnownDevice(g.to); a.keys.ValidRequestID(mailRequest(known, g.bound), g.request, a.now()) {
		g.subject = known
	}
	g.about = mailRequest(g.subject, g.bound)
	if !a.keys.ValidRequestID(g.about, g.request, a.now()) { // the caller did not request a code: no code is checked
		return nil, fail(CodeInvalidCode, errors.New("request_id has expired, or belongs to another address or code_verifier"))
	}
	takes, err := a.takesCode(ctx, email)
	if err != nil {
		return nil, err
	}
	if !takes {
		g.code = "" // no code is right; it counts as any wrong one, which tells nothing about the account
	}
	u, err := a.useCode(ctx, store.PurposeMagicLink, g, p.Within)
	if err != nil {
		return nil, err
	}
	a.unlockPassword(ctx, u, false)
	return a.completeSignIn(ctx, signIn{user: u, by: credentialRef{Email: email}, amr: a.newAMR(methodMagicLink), gone: CodeInvalidCode})
}

// usedLink is a consumed magic link.
type usedLink struct {
	linkData
	user      User
	takenOver bool
}

// useMagicLink consumes a magic link, with the verifier of its challenge. It creates
// the account, or verifies the email address of an existing one.
func (a *Auth) useMagicLink(ctx context.Context, hash []byte, verifier string, within Caller) (usedLink, error) {
	if err := a.requireLinks(ctx); err != nil {
		return usedLink{}, err
	}
	var takenOver bool
	var in accountPermit
	d, u, err := a.redeemWithin(ctx, store.PurposeMagicLink, hash, &within, func(t store.Token, d linkData) (store.Redemption, error) {
		takenOver = false
		if err := checkVerifier(d.Challenge, verifier); err != nil {
			return store.Redemption{}, err
		}
		c, err := a.store.Credentials(ctx, store.ByEmail(d.Email))
		if err == nil {
			err = a.requireLink(ctx, c)
		}
		u := c.User
		switch {
		case errors.Is(err, store.ErrNotFound):
			return a.createByMagicLink(ctx, &in, t, d)
		case err != nil:
			return store.Redemption{}, storeFailed(err)
		case t.UserID != "" && t.UserID != u.ID:
			return store.Redemption{}, fail(CodeInvalidToken, errors.New("the address has moved to another account"))
		}
		var r store.Redemption
		r, takenOver, err = a.ownVerification(ctx, u, rootEmail, within)
		return r, err
	})
	if err == nil {
		a.unlockPassword(ctx, u, false)
	}
	return usedLink{d, u, takenOver}, err
}

// createByMagicLink returns the effect of a link for an address that had no account at
// the request. Other links name their user (sendLink).
func (a *Auth) createByMagicLink(ctx context.Context, in *accountPermit, t store.Token, d linkData) (store.Redemption, error) {
	if t.UserID != "" {
		return store.Redemption{}, fail(CodeInvalidToken, errors.New("no such account"))
	}
	return a.createByMail(ctx, in, d.Email, CodeInvalidToken)
}

// createByMail returns the effect of a link or code for an address without an account.
func (a *Auth) createByMail(ctx context.Context, in *accountPermit, email string, gone Code) (store.Redemption, error) {
	if !a.Settings(ctx).SignUp.On() {
		return store.Redemption{}, fail(gone, errors.New("no such account"))
	}
	if err := a.allowAccount(ctx, in, SignUpAttempt{Email: email, Method: methodMagicLink}); err != nil {
		return store.Redemption{}, err
	}
	now := a.now()
	u := User{ID: a.newID(), Email: email, EmailVerifiedAt: now, UserMetadata: map[string]any{}, CreatedAt: now, UpdatedAt: now}
	c := a.newChange(ctx, byAuthentication(), done(Event{Type: EventSignedUp, UserID: u.ID, Method: methodMagicLink}))
	nu := a.newUser(ctx, *in, u)
	return store.Redemption{Change: c, Effect: store.Effect{Create: &nu}}, nil
}

// handleMagicLink is GET /magic-link/verify. It completes a link only with
// LinkOptions.SignInByGET. Without a token it is the page for a second factor.
func (a *Auth) handleMagicLink(w http.ResponseWriter, r *http.Request) error {
	secret, program := r.URL.Query().Get("token"), fromProgram(r)
	switch {
	case a.cfg.links.SignInByGET && r.Method == http.MethodGet && program:
		return a.magicLinkJSON(w, r, secret, "")
	case secret == "" && !program:
		return a.showWaiting(w, r)
	case a.cfg.links.SignInByGET && r.Method == http.MethodGet && a.cfg.cookies == nil:
		return a.finishMagicLink(w, r, secret, nil)
	case program:
		_, _, err := a.peekMailed(r.Context(), store.PurposeMagicLink, secret)
		return answerProgram(w, err)
	}
	return a.showMagicLinkPage(w, r)
}

// handleMagicLinkForm handles the page's button, and the page for a second factor.
func (a *Auth) handleMagicLinkForm(w http.ResponseWriter, r *http.Request) error {
	form, err := a.readForm(r)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	if !form.Has("token") && (form.Has("code") || form.Has("do")) {
		return a.finishWaiting(w, r, form)
	}
	remember, err := rememberField(form)
	if err != nil {
		return a.showProblem(w, r, formFailed(err))
	}
	return a.finishMagicLink(w, a.onPage(r), form.Get("token"), remember)
}

// handleMagicLinkPost is POST /magic-link/verify with JSON.
func (a *Auth) handleMagicLinkPost(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Token        string `json:"token"`
		CodeVerifier string `json:"code_verifier"`
		Email        string `json:"email"`
		Code         string `json:"code"`
		RequestID    string `json:"request_id"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	switch {
	case p.Token == "" && p.Code == "" && p.Email == "":
		return invalid("token", "is required")
	case p.Code != "", p.Token == "":
		within, err := a.within(r)
		if err != nil {
			return err
		}
		tokens, err := a.VerifyMagicLink(r.Context(), VerifyMagicLinkParams{CodeVerifier: p.CodeVerifier, Within: within, Email: p.Email, Code: p.Code, RequestID: p.RequestID})
		if err != nil {
			return err
		}
		return a.writeTokens(w, r, tokens)
	}
	return a.magicLinkJSON(w, r, p.Token, p.CodeVerifier)
}

// magicLinkJSON completes a magic link for a client that is no browser. A link with a
// code challenge is consumed only with the verifier. Without one, the response is the
// redirect with a code that refers to the link.
func (a *Auth) magicLinkJSON(w http.ResponseWriter, r *http.Request, secret, verifier string) error {
	within, err := a.within(r)
	if err != nil {
		return err
	}
	if verifier == "" {
		t, d, err := a.peekMailed(r.Context(), store.PurposeMagicLink, secret)
		switch {
		case err != nil:
			return err
		case d.Challenge != "" && d.RedirectTo == "":
			return fail(CodeBadCodeVerifier, errors.New("no verifier and nowhere to redirect to"))
		case d.Challenge != "":
			to, err := a.redirectBound(r.Context(), t, d, within)
			if err != nil {
				return err
			}
			return seeOther(w, to)
		}
	}
	tokens, err := a.VerifyMagicLink(r.Context(), VerifyMagicLinkParams{Token: secret, CodeVerifier: verifier, Within: within})
	if err != nil {
		return err
	}
	return a.writeTokens(w, r, tokens)
}

// redirectWithCode consumes a magic link without a challenge, and returns the browser's
// next location, with a code for /exchange. Tokens never occur in a URL.
func (a *Auth) redirectWithCode(ctx context.Context, secret string, within Caller) (string, error) {
	m, err := a.useMagicLink(ctx, hashLinkToken(secret), "", within)
	if err != nil {
		return "", err
	}
	code, err := a.exchangeCode(ctx, m.user, linkData{By: credentialRef{Email: m.Email}, Remember: m.Remember}, methodMagicLink, CodeInvalidToken)
	if err != nil {
		return "", err
	}
	return withQuery(m.RedirectTo, url.Values{"code": {code}}), nil
}

// finishMagicLink completes a magic link in a browser. With a redirect, the browser
// goes there with a code. In cookie mode it is signed in here. Otherwise nothing is
// consumed, and the page shows the code to type in the browser that requested the link.
func (a *Auth) finishMagicLink(w http.ResponseWriter, r *http.Request, secret string, remember *bool) error {
	within, err := a.within(r)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	t, d, err := a.peekMailed(r.Context(), store.PurposeMagicLink, secret)
	switch {
	case err != nil:
		return a.showProblem(w, r, err)
	case a.belongsToOtherBrowser(r, d):
		return a.showCode(w, r, t, d, secret)
	case d.Challenge != "": // with a redirect to the holder of the verifier
		to, err := a.redirectBound(r.Context(), t, d, within)
		if err != nil {
			return a.showProblem(w, r, err)
		}
		return seeOther(w, to)
	case d.RedirectTo != "" && a.cfg.cookies == nil:
		to, err := a.redirectWithCode(r.Context(), secret, within)
		if err != nil {
			return a.showProblem(w, r, err)
		}
		return seeOther(w, to)
	}
	tokens, takenOver, err := a.signInByLink(r.Context(), VerifyMagicLinkParams{Token: secret, Within: within})
	if err != nil {
		return a.showInterrupted(w, r, err, waitingSignIn{To: d.RedirectTo, Remember: remember, TakenOver: takenOver})
	}
	a.setCookies(w, r, tokens, remember)
	return a.showDone(w, r, page{Done: "signed_in", TakenOver: takenOver}, d.RedirectTo)
}

// belongsToOtherBrowser reports whether a magic link cannot sign this browser in: it
// has no redirect and there are no cookies, or only another browser has the verifier of
// its challenge.
func (a *Auth) belongsToOtherBrowser(r *http.Request, d linkData) bool {
	for _, pages := range a.mountedPageOptions() {
		if d.Challenge != "" && d.RedirectTo == originOf(a.cfg.baseURL.String())+pages.ReturnPath {
			return !pages.HasVerifier(r, d.Challenge)
		}
	}
	return d.RedirectTo == "" && (a.cfg.cookies == nil || d.Challenge != "")
}

// showCode shows the code of a link. The link stays valid.
func (a *Auth) showCode(w http.ResponseWriter, r *http.Request, t store.Token, d linkData, secret string) error {
	if _, live := t.CodeHash(a.now()); !live {
		return a.showProblem(w, r, fail(CodeInvalidToken, errors.New("the code has expired")))
	}
	a.showPage(w, r, http.StatusOK, page{Name: "type_code", Address: maskEmail(d.Email), TypedCode: mailCode(secret)}, "")
	return nil
}

// showMagicLinkPage shows the page of a magic link. The page warns if the sign-in
// deletes credentials that others have set up on the account.
func (a *Auth) showMagicLinkPage(w http.ResponseWriter, r *http.Request) error {
	secret := r.URL.Query().Get("token")
	t, d, err := a.peekMailed(r.Context(), store.PurposeMagicLink, secret)
	switch {
	case err != nil:
		return a.showProblem(w, r, err)
	case a.belongsToOtherBrowser(r, d):
		return a.showCode(w, r, t, d, secret)
	}
	u, err := a.store.User(r.Context(), store.ByEmail(d.Email))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return a.showProblem(w, r, storeFailed(err))
	}
	within, _ := a.within(r) // only for the warning on the page
	takes := err == nil && !u.EmailVerified() && within.UserID != u.ID
	pg := page{Name: "confirm_sign_in", Token: secret, Address: maskEmail(d.Email), TakesOver: takes && !hasHolder(u)}
	pg.Creates = a.phoneOn(r.Context()) && (err != nil || takes && hasHolder(u))
	a.showPage(w, r, http.StatusOK, pg, d.RedirectTo)
	return nil
}
