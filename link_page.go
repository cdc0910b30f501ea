package auth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Opening a link in a browser shows a page with one button, and only the button
// uses the link up: mail scanners open links too. Other clients complete at
// once, with JSON.

// asksForPage tells whether a GET is answered with the confirm page.
func (a *Auth) asksForPage(r *http.Request) bool {
	switch a.cfg.links {
	case directLinks:
		return false
	case strictLinks:
		return !acceptsByName(r, "application/json")
	default:
		return wantsHTML(r)
	}
}

// showConfirm shows the page that a live link leads to.
func (a *Auth) showConfirm(w http.ResponseWriter, r *http.Request, name string, p Purpose) error {
	secret := r.URL.Query().Get("token")
	_, d, err := a.peek(r.Context(), p, secret)
	if err == nil && d.Email == "" {
		err = fail(CodeInvalidToken, errors.New("a decoy"))
	}
	if err != nil {
		return a.showProblem(w, r, err)
	}
	a.showPage(w, r, http.StatusOK, page{
		Name: name, Token: secret, Address: maskEmail(d.Email), MinLength: a.passwords.minLength(),
	}, d.RedirectTo)
	return nil
}

// showPage fills in what every page needs. The pages post to the path they were
// opened at, whatever prefix that had.
func (a *Auth) showPage(w http.ResponseWriter, r *http.Request, status int, pg page, redirectTo string) {
	pg.Action = "?"
	pg.FormTarget = originOf(redirectTo)
	a.showAs(w, r, status, pg)
}

func (a *Auth) showAs(w http.ResponseWriter, r *http.Request, status int, pg page) {
	pg.Locale = preferredLocale(r.Context(), User{})
	a.pages.write(w, r, status, pg)
}

func originOf(target string) string {
	u, err := url.Parse(target)
	if target == "" || err != nil {
		return ""
	}
	if u.Host == "" {
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host
}

// showProblem is writeError for people.
func (a *Auth) showProblem(w http.ResponseWriter, r *http.Request, err error) error {
	e := a.logged(r, err)
	writeErrorHeaders(w, e)
	a.showAs(w, r, e.Status, page{Name: "problem", Problem: e.Message, Code: e.Code})
	return nil
}

// showDone ends a flow: on to the application, or a page that says so.
func (a *Auth) showDone(w http.ResponseWriter, r *http.Request, done, redirectTo string) error {
	if redirectTo != "" {
		return seeOther(w, redirectTo)
	}
	a.showAs(w, r, http.StatusOK, page{Name: "done", Done: done})
	return nil
}

func seeOther(w http.ResponseWriter, to string) error {
	h := w.Header()
	h.Set("Location", to)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// handleMagicLink is GET /magic-link/verify.
func (a *Auth) handleMagicLink(w http.ResponseWriter, r *http.Request) error {
	switch {
	case r.Method == http.MethodHead || a.asksForPage(r):
		return a.showConfirm(w, r, "confirm_sign_in", PurposeMagicLink)
	case wantsHTML(r):
		return a.finishMagicLink(w, r, r.URL.Query().Get("token"))
	}
	return a.magicLinkJSON(w, r, r.URL.Query().Get("token"), "")
}

// handleMagicLinkPost is the page's button, or JSON.
func (a *Auth) handleMagicLinkPost(w http.ResponseWriter, r *http.Request) error {
	if isForm(r) {
		form, err := a.readForm(r)
		if err != nil {
			return a.showProblem(w, r, err)
		}
		return a.finishMagicLink(w, r, form.Get("token"))
	}
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
	if verifier == "" {
		_, d, err := a.peek(r.Context(), PurposeMagicLink, secret)
		switch {
		case err != nil:
			return err
		case d.Challenge != "" && d.RedirectTo == "":
			return fail(CodeBadCodeVerifier, errors.New("no verifier and nowhere to redirect to"))
		case d.Challenge != "":
			to, err := a.redirectWithCode(r.Context(), secret)
			if err != nil {
				return err
			}
			return seeOther(w, to)
		}
	}
	tokens, err := a.VerifyMagicLink(r.Context(), secret, verifier)
	if err != nil {
		return err
	}
	return a.writeTokens(w, tokens)
}

// redirectWithCode uses a magic link up and answers where the browser goes on
// to, with a code for /exchange. Tokens never travel in a URL.
func (a *Auth) redirectWithCode(ctx context.Context, secret string) (string, error) {
	d, u, err := a.useMagicLink(ctx, secret)
	if err != nil {
		return "", err
	}
	if u.Banned(a.now()) {
		return "", fail(CodeUserBanned, nil)
	}
	code, err := a.exchangeCode(ctx, u, linkData{Challenge: d.Challenge, By: provenBy{Email: d.Email}}, methodMagicLink)
	if err != nil {
		return "", err
	}
	return withQuery(d.RedirectTo, url.Values{"code": {code}}), nil
}

// finishMagicLink completes a magic link in a browser. With somewhere to go, it
// goes there with a code; in cookie mode the browser is signed in here; else
// the address is confirmed, and the page says that it can be closed.
func (a *Auth) finishMagicLink(w http.ResponseWriter, r *http.Request, secret string) error {
	_, d, err := a.peek(r.Context(), PurposeMagicLink, secret)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	if d.RedirectTo != "" && (a.cfg.cookies == nil || d.Challenge != "") {
		to, err := a.redirectWithCode(r.Context(), secret)
		if err != nil {
			return a.showProblem(w, r, err)
		}
		return seeOther(w, to)
	}
	if a.cfg.cookies == nil {
		if _, _, err := a.useMagicLink(r.Context(), secret); err != nil {
			return a.showProblem(w, r, err)
		}
		return a.showDone(w, r, "email_verified", "")
	}
	tokens, err := a.VerifyMagicLink(r.Context(), secret, "")
	if err != nil {
		return a.showProblem(w, r, err)
	}
	a.setCookies(w, tokens)
	return a.showDone(w, r, "signed_in", d.RedirectTo)
}

// handleVerifyEmail is GET /verify-email.
func (a *Auth) handleVerifyEmail(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	switch {
	case r.Method == http.MethodHead || a.asksForPage(r):
		return a.showConfirm(w, r, "confirm_email", PurposeVerifyEmail)
	case wantsHTML(r):
		return a.finishVerifyEmail(w, r, token)
	}
	u, err := a.VerifyEmail(r.Context(), token, "")
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"email_verified": true, "user": u})
}

