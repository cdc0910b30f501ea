package auth

import (
	"context"
	"errors"

	"github.com/authmount/auth/store"
)

// What the admin side builds jobs on.

// Behind has f run behind the requests' backs until Close, which waits for it.
func (k kit) Behind(f func(ctx context.Context)) { k.a.behind.run(f) }

// SealJob encrypts what a job has still to do, for that job only.
func (k kit) SealJob(jobID string, plain []byte) []byte {
	return k.a.keys.SealJob(plain, []byte(jobID))
}

// OpenJob reads what SealJob sealed, also under a former secret.
func (k kit) OpenJob(jobID string, sealed []byte) ([]byte, error) {
	return k.a.keys.OpenJob(sealed, []byte(jobID))
}

// ForJob is the context of what a job does, which is recorded under its id as that of
// a request.
func (k kit) ForJob(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// ImportsAtOnce tells whether ImportAll creates users in one step.
func (k kit) ImportsAtOnce() bool { return k.a.imports != nil && k.a.creating() == nil }

// ImportAll creates users in one step of the store, and tells of each why it was not.
// The error is errors.ErrUnsupported where users have to be created one after the other.
func (k kit) ImportAll(ctx context.Context, c store.CreateUsers) ([]error, error) {
	if !k.ImportsAtOnce() {
		return nil, errors.ErrUnsupported
	}
	return k.a.imports.CreateUsers(ctx, c)
}

// WithHash adds to the edit of an account a password hash of another system, unless it
// has that already: it is a change of its password, with what dies by it and the notice.
// Errors: CodeValidationFailed,
// those of hooks, and the store's.
func (k kit) WithHash(ctx context.Context, c *store.Change, u User, hash string, p *store.UserPatch) error {
	had, err := k.a.store.Credentials(ctx, store.ByID(u.ID))
	if err != nil || had.PasswordHash == hash {
		return err
	}
	chosen, err := k.a.choosePassword(ctx, PasswordChange{u, passwordByOperator}, newPassword{hash: hash}, nil)
	if err != nil {
		return err
	}
	setPassword(p, chosen)
	p.Revoke, p.DropDevices = &store.SessionFilter{}, true
	p.DropTokens = append(p.DropTokens, dyingWithPassword()...)
	k.a.tell(ctx, c, account{User: u}, EventPasswordChanged)
	return nil
}
