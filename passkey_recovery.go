package auth

import (
	"context"
	"errors"

	"github.com/authmount/auth/store"
)

// While links are switched off and passkeys on, the same links and codes still go to new
// addresses, because a sign-up with a passkey verifies the address first, and to accounts
// without a password or another sign-in method, because passkeys can be lost, and a sign-up
// can be left before the passkey is added.

// requireLinks returns CodeMethodDisabled if no links or codes are sent at all.
func (a *Auth) requireLinks(ctx context.Context) error {
	if !a.Settings(ctx).MagicLink.On() && !a.passkeysOn(ctx) {
		return fail(CodeMethodDisabled, nil)
	}
	return nil
}

// requireLink returns refused if an account takes no link or code now.
func (a *Auth) requireLink(ctx context.Context, c store.Credentials, refused Code) error {
	if !a.takesLink(ctx, c) {
		return fail(refused, errors.New("sign-in links are switched off, and the account has another way"))
	}
	return nil
}

// requireLinkTo is requireLink for the account that has an email address, for a code.
func (a *Auth) requireLinkTo(ctx context.Context, email string) error {
	if a.Settings(ctx).MagicLink.On() {
		return nil
	}
	c, err := a.store.Credentials(ctx, store.ByEmail(email))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return storeFailed(err)
	}
	return a.requireLink(ctx, c, CodeInvalidCode)
}

// takesLink reports whether an account, or nobody's address, takes links and codes.
func (a *Auth) takesLink(ctx context.Context, c store.Credentials) bool {
	return a.Settings(ctx).MagicLink.On() || c.User.ID == "" || !a.canSignInBy(ctx, c, "", 0)
}
