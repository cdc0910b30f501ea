package auth

import (
	"context"
	"time"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

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
