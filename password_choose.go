package auth

import (
	"context"

	"github.com/authmount/auth/store"
)

// chosenPassword is a password that may take the place of an account's. Only
// choosePassword makes one, and only setPassword puts it into a patch, so that no
// door to a new password passes the rules and the application's hooks by.
type chosenPassword struct{ hash string }

// newPassword is a password as somebody chooses it, or the hash of one of which
// another system had to judge.
type newPassword struct{ text, hash string }

// choosePassword judges a password that somebody chooses for an account that is
// there, asks the application's hooks, and hashes it. last, if set, is asked once
// everything else speaks for it. Errors: CodeWeakPassword, CodeValidationFailed,
// CodeOverloaded, those of hooks and of last.
func (a *Auth) choosePassword(ctx context.Context, p PasswordChange, password newPassword, last func() error) (chosenPassword, error) {
	judge := func() error { return a.checkPassword(ctx, password.text, p.User.Email, p.User.FullName) }
	if password.hash != "" {
		judge = func() error { return checkHash(password.hash) }
	}
	if err := judge(); err != nil {
		return chosenPassword{}, err
	}
	if err := a.beforePasswordChange(ctx, p); err != nil {
		return chosenPassword{}, err
	}
	if last != nil {
		if err := last(); err != nil {
			return chosenPassword{}, err
		}
	}
	if password.hash != "" {
		return chosenPassword{password.hash}, nil
	}
	hash, err := a.passwords.hash(ctx, p.User.ID, password.text)
	if err != nil {
		return chosenPassword{}, hashFailed(err)
	}
	return chosenPassword{hash}, nil
}

// setPassword puts a password into a patch.
func setPassword(p *store.UserPatch, c chosenPassword) { p.PasswordHash = &c.hash }
