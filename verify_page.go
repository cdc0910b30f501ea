package auth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/authmount/auth/store"
)

// handleVerifyEmail is GET /verify-email. It never completes the verification.
func (a *Auth) handleVerifyEmail(w http.ResponseWriter, r *http.Request) error {
	secret := r.URL.Query().Get("token")
	if !fromProgram(r) {
		return a.showVerifyPage(w, r, secret, nil)
	}
	_, _, err := a.peekMailed(r.Context(), store.PurposeVerifyEmail, secret)
	return answerProgram(w, err)
}

// showVerifyPage shows the page of a verification link. If another person may have
// created the account, the page says when and on which device, and offers to disown it.
// problem is the error of a password that was typed on the page; nil: none.
func (a *Auth) showVerifyPage(w http.ResponseWriter, r *http.Request, secret string, problem error) error {
	t, d, c, err := a.peekVerification(r.Context(), secret)
	if errors.Is(err, CodeInvalidToken) {
		if may, failed := a.refusable(r.Context(), secret); failed != nil {
			err = failed
		} else if may {
			a.showPage(w, r, http.StatusOK, page{Name: "link_elsewhere", Token: secret, Replaced: true}, "")
			return nil
		}
	}
	if err != nil {
		return a.showProblem(w, r, err)
	}
	u := c.User
	here := a.signedInAs(r, u) || isFirstVerification(u, d) && a.signedUp(u, a.signUpsOf(r, ""))
	completesHere := here || !isElsewhere(c, d)
	if here && isNewAddress(u, d) && d.SessionID != "" { // only while the session that asked is live
		_, _, err := a.liveSession(r.Context(), Caller{UserID: u.ID, SessionID: d.SessionID}, CodeSessionEnded)
		completesHere = !errors.Is(err, CodeSessionEnded)
	}
	if !completesHere {
		return a.showElsewhere(w, r, t, c, d, page{Token: secret}, problem)
	}
	pg := page{Name: "confirm_email", Token: secret, Address: maskEmail(d.Email)}
	if isNewAddress(u, d) { // a stranger may have signed the browser in to an account of theirs
		pg.Address, pg.NewAddress = maskedAccount(u), d.Email
	}
	if maybeUnknownAccount(u, d) && !here {
		pg.Given = d.Welcome
		pg.Disownable, pg.MadeAt, pg.MadeFrom = true, pageTime(u.CreatedAt), deviceLabel(d.Device)
	}
	a.showPage(w, r, http.StatusOK, pg, d.RedirectTo)
	return nil
}

// peekVerification is peekMailed for a verification link, with its account.
func (a *Auth) peekVerification(ctx context.Context, secret string) (store.Token, linkData, store.Credentials, error) {
	t, d, err := a.peekMailed(ctx, store.PurposeVerifyEmail, secret)
	if err != nil {
		return t, d, store.Credentials{}, err
	}
	c, err := a.store.Credentials(ctx, store.ByID(t.UserID))
	if err != nil {
		err = linkFailed(err)
	}
	return t, d, c, err
}

// isElsewhere reports whether a verification link does not complete by a press in a browser
// that is neither signed in to the account nor the one that signed up.
func isElsewhere(c store.Credentials, d linkData) bool {
	return isNewAddress(c.User, d) || isFirstVerification(c.User, d) && carriesCredentials(c)
}

// maskedAccount returns the address by which a page names an account.
func maskedAccount(u User) string { return cmp.Or(maskEmail(u.Email), maskAddress(u.Phone)) }

func pageTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// showElsewhere shows the page of a verification link that does not complete where it was
// opened: who requested it, when and on which device. pg has the code to type there, if the
// reader has asked for it.
func (a *Auth) showElsewhere(w http.ResponseWriter, r *http.Request, t store.Token, c store.Credentials, d linkData, pg page, problem error) error {
	u := c.User
	pg.MadeFrom = deviceLabel(d.Device)
	if !isNewAddress(u, d) {
		pg.Name, pg.Address, pg.MadeAt = "confirm_sign_up", d.Email, pageTime(u.CreatedAt)
		pg.Given = d.Welcome
		pg.NoPassword = c.PasswordHash == "" || !a.Settings(r.Context()).Password.On()
		status := http.StatusOK
		if problem != nil {
			e := a.logged(r, problem)
			writeErrorHeaders(w, e)
			status, pg.Failure = e.Status, e
		}
		a.showPage(w, r, status, pg, d.RedirectTo)
		return nil
	}
	_, _, err := a.liveSession(r.Context(), Caller{UserID: u.ID, SessionID: d.SessionID}, CodeSessionEnded)
	switch {
	case errors.Is(err, CodeSessionEnded), errors.Is(err, CodeUserBanned):
		pg.Over = true
	case err != nil:
		return a.showProblem(w, r, err)
	}
	pg.Name, pg.Address, pg.NewAddress = "link_elsewhere", maskedAccount(u), d.Email
	pg.MadeAt = pageTime(t.CreatedAt)
	a.showPage(w, r, http.StatusOK, pg, "")
	return nil
}

// showVerificationCode is "That was me" on the page of showElsewhere. Each press shows another code, and
// the one before becomes invalid.
func (a *Auth) showVerificationCode(w http.ResponseWriter, r *http.Request, secret string) error {
	ctx := r.Context()
	t, d, creds, err := a.peekVerification(ctx, secret)
	switch {
	case err != nil:
		return a.showProblem(w, r, err)
	case !isElsewhere(creds, d):
		return a.showVerifyPage(w, r, secret, nil)
	}
	u, pg := creds.User, page{Token: secret}
	authority := byFlow("confirmation")
	if isNewAddress(u, d) {
		authority = Caller{UserID: u.ID, SessionID: d.SessionID}.authority()
	}
	if !isNewAddress(u, d) || d.SessionID != "" { // a change that the application requested has no session to type a code in
		code := a.addShownCode(&t, d)
		err = a.keepToken(ctx, store.PutToken{Change: a.newChange(ctx, authority), Token: t, Supersedes: &t.Hash})
		switch {
		case err == nil:
			a.refillCode(ctx, t.Purpose, ofUser(u.ID), store.EmailKey(d.Email))
			pg.TypedCode = code
		case errors.Is(err, store.ErrStale): // the link was used or replaced meanwhile
			return a.showProblem(w, r, fail(CodeInvalidToken, err))
		case !errors.Is(err, CodeSessionEnded) && !errors.Is(err, CodeUserBanned):
			return a.showProblem(w, r, err)
		}
	}
	return a.showElsewhere(w, r, t, creds, d, pg, nil)
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
	switch {
	case form.Get("show_code") != "":
		return a.showVerificationCode(w, r, form.Get("token"))
	case form.Get("disown") == "":
		return a.finishVerifyEmail(w, r, form)
	}
	done, reset, err := a.disownAccount(r.Context(), form.Get("token"))
	if err != nil {
		return a.showProblem(w, r, err)
	}
	return a.showDone(w, r, page{Done: done, ResetSent: reset}, "")
}

func (a *Auth) finishVerifyEmail(w http.ResponseWriter, r *http.Request, form url.Values) error {
	within, err := a.within(r)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	token := form.Get("token")
	d, _, err := a.verifyEmail(r.Context(), VerifyEmailParams{Token: token, Within: within, RequestID: a.signUpsOf(r, ""), Password: form.Get("password")})
	switch {
	case errors.Is(err, CodeMissingToken): // signed out meanwhile
		return a.showVerifyPage(w, r, token, nil)
	case errors.Is(err, CodeInvalidCredentials), errors.Is(err, CodeRateLimited), errors.Is(err, CodeOverloaded): // of the password
		return a.showVerifyPage(w, r, token, err)
	case err != nil:
		return a.showProblem(w, r, err)
	}
	return a.showDone(w, r, page{Done: "email_verified"}, d.RedirectTo)
}
