package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// SendPasswordResetParams ask for a link to choose a new password with.
type SendPasswordResetParams struct {
	Email      string
	RedirectTo string
}

// SendPasswordReset mails a link to choose a new password with. The answer is
// the same whether or not there is an account. Whoever has no password and never
// signed in, such as somebody who was imported, gets KindWelcome. Errors: CodeMethodDisabled,
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
	return a.sendLink(ctx, KindWelcome, store.PurposeReset, resetLife, email, linkData{RedirectTo: p.RedirectTo}, false)
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

// ResetPasswordParams choose a new password with the token of a reset link.
type ResetPasswordParams struct {
	Token       string
	NewPassword string
}

// ResetPassword sets a new password with the token of a reset link. Every
// session of the user ends, other links die, the devices that were signed in on are
// forgotten, and the address counts as verified; an account that nobody had proved to be theirs is taken over. It
// signs nobody in. Errors: CodeInvalidToken; the link stays good with
// CodeWeakPassword, CodeValidationFailed, CodeMethodDisabled, CodeOverloaded and
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
		r, _ := a.provingRedemption(ctx, u, rootEmail, Caller{}, done(Event{Type: EventPasswordReset, UserID: u.ID}))
		setPassword(r.Patch, chosen)
		r.Patch.Revoke, r.Patch.DropTokens = &store.SessionFilter{}, dyingWithAddress()
		r.Patch.DropDevices = true // whoever is thrown out has tries of no device's own
		return r, nil
	})
	if err != nil {
		return d, err
	}
	a.unlockPassword(ctx, u, true)
	return d, nil
}

// resetUser is the user of a reset link, who still has the address that it was
// sent to.
func (a *Auth) resetUser(ctx context.Context, t store.Token, d linkData) (User, error) {
	u, err := a.store.User(ctx, store.ByID(t.UserID))
	if err != nil {
		return u, linkFailed(err)
	}
	if store.EmailKey(u.Email) != store.EmailKey(d.Email) {
		return u, fail(CodeInvalidToken, errors.New("sent to an address the account no longer has"))
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

// handleResetPage is GET /reset-password; opening it never uses the link up.
func (a *Auth) handleResetPage(w http.ResponseWriter, r *http.Request) error {
	if !fromProgram(r) {
		return a.askForPassword(w, r, http.StatusOK, r.URL.Query().Get("token"), page{})
	}
	if _, _, err := a.peekMailed(r.Context(), store.PurposeReset, r.URL.Query().Get("token")); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// askForPassword shows the page to choose a password at. Somebody who was never here
// has no devices to be told of.
func (a *Auth) askForPassword(w http.ResponseWriter, r *http.Request, status int, secret string, pg page) error {
	t, d, err := a.peekMailed(r.Context(), store.PurposeReset, secret)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	c, err := a.store.Credentials(r.Context(), store.ByID(t.UserID))
	if err != nil {
		return a.showProblem(w, r, linkFailed(err))
	}
	pg.Name, pg.Token, pg.Address, pg.MinLength, pg.First = "reset_password", secret, maskEmail(d.Email), a.Settings(r.Context()).PasswordMinLength, awaited(c)
	a.showPage(w, r, status, pg, d.RedirectTo)
	return nil
}

// handleResetPost is the page's form. A password that is refused shows the form
// again, with the reasons.
func (a *Auth) handleResetPost(w http.ResponseWriter, r *http.Request) error {
	form, err := a.readForm(r)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	d, err := a.resetPassword(r.Context(), ResetPasswordParams{form.Get("token"), form.Get("new_password")})
	var e *Error
	if errors.As(err, &e) && (e.Code == CodeWeakPassword || e.Code == CodeValidationFailed) {
		return a.askForPassword(w, r, e.Status, form.Get("token"), page{Problem: e.Message, Reasons: e.Reasons})
	}
	if err != nil {
		return a.showProblem(w, r, err)
	}
	return a.showDone(w, r, page{Done: "password_reset"}, d.RedirectTo)
}

// welcomeLife is how long the link of a welcome lives that the application sends:
// nobody waits for it.
const welcomeLife = 7 * 24 * time.Hour

// awaited tells that an account waits for somebody to choose its first password:
// it has none and no other way in, and nobody has ever signed in to it.
func awaited(c store.Credentials) bool {
	u := c.User
	return u.ID != "" && c.PasswordHash == "" && len(u.Identities) == 0 && u.LastSignInAt.IsZero()
}

// SendWelcomeParams ask a user to choose a first password.
type SendWelcomeParams struct {
	UserID     string
	RedirectTo string // where the page leads afterwards
}

// SendWelcome mails a user who has no password, such as somebody who was imported,
// a link to choose the first one with, on behalf of the application. It works
// once, for seven days, and as any link to choose a password it ends with the
// next one. It draws SendGap and SendPerAddress, apart from what strangers ask for.
// Errors: CodeNotFound; CodeValidationFailed for somebody who has a password or no
// e-mail address; CodeUserBanned, CodeMethodDisabled, CodeRedirectNotAllowed,
// CodeRateLimited.
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
	allowed, err := a.takeUnasked(ctx, atWelcome, KindWelcome, c.User.Email)
	if err != nil {
		return err
	}
	link, o := a.newWelcome(c.User, p.RedirectTo)
	o.Permit = allowed
	return a.mailToken(ctx, ByApplication("").authority(), link, o, c.User)
}

// newWelcome makes the link by which a user chooses a first password, and its mail.
func (a *Auth) newWelcome(u User, redirectTo string) (store.Token, outbox.Outgoing) {
	secret, link := a.newLink(store.PurposeReset, welcomeLife, linkData{Email: u.Email, RedirectTo: redirectTo})
	link.UserID, link.Subject = u.ID, store.EmailKey(u.Email)
	return link, outbox.Outgoing{Kind: KindWelcome, To: u.Email, Link: a.linkURL(KindWelcome, secret), ExpiresIn: welcomeLife}
}
