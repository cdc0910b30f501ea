package auth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// SendMagicLinkParams ask for a link to sign in with.
type SendMagicLinkParams struct {
	Email         string
	RedirectTo    string
	CodeChallenge string // PKCE S256: the sign-in can only be completed with the verifier
	NoCreate      bool   // do not create an account for an unknown address
}

// SendMagicLink mails a link to sign in with. The answer is the same whether or
// not there is an account; without one, the link creates it when it is used,
// unless NoCreate is set or sign-up is switched off. Errors: CodeMethodDisabled,
// CodeValidationFailed, CodeRedirectNotAllowed, CodeRateLimited.
func (a *Auth) SendMagicLink(ctx context.Context, p SendMagicLinkParams) error {
	settings := a.Settings(ctx)
	if !settings.MagicLink.On() {
		return fail(CodeMethodDisabled, nil)
	}
	email, err := requiredEmail(p.Email)
	if err != nil {
		return invalid("email", err.Error())
	}
	if p.CodeChallenge != "" && !validChallenge(p.CodeChallenge) {
		return invalid("code_challenge", "is not an S256 challenge")
	}
	if err := a.allowRedirect(p.RedirectTo); err != nil {
		return err
	}
	data := linkData{RedirectTo: p.RedirectTo, Challenge: p.CodeChallenge, CreateUser: !p.NoCreate && settings.SignUp.On()}
	return a.sendLink(ctx, KindMagicLink, PurposeMagicLink, magicLife, email, data, data.CreateUser)
}

func (a *Auth) handleMagicLinkSend(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Email               string `json:"email"`
		RedirectTo          string `json:"redirect_to"`
		CodeChallenge       string `json:"code_challenge"`
		CodeChallengeMethod string `json:"code_challenge_method"`
		CreateUser          *bool  `json:"create_user"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if err := checkChallengeMethod(p.CodeChallengeMethod, p.CodeChallenge); err != nil {
		return err
	}
	err := a.SendMagicLink(r.Context(), SendMagicLinkParams{
		Email: p.Email, RedirectTo: p.RedirectTo, CodeChallenge: p.CodeChallenge,
		NoCreate: p.CreateUser != nil && !*p.CreateUser,
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// VerifyMagicLinkParams sign in with the token of a magic link.
type VerifyMagicLinkParams struct {
	Token        string
	CodeVerifier string // of the challenge the link was asked for with
	Within       Caller // a live session of the same account, if there is one: then its first proof drops nothing
}

// VerifyMagicLink signs in with the token of a magic link. A link that was asked
// for with a code challenge needs its verifier; a wrong one uses the link up.
// Errors: CodeInvalidToken, CodeBadCodeVerifier, CodeUserBanned, CodeMFARequired,
// CodeMFAEnrollmentRequired, CodeMethodDisabled.
func (a *Auth) VerifyMagicLink(ctx context.Context, p VerifyMagicLinkParams) (*Tokens, error) {
	m, err := a.useMagicLink(ctx, p.Token, p.Within)
	if err != nil {
		return nil, err
	}
	if err := checkVerifier(m.Challenge, p.CodeVerifier); err != nil {
		return nil, err
	}
	return a.completeSignIn(ctx, signIn{user: m.user, by: provenBy{Email: m.Email}, amr: a.proof(methodMagicLink), gone: CodeInvalidToken})
}

// usedLink is a magic link after its use.
type usedLink struct {
	linkData
	user      User
	takenOver bool
}

// useMagicLink uses a magic link up: it creates the account, or proves the
// address of the one there is.
func (a *Auth) useMagicLink(ctx context.Context, secret string, within Caller) (usedLink, error) {
	if !a.Settings(ctx).MagicLink.On() {
		return usedLink{}, fail(CodeMethodDisabled, nil)
	}
	var takenOver bool
	var in accountPermit
	d, u, err := a.redeemWithin(ctx, PurposeMagicLink, secret, &within, func(t Token, d linkData) (Redemption, error) {
		takenOver = false
		u, err := a.store.User(ctx, ByEmail(d.Email))
		switch {
		case errors.Is(err, ErrNotFound):
			return a.createByMagicLink(ctx, &in, t, d)
		case err != nil:
			return Redemption{}, storeFailed(err)
		case t.UserID != "" && t.UserID != u.ID:
			return Redemption{}, fail(CodeInvalidToken, errors.New("the address has moved to another account"))
		case u.Banned(a.now()):
			return Redemption{}, fail(CodeUserBanned, nil)
		}
		var r Redemption
		r, takenOver = a.provingRedemption(ctx, u, rootEmail, within)
		return r, nil
	})
	if err == nil {
		a.unlockPassword(ctx, u, false)
	}
	return usedLink{d, u, takenOver}, err
}

func (a *Auth) createByMagicLink(ctx context.Context, in *accountPermit, t Token, d linkData) (Redemption, error) {
	if !d.CreateUser || t.UserID != "" || !a.Settings(ctx).SignUp.On() {
		return Redemption{}, fail(CodeInvalidToken, errors.New("no such account"))
	}
	if err := a.allowAccount(ctx, in, SignUpAttempt{Email: d.Email, Method: methodMagicLink}); err != nil {
		return Redemption{}, err
	}
	now := a.now()
	u := User{ID: a.newID(), Email: d.Email, EmailVerifiedAt: now, UserMetadata: map[string]any{}, CreatedAt: now, UpdatedAt: now}
	c := a.newChange(ctx, byProof(), done(Event{Type: EventSignedUp, UserID: u.ID, Method: methodMagicLink}))
	nu := a.newUser(*in, u)
	return Redemption{Change: c, Effect: Effect{Create: &nu}}, nil
}

// handleMagicLink is GET /magic-link/verify.
func (a *Auth) handleMagicLink(w http.ResponseWriter, r *http.Request) error {
	switch {
	case r.Method == http.MethodHead || a.asksForPage(r), a.cfg.cookies != nil && !fromProgram(r): // only a post signs a browser in
		return a.showConfirm(w, r, "confirm_sign_in", PurposeMagicLink)
	case !fromProgram(r): // DirectLinks
		return a.finishMagicLink(w, r, r.URL.Query().Get("token"))
	}
	return a.magicLinkJSON(w, r, r.URL.Query().Get("token"), "")
}

// handleMagicLinkForm is the page's button.
func (a *Auth) handleMagicLinkForm(w http.ResponseWriter, r *http.Request) error {
	form, err := a.readForm(r)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	return a.finishMagicLink(w, r, form.Get("token"))
}

// handleMagicLinkPost is POST /magic-link/verify with JSON.
func (a *Auth) handleMagicLinkPost(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Token        string `json:"token"`
		CodeVerifier string `json:"code_verifier"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if p.Token == "" {
		return invalid("token", "is required")
	}
	return a.magicLinkJSON(w, r, p.Token, p.CodeVerifier)
}

