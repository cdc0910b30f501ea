package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// SendPasswordResetParams are the parameters of SendPasswordReset.
type SendPasswordResetParams struct {
	Email      string
	RedirectTo string
}

// SendPasswordReset mails a link to choose a new password. The response is the same
// whether or not there is an account. A user without a password who has never signed
// in, such as an imported one, gets KindWelcome. Errors: CodeMethodDisabled,
// CodeValidationFailed, CodeRedirectNotAllowed, CodeRateLimited.
func (a *Auth) SendPasswordReset(ctx context.Context, p SendPasswordResetParams) error {
	if !a.Settings(ctx).Password.On() {
		return fail(CodeMethodDisabled, nil)
	}
	email, err := requiredEmail(p.Email)
	if err != nil {
		return invalid("email", err.Error())
	}
	if err := a.allowRedirect(p.RedirectTo); err != nil {
		return err
	}
	_, err = a.sendLink(ctx, KindWelcome, store.PurposeReset, resetLife, email, linkData{RedirectTo: p.RedirectTo}, false)
	return err
}

func (a *Auth) handleForgotPassword(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Email      string `json:"email"`
		RedirectTo string `json:"redirect_to"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if err := a.SendPasswordReset(r.Context(), SendPasswordResetParams(p)); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// ResetPasswordParams are the parameters of ResetPassword.
type ResetPasswordParams struct {
	Token       string
	NewPassword string
}

// ResetPassword sets a new password with the token of a reset link. It revokes every
// session and the other links of the user, forgets their known devices, and marks the
// email address as verified. If the account was unverified, the user takes it over.
// ResetPassword does not sign in. Errors: CodeInvalidToken, CodeEmailNotVerified; and, with the link still
// valid, CodeWeakPassword, CodeValidationFailed, CodeMethodDisabled, CodeOverloaded and
// those of Hooks.BeforePasswordChange.
func (a *Auth) ResetPassword(ctx context.Context, p ResetPasswordParams) error {
	_, err := a.resetPassword(ctx, p)
	return err
}

func (a *Auth) resetPassword(ctx context.Context, p ResetPasswordParams) (linkData, error) {
	if !a.Settings(ctx).Password.On() {
		return linkData{}, fail(CodeMethodDisabled, nil)
	}
	if p.NewPassword == "" {
		return linkData{}, invalid("new_password", "is required")
	}
	t, d, err := a.peekMailed(ctx, store.PurposeReset, p.Token)
	if err != nil {
		return d, err
	}
	u, err := a.resetUser(ctx, t, d)
	if err != nil {
		return d, err
	}
	chosen, err := a.choosePassword(ctx, PasswordChange{u, passwordByReset}, newPassword{text: p.NewPassword}, nil)
	if err != nil {
		return d, err
	}
	d, u, err = a.redeem(ctx, store.PurposeReset, p.Token, func(t store.Token, d linkData) (store.Redemption, error) {
		u, err := a.resetUser(ctx, t, d)
		if err != nil {
			return store.Redemption{}, err
		}
		r, _ := a.verificationRedemption(ctx, u, rootEmail, Caller{}, done(Event{Type: EventPasswordReset, UserID: u.ID}))
		setPassword(r.Patch, chosen)
		r.Patch.Revoke, r.Patch.DropTokens = &store.SessionFilter{}, purposesOfEmail()
		r.Patch.DropDevices = true // a signed-out attacker must have no attempts as a known device
		return r, nil
	})
	if err != nil {
		return d, err
	}
	a.unlockPassword(ctx, u, true)
	return d, nil
}

// resetUser returns the user of a reset link. The user must still have the recipient's
// address. If it is not verified, and the account has a verified number, the holder of the
// number has the account: the reader of a mailbox that somebody else may have written does
// not get it, and the link stays valid until the holder has verified the address. Operators
// and the application vouch for the address of a link that they send.
func (a *Auth) resetUser(ctx context.Context, t store.Token, d linkData) (User, error) {
	u, err := a.store.User(ctx, store.ByID(t.UserID))
	if err != nil {
		return u, linkFailed(err)
	}
	if store.EmailKey(u.Email) != store.EmailKey(d.Email) {
		return u, fail(CodeInvalidToken, errors.New("the link was sent to an address that the account no longer has"))
	}
	if !u.EmailVerified() && hasHolder(u) && d.Maker == nil && !d.Welcome {
		return u, fail(CodeEmailNotVerified, errors.New("the phone number is verified and the address is not"))
	}
	return u, nil
}

func (a *Auth) handleResetPassword(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Token       string `json:"token"`
		NewPassword string `json:"new_password"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if p.Token == "" {
		return invalid("token", "is required")
	}
	if err := a.ResetPassword(r.Context(), ResetPasswordParams(p)); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// handleResetPage is GET /reset-password. It never consumes the link.
func (a *Auth) handleResetPage(w http.ResponseWriter, r *http.Request) error {
	if !fromProgram(r) {
		return a.showResetPage(w, r, http.StatusOK, r.URL.Query().Get("token"), page{})
	}
	_, _, err := a.peekMailed(r.Context(), store.PurposeReset, r.URL.Query().Get("token"))
	return answerProgram(w, err)
}

// showResetPage shows the page to choose a password. The page does not mention devices
// to a user who has never signed in.
func (a *Auth) showResetPage(w http.ResponseWriter, r *http.Request, status int, secret string, pg page) error {
	t, d, err := a.peekMailed(r.Context(), store.PurposeReset, secret)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	if _, err := a.resetUser(r.Context(), t, d); err != nil {
		return a.showResetProblem(w, r, err)
	}
	c, err := a.store.Credentials(r.Context(), store.ByID(t.UserID))
	if err != nil {
		return a.showProblem(w, r, linkFailed(err))
	}
	pg.Name, pg.Token, pg.Address, pg.MinLength, pg.First = "reset_password", secret, maskEmail(d.Email), a.Settings(r.Context()).PasswordMinLength, awaitsPassword(c)
	a.showPage(w, r, status, pg, d.RedirectTo)
	return nil
}

// handleResetPost handles the page's form. If the password is refused, it shows the
// form again with the reasons.
func (a *Auth) handleResetPost(w http.ResponseWriter, r *http.Request) error {
	form, err := a.readForm(r)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	d, err := a.resetPassword(r.Context(), ResetPasswordParams{form.Get("token"), form.Get("new_password")})
	var e *Error
	if errors.As(err, &e) && (e.Code == CodeWeakPassword || e.Code == CodeValidationFailed) {
		return a.showResetPage(w, r, e.Status, form.Get("token"), page{Failure: e})
	}
	if err != nil {
		return a.showResetProblem(w, r, err)
	}
	return a.showDone(w, r, page{Done: "password_reset"}, d.RedirectTo)
}

// showResetProblem is showProblem with a text of its own for resetUser.
func (a *Auth) showResetProblem(w http.ResponseWriter, r *http.Request, err error) error {
	return a.showProblemOn(w, r, err, page{OfLink: true, Unconfirmed: errors.Is(err, CodeEmailNotVerified)})
}

// welcomeLife is the lifetime of the link in a welcome message that the application
// sends. It is long, because the user does not expect the message.
const welcomeLife = 7 * 24 * time.Hour

// awaitsPassword reports whether an account waits for its first password: it has no
// password, no identity and no sign-in.
func awaitsPassword(c store.Credentials) bool {
	u := c.User
	return u.ID != "" && c.PasswordHash == "" && len(u.Identities) == 0 && u.LastSignInAt.IsZero()
}

// SendWelcomeParams are the parameters of SendWelcome.
type SendWelcomeParams struct {
	UserID     string
	RedirectTo string // where the page leads afterwards
}

// SendWelcome mails a link to choose a first password to a user who has none, such as
// an imported one, on behalf of the application. The link works once and for seven
// days. A later link to choose a password revokes it. It counts against SendGap and
// SendPerAddress, separately from requests of strangers. Errors: CodeNotFound;
// CodeValidationFailed for a user with a password or without an email address;
// CodeUserBanned, CodeMethodDisabled, CodeRedirectNotAllowed, CodeRateLimited.
func (a *Auth) SendWelcome(ctx context.Context, p SendWelcomeParams) error {
	if !a.Settings(ctx).Password.On() {
		return fail(CodeMethodDisabled, nil)
	}
	if err := a.allowRedirect(p.RedirectTo); err != nil {
		return err
	}
	c, err := a.store.Credentials(ctx, store.ByID(p.UserID))
	switch u := c.User; {
	case err != nil:
		return goneOr(CodeNotFound, err)
	case u.Banned(a.now()):
		return fail(CodeUserBanned, nil)
	case u.Email == "":
		return invalid("user_id", "has no e-mail address")
	case c.PasswordHash != "":
		return invalid("user_id", "has a password already")
	}
	allowed, err := a.takeUnrequested(ctx, atWelcome, KindWelcome, c.User.Email)
	if err != nil {
		return err
	}
	link, o := a.newWelcome(c.User, p.RedirectTo)
	o.Permit = allowed
	return a.mailToken(ctx, ByApplication("").authority(), link, o, c.User)
}

// newWelcome returns the link to choose a first password, and its mail.
func (a *Auth) newWelcome(u User, redirectTo string) (store.Token, outbox.Outgoing) {
	secret, link := a.newLink(store.PurposeReset, welcomeLife, linkData{Email: u.Email, RedirectTo: redirectTo, Welcome: true})
	link.UserID, link.Subject = u.ID, store.EmailKey(u.Email)
	return link, outbox.Outgoing{Kind: KindWelcome, To: u.Email, Link: a.linkURL(KindWelcome, secret), ExpiresIn: welcomeLife}
}
