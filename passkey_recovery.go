package auth

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// While links are switched off and passkeys on, the same links and codes still go to new
// addresses, because a sign-up with a passkey verifies the address first, and to accounts
// that have no other sign-in method than passkeys, because these can be lost.

// requireLinks returns CodeMethodDisabled if no links or codes are sent at all.
func (a *Auth) requireLinks(ctx context.Context) error {
	if !a.Settings(ctx).MagicLink.On() && !a.passkeysOn(ctx) {
		return fail(CodeMethodDisabled, nil)
	}
	return nil
}

// requireLink returns refused if an account takes no link or code now.
func (a *Auth) requireLink(ctx context.Context, c store.Credentials, refused Code) error {
	takes, err := a.takesLink(ctx, c)
	if err == nil && !takes {
		err = fail(refused, errors.New("sign-in links are switched off, and the account has another way"))
	}
	return err
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

// takesLink reports whether an account, or nobody's address, takes links and codes. It reads
// the factors also for an unknown address, as for a known one.
func (a *Auth) takesLink(ctx context.Context, c store.Credentials) (bool, error) {
	if a.Settings(ctx).MagicLink.On() {
		return true, nil
	}
	list, err := a.factors.Factors(ctx, cmp.Or(c.User.ID, uuid.Nil.String()))
	if err != nil {
		return false, storeFailed(err)
	}
	return c.User.ID == "" || len(passkeysOf(list.List)) > 0 && !a.canSignInBy(ctx, c, "", 0), nil
}