// handleVerifyEmailPost is the page's button.
func (a *Auth) handleVerifyEmailPost(w http.ResponseWriter, r *http.Request) error {
	form, err := a.readForm(r)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	return a.finishVerifyEmail(w, r, form.Get("token"))
}

func (a *Auth) finishVerifyEmail(w http.ResponseWriter, r *http.Request, token string) error {
	d, _, err := a.verifyEmail(r.Context(), token, "")
	if err != nil {
		return a.showProblem(w, r, err)
	}
	return a.showDone(w, r, "email_verified", d.RedirectTo)
}

// handleResetPage is GET /reset-password; opening it never uses the link up.
func (a *Auth) handleResetPage(w http.ResponseWriter, r *http.Request) error {
	if wantsHTML(r) {
		return a.showConfirm(w, r, "reset_password", PurposeReset)
	}
	_, d, err := a.peek(r.Context(), PurposeReset, r.URL.Query().Get("token"))
	if err == nil && d.Email == "" {
		err = fail(CodeInvalidToken, errors.New("a decoy"))
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// handleResetPost is the page's form. A password that is refused shows the form
// again, with the reasons.
func (a *Auth) handleResetPost(w http.ResponseWriter, r *http.Request) error {
	form, err := a.readForm(r)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	d, err := a.resetPassword(r.Context(), form.Get("token"), form.Get("new_password"))
	var e *Error
	if errors.As(err, &e) && (e.Code == CodeWeakPassword || e.Code == CodeValidationFailed) {
		a.showPage(w, r, e.Status, page{
			Name: "reset_password", Token: form.Get("token"), Address: maskEmail(d.Email),
			Problem: e.Message, Reasons: e.Reasons, MinLength: a.passwords.minLength(),
		}, d.RedirectTo)
		return nil
	}
	if err != nil {
		return a.showProblem(w, r, err)
	}
	return a.showDone(w, r, "password_reset", d.RedirectTo)
}