// magicLinkJSON completes a magic link for a client that is no browser. A link
// bound to a code challenge gives its session only to the holder of the
// verifier, so without one the answer is the redirect with a code.
func (a *Auth) magicLinkJSON(w http.ResponseWriter, r *http.Request, secret, verifier string) error {
	within, err := a.within(r)
	if err != nil {
		return err
	}
	if verifier == "" {
		_, d, err := a.peek(r.Context(), PurposeMagicLink, secret)
		switch {
		case err != nil:
			return err
		case d.Challenge != "" && d.RedirectTo == "":
			return fail(CodeBadCodeVerifier, errors.New("no verifier and nowhere to redirect to"))
		case d.Challenge != "":
			to, err := a.redirectWithCode(r.Context(), secret, within)
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

// redirectWithCode uses a magic link up and returns where the browser goes on
// to, with a code for /exchange. Tokens never travel in a URL.
func (a *Auth) redirectWithCode(ctx context.Context, secret string, within Caller) (string, error) {
	m, err := a.useMagicLink(ctx, secret, within)
	if err != nil {
		return "", err
	}
	code, err := a.exchangeCode(ctx, m.user, linkData{Challenge: m.Challenge, By: provenBy{Email: m.Email}}, methodMagicLink, CodeInvalidToken)
	if err != nil {
		return "", err
	}
	return withQuery(m.RedirectTo, url.Values{"code": {code}}), nil
}

// finishMagicLink completes a magic link in a browser. With somewhere to go, it
// goes there with a code; in cookie mode the browser is signed in here; else
// the address is confirmed, and the page says that it can be closed.
func (a *Auth) finishMagicLink(w http.ResponseWriter, r *http.Request, secret string) error {
	within, err := a.within(r)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	_, d, err := a.peek(r.Context(), PurposeMagicLink, secret)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	if d.RedirectTo != "" && (a.cfg.cookies == nil || d.Challenge != "") {
		to, err := a.redirectWithCode(r.Context(), secret, within)
		if err != nil {
			return a.showProblem(w, r, err)
		}
		return seeOther(w, to)
	}
	if a.cfg.cookies == nil {
		m, err := a.useMagicLink(r.Context(), secret, within)
		if err != nil {
			return a.showProblem(w, r, err)
		}
		return a.showDone(w, r, page{Done: "email_verified", TakenOver: m.takenOver}, "")
	}
	tokens, err := a.VerifyMagicLink(r.Context(), VerifyMagicLinkParams{Token: secret, Within: within})
	if err != nil {
		return a.showProblem(w, r, err)
	}
	a.setCookies(w, r, tokens, nil)
	return a.showDone(w, r, page{Done: "signed_in"}, d.RedirectTo)
}
