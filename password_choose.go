package auth

import "context"

// chosenPassword is a password that may take the place of an account's. Only
// choosePassword makes one, and only setPassword puts it into a patch, so that no
// door to a new password passes the rules and the application's hooks by.
type chosenPassword struct{ hash string }

// choosePassword judges a password that somebody chooses for an account that is
// there, asks the application's hooks, and hashes it. last, if set, is asked once
// everything else speaks for it. Errors: CodeWeakPassword, CodeValidationFailed,
// CodeOverloaded, those of hooks and of last.
func (a *Auth) choosePassword(ctx context.Context, p PasswordChange, password string, last func() error) (chosenPassword, error) {
	if err := a.checkPassword(ctx, password, p.User.Email, p.User.FullName); err != nil {
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
	hash, err := a.passwords.hash(ctx, p.User.ID, password)
	if err != nil {
		return chosenPassword{}, hashFailed(err)
	}
	return chosenPassword{hash}, nil
}

// setPassword puts a password into a patch.
func (p *UserPatch) setPassword(c chosenPassword) { p.PasswordHash = &c.hash }
