package auth

import (
	"context"
	"errors"

	"github.com/authmount/auth/store"
)

// While links are switched off and passkeys on, the same links and codes still go to addresses
// that no account has verified, because a sign-up with a passkey verifies the address first,
// and to accounts without a password or another sign-in method, because passkeys can be lost,
// and a sign-up can be left before the passkey is added.

// requireLinks returns CodeMethodDisabled if no links or codes are sent at all.
func (a *Auth) requireLinks(ctx context.Context) error {
	if !a.Settings(ctx).MagicLink.On() && !a.passkeysOn(ctx) {
		return fail(CodeMethodDisabled, nil)
	}
	return nil
}

// requireLink returns CodeInvalidToken if an account takes no link now.
func (a *Auth) requireLink(ctx context.Context, c store.Credentials) error {
	if !a.takesLink(ctx, c) {
		return fail(CodeInvalidToken, errors.New("sign-in links are switched off, and the account has another way"))
	}
	return nil
}

// takesCode reports whether the account that has an email address takes codes.
func (a *Auth) takesCode(ctx context.Context, email string) (bool, error) {
	if a.Settings(ctx).MagicLink.On() {
		return true, nil
	}
	c, err := a.store.Credentials(ctx, store.ByEmail(email))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, storeFailed(err)
	}
	return a.takesLink(ctx, c), nil
}

// takesLink reports whether an account takes links and codes. An address that nobody verified
// is new, whoever entered it.
func (a *Auth) takesLink(ctx context.Context, c store.Credentials) bool {
	return a.Settings(ctx).MagicLink.On() || !c.User.EmailVerified() || !a.canSignInBy(ctx, c, "", 0)
}
